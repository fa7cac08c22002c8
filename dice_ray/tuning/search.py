"""A sweep: Optuna's suggestions over a space, stopped early by successive halving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.tuning import samplers, space, warm_start
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.runner import Show, session

if TYPE_CHECKING:
    from dice_ray.tuning.callback import Progress


def run(
    plan: SweepPlan,
    folder: Path,
    *,
    address: str | None = None,
    num_cpus: int | None = None,
    max_hours: float | None = None,
    show: Show | None = None,
) -> Progress:
    """Run what the sweep's ledger lacks of its plan.

    Args:
        plan: What to search.
        folder: Where plan, ledger, log and the trials' folders are; a folder begun before is gone on with.
        address: Of a Ray cluster to join.
        num_cpus: CPUs of a Ray of our own.
        max_hours: After which the sweep stops, to be gone on with later.
        show: Makes the live screen.

    Raises:
        DiceRayError: Another driver is at work, or the plan cannot run; a trial's own failure is in the ledger.
    """
    plan.base()
    space.load(plan.space)
    earlier = folder.parent / plan.warm_start if plan.warm_start and not (folder / warm_start.FILE).exists() else None
    if earlier is not None:
        warm_start.check(plan, earlier)
    samplers.sampler(plan.sampler, plan.seed)
    with session(plan, folder, address=address, num_cpus=num_cpus, max_hours=max_hours, show=show) as driver:
        from dice_ray.tuning.schedulers import asha, median
        from dice_ray.tuning.searchers import SweepSearcher

        if earlier is not None:
            warm_start.take_over(earlier, folder)
        known = Ledger(folder / warm_start.FILE) if plan.warm_start is not None else None
        searcher = SweepSearcher(plan, driver.ledger, known)
        scheduler = {"asha": asha, "median": median, "none": None}[plan.scheduler]
        missing = plan.trials - len(driver.ledger.ended)
        return driver.fit(searcher, scheduler and scheduler(driver.ledger), missing=missing, ids=searcher.ids)
