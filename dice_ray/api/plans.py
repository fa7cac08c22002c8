"""What a sweep and a study share: their plan is run or estimated, and what it found is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import tracking
from dice_ray.api.looks import run_in_looks, with_expected_runs
from dice_ray.api.reports import store_outcome
from dice_ray.api.results import Result, interruptible
from dice_ray.errors import InputError, RunError
from dice_ray.files import runs_folder

if TYPE_CHECKING:
    from dice_ray.config.load import Layer
    from dice_ray.run.driver import Driver, TrialCounts
    from dice_ray.tuning.plan import Plan


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
        made = made if in_looks is None else with_expected_runs(made, in_looks)
        return Result(plan.name, plan.name, False, estimate=made)
    with interruptible(plan.name, plan.name) as stop:
        driver = replace(driver, is_stopped=stop)
        counts = runner.run(plan, folder, driver) if in_looks is None else run_in_looks(in_looks, folder, driver)
        stop.check()
        return _result(plan, folder, counts, register)


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
