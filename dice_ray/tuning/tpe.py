"""TPE that models the best and the latest trials, so that a suggestion costs the same however many trials have ended.

Optuna's models every ended trial anew for each group of parameters at each suggestion: on the space `joint_tuning` that
takes 43 ms after 100 trials, 74 ms after 300 and 169 ms after 1,000 (Optuna 5.0). TPE compares a density of good trials
with one of the others. The good ones are the best tenth, 25 at most. Here the oldest of the others, to which TPE gives
less weight anyway, are left out so that 250 trials are modelled: once 300 have ended, and again after every 50 more.
"""

from __future__ import annotations

from typing import Any, Final

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe.sampler import _split_trials  # internal of Optuna 5
from optuna.trial import FrozenTrial, TrialState

from dice_ray.tuning.part_of_study import PartOfStudy

NUM_MODELLED: Final = 250
"""Ended trials that are modelled at least; of so many, the best tenth are as many as of any larger number."""
NUM_GOOD: Final = 25
NUM_AT_ONCE: Final = 50
"""Trials are left out in batches of this size, since the best ones must be found each time."""


class BoundedTPE(TPESampler):
    """Multivariate TPE, grouped by the parameters that trials have: each branch of the loss has a model of its own.

    `constant_liar` keeps trials that run at the same time apart.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(multivariate=True, group=True, constant_liar=True, seed=seed)
        self._kept: list[int] = []
        """Of the first `_num_seen` trials, the numbers of those that are modelled."""
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
        of_study = study.get_trials(deepcopy=False)  # in the order of their numbers, without a gap
        trials = [of_study[number] for number in self._kept] + of_study[self._num_seen :]
        ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
        if (excess := len(ended) - NUM_MODELLED) >= NUM_AT_ONCE:
            _, others = _split_trials(study, ended, NUM_GOOD)
            oldest = {trial.number for trial in others[:excess]}
            trials = [trial for trial in trials if trial.number not in oldest]
            self._kept, self._num_seen = [trial.number for trial in trials], len(of_study)
        return PartOfStudy(study, trials)
