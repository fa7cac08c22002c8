"""An event of a trial that cannot be recorded, as on a full disk: the sweep ends with one error, and goes on later."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import RunError
from dice_ray.run import object_store
from dice_ray.run.driver import Driver
from dice_ray.tracking.reader import curves, read
from dice_ray.tuning import runner
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.sweep import SweepPlan

SPACE = f"{Path(__file__).with_name('spaces.py')}:two_rates"


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


@pytest.mark.ray
@pytest.mark.usefixtures("uri")
@pytest.mark.parametrize(
    ("ray", "fault"),
    [
        *(pytest.param("joined", fault, marks=pytest.mark.slow) for fault in FAULTS if fault.startswith("no space")),
        ("joined", "a deletion that is refused"),
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
