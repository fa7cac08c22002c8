"""Which trials TPE models: the best and the latest of those that have ended, and all that run."""

from __future__ import annotations

import random

import optuna
from optuna.trial import TrialState, create_trial

from dice_ray.tuning.samplers import _NUM_AT_ONCE, _NUM_GOOD, _NUM_MODELLED, _BoundedTPE


def test_the_best_the_latest_and_the_running_trials_are_modelled() -> None:
    """Finds a good trial that is forgotten, and one that ended after others were left out and is never seen."""
    generator, sampler = random.Random(0), _BoundedTPE(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    scores = dict[int, float]()
    running = study.ask()
    for number in range(1, 700):
        scores[number] = generator.random()
        study.add_trial(create_trial(value=scores[number]))
        part = sampler._part_of(study).get_trials(deepcopy=False)
        modelled = {trial.number for trial in part if trial.state == TrialState.COMPLETE}
        assert running.number in {trial.number for trial in part}
        assert modelled >= set(sorted(scores, key=lambda each: -scores[each])[:_NUM_GOOD])
        assert modelled >= set(range(max(1, number - _NUM_MODELLED + 2 * _NUM_GOOD), number + 1))
        assert len(modelled) == number or _NUM_MODELLED <= len(modelled) < _NUM_MODELLED + _NUM_AT_ONCE
    study.tell(running, 2.0)
    best = sampler._part_of(study).get_trials(deepcopy=False)[0]
    assert (best.number, best.value) == (running.number, 2.0)
    assert len(study.trials) == 700
