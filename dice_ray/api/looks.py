"""A study in looks: its arms are compared after 5, 10, 15, ... seeds, and only those that are open run on.

What is settled follows from the stored results of the declared numbers of seeds alone, and each look is a study of its
own to the runner: the cells up to it, minus those in the ledger. So a study that is killed between two looks goes
through the same ones again, runs nothing twice, and stops where it would have stopped.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import library
from dice_ray.api.reports import findings, store_outcome
from dice_ray.errors import RunError

if TYPE_CHECKING:
    from dice_ray.run.driver import Driver, TrialCounts
    from dice_ray.tuning.estimate import Estimate
    from dice_ray.tuning.study import StudyPlan


def run_in_looks(plan: StudyPlan, folder: Path, driver: Driver) -> TrialCounts:
    """Run a study up to each look, and from there the arms that are not settled on any of its data sets.

    Returns:
        The counts of the last look; unfinished where it was stopped.

    Raises:
        RunError: MLflow does not hold the results that a look is about.
    """
    library.folder_of("analysis")
    from analysis.comparison import comparisons
    from analysis.verdict.decision import open_arms
    from dice_ray.tracking.spool import unsent_spools
    from dice_ray.tuning import runner
    from dice_ray.tuning.looks import up_to_look

    began, max_hours, due = time.monotonic(), driver.max_hours, up_to_look(plan, None)
    assert due is not None, "a study in looks has a first one"
    while True:
        if max_hours is not None:  # between two looks it may have run out: the next one then ends at once
            driver = replace(driver, max_hours=max(max_hours - (time.monotonic() - began) / 3600, 1e-6))
        counts = runner.run(due, folder, driver)
        if not counts.is_finished or driver.is_stopped():
            return counts
        if any(left.is_of_this_store for left in unsent_spools(folder)):
            raise RunError(
                f"MLflow must hold all results of {plan.name} to compare its arms, and does not answer: "
                f"`dice-ray resume {plan.name}` goes on when it does"
            )
        found = findings(plan.name)
        # On any data set.
        still_open = [*dict.fromkeys(arm for compared in comparisons(found) for arm in open_arms(compared))]
        seeds = max(due.asked.seeds) if due.asked else 0
        if (after := up_to_look(due, still_open)) is None:
            return counts
        store_outcome(plan.name, lambda: found, folder)  # noqa: B023 - it is called at once
        due, driver = after, replace(driver, notes=(f"After {seeds} seeds, open: {', '.join(still_open)}",))


def with_expected_runs(made: Estimate, plan: StudyPlan) -> Estimate:
    """The estimate of a study in looks, which has all of its runs, with a note of how many are to be expected."""
    library.folder_of("analysis")
    from analysis.statistics.power import expected_runs

    num_arms = len(plan.arms.keys() - {plan.baseline} - plan.controls.keys())
    whole = plan.looks[-1] * (num_arms + 1)
    equal, led = (expected_runs(plan.looks, num_arms, lead) / whole for lead in (0.0, 1.0))
    note = (
        f"In looks: about {equal * made.num_runs:.0f} runs ({equal * made.seconds / 3600:.1f} h) where the arms are "
        f"equal, {led * made.num_runs:.0f} ({led * made.seconds / 3600:.1f} h) where one leads by a standard deviation "
        "of the differences; at most all"
    )
    return replace(made, notes=(*made.notes, note))
