"""Sweeps that could not be recorded, whose ledger was damaged, or whose trials were killed: they go on."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import RunError
from dice_ray.files import lock
from dice_ray.run import cluster, object_store
from dice_ray.run.build import prepare
from dice_ray.run.driver import Driver, Event, TrialCounts
from dice_ray.run.folder import GIVEN_UP, PLACEMENT_GROUP
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.store import quiet_client, store_uri
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import runner, trial
from dice_ray.tuning.cells import Asked
from dice_ray.tuning.ledger import History, Ledger, TrialSpec
from dice_ray.tuning.plan import Plan
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.processes import TRIAL, WORKER, titled
from tests.tuning.trials import Screen

if TYPE_CHECKING:
    import psutil


SPACE = f"{Path(__file__).with_name('spaces.py')}:two_rates"
RATE = SPACE.replace("two_rates", "rate")


def fail_once(patch: pytest.MonkeyPatch, owner: Any, name: str, at: int, error: Exception) -> None:
    """Make the call of this number fail; of `os.fsync`, only those for the ledger count."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = iter(range(1, 1000))

    def failing(*args: Any, **options: Any) -> Any:
        is_of_ledger = owner is os and Path(f"/proc/self/fd/{args[0]}").readlink().name == "ledger.jsonl"
        if (owner is not os or is_of_ledger) and next(calls) == at:
            raise error
        return original(*args, **options)

    patch.setattr(owner, name, failing)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
REFUSED = PermissionError("the bucket refuses to delete")
FAULTS = {
    "no space for the start of a trial": (os, "fsync", 3, FULL),
    "no space for the end of a trial": (os, "fsync", 2, FULL),
    "no space for an evaluation": (Recorder, "reported", 2, FULL),
    "a deletion that is refused": (object_store, "delete", 1, REFUSED),
}


def test_a_second_driver_is_refused_before_it_writes(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space=RATE, trials=1)
    with lock(tmp_path), pytest.raises(RunError, match="must have one driver"):
        runner.run(plan, tmp_path, Driver(num_cpus=1))
    assert {path.name for path in tmp_path.iterdir()} <= {"lock", "mlflow.db"}


