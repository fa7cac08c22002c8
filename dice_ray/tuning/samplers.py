"""What Optuna is asked for: samplers, pruners, and the values of the objectives.

A pruner stops trials early. Ray Tune's own schedulers keep their state in private attributes and cannot be resumed from
a ledger. Optuna's pruners decide from the intermediate values in the Optuna study, which are reported for every trial
anyway and are restored when a sweep is resumed. So `search.PruningScheduler` only asks the study.

A step of a pruner is an evaluation: `asha` (asynchronous successive halving, Li et al. 2020) compares trials after
their 1st, 3rd, 9th, ... evaluation, and at each of these rungs stops a trial that is not in the best third of those
that reached it so far. The first trials of a rung have nothing to be compared with, and are more often continued.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, BruteForceSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.samplers._tpe.sampler import _split_trials  # internal of Optuna 5
from optuna.trial import FrozenTrial, TrialState

from dice_ray.config.load import Layer
from dice_ray.errors import ConfigError, InputError, Problem, UnknownNameError, reason_of
from dice_ray.metrics.catalogue import best_evaluation, metric
from dice_ray.output import quiet
from dice_ray.settings import Flat
from dice_ray.tuning.space import Space, paths
from dice_ray.user_code import load

_Made = TypeVar("_Made")

TRIAL_STATES: Final = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
"""Optuna's state of a trial, by ours."""
_NUM_TRIED: Final = 32
"""Random trials that show which parameters are conditional."""


def sampler(name: str, seed: int) -> BaseSampler:
    """The sampler of a name, or of a function of a seed at `module:function` or `file.py:function`.

    Raises:
        UnknownNameError: There is no sampler of that name.
        InputError: The function does not make an Optuna sampler.
    """
    if name in _SAMPLERS:
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            return _SAMPLERS[name](seed)
    if ":" not in name:
        raise UnknownNameError("sampler", name, _SAMPLERS)
    return _made_by(name, "sampler", BaseSampler, seed)


def _made_by(address: str, noun: str, kind: Callable[..., _Made], *arguments: object) -> _Made:
    """The object of this kind that the user's function at an address makes; an InputError where it makes none."""
    make = load(address)
    try:
        made = make(*arguments)
    except Exception as error:
        raise InputError(f"{address} must make a {noun}, and raised {reason_of(error)}") from error
    assert isinstance(kind, type)
    if not isinstance(made, kind):
        raise InputError(f"{address} must make an Optuna {noun}, and returned {made!r:.80}")
    return cast(_Made, made)


def notes(name: str, address: str, num_objectives: int = 1) -> list[str]:
    """Notes on this sampler on the space of this address, from a few trials.

    Parameters that only some trials have are drawn at random by samplers that model all parameters together.

    Raises:
        InputError: It cannot suggest a trial of the space.
    """
    space, chosen = Space(address), sampler(name, 0)
    if isinstance(chosen, RandomSampler | BruteForceSampler):
        return []
    known = _try(space, RandomSampler(seed=0), num_objectives, _NUM_TRIED)[0].study.get_trials()
    try:
        (last,) = _try(space, chosen, num_objectives, 1, known)
    except Exception as error:
        why = reason_of(error.__cause__ or error)  # a space wraps an error of the sampler
        raise InputError(f"{name} must suggest a trial of {address}, and raised {why}") from error
    if isinstance(chosen, TPESampler) and not chosen._multivariate:  # models each parameter alone
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


def check_settings(layer: Layer, by: str, draws: Iterable[Flat]) -> None:
    """Check that no setting is of a parameter that these draws by a space or study have: they would override it.

    Raises:
        ConfigError: One is, and not all draws have its very value.
    """
    suggested: dict[str, list[object]] = {}
    for params in draws if layer.values else ():
        for name, drawn in params.items():
            suggested.setdefault(name, []).append(drawn)
    must = f"must not be set: {by} searches it; leave it out, or choose one without it"
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


def drawn_at_random(space: Space) -> Iterator[Flat]:
    """The parameters of some trials that a space suggests."""
    yield from (trial.params for trial in _try(space, RandomSampler(seed=0), 1, 4 * _NUM_TRIED))


def _try(
    space: Space, chosen: BaseSampler, num_objectives: int, number: int, known: Iterable[FrozenTrial] = ()
) -> list[optuna.Trial]:
    """Trials that a sampler suggests after the known ones, each with an arbitrary score."""
    with quiet("optuna"):  # it announces a new study on the stderr of its import, also in a notebook
        optuna_study = optuna.create_study(sampler=chosen, directions=["maximize"] * num_objectives)
        may_be_stopped(optuna_study)
        optuna_study.add_trials(known)
        trials = []
        for score in range(number):
            trials.append(trial := optuna_study.ask())
            space(trial)
            optuna_study.tell(trial, [float(score)] * num_objectives)
    return trials


def may_be_stopped(optuna_study: Study) -> None:
    """Let samplers stop a study that Ray drives, as those of a grid do once all is tried: else that raises an error.

    The stop itself has no effect: a search ends with the trials of its plan.
    """
    optuna_study._thread_local.in_optimize_loop = True  # internal of Optuna 5


def signed_metric(objective: str) -> str:
    """An objective as it is stored with a sweep: its metric, with a minus sign where it is minimised.

    >>> signed_metric("recall"), signed_metric("seconds")
    ('dev/recall', '-train/seconds')
    """
    stored = "train/seconds" if objective == "seconds" else f"dev/{objective}"
    return f"-{stored}" if metric(objective).is_minimised else stored


