"""A sweep: Optuna's suggestions over a space, stopped early; then the best of them again with other seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import cluster
from dice_ray.run.driver import Show
from dice_ray.tuning import objectives, reruns, samplers, space, warm_start
from dice_ray.tuning.ledger import Begun, History, Ledger
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.runner import session

if TYPE_CHECKING:
    from dice_ray.tuning.progress import Progress


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
    notes = check(plan, folder)
    earlier = _earlier(plan, folder)
    with session(
        plan, folder, address=address, num_cpus=num_cpus, max_hours=max_hours, show=show, notes=notes
    ) as driver:
        from dice_ray.tuning.schedulers import asha, median
        from dice_ray.tuning.searchers import SweepSearcher

        if earlier is not None:
            warm_start.take_over(earlier, folder)
        searched = driver.ledger.searched()
        searcher = SweepSearcher(plan, searched, _known(plan, folder))
        scheduler = {"asha": asha, "median": median, "none": None}[plan.scheduler]
        missing = plan.trials - len(searched.ended)
        if missing and is_exhausted(plan, folder, address):
            searcher.ids[:], missing = searched.begun, 0
        searcher.ids += reruns.expected(plan)
        return driver.fit(
            searcher,
            scheduler and scheduler(searched),
            missing=missing,
            ids=searcher.ids,
            then=lambda: _reruns(plan, driver.ledger, searcher.ids),
        )


def check(plan: SweepPlan, folder: Path) -> list[str]:
    """Whether a sweep can run in a folder; returns what a user should know before it does.

    Raises:
        DiceRayError: It cannot.
    """
    plan.base()
    space.load(plan.space)
    if earlier := _earlier(plan, folder):
        warm_start.check(plan, earlier)
    samplers.sampler(plan.sampler, plan.seed)
    objectives.check(plan)
    return samplers.notes(plan.sampler, plan.space, max(1, len(plan.objectives)))


def num_missing(plan: SweepPlan, history: History) -> int:
    """How many trials and reruns a ledger lacks of a plan, at most."""
    if missing := plan.trials - len(history.searched().ended):
        return missing + len(reruns.expected(plan))
    return len([cell for cell in reruns.cells(plan, history) if cell.id not in history.ended])


def is_exhausted(plan: SweepPlan, folder: Path, address: str | None = None) -> bool:
    """Whether the trials of a sweep that tries each configuration once were all that its space holds."""
    ledger = Ledger(folder / "ledger.jsonl").searched()
    if plan.sampler != samplers.BRUTE_FORCE or ledger.open or not ledger.ended:
        return False
    cluster.prepare(address)
    from dice_ray.tuning.searchers import SweepSearcher

    return str(SweepSearcher(plan, ledger, _known(plan, folder)).suggest("one more")) == SweepSearcher.FINISHED


def _earlier(plan: SweepPlan, folder: Path) -> Path | None:
    """The folder of the sweep to start from, as long as it was not taken over."""
    is_taken = plan.warm_start is None or (folder / warm_start.FILE).exists()
    return None if is_taken else folder.parent / str(plan.warm_start)


def _known(plan: SweepPlan, folder: Path) -> History | None:
    """The trials of the sweep to start from, once it was taken over."""
    return None if plan.warm_start is None else Ledger(folder / warm_start.FILE).searched()


def _reruns(plan: SweepPlan, history: History, ids: list[str]) -> list[Begun]:
    """The reruns that are missing, none before the search has ended; their ids take the place of those expected."""
    searched = [id_ for id_ in ids if id_ not in reruns.expected(plan)]
    if any(id_ not in history.ended for id_ in searched):
        return []
    cells = reruns.cells(plan, history)
    ids[:] = [*searched, *(cell.id for cell in cells)]
    return [cell for cell in cells if cell.id not in history.ended]
