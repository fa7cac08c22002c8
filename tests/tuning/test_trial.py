"""Warm actors: the same configuration gives the same metrics however many trials came before, and memory stays."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from dice_ray.config.load import Layer, values_layer
from dice_ray.run.build import PreparedData
from dice_ray.run.driver import Driver, Event, TrialCounts
from dice_ray.training.evaluate import EncodedSplit
from dice_ray.tuning import runner, trial
from dice_ray.tuning.ledger import Ledger, TrialSpec
from dice_ray.tuning.runner import _session
from dice_ray.tuning.sweep import SweepPlan
from tests.processes import TRIAL, titled
from tests.tuning.trials import Screen

SPACE = f"{Path(__file__).with_name('spaces.py')}:loss_and_rate"
SAME: dict[str, Any] = {"loss": "dice", "training.lr": 1e-3}
FAILS: dict[str, Any] = {"loss": "dice", "training.lr": 1e38}
OTHERS: tuple[dict[str, Any], ...] = tuple(
    {"loss": loss, "training.lr": rate} for loss in ("focal", "cross_entropy") for rate in (1e-3, 2e-3)
)
TIMED = ("train/seconds", "train/tokens_per_second")


class Scale(Screen):
    """Weighs the trials' process whenever one of them has ended."""

    def __init__(self) -> None:
        self.actors: set[int] = set()
        self.memory: dict[int, int] = {}

    def show(self, state: Event) -> None:
        if not isinstance(state, TrialCounts):
            return
        for process in titled(*TRIAL):
            self.actors.add(process.pid)
            self.memory[state.done + state.failed] = process.memory_info().rss


def run(points: Sequence[dict[str, Any]], layers: tuple[Layer, ...], folder: Path) -> Scale:
    """Trials one after the other in one actor."""
    plan = SweepPlan(
        name=folder.name, layers=layers, space=SPACE, trials=len(points), scheduler="none", points=tuple(points)
    )
    scale = Scale()
    progress = runner.run(plan, folder, Driver(num_cpus=1, show=scale.on))
    assert progress.failed == points.count(FAILS)
    assert progress.is_finished
    assert len(scale.actors) == 1, "all trials ran in one process"
    return scale


def metrics(folder: Path, number: int) -> list[dict[str, float]]:
    """What the trial of that number told, but for what depends on the clock."""
    ended = Ledger(folder / "ledger.jsonl").outcomes[f"{number:04d}"]
    assert ended.state == "done"
    return [{name: value for name, value in told.items() if name not in TIMED} for told in ended.metrics]


def test_a_trial_whose_loss_was_rewritten_since_the_plan_was_made_fails(
    tmp_path: Path, layers: tuple[Layer, ...]
) -> None:
    """Edited while a study runs, the new loss would be scored under the identity of the old one."""
    (tmp_path / "mine.py").write_text("def build(facts): ...")
    mine = (*layers, values_layer("--set", {"loss.custom.target": "mine.py:build"}))
    plan = SweepPlan(name="mine", layers=mine, space=SPACE, trials=1, code={f"{tmp_path}/mine.py:build": "before"})
    (result,) = trial._results(trial.Work(plan, tmp_path, 1, 0), TrialSpec(id="0001", params={}, seed=0))
    assert "mine must be resumed with the code that it was started with" in result["failure"]


def test_a_search_never_reads_the_test_split(
    tmp_path: Path, layers: tuple[Layer, ...], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    def refused(prepared: PreparedData) -> EncodedSplit:
        raise AssertionError("test was read")

    monkeypatch.setattr(PreparedData, "test", refused)
    quick = (*layers, values_layer("--set", {"training.epochs": 1}))
    plan, folder = SweepPlan(name="blind", layers=quick, space=SPACE, trials=1), tmp_path / "blind"
    with _session(plan, folder, Driver(num_cpus=1), []) as work:
        results = list(trial._results(trial.Work(work.plan, folder, 2, 0), TrialSpec(id="0001", params=SAME, seed=0)))
    assert results[-1]["finished"]
    assert torch.get_num_threads() == 2, "the share of a trial without launch.threads"
    torch.set_num_threads(1)
    assert not any("test" in result or "failure" in result for result in results)


def test_a_checkpoint_that_the_store_did_not_take_stays_on_the_machine(
    tmp_path: Path, layers: tuple[Layer, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt lost the steps since the last one that was sent, or all of them."""
    monkeypatch.setenv("DICE_RAY_RUNS", f"file://{tmp_path}/store/runs")
    plan, folder = SweepPlan(name="away", layers=layers, space=SPACE, trials=1), Path("dice_ray_runs/away")
    results = trial._results(trial.Work(plan, folder, 1, 0), TrialSpec(id="0001", params=SAME, seed=0))
    next(results)
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    (tmp_path / "store").touch()
    with pytest.raises(OSError, match="store"):
        next(results)
    assert (folder / "trials/0001/last.pt").exists()


def test_a_trial_that_takes_too_long_ends_where_its_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reason could not be stored, and it hung for ever."""
    has_raised, statuses = threading.Event(), list[int]()
    monkeypatch.setattr(threading, "excepthook", lambda error: has_raised.set())
    monkeypatch.setattr(os, "_exit", statuses.append)
    (tmp_path / "trials").touch()
    with trial._time_limit(0.01, tmp_path / "trials" / "0001"):
        assert has_raised.wait(60)
    assert statuses == [1]


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_trial_depends_on_no_trial_before_it(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    run([SAME, OTHERS[0], FAILS, SAME], layers, tmp_path / "warm")
    assert metrics(tmp_path / "warm", 4) == metrics(tmp_path / "warm", 1)
    assert metrics(tmp_path / "warm", 2) != metrics(tmp_path / "warm", 1)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_trials_of_one_actor(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    points = [SAME, *(OTHERS[number % len(OTHERS)] for number in range(99))]
    points[38], points[39], points[99] = FAILS, SAME, SAME
    quick = (*layers, values_layer("--set", {"training.epochs": 1}))
    weighed = run(points, quick, tmp_path / "warm").memory
    assert metrics(tmp_path / "warm", 40) == metrics(tmp_path / "warm", 1) == metrics(tmp_path / "warm", 100)
    grown = weighed[99] - weighed[20]
    assert grown < 16 * 2**20, f"{weighed[20] / 2**20:.1f} MiB after 20 trials, {weighed[99] / 2**20:.1f} after 99"
