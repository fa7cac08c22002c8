"""The space of losses: every path it suggests is one that the configuration knows, in every branch."""

from __future__ import annotations

import inspect

import optuna
import pytest
from optuna.trial import TrialState

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.settings import flat
from search_spaces import loss_tuning
from search_spaces.loss_tuning import LOSSES
from search_spaces.studies import loss_comparison

BASE = Layer("preset", {"task": "sentence_pair", "data": {"source": "synthetic"}})
SPACES = [
    space
    for name, space in inspect.getmembers(loss_tuning, inspect.isfunction)
    if space.__module__ == loss_tuning.__name__ and not name.startswith("_")
]


@pytest.fixture
def study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.__name__)
def test_every_suggestion_can_be_run(study: optuna.Study, space: object) -> None:
    assert callable(space)
    for _ in range(40):
        trial = study.ask()
        assert space(trial) is None
        config = resolve([BASE, values_layer("trial", trial.params)])
        assert config.loss.name == trial.params["loss"]
        study.tell(trial, state=TrialState.FAIL)


def test_all_losses_are_reached_and_keep_their_own_parameters(study: optuna.Study) -> None:
    reached = set()
    for _ in range(100):
        trial = study.ask()
        loss_tuning.loss_tuning(trial)
        reached.add(loss := trial.params["loss"])
        assert all(path == "loss" or path.startswith(f"loss.{loss}.") for path in trial.params)
        study.tell(trial, state=TrialState.FAIL)
    assert reached == set(LOSSES)
    assert len(SPACES) == len(LOSSES) + 2


def test_the_arms_of_the_comparison_can_be_run_and_differ() -> None:
    configs = [flat(resolve([BASE, values_layer(name, values)])) for name, values in loss_comparison.ARMS.items()]
    assert len({str(config) for config in configs}) == len(configs) >= 10
    assert loss_comparison.BASELINE in loss_comparison.ARMS
