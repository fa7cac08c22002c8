"""What a dry run says of a sweep or study: its plan, its runs, what they take; and what it refuses."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from dice_ray.api import DryRun
from dice_ray.cli.printing import _print_dry_run, _print_estimate
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import RunError
from dice_ray.run.driver import Driver
from dice_ray.run.rehearsal import Rehearsal
from dice_ray.tuning import plan_file, runner
from dice_ray.tuning.estimate import Estimate, _check, _last_end, _seconds, _timing_key, estimate
from dice_ray.tuning.resources import Demand
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

SPACE = f"{Path(__file__).with_name('spaces.py')}:batches"
GIB = 2**30
REHEARSAL = Rehearsal(
    records={"train": 200, "dev": 100, "test": 100},
    rows={"train": 200, "dev": 100},
    num_parameters=1000,
    num_trained=1000,
    num_steps=21,
    num_evaluations=3,
    num_timed=5,
    seconds_a_step=0.1,
    seconds_an_evaluation=0.5,
    seconds=3.9,
    seconds_to_start=1.0,
    peak_memory=GIB,
    peak_gpu_memory=0,
    gpu_memory=0,
    weights=GIB // 8,
    few_items=None,
)
ESTIMATE = Estimate(
    plan="name: x\n",
    folder=Path("dice_ray_runs/x"),
    store="sqlite:////here/mlflow.db",
    num_runs=16,
    num_ended=3,
    needs=Demand(1),
    num_at_once=2,
    rehearsal=REHEARSAL,
    fastest=replace(REHEARSAL, num_steps=9, seconds=2.0),
    seconds_to_start=12.0,
    least_seconds=1800.0,
    seconds=5400.0,
    memory=2 * GIB,
    free_memory=8 * GIB,
    disk=9 * GIB,
    free_disk=90 * GIB,
    notes=("note: a note",),
    stops_early=True,
)


def test_runs_begin_as_soon_as_others_end() -> None:
    assert _last_end([3.0, 3.0, 3.0], 2) == 6.0
    assert _last_end([1.0, 4.0, 1.0, 1.0], 2) == 4.0
    assert _last_end([1.0] * 5, 1) == 5.0


def test_of_the_loss_only_the_passes_of_the_encoder_decide_how_long_a_run_takes(
    layers: tuple[Layer, ...],
) -> None:
    def key(**values: object) -> str:
        paths = {path.replace("__", "."): value for path, value in values.items()}
        return _timing_key(resolve([*layers, values_layer("trial", paths)]))

    assert key() == key(loss="focal", training__seed=3, data__split_seed=3, model__head_bias="prior")
    assert key() == key(loss__dice__scope="example")
    assert key(loss="dice_ce") == key(loss="dice") == key(mining__ratio=2)
    assert len({key(), key(loss="dice"), key(training__epochs=7), key(task__sentence_pair__max_length=16)}) == 4


def test_a_cell_is_scored_on_test_too_which_may_be_larger_than_dev() -> None:
    run = replace(REHEARSAL, records={"train": 200, "dev": 100, "test": 300})
    assert _seconds(run, is_scored=False) == 3.9
    assert _seconds(run, is_scored=True) == pytest.approx(3.9 + 3 * 0.5)


def test_what_finds_no_room_is_refused() -> None:
    _check(ESTIMATE)
    with pytest.raises(RunError, match=r"2 trials at once need 2.00 GiB of memory \(1.00 GiB a process\), but 1.00"):
        _check(replace(ESTIMATE, free_memory=GIB))
    with pytest.raises(
        RunError, match=r"needs 9.00 GiB on its disk for checkpoints \(0.12 GiB for the weights of one\), but 8"
    ):
        _check(replace(ESTIMATE, free_disk=8 * GIB))


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _print_estimate(ESTIMATE, 2.0, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "runs        16, 3 finished before",
        "at once     2, each with 1 CPU",
        "time        about 30:00 to 1:30:00, less with early stopping (0:02 to 0:04 each, 9 to 21 steps, 0:12",
        "            to start)",
        "memory      2.00 GiB of 8.00 GiB (1.00 GiB per process)",
        "disk        9.00 GiB of 90.00 GiB",
        "cost        about 1.00 to 3.00, less with early stopping at 2 per hour",
        "results in  dice_ray_runs/x, and in MLflow's experiment x in sqlite:////here/mlflow.db",
        "note: a note",
        "",
        "The plan:",
        "name: x",
    ]
    of_a_study = replace(ESTIMATE, needs=Demand(1, 1, 2, 2), fastest=REHEARSAL, least_seconds=5400.0)
    _print_estimate(replace(of_a_study, stops_early=False), None, as_json=False)
    printed = capsys.readouterr().out
    assert "each with 2 CPUs and 2 GPUs (2 workers)\ntime        about 1:30:00 (0:04 each, 21 steps, " in printed
    assert "cost" not in printed


def test_as_json_it_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    _print_estimate(ESTIMATE, 2.0, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["plan"], printed["num_runs"], printed["least_cost"], printed["cost"]) == (
        "name: x\n",
        16,
        1.0,
        3.0,
    )
    assert printed["rehearsal"]["records"] == {"train": 200, "dev": 100, "test": 100}
    dry_run = DryRun("task: x", Path("runs/x"), replace(REHEARSAL, few_items="Warning: few"))
    _print_dry_run(dry_run, as_json=False)
    assert capsys.readouterr().out.endswith("\nWarning: few\n\nThe settings, with all defaults:\ntask: x")
    _print_dry_run(dry_run, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["config"], printed["folder"], printed["rehearsal"]["num_steps"]) == ("task: x", "runs/x", 21)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray")
def test_a_dry_run_says_what_a_sweep_takes_and_leaves_nothing(
    tmp_path: Path,
    layers: tuple[Layer, ...],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    plan = SweepPlan(name="dry", layers=layers, space=SPACE, trials=3, scheduler="none", seeds=1, top=2)
    some_fail = plan.model_copy(update={"space": f"{SPACE}_and_a_missing_encoder", "trials": 8})
    found = estimate(some_fail, tmp_path / "dry", Driver(num_cpus=2))
    *left_out, few_items = found.notes
    assert left_out[0].startswith("Left out: a trial that the space suggests fails in its first steps: ")
    assert few_items.startswith("Warning: too few items of the rarest class: dev has ")
    assert (found.num_runs, found.num_at_once, found.needs.threads) == (10, 2, 1)
    assert {found.fastest.num_steps, found.rehearsal.num_steps} == {5, 75}, "those of the space, not of the preset"
    assert found.seconds_to_start + found.fastest.seconds < found.least_seconds < found.seconds
    assert 100 * 2**20 < found.rehearsal.peak_memory < found.memory < found.free_memory
    assert list(tmp_path.iterdir()) == []
    assert list(scratch.iterdir()) == []

    one = plan.model_copy(update={"trials": 1, "seeds": 0})
    assert runner.run(one, tmp_path / "dry", Driver(num_cpus=1)).is_finished
    left = sum(file.stat().st_size for file in (tmp_path / "dry/trials/0001").glob("*.pt"))
    assert left == pytest.approx(found.rehearsal.weights, rel=0.2)
    with pytest.raises(RunError, match="has ended, and nothing is left to estimate"):
        estimate(one, tmp_path / "dry", Driver())
    more = estimate(plan, tmp_path / "dry", Driver(num_cpus=1))
    assert (more.num_runs, more.num_ended, more.num_at_once) == (4, 1, 1)
    (tmp_path / "dry/plan.yaml").write_text(more.plan)
    assert plan_file.read(tmp_path / "dry") == plan.bound_to(plan_file.read(tmp_path / "dry").digests)
    with pytest.raises(RunError, match="holds another sweep of that name"):
        estimate(plan.model_copy(update={"space": "other:space"}), tmp_path / "dry", Driver())


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray")
@pytest.mark.parametrize("rate", [1e38, pytest.param(1e-3, marks=pytest.mark.slow)])
def test_a_dry_run_of_a_study(tmp_path: Path, layers: tuple[Layer, ...], rate: float) -> None:
    """Finds one that leaves out a cell that fails, as it leaves out a trial of a search."""
    arms = {"ce": {"loss": "cross_entropy"}, "long": {"training.epochs": 60, "training.lr": rate}}
    plan = StudyPlan(name="study", layers=layers, arms=arms, baseline="ce", seeds=(1, 2))
    if rate > 1:
        with pytest.raises(ArithmeticError, match="must be finite"):
            estimate(plan, tmp_path / "study", Driver(num_cpus=2))
    else:
        found = estimate(plan, tmp_path / "study", Driver(num_cpus=2))
        assert (found.num_runs, found.rehearsal.num_steps, found.stops_early) == (4, 375, False)
    assert list(tmp_path.iterdir()) == []
