"""What a study in looks runs next, and the control that is its baseline with other seeds.

Each look is a plan of its own, which asks for the seeds up to it and for the arms that are open.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dice_ray.tuning.cells import AGAIN, Asked
from dice_ray.tuning.study import StudyPlan


def is_in_looks(plan: StudyPlan) -> bool:
    """Whether arms stop once they are settled; not where seeds beyond the last look are asked for."""
    return len(plan.looks) > 1 and max(plan.seeds) <= plan.looks[-1]


def up_to_look(plan: StudyPlan, arms: Collection[str] | None) -> StudyPlan | None:
    """The plan that asks for the seeds up to the next look; None where no look is left, or no arm is open.

    Args:
        plan: Of the look before.
        arms: Those that are not settled there; others than the plan asks for are not run. None for the first look.
    """
    before = plan.asked or plan.asked_for_all()
    now = 0 if arms is None else max(before.seeds)
    names = set(before.arms) if arms is None else set(arms) & set(before.arms)
    left = [look for look in plan.looks if look > now]
    if not left or not names:
        return None
    names |= {plan.baseline, AGAIN} & plan.arms.keys()
    seeds = tuple(seed for seed in plan.seeds if seed <= left[0])
    asked = Asked(arms=tuple(sorted(names)), seeds=seeds, variants=before.variants)
    return plan.model_copy(update={"asked": asked})


def with_control_again(plan: StudyPlan) -> StudyPlan:
    """The plan with the baseline once more, with other seeds: a control that differs in nothing else."""
    copied: dict[str, dict[str, Any]] = {
        name: dict(getattr(plan, name)) for name in ("arms", "tuned", "tuned_settings")
    }
    for by_arm in copied.values():
        if plan.baseline in by_arm:
            by_arm[AGAIN] = by_arm[plan.baseline]
    return plan.model_copy(update={**copied, "controls": plan.controls | {AGAIN: plan.baseline}})
