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
    from dice_ray.tuning.plan import Plan


def run_in_looks(plan: Plan, folder: Path, driver: Driver) -> TrialCounts:
    """Run a study up to each look, and from there the arms that are not settled on any of its data sets.

    Returns:
        The counts of the last look; unfinished where it was stopped.

    Raises:
        RunError: MLflow does not hold the results that a look is about.
    """
    from dice_ray.tuning import runner
    from dice_ray.tuning.study import StudyPlan

    assert isinstance(plan, StudyPlan)
    began, max_hours, due = time.monotonic(), driver.max_hours, plan.up_to_look(None)
    while True:
        assert due is not None, "a study in looks has a first one"
        if max_hours is not None:
            driver = replace(driver, max_hours=max(max_hours - (time.monotonic() - began) / 3600, 0.0))
        counts = runner.run(due, folder, driver)
        if not counts.is_finished or driver.is_stopped():
            return counts
        store_outcome(plan.name, lambda: findings(plan.name), folder)
        still_open, seeds = _open_arms(folder), max(due.asked.seeds) if due.asked else 0
        if (after := due.up_to_look(still_open)) is None:
            return counts
        due, driver = after, replace(driver, notes=(f"After {seeds} seeds, open: {', '.join(still_open)}",))


def with_expected_runs(made: Estimate, plan: Plan) -> Estimate:
    """The estimate of a study in looks, which has all of its runs, with a note of how many are to be expected."""
    from dice_ray.tuning.study import StudyPlan

    library.folder_of("analysis")
    from analysis.statistics.power import expected_runs

    assert isinstance(plan, StudyPlan)
    num_arms = len(plan.arms.keys() - {plan.baseline} - plan.controls.keys())
    whole = plan.looks[-1] * (num_arms + 1)
    equal, led = (expected_runs(plan.looks, num_arms, lead) / whole for lead in (0.0, 1.0))
    note = (
        f"In looks: about {equal * made.num_runs:.0f} runs ({equal * made.seconds / 3600:.1f} h) where the arms are "
        f"equal, {led * made.num_runs:.0f} ({led * made.seconds / 3600:.1f} h) where one leads by a standard deviation "
        "of the differences; at most all"
    )
    return replace(made, notes=(*made.notes, note))


def _open_arms(folder: Path) -> list[str]:
    """The arms that are to run up to the next look.

    Raises:
        RunError: MLflow lacks results.
    """
    from dice_ray.tracking.spool import unsent_spools

    library.folder_of("analysis")
    from analysis.comparison import comparisons
    from analysis.verdict.decision import open_arms

    name = folder.name
    if any(left.is_of_this_store for left in unsent_spools(folder)):
        raise RunError(
            f"MLflow must hold all results of {name} to compare its arms, and does not answer: "
            f"`dice-ray resume {name}` goes on when it does"
        )
    return [*dict.fromkeys(arm for compared in comparisons(findings(name)) for arm in open_arms(compared))]
