"""A report of each kind, as Markdown, formed from made-up runs as MLflow holds them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dice_ray import api
from dice_ray.tracking import reader
from dice_ray.tracking.sources import StoredRun, _Stage
from tests.golden.conftest import Golden

Points: TypeAlias = float | Sequence[float]
BEGIN, HOUR = 1_700_000_000_000, 3_600_000
"""In milliseconds."""
FAILED: dict[str, Any] = {"state": "failed", "failure": "the loss must be finite,\ngot nan at step 3"}
ITEMS = [f"i{number}" for number in range(40)]
POSITIVE = ITEMS[:10]


class Store:
    """The experiment `made`, without a database."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._runs = folder, dict[str, StoredRun]()
        self._points: list[tuple[str, int, str, float]] = []

    def add(
        self,
        id_: str,
        tags: Mapping[str, object],
        metrics: Mapping[str, Points] | None = None,
        params: Mapping[str, object] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """A run of half an hour, an hour after the one before; several values of a metric are those of the steps."""
        start, root = BEGIN + len(self._runs) * HOUR, self._folder / id_
        shared = {"task": "text_classification", "data": "made", "encoder": "tiny", "loss": (params or {}).get("loss")}
        machine = {"cpu": "a processor", "cores": 2, "gpu": "none", "version.torch": "2.0", "results_version": 3}
        parent = {} if tags["kind"] in ("sweep", "study", "run") else {"mlflow.parentRunId": next(iter(self._runs))}
        ours = {f"dice_ray.{name}": value for name, value in {"id": id_, **shared, **machine, **tags}.items()}
        points = {
            name: list(value) if isinstance(value, Sequence) else [value] for name, value in (metrics or {}).items()
        }
        self._runs[id_] = StoredRun(
            name=id_,
            status="FAILED" if tags.get("state") == "failed" else "FINISHED",
            start=start,
            end=start + HOUR // 2,
            artifacts=str(root),
            params={name: str(value) for name, value in (params or {}).items()},
            metrics={name: values[-1] for name, values in points.items()} | {"train/seconds": 1800.0},
            tags={name: str(value) for name, value in (ours | parent).items() if value is not None},
        )
        self._points += [
            (id_, step, name, value) for name, values in points.items() for step, value in enumerate(values)
        ]
        for name, content in (files or {}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")

    def experiments(self, stage: _Stage = "active") -> dict[str, str]:
        return {"made": "1"}

    def runs(self, experiment: str) -> dict[str, StoredRun]:
        return self._runs

    def points(self, experiment: str) -> list[tuple[str, int, str, float]]:
        return self._points


def _noise(*parts: object) -> float:
    """A number between -.5 and .5 that is the same on every machine."""
    return zlib.crc32(repr(parts).encode()) % 1000 / 1000 - 0.5


def _counts(seed: object, share: float) -> tuple[float, dict[str, str]]:
    """The F1 of a test split of which about this share was right, and the files with its items and classes."""
    right = {item: _noise(seed, item) + 0.5 < share for item in ITEMS}
    positive = {item: item in POSITIVE for item in ITEMS}
    tp = sum(right[item] for item in POSITIVE)
    fp = sum(not right[item] for item in ITEMS if not positive[item])
    items = [
        f"{item},{int(ok and positive[item])},{int(not ok and not positive[item])},{int(not ok and positive[item])}"
        for item, ok in right.items()
    ]
    classes = [f"no,30,{30 - fp},{10 - tp},{fp}", f"yes,10,{tp},{fp},{10 - tp}"]
    files = {
        "test/items.csv": "\n".join(["id,tp,fp,fn", *items]) + "\n",
        "test/classes.csv": "\n".join(["class,support,tp,fp,fn", *classes]) + "\n",
    }
    return 2 * tp / (10 + tp + fp), files


def _study(store: Store, files: Mapping[str, str] | None = None, **tags: object) -> None:
    command = {"baseline": "cross_entropy", "command": "dice-ray ablate made", "metric": "test/f1"}
    store.add("made", {"kind": "study", **command, **tags}, files={"plan.yaml": "kind: study\n", **(files or {})})


def _cell(
    store: Store, arm: str, seed: int, score: float, params: Mapping[str, object] | None = None, **tags: object
) -> None:
    id_ = f"{tags.get('variant', '')}-{arm}-{seed}".replace("/", "_")
    own = {"kind": "cell", "arm": arm, "seed": seed, "state": "done", "collapsed": str(score == 0).lower(), **tags}
    constant = {"constant.test/constant_f1": 0.4}
    files: Mapping[str, str] = {}
    if own["state"] == "done" and "variant" not in own:
        score, files = _counts((arm, seed), score)
    found: dict[str, Points] = {
        "dev/f1": [score - 0.1, score],
        "dev/best_f1": score,
        "test/f1": score,
        "test/f1_tuned": score + 0.01,
        "test/threshold": 0.4,
        "test/precision": score + 0.02,
        "test/recall": score - 0.02,
        "test/pr_auc": score,
    }
    store.add(id_, constant | own, found if own["state"] == "done" else {}, {"loss": arm, **(params or {})}, files)


def study_over_seeds(store: Store) -> None:
    """With a failed cell, an arm that predicts one class only, and one that does not fit."""
    _study(
        store,
        {"left_out.json": '[{"variant": null, "arm": "focal", "reason": "it takes no such link"}]'},
        few_items="dev has 5 of 'yes'",
    )
    for (arm, mean), seed in product(
        {"cross_entropy": 0.7, "dice": 0.95, "tversky": 0.71, "none": 0.0}.items(), range(5)
    ):
        failed: dict[str, Any] = FAILED if (arm, seed) == ("tversky", 3) else {}
        score = mean + (_noise(arm, seed) / 20 if mean else 0)
        _cell(store, arm, seed, score, data="mrpc", published="mrpc", **failed)


def study_on_several_data_sets(store: Store) -> None:
    _study(store)
    for data, arm, seed in product("abcdef", ("cross_entropy", "dice", "focal"), range(3)):
        score = 0.6 + _noise(data) / 5 + 0.05 * (arm == "dice") + _noise(data, arm, seed) / 20
        _cell(store, arm, seed, score, variant=data, data=data)


def study_of_ratios(store: Store) -> None:
    _study(store)
    for ratio, arm, seed in product((1, 4, 16), ("cross_entropy", "dice"), range(5)):
        score = 0.8 - ratio / 50 + 0.004 * ratio * (arm == "dice") + _noise(ratio, arm, seed) / 30
        _cell(store, arm, seed, score, {"data.imbalance.ratio.negatives": ratio}, variant=f"1 to {ratio}")


def study_at_equal_budget(store: Store) -> None:
    _study(store, variants_are="settings")
    for draw, arm, seed in product(range(1, 10), ("cross_entropy", "dice", "focal"), range(5)):
        score = 0.6 + _noise("setting", draw) / 5 + 0.06 * (arm == "dice") + _noise(draw, arm, seed) / 50
        _cell(store, arm, seed, score, variant=f"{draw:02d}")


def _trials(store: Store, num: int, **tags: object) -> None:
    store.add("made", {"kind": "sweep", "metric": "dev/f1", **tags}, files={"plan.yaml": "kind: sweep\n"})
    for number in range(1, num + 1):
        loss = ("dice", "focal", "cross_entropy")[number % 3]
        drawn = {"loss": loss, "training.lr": f"{1e-4 * number:.1e}", f"loss.{loss}.gamma": 0.5 * number}
        state: Mapping[str, object] = {5: FAILED, 7: {"state": "pruned"}}.get(number, {"state": "done"})
        score = 0.7 + _noise(loss, number) / 4
        found: dict[str, Points] = {
            "dev/f1": [score - 0.2, score, score - 0.1],
            "dev/best_f1": score,
            "dev/recall": 0.9 - score / 2,
        }
        found |= {"dev/kept_recall": 0.9 - score / 2, "dev/kept_precision": score}
        own = {"kind": "trial", "searched": " ".join(drawn), "seed": 0, "constant.dev/constant_f1": 0.4}
        store.add(f"{number:04d}", {**own, **state}, found, drawn | {"training.epochs": 3})


def sweep(store: Store) -> None:
    _trials(store, 12)
    for seed, number in product((1001, 1002), (1, 4)):
        rerun = {"kind": "rerun", "rerun_of": f"{number:04d}", "seed": seed, "state": "done"}
        score = 0.7 + _noise(number, seed) / 10
        store.add(f"{number:04d}-{seed}", rerun, {"dev/f1": score, "dev/best_f1": score}, {"loss": "dice"})


def sweep_for_several_objectives(store: Store) -> None:
    _trials(store, 9, objectives="dev/recall dev/precision")


def runs_trained_alone(store: Store) -> None:
    for number, loss in enumerate(("dice", "focal", "dice")):
        score = 0.7 + _noise(number) / 5
        state: Mapping[str, object] = FAILED if number == 2 else {"state": "done"}
        found: dict[str, Points] = {} if number == 2 else {"dev/f1": [score - 0.1, score], "dev/best_f1": score}
        own = {"kind": "run", "metric": "dev/f1", "seed": number, "constant.dev/constant_f1": 0.4}
        store.add(f"run{number}", {**own, **state}, found, {"loss": loss, "training.lr": 2e-5})


KINDS: tuple[Callable[[Store], None], ...] = (
    study_over_seeds,
    study_on_several_data_sets,
    study_of_ratios,
    study_at_equal_budget,
    sweep,
    sweep_for_several_objectives,
    runs_trained_alone,
)


@pytest.mark.parametrize("fill", KINDS, ids=lambda fill: fill.__name__)
def test_report(fill: Callable[[Store], None], golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures by their alt texts and captions; of tables that are not shown, the columns."""
    store = Store(tmp_path)
    fill(store)

    @contextmanager
    def open_store(uri: str | None) -> Iterator[Store]:
        yield store

    monkeypatch.setattr(reader, "open_store", open_store)
    found = api.report("made")
    hidden = [f"{table.name}: {table.csv().partition(chr(10))[0]}" for table in found.unshown]
    golden(f"{fill.__name__}.md", "\n".join([found.markdown(), *hidden]) + "\n")