@pytest.mark.ray
@pytest.mark.usefixtures("uri")
@pytest.mark.parametrize(
    ("ray", "fault"),
    [
        *(pytest.param("joined", fault, marks=pytest.mark.slow) for fault in FAULTS),
        ("own", "no space for the end of a trial"),
    ],
)
def test_what_cannot_be_recorded_ends_the_sweep_and_nothing_is_lost_or_run_twice(
    ray: str,
    fault: str,
    tmp_path: Path,
    layers: tuple[Layer, ...],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Finds an error that Ray Tune takes for one of the trial, which it runs again, or that it puts its own around."""
    if ray == "joined":
        request.getfixturevalue("on_kept_ray")
    values = {"loss": "custom", "loss.custom.target": "tests.faults.counted:counted"}
    counted = values_layer("--set", values | {"loss.custom.parameters": {"file": str(tmp_path / "steps")}})
    plan = SweepPlan(name="sweep", layers=(*layers, counted), space=SPACE, trials=2, scheduler="none")
    owner, name, at, error = FAULTS[fault]
    with monkeypatch.context() as patch:
        fail_once(patch, owner, name, at, error)
        with pytest.raises(RunError) as raised:
            runner.run(plan, tmp_path / "sweep", Driver(num_cpus=1))
    assert str(error) in str(raised.value)
    assert "`dice-ray resume sweep`" in str(raised.value)

    assert runner.run(plan, tmp_path / "sweep", Driver(num_cpus=1)).done == 2
    file = tmp_path / "sweep" / "ledger.jsonl"
    ended = Ledger(file).outcomes
    assert file.read_bytes().count(b"\n") == 4, "each trial starts and ends once"
    assert (tmp_path / "steps").stat().st_size == sum(outcome.curve[-1][0] for outcome in ended.values())
    assert set(read("sweep")["status"]) == {"FINISHED"}
    points = curves("sweep").query("metric == 'dev/f1'")
    assert {id_: tuple(zip(of["step"], of["value"], strict=True)) for id_, of in points.groupby("id")} == {
        id_: outcome.curve for id_, outcome in ended.items()
    }


ARMS = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal"}}


def known(*ids: str) -> History:
    return History({id_: TrialSpec(id=id_, params={}, seed=0) for id_ in ids})


def test_runs_that_are_not_of_the_folder(layers: tuple[Layer, ...]) -> None:
    """Finds a study that takes the runs of another folder for its own, and a sweep that gives their ids away again."""
    study = StudyPlan(name="study", layers=layers, arms=ARMS, baseline="ce", seeds=(1,))
    first, second = (cell.id for cell in study.grid().cells)
    part = study.model_copy(update={"asked": Asked(arms=("ce",), seeds=(1,))})
    stored = {"study", first, second}
    assert study.strangers({"study"}, known()) == study.strangers(stored, known(first, second)) == set()
    assert study.strangers(stored, known()) == {first, second}, "a new folder under the name of another one"
    assert study.strangers(stored, known(first)) == part.strangers(stored, known(first)) == set()
    assert study.strangers({*stored, "of another study"}, known(first)) == {"of another study"}
    search = SweepPlan(name="sweep", layers=layers, space=RATE, trials=4)
    assert search.strangers({"sweep", "0001", "0002"}, known("0001", "0003")) == {"0002"}


def rewritten(file: Path, line: Callable[[str], str]) -> None:
    file.write_text("".join(map(line, file.read_text().splitlines(keepends=True))))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_sweep_goes_on_after_each_repair(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space=RATE, trials=2, scheduler="none")
    folder = tmp_path / "sweep"
    file = folder / "ledger.jsonl"
    runner.run(plan, folder, Driver(num_cpus=1))
    whole = Ledger(file)

    rewritten(file, lambda line: line.replace('"end"', '"and"') if '"0001"' in line else line)
    with pytest.raises(RunError, match="delete this line if it is the end of a trial"):
        runner.run(plan, folder, Driver(num_cpus=1))
    rewritten(file, lambda line: "" if '"and"' in line else line)
    assert runner.run(plan, folder, Driver(num_cpus=1)).is_finished
    assert Ledger(file).specs == whole.specs
    assert Ledger(file).outcomes["0001"].curve == whole.outcomes["0001"].curve

    rewritten(file, lambda line: "" if '"0001"' in line else line)
    with pytest.raises(RunError, match=r"\(0001\): choose another name, or give") as error:
        runner.run(plan, folder, Driver(num_cpus=1))
    assert f"delete them in MLflow and their folders in {folder / 'trials'}" in str(error.value)
    shutil.rmtree(folder / "trials" / "0001")
    client = quiet_client(store_uri())
    found = client.get_experiment_by_name("sweep")
    assert found is not None
    (run,) = client.search_runs([found.experiment_id], f"tags.`{schema.ID}` = '0001'")
    client.delete_run(run.info.run_id)
    assert runner.run(plan, folder, Driver(num_cpus=1)).is_finished
    rates = {id_: spec.params["training.lr"] for id_, spec in Ledger(file).specs.items()}
    rows = read("sweep").set_index("id")
    assert rows["params.training.lr"].drop("sweep").to_dict() == pytest.approx(rates)
    assert set(rows["status"]) == {"FINISHED"}


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_cell_that_was_deleted_from_the_ledger_is_run_again(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = StudyPlan(name="study", layers=layers, arms=ARMS, baseline="ce", seeds=(1,))
    plan = plan.bound_to({None: prepare(plan.base()).splits.digest})
    file = tmp_path / "study" / "ledger.jsonl"
    runner.run(plan, tmp_path / "study", Driver(num_cpus=1))
    whole, points = Ledger(file), curves("study")
    deleted = plan.grid().cells[0].id
    rewritten(file, lambda line: "" if deleted in line else line)
    assert runner.run(plan, tmp_path / "study", Driver(num_cpus=1)).is_finished
    assert Ledger(file).outcomes[deleted].curve == whole.outcomes[deleted].curve
    assert set(read("study")["status"]) == {"FINISHED"}
    assert len(curves("study")) == len(points)


class Killer(Screen):
    """Kills the trial's process at its first score, and times how long its workers outlive it."""

    seconds: float | None = None
    left: frozenset[psutil.Process] = frozenset()
    watching: threading.Thread | None = None

    def __exit__(self, *error: object) -> None:
        if self.watching is not None:
            self.watching.join(60)

    def show(self, state: Event) -> None:
        if not isinstance(state, TrialCounts):
            return
        trials = titled(*TRIAL)
        if state.best_score is not None and self.watching is None and len(trials) == 1:
            (trial,), self.left = trials, frozenset(titled(WORKER))
            self.watching = threading.Thread(target=self.watch)
            trial.kill()
            self.watching.start()

    def watch(self) -> None:
        killed = time.monotonic()
        while self.left.intersection(titled(WORKER)) and time.monotonic() - killed < 60:
            time.sleep(0.1)
        self.seconds = time.monotonic() - killed


class Between(Screen):
    """Kills the warm process when its first trial has ended: it dies while it gets ready for the next."""

    killed: psutil.Process | None = None

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
    plan: Plan = SweepPlan(name=kind, layers=layers, space=SPACE, trials=3, scheduler="none")
    if kind == "study":
        plan = StudyPlan(name=kind, layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1, 2, 3))
    progress = runner.run(plan, tmp_path / kind, Driver(num_cpus=1, show=Between().on))
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
    killer = Killer()
    # No CPU is left for others.
    assert runner.run(plan, tmp_path / "wide", Driver(num_cpus=2, show=killer.on)).done == 1
    assert len(killer.left) == 1
    assert killer.seconds is not None
    assert killer.seconds < 10
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
