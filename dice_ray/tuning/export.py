"""What leaves a sweep: its best configuration as a preset, and an Optuna study, which optuna-dashboard opens."""

from __future__ import annotations

import warnings
from pathlib import Path

import optuna
from optuna.study import StudyDirection
from optuna.trial import FixedTrial, FrozenTrial

from dice_ray.config.load import as_written, values_layer
from dice_ray.errors import InputError, RefusedError, UnknownNameError, counted
from dice_ray.files import whole_output
from dice_ray.metrics.catalogue import gain, metric
from dice_ray.output import quiet
from dice_ray.run.build import objective
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.plan import AUTOMATIC
from dice_ray.tuning.ranking import RankedTrial, ranked_in
from dice_ray.tuning.samplers import TRIAL_STATES, objective_values
from dice_ray.tuning.space import Space
from dice_ray.tuning.sweep import SweepPlan


def optuna_study(folder: Path, file: Path) -> int:
    """Write the trials of a sweep that have ended, in the order of their start; returns their number.

    Reruns with other seeds are left out: the search did not suggest them. The file is written whole or not at all.

    Raises:
        RunError: The folder holds a study.
        InputError: No trial of the sweep has ended.
    """
    plan, history = plan_file.read_sweep(folder, "to be exported to Optuna"), ledger_in(folder).searched()
    if not history.outcomes:
        raise InputError(f"{folder.name} must have a trial that has ended, and has none yet")
    space = Space(plan.space)
    trials = [_trial(plan, space, spec, outcome) for spec, outcome in history.ended]
    with whole_output(file) as unfinished, quiet("optuna"):
        storage = optuna.storages.RDBStorage(f"sqlite:///{unfinished.absolute()}")
        names = list(plan.objectives) or [objective(plan.base())]
        lowest, highest = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE
        directions = [lowest if metric(name).is_minimised else highest for name in names]
        study = optuna.create_study(storage=storage, study_name=plan.name, directions=directions)
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            study.set_metric_names(names)
        study.add_trials(trials)
        storage.engine.dispose()
    return len(trials)


def _trial(plan: SweepPlan, space: Space, spec: TrialSpec, outcome: TrialOutcome) -> FrozenTrial:
    """The trial with its settings, its score after each evaluation by step, and its id and failure as attributes."""
    fixed = FixedTrial(spec.params)
    space(fixed)
    values = objective_values(plan.objectives, outcome.curve, outcome.metrics) if outcome.state == "done" else None
    curve: dict[int, float] = {}
    if not plan.objectives:  # scores, which are gains
        name = objective(plan.base())
        values = values and [gain(name, each) for each in values]
        curve = {step: gain(name, score) for step, score in outcome.curve}
    return optuna.trial.create_trial(
        state=TRIAL_STATES[outcome.state],
        values=values,
        params=fixed.params,
        distributions=fixed.distributions,
        intermediate_values=curve,
        user_attrs={"trial": spec.id} | ({"failure": outcome.failure} if outcome.failure else {}),
    )


def preset(folder: Path, trial: str | None = None) -> str:
    """The configuration of a sweep's best trial, or of the given one, as a commented preset.

    Raises:
        RunError: The folder holds no sweep, or none of its trials has a score.
        UnknownNameError: There is no such trial, or it has no score.
        InputError: The sweep has several objectives, and no trial was named.
    """
    plan, ledger = plan_file.read_sweep(folder, "(the report of a study says which arm is best)"), ledger_in(folder)
    trials = {each.id: each for each in ranked_in(ledger)}
    if not trials:
        raise RefusedError(f"{folder} must hold a trial with a score, and holds none")
    if trial is None and plan.objectives:
        raise InputError(f"{plan.name} has several objectives: name a trial of its Pareto front, as {plan.name}/0001")
    if trial is not None and trial not in trials:
        raise UnknownNameError(f"trial of {plan.name} with a score", trial, trials)
    best = trials[trial] if trial is not None else next(iter(trials.values()))
    spec = ledger.specs[best.id]
    layer = values_layer("trial", spec.params | {"training.seed": spec.seed})
    values = as_written([*(below for below in plan.layers if below.origin != AUTOMATIC), layer])
    header = _header(plan, best, spec.seed, len(ledger.searched().outcomes))
    return "".join(f"# {line}\n" for line in header) + values


def _header(plan: SweepPlan, best: RankedTrial, seed: int, num_trials: int) -> list[str]:
    num_seeds, metric = len(best.rerun_scores), objective(plan.base())
    by = f"the mean over {num_seeds} other seeds: {gain(metric, best.mean):.4f}" if num_seeds else (
        "this score, which is optimistic since the trial was selected by it"
    )  # fmt: skip
    lines = [
        f"Trial {best.id} of the sweep {plan.name}: run it by `dice-ray train`.",
        f"From {plan.origins}, searched in {plan.space} by {plan.sampler}, {counted(num_trials, 'trial')}.",
        f"{metric} {gain(metric, best.score):.4f} with seed {seed}.",
        f"Ranked by {by}.",
    ]
    return [*lines, f"Data digest: {plan.digest}."] if plan.digest else lines
