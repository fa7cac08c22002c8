"""Trials whose process Ray's memory monitor has killed: each fails with its reason or is tried again, and others go on.

Ray Tune takes the end of an actor as a failure of its trial. But it raises on `OutOfMemoryError`, which is not a
`RayActorError`, and so one trial that takes too much memory would end the driver (Ray 2.60). `survived` hands Tune a
`RayActorError` in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ray.air.execution._internal import RayActorManager, TrackedActor
from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
from ray.exceptions import OutOfMemoryError, RayActorError

OUT_OF_MEMORY: Final = "out of memory: "
"""How the reason of such a failure begins."""
_OWN: Final = " of them by this trial itself"


def reason(message: str, actor_id: str) -> str:
    """The reason in one line; Ray's message has about 40.

    Args:
        message: Ray's, which names the memory in use and that of each process it has killed.
        actor_id: Of the trial's process, in the message.
    """
    memory = re.search(r"was ([\d.]+)GB used / ([\d.]+)GB limit", message)
    own = re.search(rf"Actor\({actor_id}\).*actual memory used=([\d.]+)GB", message)
    if memory is None or own is None:
        return f"{OUT_OF_MEMORY}{message.partition(chr(10))[0]}"
    used, limit = memory.groups()
    # Without this trial there would have been room, or another one is the reason.
    whose = _OWN if float(own[1]) > float(used) / 2 else " of them by this trial"
    return f"{OUT_OF_MEMORY}Ray ended this trial when {used} of the machine's {limit} GB were in use, {own[1]}{whose}"


def is_hopeless(errors: str) -> bool:
    """Whether a trial should not be tried again: it took most of the memory itself, or was killed for it twice.

    Args:
        errors: All failures of the trial, as Tune writes them to a file.
    """
    return errors.count(OUT_OF_MEMORY) > 1 or _OWN in errors


@contextmanager
def survived() -> Iterator[None]:
    """Within the block, Tune takes a process that was killed for its memory as a failure of its trial alone."""
    # Internals of Ray 2.60.
    manager: Any = RayActorManager
    at_start, at_work = manager._actor_start_failed, manager._actor_task_failed

    def start_failed(self: RayActorManager, tracked_actor: TrackedActor, exception: Exception) -> None:
        at_start(self, tracked_actor, _as_actor_error(self, tracked_actor, exception))

    def task_failed(self: RayActorManager, tracked_actor_task: TrackedActorTask, exception: Exception) -> None:
        at_work(self, tracked_actor_task, _as_actor_error(self, tracked_actor_task._tracked_actor, exception))

    manager._actor_start_failed, manager._actor_task_failed = start_failed, task_failed
    try:
        yield
    finally:
        manager._actor_start_failed, manager._actor_task_failed = at_start, at_work


def _as_actor_error(manager: RayActorManager, tracked: TrackedActor, exception: Exception) -> Exception:
    if not isinstance(exception, OutOfMemoryError):
        return exception
    actor, _ = manager._live_actors_to_ray_actors_resources[tracked]
    actor_id: str = actor._actor_id.hex()
    return RayActorError(actor_id, reason(str(exception), actor_id))
