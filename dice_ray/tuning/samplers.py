"""Samplers and objectives of a search: TPE, random, brute force, NSGA-II, or a sampler of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeVar, cast

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from dice_ray.config.load import Layer
from dice_ray.errors import ConfigError, InputError, Problem, UnknownNameError, reason_of
from dice_ray.run.rehearsal import dev_metrics
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.tuning.plan import SweepPlan, paths
from dice_ray.tuning.space import Space
from dice_ray.tuning.tpe import BoundedTPE
from dice_ray.user_code import load

Made = TypeVar("Made")

BRUTE_FORCE: Final = "brute_force"
SECONDS: Final = "seconds"
"""The objective that is the training time of a run; every other one is a metric of dev."""
MINIMISED: Final = ("brier", "calibration_error", SECONDS)
NO_OBJECTIVES: Final = (
    "constant_",
    "threshold",
    "words_dropped",
    "spans_out_of_reach",
    "answers_misplaced",
    "answers_cut",
)
"""The beginnings of the names of metrics that do not say how good a model is; the last ones are counts of the data."""
POPULATION: Final = 16
"""Of NSGA-II: with Optuna's 50, a search of some dozen trials would stay in its first, random generation."""
TRIAL_STATES: Final = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
"""Optuna's state of a trial, by ours."""
NUM_TRIED: Final = 32
"""Random trials that show which parameters are conditional."""


def sampler(name: str, seed: int) -> BaseSampler:
    """The sampler of a name, or of a function of a seed at `module:function` or `file.py:function`.

    Raises:
        UnknownNameError: There is no sampler of that name.
        InputError: The function does not make an Optuna sampler.
    """
    if name in SAMPLERS:
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            return SAMPLERS[name](seed)
    if ":" not in name:
        raise UnknownNameError("sampler", name, SAMPLERS)
    return made_by(name, "sampler", BaseSampler, seed)


def made_by(address: str, noun: str, kind: Callable[..., Made], *arguments: object) -> Made:
    """The object of this kind that the user's function at an address makes.

    Raises:
        InputError: It raises, or makes something else.
    """
    make = load(address)
    try:
        made = make(*arguments)
    except Exception as error:
        raise InputError(f"{address} must make a {noun}, and raised {reason_of(error)}") from error
    assert isinstance(kind, type)
    if not isinstance(made, kind):
        raise InputError(f"{address} must make an Optuna {noun}, and returned {made!r:.80}")
    return cast(Made, made)


def notes(name: str, address: str, num_objectives: int = 1) -> list[str]:
    """Notes on this sampler on the space of this address, from a few trials.

    Parameters that only some trials have are drawn at random by samplers that model all parameters together.

    Raises:
        InputError: It cannot suggest a trial of the space.
    """
    space, chosen = Space(address), sampler(name, 0)
    if isinstance(chosen, optuna.samplers.RandomSampler | optuna.samplers.BruteForceSampler):
        return []
    at_random = optuna.samplers.RandomSampler(seed=0)
    known = _try(space, at_random, num_objectives, NUM_TRIED)[0].study.get_trials()
    try:
        (last,) = _try(space, chosen, num_objectives, 1, known)
    except Exception as error:
        why = reason_of(error.__cause__ or error)  # a space wraps an error of the sampler
        raise InputError(f"{name} must suggest a trial of {address}, and raised {why}") from error
    if isinstance(chosen, optuna.samplers.TPESampler) and not chosen._multivariate:  # models each parameter alone
        return []
    searched = [{name for name, range_ in trial.distributions.items() if not range_.single()} for trial in known]
    conditional = set[str].union(*searched) - set[str].intersection(*searched)
    unmodelled = sorted(conditional - (last.relative_search_space or {}).keys())
    if not unmodelled:
        return []
    several = f"{unmodelled[0]} and {len(unmodelled) - 1} others" if len(unmodelled) > 1 else unmodelled[0]
    return [
        f"note: the sampler {name} draws {several} at random, whatever the earlier trials' scores, since not every "
        f"trial of {address} has them; tpe models them too"
    ]


def check_settings(layer: Layer, address: str) -> None:
    """Check that no setting is of a parameter that the space at this address searches: trials would override it.

    Raises:
        ConfigError: One is, and the space does not always suggest its very value.
    """
    suggested: dict[str, set[object]] = {}
    for trial in _try(Space(address), optuna.samplers.RandomSampler(seed=0), 1, 4 * NUM_TRIED) if layer.values else ():
        for name, drawn in trial.params.items():
            suggested.setdefault(name, set()).add(drawn)
    must = f"must not be set: the space {address} searches it; leave it out, or choose a space without it"
    problems = []
    for path in paths(layer.values):
        value: Any = layer.values
        for number, key in enumerate(path.split(".")):
            # A path through a branch chooses it: loss.dice.gamma makes the loss dice.
            above = ".".join(path.split(".")[:number])
            if above in suggested and key not in suggested[above]:
                problems.append(Problem(above, must, repr(key), origin=layer.origin))
            value = value.get(key) if isinstance(value, Mapping) else None  # a label may have a dot
        if any(drawn != value for drawn in suggested.get(path, ())):
            problems.append(Problem(path, must, f"{value!r:.60}", origin=layer.origin))
    if problems:
        raise ConfigError(problems)


