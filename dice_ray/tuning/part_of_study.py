"""An Optuna study of which a sampler or pruner sees a part of the trials."""

from __future__ import annotations

from collections.abc import Container, Sequence

from optuna import Study
from optuna.trial import FrozenTrial, TrialState


class PartOfStudy(Study):
    """A study with some of its trials; storage, directions and attributes are those of the whole one."""

    # Internals of Optuna 5: samplers and pruners read all trials through this method.
    def __init__(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        self.__dict__.update(study.__dict__)
        self._trials = trials

    def _get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        return [trial for trial in self._trials if states is None or trial.state in states]
