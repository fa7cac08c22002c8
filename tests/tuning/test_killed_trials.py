"""A trial whose process is killed: its workers on Ray Train go, and it goes on to its end in another process."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.run import cluster
from dice_ray.run.driver import Driver, Event, TrialCounts
from dice_ray.run.folder import GIVEN_UP, PLACEMENT_GROUP
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import runner, trial
from dice_ray.tuning.ledger import Ledger, TrialSpec
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.processes import TRIAL, WORKER, titled

if TYPE_CHECKING:
    import psutil


SPACE = f"{Path(__file__).with_name('spaces.py')}:two_rates"


class Killer:
    """A screen that kills the trial's process at its first score, and times how long its workers outlive it."""

    def __init__(self, terminal: TextIO) -> None:
        self.seconds: float | None = None
        self.left: set[psutil.Process] = set()
        self.watching: threading.Thread | None = None

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, *error: object) -> None:
        if self.watching is not None:
            self.watching.join(60)

    def show(self, state: Event) -> None:
        if not isinstance(state, TrialCounts):
            return
        trials = titled(*TRIAL)
        if state.best_score is not None and self.watching is None and len(trials) == 1:
            (trial,), self.left = trials, set(titled(WORKER))
            self.watching = threading.Thread(target=self.watch)
            trial.kill()
            self.watching.start()

    def watch(self) -> None:
        killed = time.monotonic()
        while self.left.intersection(titled(WORKER)) and time.monotonic() - killed < 60:
            time.sleep(0.1)
        self.seconds = time.monotonic() - killed


class Between:
    """A screen that kills the warm process when its first trial has ended: it dies while it gets ready for the next."""

    killed: psutil.Process | None = None

    def __init__(self, terminal: TextIO) -> None: ...

    def __enter__(self) -> Between:
        return self

    def __exit__(self, *error: object) -> None: ...

    def show(self, state: Event) -> None:
        if not isinstance(state, TrialCounts):
            return
        if state.done and self.killed is None:
            (self.killed,) = titled(*TRIAL)
            self.killed.kill()
            self.killed.wait()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray")
@pytest.mark.parametrize("kind", ["sweep", "study"])
def test_a_process_killed_between_two_trials_loses_none(
    kind: str, tmp_path: Path, layers: tuple[Layer, ...], caplog: pytest.LogCaptureFixture
) -> None:
    if kind == "sweep":
        searched = SweepPlan(name=kind, layers=layers, space=SPACE, trials=3, scheduler="none")
        progress = runner.run(searched, tmp_path / kind, Driver(num_cpus=1, show=Between))
    else:
        study = StudyPlan(name=kind, layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1, 2, 3))
        progress = runner.run(study, tmp_path / kind, Driver(num_cpus=1, show=Between))
    assert (progress.done, progress.failed, progress.running) == (3, 0, 0)
    assert "Trial task failed" in caplog.text, "the kill hit no trial"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray")
def test_a_killed_trial_frees_its_workers_and_goes_on(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    wide = {"launch.how": "ray_train", "training.epochs": 12, "training.evaluations": 12}
    plan = SweepPlan(
        name="wide", layers=(*layers, values_layer("--set", wide)), space=SPACE, trials=1, scheduler="none"
    )
    killers: list[Killer] = []

    def show(terminal: TextIO) -> Killer:
        killers.append(Killer(terminal))
        return killers[-1]

    assert runner.run(plan, tmp_path / "wide", Driver(num_cpus=2, show=show)).done == 1  # no CPU is left for others
    assert len(killers[0].left) == 1
    assert killers[0].seconds is not None
    assert killers[0].seconds < 10
    (ended,) = Ledger(tmp_path / "wide" / "ledger.jsonl").outcomes.values()
    assert len({step for step, _ in ended.curve}) == len(ended.curve) == 12


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
@pytest.mark.parametrize("last_attempt", ["is given up", "is lost"])
def test_a_trial_without_another_attempt_gives_the_cpus_of_its_workers_back(
    last_attempt: str, tmp_path: Path, layers: tuple[Layer, ...]
) -> None:
    """Later trials waited for them for ever. The test of a trial that hangs, which is slow, has workers of its own."""
    from ray.util import placement_group, placement_group_table

    plan = SweepPlan(name="wide", layers=layers, space=SPACE, trials=1, trial_timeout=60)
    spec, folder = TrialSpec(id="0001", params={}, seed=0), tmp_path / "trials" / "0001"
    folder.mkdir(parents=True)
    with cluster.started(log=tmp_path / "log.txt"):
        group = placement_group([{"CPU": 1}])
        (folder / PLACEMENT_GROUP).write_text(f"{group.id.hex()} train-0")
        if last_attempt == "is given up":
            (folder / GIVEN_UP).write_text("it took too long")
            (result,) = trial._results(trial.Work(plan, tmp_path, 1, 0), spec)
            assert result["failure"] == "it took too long"
        else:
            with Writer(plan.name) as writer:
                recorder = Recorder(plan, Ledger(tmp_path / "ledger.jsonl"), writer, plan.ids)
                recorder.open(())
                recorder.lost(spec, "its process died")
                recorder.close()
        assert placement_group_table(group)["state"] == "REMOVED"
    assert not (folder / PLACEMENT_GROUP).exists()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray")
def test_a_trial_that_hangs_on_ray_train_keeps_no_cpus_from_the_next(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    custom, path = {"loss": "custom", "loss.custom.target": "tests.tuning.faulty:Faulty"}, "loss.custom.parameters"
    faults = {
        fault: custom | {f"{path}.fault": fault, f"{path}.attempts": str(tmp_path / "attempts")}
        for fault in ("none", "a hang")
    }
    study = StudyPlan(
        name="study",
        layers=(*layers, values_layer("--set", {"launch.how": "ray_train", "launch.threads": 2, "training.epochs": 1})),
        arms={"fast": faults["none"], "hanging": faults["a hang"], "fast too": {"loss": "dice"}},
        baseline="fast",
        seeds=(1,),
        trial_timeout=90,
    )
    counts = runner.run(study, tmp_path / "study", Driver(num_cpus=2))
    assert (counts.done, counts.failed) == (2, 1)
