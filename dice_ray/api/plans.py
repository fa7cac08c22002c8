"""What a sweep and a study share: their plan is run or estimated, and what it found is stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import library, tracking
from dice_ray.api.reports import findings, store_outcome
from dice_ray.api.results import Result, interruptible
from dice_ray.errors import InputError, RunError
from dice_ray.files import runs_folder

if TYPE_CHECKING:
    from dice_ray.config.load import Layer
    from dice_ray.run.driver import Driver, TrialCounts
    from dice_ray.tuning.estimate import Estimate
    from dice_ray.tuning.plan import Plan
    from dice_ray.tuning.study import StudyPlan


def run_plan(plan: Plan, driver: Driver, *, is_dry: bool, register: str | None = None) -> Result:
    """Run what a plan asks for and its folder does not hold yet, or estimate it.

    Raises:
        InputError: A model cannot be registered under this name, or the sweep has no best one.
    """
    from dice_ray.tuning import runner
    from dice_ray.tuning.estimate import estimate
    from dice_ray.tuning.looks import is_in_looks
    from dice_ray.tuning.study import StudyPlan

    tracking.check_register(register)
    if register and not plan.has_best:
        raise InputError("a search for several objectives must leave out --register: it has no best trial to register")
    folder = runs_folder() / plan.name
    in_looks = plan if isinstance(plan, StudyPlan) and is_in_looks(plan) else None
    if is_dry:
        made = estimate(plan, folder, driver)
        made = made if in_looks is None else _with_expected_runs(made, in_looks)
        return Result(plan.name, plan.name, False, estimate=made)
    with interruptible(plan.name, plan.name) as stop:
        driver = replace(driver, is_stopped=stop)
        counts = runner.run(plan, folder, driver) if in_looks is None else _run_in_looks(in_looks, folder, driver)
        stop.check()
        return _result(plan, folder, counts, register)


def _run_in_looks(plan: StudyPlan, folder: Path, driver: Driver) -> TrialCounts:
    """Run a study up to each look, and from there the arms that are not settled on any of its data sets.

    What is settled follows from the stored results of the declared numbers of seeds alone, and each look is a study of
    its own to the runner: the cells up to it, minus those in the ledger. So a study that is killed between two looks
    goes through the same ones again, runs nothing twice, and stops where it would have stopped.

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


def _with_expected_runs(made: Estimate, plan: StudyPlan) -> Estimate:
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


def with_automatic(layers: Sequence[Layer], name: str, data_name: str, variant: str | None = None) -> tuple[Layer, ...]:
    """The layers, and above them one with the automatically chosen values, which all trials share on every machine.

    These are the precision, and the name of the data. A sweep or study that was started before keeps the values that
    were chosen then.
    """
    from dice_ray.config.load import resolve, values_layer
    from dice_ray.run import system
    from dice_ray.run.build import fix_precision
    from dice_ray.run.folder import holds_plan
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.plan import AUTOMATIC

    config = resolve(layers)
    system.check(config.tracking.system)
    folder = runs_folder() / name
    stored = plan_file.read(folder) if holds_plan(folder) else None
    before = stored.base(variant) if stored is not None and (variant is None or variant in stored.digests) else None
    chosen: dict[str, str | None] = {}
    if config.training.precision == "auto":
        chosen["training.precision"] = (before or fix_precision(config, is_of_trials=True)).training.precision
    named = config.with_data_name(before.tracking.data if before is not None else data_name)
    if named.tracking.data != config.tracking.data:
        chosen["tracking.data"] = named.tracking.data
    return (*layers, values_layer(AUTOMATIC, chosen)) if chosen else tuple(layers)


def _result(plan: Plan, folder: Path, counts: TrialCounts, register: str | None) -> Result:
    """The result of a sweep or study; predictions and model of the best run of a finished one are stored.

    Raises:
        RunError: Every trial failed; it names the last reason. Or the checkpoint of the best one was deleted.
    """
    from dice_ray.output import redirected
    from dice_ray.run.folder import LOG
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.ledger import ledger_in
    from dice_ray.tuning.places import place
    from dice_ray.tuning.ranking import best_in

    if not counts.is_finished:
        return Result(folder.name, folder.name, is_finished=False)
    ledger = ledger_in(folder)
    if counts.failed == counts.total:
        # The last, since a study may hold other failures of earlier calls.
        *_, reason = (outcome.failure for outcome in ledger.outcomes.values() if outcome.failure)
        reason = " ".join(reason.split())
        raise RunError(
            f"all {counts.total} trials of {folder.name} failed, the last one because {reason} (output: {folder / LOG})"
        )
    result = Result(folder.name, folder.name, is_study=plan.split == "test")
    with redirected(folder / LOG):  # first, since the best run may have no checkpoint any more
        store_outcome(plan.name, lambda: result.findings, folder)
    if plan.has_best and (best := best_in(ledger)) is not None:
        # The best cell may be of a variant that an earlier call asked for.
        store_text = plan_file.read(folder).config(ledger.specs[best]).tracking.text
        if store_text or register:
            tracking.keep_best(place(f"{plan.name}/{best}"), plan.split, store_text=store_text, register=register)
    return result