def check_space(plan: SweepPlan) -> None:
    """Check that trials of a plan can run: of some drawn at random, one has a valid configuration.

    Raises:
        InputError: The space suggests nothing.
        ConfigError: None has; it lists the problems of one of them.
    """
    drawn = _try(Space(plan.space), optuna.samplers.RandomSampler(seed=0), 1, NUM_TRIED)
    if not any(trial.params for trial in drawn):
        raise InputError(f"the space {plan.space} must suggest parameters, as trial.suggest_float does, and has none")
    for trial in drawn:
        try:
            plan.config(TrialSpec(id="drawn", params=trial.params, seed=plan.seed))
        except ConfigError as error:
            refused = error
        else:
            return
    raise refused


def _try(
    space: Space, chosen: BaseSampler, num_objectives: int, number: int, known: Iterable[FrozenTrial] = ()
) -> list[optuna.Trial]:
    """Trials that a sampler suggests after the known ones, each with an arbitrary score."""
    with quiet_optuna():
        optuna_study = optuna.create_study(sampler=chosen, directions=["maximize"] * num_objectives)
        may_be_stopped(optuna_study)
        optuna_study.add_trials(known)
        trials = []
        for score in range(number):
            trials.append(trial := optuna_study.ask())
            space(trial)
            optuna_study.tell(trial, [float(score)] * num_objectives)
    return trials


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna, which announces a new study on the stderr of its import, also in a notebook."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def may_be_stopped(optuna_study: optuna.Study) -> None:
    """Let samplers stop a study that Ray drives, as those of a grid do once all is tried: else that raises an error.

    The stop itself has no effect: a search ends with the trials of its plan.
    """
    optuna_study._thread_local.in_optimize_loop = True  # internal of Optuna 5


SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": BoundedTPE,
    "random": optuna.samplers.RandomSampler,
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed),
    BRUTE_FORCE: optuna.samplers.BruteForceSampler,
}


def metric_of(objective: str) -> str:
    """The metric that is stored for an objective.

    >>> metric_of("recall"), metric_of("seconds")
    ('dev/recall', 'train/seconds')
    """
    return f"train/{SECONDS}" if objective == SECONDS else f"dev/{objective}"


def mode_of(objective: str) -> Literal["min", "max"]:
    """Whether an objective is minimised or maximised."""
    return "min" if objective in MINIMISED else "max"


def signed_metric(objective: str) -> str:
    """An objective as it is stored with a sweep: its metric, with a minus sign where it is minimised.

    >>> signed_metric("recall"), signed_metric("seconds")
    ('dev/recall', '-train/seconds')
    """
    return f"{'-' if mode_of(objective) == 'min' else ''}{metric_of(objective)}"


def objective_values(
    objectives: Sequence[str], curve: Sequence[tuple[int, float]], metrics: Sequence[Mapping[str, float]]
) -> list[float]:
    """The values of a finished run: metrics of its best evaluation, whose checkpoint is kept, and its whole time.

    Without objectives, its best score. The F1 of a type that occurs in no span of that evaluation is 0.
    """
    if not objectives:
        return [max(score for _, score in curve)]
    _, best = max(zip(curve, metrics, strict=True), key=lambda evaluation: evaluation[0][1])
    # The evaluation has no F1 of such a type; all other metrics are in every evaluation.
    return [(metrics[-1] if name == SECONDS else best).get(metric_of(name), 0.0) for name in objectives]


def check_objectives(plan: SweepPlan) -> None:
    """The objectives of a plan must be possible together.

    Raises:
        InputError: There is only one, one is given twice, or the plan has a setting that several cannot have.
        UnknownNameError: One is not a metric of the task on dev.
    """
    objectives = plan.objectives
    if not objectives:
        return
    if len(set(objectives)) < max(2, len(objectives)):
        raise InputError(
            f"there must be at least two objectives, all different, got {', '.join(objectives)}: a search for one "
            "metric is set by the score of its task, as task.sentence_pair.score"
        )
    if plan.scheduler != "none":
        raise InputError(f"a search for several objectives must have the scheduler none, got {plan.scheduler}")
    if plan.seeds:
        raise InputError("a search for several objectives must leave out --seeds: it has no best trials to run again")
    metrics = [name.removeprefix("dev/") for name in dev_metrics(plan.base())]
    known = [*(name for name in metrics if not name.startswith(NO_OBJECTIVES)), SECONDS]
    for name in objectives:
        if name not in known:
            raise UnknownNameError("objective", name, known)
