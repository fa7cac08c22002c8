"""Everything that is used of Ray's private modules, each with the version it was seen in and what happens without it.

No other file may import a module of Ray whose path has a part that begins with an underscore, so that an upgrade of Ray
has one file to check. All of it was seen in Ray 2.60.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

# The actor that tells elastic runs of Ray Train how many workers fit on the machines of a cluster, shared by all such
# runs. Its name, and that of its namespace.
_COORDINATOR: Final = "AutoscalingCoordinator"


def dead_process() -> str | None:
    """The process of the Ray started here, without which nothing can run, that has died; None where both are well.

    Ray 2.60. Without it: Ray notices after 14 s (raylet) or 60 s (gcs_server), and ends this process without a message.
    """
    from ray._private import worker

    node: Any = worker._global_node
    dead = [kind for kind, _ in node.dead_processes()] if node is not None else []
    return next((kind for kind in ("gcs_server", "raylet") if kind in dead), None)


def read_settings_again() -> None:
    """Make a Ray that was imported before read the variables that hold it to loopback, and its token.

    Ray 2.60: these are the only settings that a driver keeps from the import; the processes that it starts read the
    environment. Without it: in a notebook that has imported Ray, Ray listens on all interfaces.
    """
    from ray._private import ray_constants
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    ray_constants.ENABLE_RAY_CLUSTER = False
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def own_address(host: str) -> str:
    """The address that Ray uses in place of a host on loopback, the machine's own; any other host as it is.

    Ray 2.60. Without it: a head that listens on loopback alone, or a tunnel to one, does not answer there, and Ray
    retries for minutes without a message.
    """
    from ray._private.services import resolve_ip_for_localhost

    return str(resolve_ip_for_localhost(host))


@contextmanager
def sigterm_handler_kept() -> Iterator[None]:
    """Within the block, `ray.init` leaves the handler of SIGTERM as it is.

    Ray 2.60. Without it: Ray's own handler ends the process at once, without a message or a checkpoint.
    """
    from ray._private import utils

    replace = utils.set_sigterm_handler
    utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = replace


def free_handles(*, gcs_answers: bool) -> None:
    """Free the handles of actors before Ray is shut down; if its `gcs_server` has died, kill the other processes too.

    Ray 2.60. Without it: a handle that is freed after the shutdown kills this process. Without the second part: Tune's
    handles remove their placement groups, each of which waits 60 s for the dead process, and so does the raylet.
    """
    if gcs_answers:
        gc.collect()
        return
    from ray._private import worker
    from ray.air.execution.resources import placement_group

    node: Any = worker._global_node
    handles: Any = placement_group
    remove = handles.remove_placement_group
    handles.remove_placement_group = lambda group: None
    try:
        gc.collect()
    finally:
        handles.remove_placement_group = remove
    node.kill_all_processes(check_alive=False)


def max_job_bytes() -> int:
    """The size of a working directory that a cluster's dashboard takes.

    Ray 2.60. Without it: Ray packs and sends all files, and its answer to too large ones names no folder.
    """
    from ray._private.ray_constants import DASHBOARD_CLIENT_MAX_SIZE

    return int(DASHBOARD_CLIENT_MAX_SIZE)


def visit_packed(folder: Path, excluded: Sequence[str], visit: Callable[[Path], object]) -> None:
    """Call `visit` with each file and folder that Ray's job client packs, which may raise to end the visits.

    Ray 2.60. Without it: other files might be counted than those that are sent.
    """
    from ray._private.ray_constants import get_runtime_env_default_excludes
    from ray._private.runtime_env.packaging import _dir_travel, _get_excludes

    patterns = [*get_runtime_env_default_excludes(), *excluded]
    silent = logging.Logger("silent", logging.CRITICAL)
    _dir_travel(folder, [_get_excludes(folder, patterns)], visit, include_gitignore=True, logger=silent)


def start_coordinator() -> None:
    """Start the coordinator of elastic runs on this machine, unless it runs; one that does not answer is replaced.

    Ray 2.60: the coordinator is bound to the machine of the run that asks first, and is never started again when that
    machine is lost. Without it: an elastic run that asks then waits for its answer for ever. So the driver starts it on
    its own machine, before any trial does on another.
    """
    import ray
    from ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator import (
        get_or_create_autoscaling_coordinator,
    )

    if (running := _coordinator()) is not None:
        try:
            ray.get(running.get_reserved_resources.remote(_COORDINATOR), timeout=10)
        except ray.exceptions.RayError:
            ray.kill(running)
    get_or_create_autoscaling_coordinator()


def request_of_this_run() -> str:
    """The name of the coordinator's request of the run that this worker of Ray Train belongs to."""
    from ray.train.v2._internal.execution.context import get_train_context

    return f"train-{get_train_context().train_run_context.run_id}"


def cancel_request(request: str) -> None:
    """Cancel the coordinator's request of a run that was killed.

    Ray 2.60. Without it: for three minutes its CPUs count as taken, also for the run's own next attempt.
    """
    if (running := _coordinator()) is not None:
        running.cancel_request.remote(request)


@contextmanager
def out_of_memory_ends_a_trial_alone(reason: Callable[[str, str], str]) -> Iterator[None]:
    """Within the block, Ray Tune takes a process that was killed for its memory as a failure of its trial alone.

    Ray 2.60: Tune takes the end of an actor as a failure of its trial, but raises on `OutOfMemoryError`, which is not a
    `RayActorError`. Without it: one trial that takes too much memory ends the driver.

    Args:
        reason: The reason of the failure, from Ray's message and the id of the actor.
    """
    from ray.air.execution._internal import RayActorManager
    from ray.exceptions import OutOfMemoryError, RayActorError

    manager: Any = RayActorManager
    at_start, at_work = manager._actor_start_failed, manager._actor_task_failed

    def as_actor_error(self: Any, tracked_actor: Any, exception: Exception) -> Exception:
        if not isinstance(exception, OutOfMemoryError):
            return exception
        actor, _ = self._live_actors_to_ray_actors_resources[tracked_actor]
        actor_id: str = actor._actor_id.hex()
        return RayActorError(actor_id, reason(str(exception), actor_id))

    def start_failed(self: Any, tracked_actor: Any, exception: Exception) -> None:
        at_start(self, tracked_actor, as_actor_error(self, tracked_actor, exception))

    def task_failed(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
        at_work(self, tracked_actor_task, as_actor_error(self, tracked_actor_task._tracked_actor, exception))

    manager._actor_start_failed, manager._actor_task_failed = start_failed, task_failed
    try:
        yield
    finally:
        manager._actor_start_failed, manager._actor_task_failed = at_start, at_work


def _coordinator() -> Any:
    import ray

    try:
        return ray.get_actor(_COORDINATOR, namespace=_COORDINATOR)
    except ValueError:
        return None
