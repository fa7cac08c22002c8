"""Everything that is used of Ray's private modules, each with the version it was seen in and what happens without it.

No other file may import a module of Ray whose path has a part that begins with an underscore, so that another version
of Ray has one file to check: `make test-ray VERSION=2.59` does. All of it was seen in Ray 2.58 to 2.60. A version that
lacks a part works without it, as the part's docstring says; only `read_settings_again` is refused then.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from dice_ray.errors import RunError

# The actor that tells elastic runs of Ray Train how many workers fit on the machines of a cluster, shared by all such
# runs. Its name, and that of its namespace.
_COORDINATOR: Final = "AutoscalingCoordinator"


def dead_process() -> str | None:
    """The process of the Ray started here, without which nothing can run, that has died; None where both are well.

    Ray 2.60. Without it: Ray notices after 14 s (raylet) or 60 s (gcs_server), and ends this process without a message.
    """
    node = _private("ray._private.worker", "_global_node")
    dead = [kind for kind, _ in node.dead_processes()] if hasattr(node, "dead_processes") else []
    return next((kind for kind in ("gcs_server", "raylet") if kind in dead), None)


def read_settings_again() -> None:
    """Make a Ray that was imported before read the variables that hold it to loopback, and its token.

    Ray 2.60: these are the only settings that a driver keeps from the import; the processes that it starts read the
    environment. Without it: in a notebook that has imported Ray, Ray listens on all interfaces.

    Raises:
        RunError: This version of Ray keeps them elsewhere.
    """
    import ray

    constants = _private("ray._private.ray_constants")
    config, token = _private("ray._raylet", "Config"), _private("ray._raylet", "AuthenticationTokenLoader")
    if not (hasattr(constants, "ENABLE_RAY_CLUSTER") and config and token):
        raise RunError(
            f"Ray {ray.__version__} cannot be restricted to this machine once it is imported: start a new Python "
            "process that does not import ray before dice_ray"
        )
    constants.ENABLE_RAY_CLUSTER = False
    config.initialize("")
    token.instance().reset_cache()


def own_address(host: str) -> str:
    """The address that Ray uses in place of a host on loopback, the machine's own; any other host as it is.

    Ray 2.60. Without it: a head that listens on loopback alone, or a tunnel to one, does not answer there, and Ray
    retries for minutes without a message.
    """
    resolve = _private("ray._private.services", "resolve_ip_for_localhost")
    return str(resolve(host)) if resolve else host


def sockets(address: str) -> list[str]:
    """The sockets of the raylets of a cluster, each a path on its own machine.

    Ray 2.60. Without it: where no raylet of the cluster runs on this machine, Ray waits for one for a minute, or ends
    this process; and it repeats a wrong token for 25 s.

    Raises:
        RayError: The cluster refuses the token of this process, or there is none.
    """
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    ensure_token_if_auth_enabled(create_token_if_missing=False)  # without one, the client ends this process
    alive = 0  # GcsNodeInfo.ALIVE
    nodes = GcsClient(address=address).get_all_node_info(timeout=30).values()
    return [node.raylet_socket_name for node in nodes if node.state == alive]


def sigterm_handler_kept() -> AbstractContextManager[None]:
    """Within the block, `ray.init` leaves the handler of SIGTERM as it is.

    Ray 2.60. Without it: Ray's own handler ends the process at once, without a message or a checkpoint.
    """
    return _replaced(_private("ray._private.utils"), set_sigterm_handler=lambda handler: None)


def free_handles(*, gcs_answers: bool) -> None:
    """Free the handles of actors before Ray is shut down; if its `gcs_server` has died, kill the other processes too.

    Ray 2.60. Without it: a handle that is freed after the shutdown kills this process. Without the second part: Tune's
    handles remove their placement groups, each of which waits 60 s for the dead process, and so does the raylet.
    """
    node = _private("ray._private.worker", "_global_node")
    if gcs_answers or node is None:
        gc.collect()
        return
    with _replaced(_private("ray.air.execution.resources.placement_group"), remove_placement_group=lambda group: None):
        gc.collect()
    node.kill_all_processes(check_alive=False)


def max_job_bytes() -> int:
    """The size of a working directory that a cluster's dashboard takes.

    Ray 2.60. Without it: what it was in this version.
    """
    return int(_private("ray._private.ray_constants", "DASHBOARD_CLIENT_MAX_SIZE") or 100 * 1024**2)


def visit_packed(folder: Path, excluded: Sequence[str], visit: Callable[[Path], object]) -> None:
    """Call `visit` with each file and folder that Ray's job client packs, which may raise to end the visits.

    Ray 2.60. Without it: all files are visited, also those that are not sent.
    """
    defaults = _private("ray._private.ray_constants", "get_runtime_env_default_excludes")
    packaging = _private("ray._private.runtime_env.packaging")
    if not (defaults and hasattr(packaging, "_dir_travel") and hasattr(packaging, "_get_excludes")):
        for path in (folder, *folder.rglob("*")):
            visit(path)
        return
    silent = logging.Logger("silent", logging.CRITICAL)
    excludes = [packaging._get_excludes(folder, [*defaults(), *excluded])]
    packaging._dir_travel(folder, excludes, visit, include_gitignore=True, logger=silent)


def start_coordinator() -> None:
    """Start the coordinator of elastic runs on this machine, unless it runs; one that does not answer is replaced.

    Ray 2.60: the coordinator is bound to the machine of the run that asks first, and is never started again when that
    machine is lost. Without it: an elastic run that asks then waits for its answer for ever. So the driver starts it on
    its own machine, before any trial does on another.
    """
    import ray

    module = "ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator"
    if (create := _private(module, "get_or_create_autoscaling_coordinator")) is None:
        return
    if (running := _coordinator()) is not None:
        try:
            ray.get(running.get_reserved_resources.remote(_COORDINATOR), timeout=10)
        except ray.exceptions.RayError:
            ray.kill(running)
    create()


def request_of_this_run() -> str:
    """The name of the coordinator's request of the run that this worker of Ray Train belongs to.

    Ray 2.60. Without it: an empty one, which `cancel_request` does not find.
    """
    context = _private("ray.train.v2._internal.execution.context", "get_train_context")
    run: Any = getattr(context(), "train_run_context", None) if context else None
    return f"train-{run.run_id}" if hasattr(run, "run_id") else ""


def cancel_request(request: str) -> None:
    """Cancel the coordinator's request of a run that was killed.

    Ray 2.60. Without it: for three minutes its CPUs count as taken, also for the run's own next attempt.
    """
    if (running := _coordinator()) is not None:
        running.cancel_request.remote(request)


def out_of_memory_ends_a_trial_alone(reason: Callable[[str, str], str]) -> AbstractContextManager[None]:
    """Within the block, Ray Tune takes a process that was killed for its memory as a failure of its trial alone.

    Ray 2.60: Tune takes the end of an actor as a failure of its trial, but raises on `OutOfMemoryError`, which is not a
    `RayActorError`. Without it: one trial that takes too much memory ends the driver.

    Args:
        reason: The reason of the failure, from Ray's message and the id of the actor.
    """
    from ray.exceptions import OutOfMemoryError, RayActorError

    manager = _private("ray.air.execution._internal", "RayActorManager")
    originals: list[Any] = [getattr(manager, name, None) for name in ("_actor_start_failed", "_actor_task_failed")]
    at_start, at_work = originals

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

    return _replaced(manager, _actor_start_failed=start_failed, _actor_task_failed=task_failed)


def starting_actors_kept() -> AbstractContextManager[None]:
    """Within the block, Ray Tune keeps an actor that is starting when its trial is given another one.

    Ray 2.60: with `reuse_actors`, an actor that an ended trial has freed goes to the trial that waits, and Tune removes
    the one that was starting for that. Here it is left to start, and then goes to the next trial that waits. Without
    it: a machine that joins gets no trial as long as trials end more often than an actor takes to start there.
    """
    controller = _private("ray.tune.execution.tune_controller", "TuneController")
    names = ("_maybe_reuse_cached_actor", "_actor_started", "_actor_failed", "_cleanup_cached_actors")
    originals: list[Any] = [getattr(controller, name, None) for name in names]
    reuse, started, failed, clean_up = originals
    kept: dict[Any, Any] = {}  # from actors that are starting for no trial to the resources that they hold

    def reuse_and_keep(self: Any, trial: Any) -> bool:
        actor, resources = self._trial_to_actor.get(trial), trial.placement_group_factory
        can_reuse = self._actor_cache.has_cached_object(resources) and trial not in self._resetting_trials
        # It has its resources, and may still be in `setup`.
        if can_reuse and self._actor_manager.is_actor_started(actor):
            del self._trial_to_actor[trial], self._actor_to_trial[actor]
            kept[actor] = resources
        return bool(reuse(self, trial))

    def started_for_none(self: Any, actor: Any, *arguments: Any, **options: Any) -> None:
        if actor not in kept:
            started(self, actor, *arguments, **options)
            return
        self._started_actors.add(actor)
        if not self._actor_cache.cache_object(kept.pop(actor), actor):
            self._remove_actor(actor)

    def failed_for_none(self: Any, actor: Any, exception: Exception) -> None:
        if kept.pop(actor, None) is None:
            failed(self, actor, exception)
            return
        actor.set_on_stop(None)
        actor.set_on_error(None)
        self._actor_manager.remove_actor(actor, kill=False)
        self._actor_stopped(actor)

    def clean_up_kept(self: Any, force_all: bool = False) -> None:
        if force_all or (self._search_alg.is_finished() and not self._staged_trials):
            for actor in list(kept):
                del kept[actor]
                self._remove_actor(actor)
        clean_up(self, force_all)

    methods = (reuse_and_keep, started_for_none, failed_for_none, clean_up_kept)
    return _replaced(controller, **dict(zip(names, methods, strict=True)))


@contextmanager
def _replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    """Within the block, a module or class of Ray has these attributes; it keeps its own where it lacks one of them."""
    before = {name: getattr(owner, name, None) for name in attributes}
    if not all(before.values()):
        yield
        return
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def _coordinator() -> Any:
    import ray

    try:
        return ray.get_actor(_COORDINATOR, namespace=_COORDINATOR)
    except ValueError:
        return None


def _private(module: str, name: str | None = None) -> Any:
    """A private module of Ray, or what it has under a name; None where this version has none."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return None
    return found if name is None else getattr(found, name, None)