def objective_values(
    objectives: Sequence[str], curve: Sequence[tuple[int, float]], metrics: Sequence[Mapping[str, float]]
) -> list[float]:
    """The values of a finished run: metrics of its best evaluation, whose checkpoint is kept, and its whole time.

    Without objectives, its highest score, a gain. The F1 of a type that occurs in no span of that evaluation is 0.
    """
    if not objectives:
        return [max(score for _, score in curve)]
    best = metrics[best_evaluation([score for _, score in curve], metrics)]
    # The evaluation has no F1 of such a type; all other metrics are in every evaluation.
    seconds = metrics[-1].get("train/seconds", 0.0)
    return [seconds if name == "seconds" else best.get(f"dev/{name}", 0.0) for name in objectives]


class _PartOfStudy(Study):
    """An Optuna study with some of its trials, for a sampler or pruner."""

    # Internals of Optuna 5: samplers and pruners read all trials through this method.
    def __init__(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        self.__dict__.update(study.__dict__)
        self._trials = trials

    def _get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        return [trial for trial in self._trials if states is None or trial.state in states]


_NUM_MODELLED: Final = 250
"""Ended trials that are modelled at least; of so many, the best tenth are as many as of any larger number."""
_NUM_GOOD: Final = 25
_NUM_AT_ONCE: Final = 50
"""Trials are left out in batches of this size, since the best ones must be found each time."""


class _BoundedTPE(TPESampler):
    """Multivariate TPE, grouped by the parameters that trials have: each branch of the loss has a model of its own.

    `constant_liar` keeps trials that run at the same time apart.

    A suggestion costs the same however many trials have ended: the best and the latest are modelled. Optuna's models
    every ended trial anew for each group of parameters: on the space `joint_tuning` that takes 43 ms after 100 trials,
    74 ms after 300 and 169 ms after 1,000 (Optuna 5.0). TPE compares a density of good trials with one of the others.
    The good ones are the best tenth, 25 at most. The oldest of the others, to which TPE gives less weight anyway, are
    left out so that 250 trials are modelled: once 300 have ended, and again after every 50 more.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(multivariate=True, group=True, constant_liar=True, seed=seed)
        self._kept: list[int] = []
        """The numbers of the modelled trials among the first `_num_seen`."""
        self._num_seen = 0

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return super().infer_relative_search_space(self._part_of(study), trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return super().sample_relative(self._part_of(study), trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return super().sample_independent(self._part_of(study), trial, param_name, param_distribution)

    def _part_of(self, study: Study) -> Study:
        all_trials = study.get_trials(deepcopy=False)  # in the order of their numbers, without a gap
        trials = [all_trials[number] for number in self._kept] + all_trials[self._num_seen :]
        ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
        if (excess := len(ended) - _NUM_MODELLED) >= _NUM_AT_ONCE:
            _, others = _split_trials(study, ended, _NUM_GOOD)
            oldest = {trial.number for trial in others[:excess]}
            trials = [trial for trial in trials if trial.number not in oldest]
            self._kept, self._num_seen = [trial.number for trial in trials], len(all_trials)
        return _PartOfStudy(study, trials)


_SAMPLERS: Final[Mapping[str, Callable[[int], BaseSampler]]] = {
    "tpe": _BoundedTPE,
    "random": RandomSampler,
    # With Optuna's population of 50, a search of some dozen trials would stay in its first, random generation.
    "nsga2": lambda seed: NSGAIISampler(population_size=16, seed=seed),
    "brute_force": BruteForceSampler,
}
_PRUNERS: Final[Mapping[str, Callable[[int], BasePruner]]] = {
    "asha": lambda num_known: SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
    # It counts finished trials, and the known ones have no curves to compare with.
    "median": lambda num_known: MedianPruner(n_startup_trials=num_known + 3),
    "none": lambda num_known: NopPruner(),
}


def pruner(name: str, num_known: int = 0) -> BasePruner:
    """The pruner of a name, or of a function at `module:function` or `file.py:function`.

    Args:
        name: The name or address.
        num_known: Number of trials in the study that finished in an earlier sweep.

    Raises:
        UnknownNameError: There is no pruner of that name.
        InputError: The function does not make an Optuna pruner.
    """
    if name in _PRUNERS:
        return _PRUNERS[name](num_known)
    if ":" not in name:
        raise UnknownNameError("scheduler", name, _PRUNERS)
    return _made_by(name, "pruner", BasePruner)


def replay(study: Study, scores: Sequence[float]) -> None:
    """Ask the pruner about each evaluation of the study's last trial, which must be running.

    A pruner may keep state in the study when it is asked: SuccessiveHalvingPruner notes there which rungs a trial has
    completed. A trial that is restored must leave the same state as one that ran.
    """
    if isinstance(study.pruner, NopPruner | MedianPruner):  # they keep no state
        return
    asked = study
    if isinstance(study.pruner, SuccessiveHalvingPruner) and study.pruner._min_resource is not None:
        # Which rungs a trial has completed does not depend on the others. With them, n trials would take n^2 steps.
        # `_min_resource` is an internal of Optuna 5.
        asked = _PartOfStudy(study, [])
    number = len(study.get_trials(deepcopy=False)) - 1
    for step in range(1, len(scores) + 1):
        trial = copy.copy(study.get_trials(deepcopy=False)[number])
        trial.intermediate_values = dict(enumerate(scores[:step], start=1))
        study.pruner.prune(asked, trial)
