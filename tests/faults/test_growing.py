"""A sweep on a cluster that Ray's autoscaler grows while it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from dice_ray.tuning.ledger import Ledger
from tests.faults.kill import DRIVER, NUM_TRIALS, driver_of, wait_for_trials
from tests.machines import head


@pytest.mark.ray
@pytest.mark.slow
def test_the_autoscaler_starts_machines_for_a_sweep_which_uses_them(tmp_path: Path) -> None:
    """Finds trials that wait within the driver, where the autoscaler does not see them."""
    (tmp_path / "hold").touch()
    with tempfile.TemporaryDirectory(prefix="dr-") as folder, head(Path(folder), most_machines=3) as growing:
        environment = {name: value for name, value in growing.environment.items() if name != "RAY_API_SERVER_ADDRESS"}
        environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        script = DRIVER.replace("num_cpus=2", "num_cpus=1")
        with driver_of(tmp_path, environment, growing.ray, script) as driver:
            wait_for_trials(3, tmp_path, driver)
            (tmp_path / "hold").unlink()
            assert driver.wait(300) == 0
    assert len(Ledger(tmp_path / "sweep" / "ledger.jsonl").outcomes) == NUM_TRIALS
