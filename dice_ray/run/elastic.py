"""Ray Train's coordinator, which tells elastic runs how many workers fit on the machines of a cluster.

It is an actor that all such runs of a cluster share. Two things about it are not obvious (Ray 2.60):

- It is bound to the machine of the run that asks first, and when that machine is lost it is never started again: runs
  then wait for its answer for ever. So the driver starts it on its own machine, before any trial does on another.
- A run that is killed does not cancel its request. For three minutes its CPUs count as taken, also for the run's next
  attempt, which therefore cancels it.
"""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "AutoscalingCoordinator"
"""Of the actor, and of its namespace."""
ANSWER_SECONDS: Final = 10.0


def start_coordinator() -> None:
    """Start the coordinator on this machine, unless it runs; one that does not answer is replaced."""
    import ray
    from ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator import (
        get_or_create_autoscaling_coordinator,
    )

    if (running := _coordinator()) is not None:
        try:
            ray.get(running.get_reserved_resources.remote(NAME), timeout=ANSWER_SECONDS)
        except ray.exceptions.RayError:
            ray.kill(running)
    get_or_create_autoscaling_coordinator()


def request_of_this_run() -> str:
    """The name of the request of the run that this worker belongs to."""
    from ray.train.v2._internal.execution.context import get_train_context

    return f"train-{get_train_context().train_run_context.run_id}"


def cancel(request: str) -> None:
    """Cancel the request of a run that was killed."""
    if (running := _coordinator()) is not None:
        running.cancel_request.remote(request)


def _coordinator() -> Any:
    import ray

    try:
        return ray.get_actor(NAME, namespace=NAME)
    except ValueError:
        return None
