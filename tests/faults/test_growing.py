"""A sweep on a cluster that Ray's autoscaler grows while it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.faults.sweeps import NUM_TRIALS, Sweep
from tests.machines import head


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
