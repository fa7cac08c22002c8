"""A trial of two workers on two machines, one of which is lost and replaced."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from dice_ray.tuning.ledger import Ledger
from tests.faults.kill import DRIVER, NUM_STEPS, NUM_TRIALS, driver_of
from tests.machines import machines

ONE_TRIAL = DRIVER.replace(f"trials={NUM_TRIALS}", "trials=1").replace("quick = {", 'quick = {"launch.workers": 2, ')


@pytest.mark.ray
@pytest.mark.slow
def test_a_trial_across_two_machines_goes_on_when_one_of_them_is_replaced(tmp_path: Path) -> None:
    """Finds workers that need one machine, and a trial that is lost or hangs while its cluster is too small for it."""
    steps = tmp_path / "steps"
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as cluster:
        cluster.add()  # one CPU each: for the process of the trial, and for its two workers
        with driver_of(tmp_path, cluster.environment, cluster.address, ONE_TRIAL) as driver:
            while not steps.exists() or steps.stat().st_size < NUM_STEPS:  # of both workers: half of the training
                assert driver.poll() is None
                time.sleep(0.05)
            cluster.lose()
            cluster.add()
            assert driver.wait(300) == 0
    (ended,) = Ledger(tmp_path / "sweep" / "ledger.jsonl").outcomes.values()
    assert ended.state == "done"
    assert len({step for step, _ in ended.curve}) == len(ended.curve) == 4
    assert 2 * NUM_STEPS <= steps.stat().st_size <= 2 * (NUM_STEPS + ended.curve[0][0])
