"""A version of Ray without a private part that is used: the same without what the part was used for."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dice_ray.errors import RunError
from dice_ray.run import ray_internals


def _absent(module: str, name: str | None = None) -> Any:
    return None


@pytest.fixture(params=["nothing private", "modules without what is used"])
def another_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ray that has none of the private modules, or has the modules and nothing of what is used of them."""

    def empty(module: str, name: str | None = None) -> Any:
        return os if name is None else None

    monkeypatch.setattr(ray_internals, "_private", _absent if request.param == "nothing private" else empty)


@pytest.mark.usefixtures("another_ray")
def test_what_a_version_of_ray_lacks_is_left_out(tmp_path: Path) -> None:
    """An import or an attribute that ends every command on another version of Ray."""
    assert ray_internals.dead_process() is None
    assert ray_internals.own_address("127.0.0.1") == "127.0.0.1"
    handler = signal.getsignal(signal.SIGTERM)
    with ray_internals.sigterm_handler_kept():
        assert signal.getsignal(signal.SIGTERM) == handler
    for answers in (True, False):
        ray_internals.free_handles(gcs_answers=answers)
    assert ray_internals.max_job_bytes() == 100 * 1024**2
    (tmp_path / "kept.py").touch()
    visited: list[str] = []
    ray_internals.visit_packed(tmp_path, [], lambda path: visited.append(path.name))
    assert visited == [tmp_path.name, "kept.py"]
    ray_internals.start_coordinator()
    assert ray_internals.request_of_this_run() == ""
    with ray_internals.out_of_memory_ends_a_trial_alone(lambda message, actor: message):
        pass
    with ray_internals.starting_actors_kept():
        pass


@pytest.mark.usefixtures("another_ray")
def test_a_ray_that_cannot_be_held_to_this_machine_is_not_started() -> None:
    """A Ray of a notebook that listens on all interfaces without anyone knowing."""
    with pytest.raises(
        RunError, match=r"^Ray [\d.]+ cannot be restricted to this machine once it is imported: start a"
    ):
        ray_internals.read_settings_again()


def test_a_module_that_does_not_exist_is_none() -> None:
    assert ray_internals._private("ray._private.no_such_module", "thing") is None
    assert ray_internals._private("ray._private.ray_constants", "NO_SUCH_THING") is None
    assert ray_internals._private("ray._private.ray_constants", "DASHBOARD_CLIENT_MAX_SIZE") == 100 * 1024**2
