"""Clusters that change: one of two machines of a trial is lost, and the autoscaler starts machines for a sweep."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from dice_ray.config.schema import LaunchConfig
from dice_ray.run import single
from dice_ray.tracking.reader import curves
from dice_ray.tuning.plan_file import read
from tests.faults.sweeps import NAME, NUM_STEPS, NUM_TRIALS, Sweep
from tests.machines import Machines, head, machines

TWO_WORKERS: Final = ("launch.workers=2",)
ELASTIC: Final = (*TWO_WORKERS, "launch.min_workers=1", "model.dropout=0.0")


@contextmanager
def two_machines(folder: Path, settings: tuple[str, ...]) -> Iterator[tuple[Machines, Sweep, subprocess.Popen[bytes]]]:
    """A cluster of two machines with a CPU each, and a sweep of one trial with the driver that runs it."""
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as cluster:
        options, environment = ("--address", cluster.address), cluster.environment
        sweep = Sweep(folder, Path(scratch), num_trials=1, settings=settings, options=options, environment=environment)
        with sweep.driver() as driver:
            yield cluster, sweep, driver


@pytest.mark.ray
@pytest.mark.slow
def test_a_trial_across_two_machines_goes_on_when_one_of_them_is_replaced(tmp_path: Path) -> None:
    """Finds workers that need one machine, and a trial that is lost or hangs while its cluster is too small for it."""
    steps = tmp_path / "steps"
    with two_machines(tmp_path, TWO_WORKERS) as (cluster, sweep, driver):
        _wait(lambda: steps.exists() and steps.stat().st_size >= NUM_STEPS, driver)  # half, of both workers
        cluster.lose()
        cluster.add()
        assert driver.wait(300) == 0
    (ended,) = sweep.ledger.outcomes.values()
    assert ended.state == "done"
    assert len({step for step, _ in ended.curve}) == len(ended.curve) == 4
    between = max(step - last for last, step in pairwise([0, *(step for step, _ in ended.curve)]))  # checkpoints
    assert 2 * NUM_STEPS <= steps.stat().st_size <= 2 * (NUM_STEPS + between)


@pytest.mark.ray
@pytest.mark.slow
def test_an_elastic_trial_goes_on_with_one_worker_and_again_with_two_on_the_same_trajectory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds a trial that waits for the lost machine or never uses the new one, and steps that depend on the workers."""
    steps, hold = tmp_path / "steps", tmp_path / "hold"
    with two_machines(tmp_path, ELASTIC) as (cluster, sweep, driver):
        _wait(lambda: steps.exists() and steps.stat().st_size >= NUM_STEPS, driver)
        hold.touch()
        cluster.lose()
        _wait((tmp_path / "waits with 1").exists, driver)
        hold.unlink()
        _wait(lambda: b"1" in steps.read_bytes(), driver)
        hold.touch()
        (tmp_path / "waits with 2").unlink(missing_ok=True)
        cluster.add()
        _wait((tmp_path / "waits with 2").exists, driver)
        hold.unlink()
        assert driver.wait(300) == 0
    ledger = sweep.ledger
    (spec,) = [ledger.specs[id_] for id_ in ledger.outcomes]
    assert steps.read_bytes().strip(b"2").strip(b"1") == b"", "two workers, then one, then two"
    (tmp_path / "alone").mkdir()
    monkeypatch.chdir(tmp_path / "alone")
    config = read(sweep.path).config(spec).model_copy(update={"launch": LaunchConfig()})
    undisturbed = {
        (evaluation.step, name): value
        for evaluation in single.evaluations(config, tmp_path / "alone" / "run")
        for name, value in evaluation.metrics.items()
        if name == "train/loss" or name.startswith("dev/")
    }
    points = curves(NAME, sweep.store).set_index(["step", "metric"])["value"].to_dict()
    found = {key: value for key, value in points.items() if key in undisturbed}
    assert {name for _, name in found} > {"train/loss", "dev/f1"}
    assert {step for step, _ in found} == {step for step, _ in undisturbed}
    # `abs` for the calibration error alone, which is .001: float32 has no more digits of it.
    assert found == pytest.approx({key: undisturbed[key] for key in found}, rel=1e-5, abs=1e-7)


@pytest.mark.ray
@pytest.mark.slow
def test_the_autoscaler_starts_machines_for_a_sweep_which_uses_them(tmp_path: Path) -> None:
    """Finds trials that wait within the driver, where the autoscaler does not see them."""
    (tmp_path / "hold").touch()
    with tempfile.TemporaryDirectory(prefix="dr-") as folder, head(Path(folder), most_machines=3) as growing:
        environment = {name: value for name, value in growing.environment.items() if name != "RAY_API_SERVER_ADDRESS"}
        environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        sweep = Sweep(tmp_path, Path(folder), options=("--address", growing.ray), environment=environment)
        with sweep.driver() as driver:
            assert sweep.wait_for(driver, lambda: len(sweep.ledger.unfinished) == 3)
            (tmp_path / "hold").unlink()
            assert driver.wait(300) == 0
    assert len(sweep.ledger.outcomes) == NUM_TRIALS


def _wait(condition: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 180
    while not condition():
        assert driver.poll() is None, "the driver must go on"
        assert time.monotonic() < until, "the trial must go on"
        time.sleep(0.02)
