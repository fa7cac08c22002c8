"""The JSON of each command, and the names of what runs store in MLflow and the cache: keys and types, no values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from dice_ray.data import cache
from dice_ray.tracking.store import quiet_client, store_uri
from tests.golden.conftest import Cli, Golden, shape

ROWS = [
    f"{'alarm' if number % 3 else 'quiet'} number {number}\t{'yes' if number % 3 else 'no'}" for number in range(90)
]
QUICK = ("--set", "training.epochs=1", "--set", "training.evaluations=2")
SMALL = ("synthetic_pairs", "--set", "data.source.synthetic.size=100", *QUICK)


def _stored(experiment: str) -> dict[str, Any]:
    """The names that the runs of an experiment have in MLflow, by their kind."""
    client = quiet_client(store_uri())
    found: dict[str, Any] = {}
    stored = client.get_experiment_by_name(experiment)
    assert stored is not None
    for run in client.search_runs([stored.experiment_id]):
        of_kind = found.setdefault(run.data.tags["dice_ray.kind"], {"tags": {}, "params": {}, "metrics": {}})
        of_kind["tags"] |= dict.fromkeys(run.data.tags)
        of_kind["params"] |= dict.fromkeys(run.data.params)
        of_kind["metrics"] |= dict.fromkeys(run.data.metrics)
        of_kind.setdefault("artifacts", {}).update(
            dict.fromkeys(_artifacts(Path(unquote(urlsplit(run.info.artifact_uri).path))))
        )
    return {kind: {what: sorted(names) for what, names in each.items()} for kind, each in sorted(found.items())}


def _artifacts(root: Path) -> Iterator[str]:
    return (file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def _cached() -> list[Any]:
    """What each entry of the cache depends on, which its name is the hash of, and the digest of its records."""
    found = []
    for file in cache.folder().glob("*/entry.json"):
        stored = json.loads(file.read_text(encoding="utf-8"))["told"]
        key = json.loads(stored["written"])
        key["key"].pop("tokenizers", None)  # a version
        found.append({**key, "records": stored["holds"].get("digest")})
    return sorted(found, key=json.dumps)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / "cache"))


def test_run(cli: Cli, golden: Golden) -> None:
    """From a file of the user to a report."""
    Path("mine.tsv").write_text("\n".join(["text\tlabel", *ROWS]) + "\n")
    commands: dict[str, tuple[str, ...]] = {
        "init": ("mine.tsv", "--positive", "yes", "--out", "mine.yaml"),
        "inspect": ("mine.yaml",),
        "validate": ("mine.yaml",),
        "train": ("mine.yaml", *QUICK, "--name", "first"),
        "predict": ("first", "mine.tsv"),
        "evaluate": ("first", "dev"),
        "export": ("first", "exported"),
        "runs": (),
        "report": ("train",),
        "list": (),
        "losses": (),
        "cache": (),
    }
    found = {name: shape(cli(name, *arguments, "--json")) for name, arguments in commands.items()}
    golden("json.json", {**found, "runs train": shape(cli("runs", "train", "--json"))})
    golden("stored_by_a_run.json", _stored("train"))
    golden("cache.json", _cached())


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_sweep_and_study(cli: Cli, golden: Golden) -> None:
    Path("arms.py").write_text('BASELINE = "a"\nARMS = {"a": {"loss": "cross_entropy"}, "b": {"loss": "dice"}}\n')
    sweep = (*SMALL, "--trials", "1", "--seeds", "1", "--top", "1", "--name", "sw")
    study = ("arms.py", "--data", *SMALL, "--seeds", "1", "--name", "st")
    commands: dict[str, tuple[str, ...]] = {
        "tune": sweep,
        "ablate --dry-run": study,
        "ablate": study,
        "resume": ("st",),
        "runs": ("sw",),
        "report": ("st",),
        "export-preset": ("sw",),
        "export-optuna": ("sw", "optuna.db"),
        "doctor": SMALL[:3],
    }
    documents = {name: cli(*name.split(), *arguments, "--json") for name, arguments in commands.items()}
    golden("json_ray.json", {name: shape(document) for name, document in documents.items()})
    golden("stored_by_a_sweep.json", _stored("sw"))
    golden("stored_by_a_study.json", _stored("st"))
    best = documents["tune"]["best"]
    assert best["name"] == documents["runs"][0]["run"]
    assert documents["export-preset"] == {"sweep": "sw", "preset": cli("export-preset", "sw")}
    assert cli("export-preset", "sw", "best.yaml", "--json") == {"sweep": "sw", "written": "best.yaml"}
    assert Path("best.yaml").read_text() == documents["export-preset"]["preset"]
    resumed = cli("resume", "sw")
    assert f"\nBest: {best['name']} has dev/f1 " in resumed
    assert resumed.endswith("Next:\n  dice-ray runs sw\n  dice-ray report sw\n")
