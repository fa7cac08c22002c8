"""Several objectives of one search: metrics of the checkpoint that a run keeps, and the seconds that it trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dice_ray.errors import InputError, UnknownNameError
from dice_ray.rehearsal import told_metrics
from dice_ray.tuning.plan import SweepPlan

SECONDS = "seconds"


def metric(objective: str) -> str:
    """What is stored for it.

    >>> metric("recall"), metric("seconds")
    ('dev/recall', 'train/seconds')
    """
    return f"train/{SECONDS}" if objective == SECONDS else f"dev/{objective}"


def mode(objective: str) -> Literal["min", "max"]:
    """Seconds are to be few, all else high."""
    return "min" if objective == SECONDS else "max"


def signed(objective: str) -> str:
    """As it is stored with a sweep.

    >>> signed("recall"), signed("seconds")
    ('dev/recall', '-train/seconds')
    """
    return f"{'-' if mode(objective) == 'min' else ''}{metric(objective)}"


def values(
    objectives: Sequence[str], curve: Sequence[tuple[int, float]], metrics: Sequence[dict[str, float]]
) -> list[float]:
    """What a run reached: metrics of its best evaluation, whose checkpoint is kept, and the seconds of all of it."""
    (_, _), kept = max(zip(curve, metrics, strict=True), key=lambda told: told[0][1])
    return [(metrics[-1] if name == SECONDS else kept)[metric(name)] for name in objectives]


def check(plan: SweepPlan) -> None:
    """Whether a plan can be searched for its objectives.

    Raises:
        InputError: There is one alone, one twice, or what several cannot have.
        UnknownNameError: One is no metric of the task on dev.
    """
    objectives = plan.objectives
    if not objectives:
        return
    if len(set(objectives)) < max(2, len(objectives)):
        raise InputError(f"several objectives must differ, two of them at least, got {', '.join(objectives)}")
    if plan.scheduler != "none":
        raise InputError(f"a search for several objectives must have the scheduler none, got {plan.scheduler}")
    if plan.seeds:
        raise InputError("a search for several objectives must leave out --seeds: it has no five best configurations")
    known = [name.removeprefix("dev/") for name in told_metrics(plan.base())]
    for name in objectives:
        if name not in [*known, SECONDS]:
            raise UnknownNameError("objective", name, [*known, SECONDS])
