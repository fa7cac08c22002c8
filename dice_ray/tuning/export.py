"""A sweep as an Optuna study in an SQLite file, which optuna-dashboard opens and Optuna's functions read."""

from __future__ import annotations

import warnings
from pathlib import Path

import optuna
from optuna.study import StudyDirection
from optuna.trial import FixedTrial, FrozenTrial

from dice_ray.errors import InputError
from dice_ray.run.build import objective
from dice_ray.run.folder import whole_output
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.samplers import TRIAL_STATES, mode_of, objective_values, quiet_optuna
from dice_ray.tuning.space import Space

DIRECTIONS = {"max": StudyDirection.MAXIMIZE, "min": StudyDirection.MINIMIZE}


def export(folder: Path, file: Path) -> int:
    """Write the trials of a sweep that have ended, in the order of their start; returns their number.

    Reruns with other seeds are left out: the search did not suggest them. The file is written whole or not at all.

    Raises:
        InputError: The folder holds a study, or a sweep of which no trial has ended.
    """
    plan, history = plan_file.read(folder), ledger_in(folder).searched()
    if not isinstance(plan, SweepPlan):
        raise InputError(f"an Optuna study must be exported from a sweep, and {folder.name} is a study of arms")
    if not history.outcomes:
        raise InputError(f"{folder.name} must have a trial that has ended, and has none yet")
    space = Space(plan.space)
    ended = [(spec, history.outcomes[id_]) for id_, spec in history.specs.items() if id_ in history.outcomes]
    trials = [_trial(plan, space, spec, outcome) for spec, outcome in ended]
    with whole_output(file) as unfinished, quiet_optuna():
        storage = optuna.storages.RDBStorage(f"sqlite:///{unfinished.absolute()}")
        directions = [DIRECTIONS[mode_of(name)] for name in plan.objectives] or [StudyDirection.MAXIMIZE]
        study = optuna.create_study(storage=storage, study_name=plan.name, directions=directions)
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            study.set_metric_names(list(plan.objectives) or [objective(plan.base())])
        study.add_trials(trials)
        storage.engine.dispose()
    return len(trials)


def _trial(plan: SweepPlan, space: Space, spec: TrialSpec, outcome: TrialOutcome) -> FrozenTrial:
    """The trial with its settings, its score after each evaluation by step, and its id and failure as attributes."""
    fixed = FixedTrial(spec.params)
    space(fixed)
    is_done = outcome.state == "done"
    return optuna.trial.create_trial(
        state=TRIAL_STATES[outcome.state],
        values=objective_values(plan.objectives, outcome.curve, outcome.metrics) if is_done else None,
        params=fixed.params,
        distributions=fixed.distributions,
        intermediate_values={} if plan.objectives else dict(outcome.curve),
        user_attrs={"trial": spec.id} | ({"failure": outcome.failure} if outcome.failure else {}),
    )
