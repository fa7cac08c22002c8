"""The space of losses: every path it suggests is one that the configuration knows, in every branch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module

import optuna
import pytest
from optuna.trial import TrialState

from dice_ray.config.load import Layer, resolve, values_layer
from search_spaces import loss_tuning
from search_spaces.loss_tuning import LOSSES

BASE = Layer("preset", {"task": {"sentence_pair": {"link": "sigmoid"}}, "data": {"source": "synthetic"}})
"""With the link that every loss supports."""
SPACES = {
    f"{module}:{name}": space
    for module in ("loss_tuning", "joint_tuning", "lora_tuning")
    for name, space in inspect.getmembers(import_module(f"search_spaces.{module}"), inspect.isfunction)
    if space.__module__ == f"search_spaces.{module}" and not name.startswith("_")
}
SHARED = {"loss", "mining.ratio", "model.head_bias"}


@pytest.fixture
def study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_every_suggestion_can_be_run(study: optuna.Study, space: Callable[[optuna.Trial], None]) -> None:
    for _ in range(40):
        trial = study.ask()
        space(trial)
        config = resolve([BASE, values_layer("trial", trial.params)])
        assert config.loss.name == trial.params.get("loss", "cross_entropy")
        study.tell(trial, state=TrialState.FAIL)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_name_means_one_range_and_is_not_taken_apart(
    study: optuna.Study, space: Callable[[optuna.Trial], None]
) -> None:
    """Optuna mixes two ranges of one name without a word, and Ray reads a slash as a mapping within another."""
    ranges: dict[str, set[str]] = {}
    for _ in range(40):
        trial = study.ask()
        space(trial)
        for name, range_ in trial.distributions.items():
            ranges.setdefault(name, set()).add(repr(range_))
        study.tell(trial, state=TrialState.FAIL)
    assert {name: found for name, found in ranges.items() if len(found) > 1 or "/" in name} == {}
    assert len(ranges) > 1


def test_all_losses_are_reached_and_keep_their_own_parameters(study: optuna.Study) -> None:
    reached = set()
    for _ in range(100):
        trial = study.ask()
        loss_tuning.loss_tuning(trial)
        reached.add(loss := trial.params["loss"])
        assert all(path in SHARED or path.startswith(f"loss.{loss}.") for path in trial.params)
        study.tell(trial, state=TrialState.FAIL)
    assert reached == set(LOSSES)


def test_joint_tuning_has_the_space_of_every_loss() -> None:
    names = {name.partition(":")[2] for name in SPACES}
    assert names == {"loss_tuning", "joint_tuning", "lora_tuning", "tversky_free", *LOSSES}
    assert len(SPACES) == 2 * len(LOSSES) + 5
