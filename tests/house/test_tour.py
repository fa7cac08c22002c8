"""The reader's tour in CONTRIBUTING.md lists the files that a parameter passes through, and they stay few."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dice_ray.cli.app import app
from tests.house.trace import Trace
from tests.house.tree import REPOSITORY

PATH, VALUE = "loss.focal.gamma", 2.7182818
MAX_FILES = {"train": 20, "tune": 30, "report": 20}
QUICK = ("data.source.synthetic.size=100", "training.epochs=0.5", "training.precision=fp32")


def tour(command: str) -> list[str]:
    """The files that CONTRIBUTING lists for a command."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("\n## The reader's tour\n")[2].partition("\n## ")[0]
    part = section.partition(f"\n### `dice-ray {command}`\n")[2].partition("\n### ")[0]
    return re.findall(r"^\d+\. `([^`]+)`: \S", part, re.MULTILINE)


def run(trace: Trace, command: str, preset: str, *arguments: str) -> None:
    """Run a command in this process, as the command line does."""
    settings = [argument for value in QUICK for argument in ("--set", value)]
    with trace:
        app(args=[command, preset, "--name", "tour", *settings, *arguments], standalone_mode=False)


def check(command: str, trace: Trace, earlier: set[str]) -> None:
    """The files of a trace must be few, and the ones that CONTRIBUTING lists, here or for an earlier command."""
    shown = "\n".join(f"{file}: {', '.join(sorted(names))}" for file, names in trace.functions.items())
    assert set(tour(command)) == trace.files - earlier, f"CONTRIBUTING must list for `{command}`, as it runs:\n{shown}"
    assert len(trace.files) <= MAX_FILES[command], shown


@pytest.fixture
def trace(uri: str, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return Trace(PATH, VALUE)


def test_train(trace: Trace) -> None:
    run(trace, "train", "synthetic_pairs", "--set", f"{PATH}={VALUE}")
    check("train", trace, set())


@pytest.mark.ray
def test_tune(trace: Trace, on_kept_ray: None, tmp_path: Path) -> None:
    """The driver is traced, and the trial when it runs again in this process: the first time an actor ran it."""
    from dice_ray.api.places import runs_folder
    from dice_ray.tuning import plan_file, trial
    from dice_ray.tuning.ledger import ledger_in

    # In the preset, since `--set` of what the space searches is an error.
    preset = (REPOSITORY / "search_spaces/presets/synthetic_pairs.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(f"{preset}{PATH}: {VALUE}\n")
    run(trace, "tune", str(tmp_path / "mine.yaml"), "--trials", "1")
    folder = runs_folder() / "tour"
    (spec,) = ledger_in(folder).specs.values()
    assert spec.params[PATH] == VALUE, "the sweep begins with the settings of the preset"
    plan = plan_file.read(folder)
    with trace:
        assert [*trial._results(trial.Work(plan, tmp_path, 1, 0), spec)][-1]["finished"]
    check("tune", trace, set(tour("train")))
    report = Trace(PATH, VALUE)
    with report:
        app(args=["report", "tour"], standalone_mode=False)
    check("report", report, set(tour("train") + tour("tune")))


def test_a_trace_sees_what_holds_the_value(tmp_path: Path) -> None:
    from dice_ray.config.load import set_layer
    from dice_ray.losses.focal import FocalConfig

    with Trace(PATH, 0.577) as trace:
        set_layer([f"{PATH}=0.577"])
        FocalConfig(gamma=0.577).links()
        FocalConfig(gamma=1.414).links()
    assert trace.files == {"dice_ray/config/load.py", "dice_ray/settings.py", "dice_ray/errors.py"}
