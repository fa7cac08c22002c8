"""A sweep: Optuna's suggestions over a space, with early stopping; then its best configurations with other seeds."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from dice_ray import user_code
from dice_ray.run import cluster
from dice_ray.run.driver import Driver, TrialCounts
from dice_ray.run.folder import WARM_START
from dice_ray.tuning import earlier, pruning, ranking, samplers
from dice_ray.tuning.ledger import History, Ledger, TrialSpec, ledger_in
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.runner import session
from dice_ray.tuning.space import Space


def run(plan: SweepPlan, folder: Path, driver: Driver) -> TrialCounts:
    """Run the trials and reruns of a plan that its folder's ledger lacks.

    Raises:
        DiceRayError: Another driver is at work, or the plan cannot run. A trial's own failure is in the ledger.
    """
    notes = check(plan, folder)
    to_copy = _earlier_to_copy(plan, folder)
    with session(plan, folder, driver, notes) as work:
        from dice_ray.tuning.search import PruningScheduler, SweepSearcher

        if to_copy is not None:
            earlier.copy_ledger(to_copy, folder)
        searched = work.ledger.searched()
        searcher = SweepSearcher(plan, searched, _known(plan, folder))
        num_missing = plan.trials - len(searched.outcomes)
        if num_missing and is_exhausted(plan, folder, driver.address):
            searcher.ids[:], num_missing = searched.specs, 0
        # The counts on the screen include the reruns from the start, although their trials are not known yet.
        searcher.ids += ranking.placeholder_ids(plan)
        return work.run(
            searcher,
            num_missing,
            ids=searcher.ids,
            scheduler=PruningScheduler(searcher),
            then=lambda: _missing_reruns(plan, work.ledger, searcher.ids),
        )


def check(plan: SweepPlan, folder: Path) -> list[str]:
    """Check that a sweep can run in a folder; returns notes for the user.

    Raises:
        DiceRayError: It cannot.
    """
    plan.base()
    user_code.load(plan.space)
    # The cells of a study of this name are no trials; storing the plan refuses them.
    trials = [spec for spec in ledger_in(folder).searched().specs.values() if spec.arm is None]
    earlier.check_suggested(trials, Space(plan.space), folder)
    if to_copy := _earlier_to_copy(plan, folder):
        earlier.check_warm_start(plan, to_copy)
    samplers.sampler(plan.sampler, plan.seed)
    pruning.pruner(plan.scheduler)
    samplers.check_objectives(plan)
    samplers.check_space(plan)
    return samplers.notes(plan.sampler, plan.space, max(1, len(plan.objectives)))


def num_missing(plan: SweepPlan, folder: Path, address: str | None = None) -> int:
    """How many trials and reruns of a plan its folder's ledger lacks, at most."""
    history = ledger_in(folder)
    num_ended = len(history.searched().outcomes)
    missing = plan.trials - num_ended
    if missing and plan.sampler == samplers.BRUTE_FORCE:
        missing = _num_untried(plan, folder, missing, address)
    if missing:
        return missing + len(ranking.placeholder_ids(plan.model_copy(update={"trials": num_ended + missing})))
    return len([spec for spec in ranking.reruns(plan, history) if spec.id not in history.outcomes])


def is_exhausted(plan: SweepPlan, folder: Path, address: str | None = None) -> bool:
    """Whether a sweep by brute force has tried every configuration of its space."""
    history = ledger_in(folder).searched()
    if plan.sampler != samplers.BRUTE_FORCE or history.unfinished or not history.outcomes:
        return False
    return not _num_untried(plan, folder, 1, address)


def _num_untried(plan: SweepPlan, folder: Path, most: int, address: str | None) -> int:
    """How many trials a sweep by brute force still suggests, at most so many."""
    cluster.prepare(address)
    from dice_ray.tuning.search import SweepSearcher

    # Asked of a searcher, since only the sampler knows the size of a space with conditional parameters.
    plan = plan.model_copy(update={"trials": plan.trials + most})  # all ids of its own may be taken
    searcher = SweepSearcher(plan, ledger_in(folder).searched(), _known(plan, folder))
    suggested = (str(searcher.suggest(f"trial {number}")) for number in range(most))
    return len(list(takewhile(lambda each: each != SweepSearcher.FINISHED, suggested)))


def _earlier_to_copy(plan: SweepPlan, folder: Path) -> Path | None:
    """The folder of the sweep to start from, until its ledger has been copied."""
    is_copied = plan.warm_start is None or (folder / WARM_START).exists()
    return None if is_copied else folder.parent / str(plan.warm_start)


def _known(plan: SweepPlan, folder: Path) -> History | None:
    """The trials of the sweep to start from."""
    return None if plan.warm_start is None else Ledger(folder / WARM_START).searched()


def _missing_reruns(plan: SweepPlan, history: History, ids: list[str]) -> list[TrialSpec]:
    """The reruns that are missing once the search has ended; their ids then replace the placeholders."""
    placeholders = ranking.placeholder_ids(plan)
    searched = [id_ for id_ in ids if id_ not in placeholders]
    if any(id_ not in history.outcomes for id_ in searched):
        return []
    reruns = ranking.reruns(plan, history)
    ids[:] = [*searched, *(spec.id for spec in reruns)]
    return [spec for spec in reruns if spec.id not in history.outcomes]
