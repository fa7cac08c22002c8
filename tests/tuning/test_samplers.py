"""What a user is told of a sampler before a search: what it would draw at random, and that it cannot suggest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import optuna
import pytest
from optuna.samplers import BaseSampler, TPESampler

from dice_ray.config.load import set_layer, values_layer
from dice_ray.errors import ConfigError, InputError
from dice_ray.tuning.samplers import check_settings, notes
from dice_ray.tuning.sweep import SweepPlan

LOSSES = "search_spaces.loss_tuning:loss_tuning"
ONE_LOSS = "search_spaces.loss_tuning:dice"
GRID = f"{Path(__file__).with_name('spaces.py')}:of_a_grid"


def plain_tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)


def tpe_of_what_all_have(seed: int) -> BaseSampler:
    return TPESampler(seed=seed, multivariate=True)


@pytest.mark.parametrize("name", ["tpe", "random", "brute_force", "nsga2", f"{__file__}:tpe_of_what_all_have"])
def test_nothing_is_to_be_said_where_every_trial_has_all_parameters(name: str) -> None:
    assert notes(name, ONE_LOSS) == []


@pytest.mark.parametrize("name", ["tpe", "random", "brute_force", f"{__file__}:plain_tpe"])
def test_nothing_is_to_be_said_of_what_learns_each_parameter_or_none(name: str) -> None:
    assert notes(name, LOSSES) == []


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("name", ["nsga2", f"{__file__}:tpe_of_what_all_have"])
def test_what_would_be_drawn_at_random_is_told(name: str) -> None:
    (note,) = notes(name, LOSSES, 2)
    assert note.startswith(f"note: the sampler {name} draws loss.dice.denominator and 14 others at random")


def test_what_cannot_suggest_is_told_before_the_search() -> None:
    with pytest.raises(InputError, match=r"of_a_grid must suggest a trial of .*:dice, and raised ValueError"):
        notes(GRID, ONE_LOSS)


@pytest.mark.parametrize(
    ("settings", "space", "path"),
    [
        (["training.lr=1e-4"], "joint_tuning", "training.lr"),
        (["loss=dice"], "joint_tuning", "loss"),
        (["loss.dice.gamma=1"], "joint_tuning", "loss.dice.gamma"),
        (["loss=dice"], "focal", "loss"),
        (["loss.dice.gamma=1"], "focal", "loss"),
        (["loss=focal"], "focal", None),
        (["training.lr=1e-4"], "loss", None),
        (["loss={focal: {}}"], "focal", None),
        (["task.tagging.given=[a, b]"], "focal", None),
        (["task.mrc_ner.queries={a.b: which}"], "focal", None),
    ],
)
def test_a_setting_of_what_the_space_searches_is_an_error(settings: list[str], space: str, path: str | None) -> None:
    """Each trial would override it, without a word."""
    module = "search_spaces.loss_tuning:loss_tuning" if space == "loss" else f"search_spaces.joint_tuning:{space}"
    with nullcontext() if path is None else pytest.raises(ConfigError) as caught:
        check_settings(set_layer(settings), module)
    if caught is not None:
        (problem,) = caught.value.problems
        assert (problem.path, problem.origin) == (path, "--set")
        assert "searches it" in problem.must


def nothing(trial: optuna.Trial) -> None:
    """A space that suggests nothing."""


def misspelt(trial: optuna.Trial) -> None:
    trial.suggest_float("training.learning_rate", 1e-4, 1e-3)


def below_zero(trial: optuna.Trial) -> None:
    trial.suggest_int("training.lr", -3, -1)


def mostly_refused(trial: optuna.Trial) -> None:
    trial.suggest_int("training.lr", -9, 1)


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (nothing, r"must suggest parameters, as trial.suggest_float does, and has none$"),
        (misspelt, r"training.learning_rate: is not a key \(from trial\); did you mean training.lr\?"),
        (below_zero, r"training.lr: must be greater than 0, got -\d \(from trial\)"),
        (mostly_refused, None),
    ],
)
def test_a_space_of_which_no_trial_can_run_is_an_error_before_the_search(
    space: Callable[[optuna.Trial], None], told: str | None
) -> None:
    """Ray was started, all trials failed, and a dry run told how long they would take."""
    layer = values_layer("preset", {"task": "sentence_pair", "data.source": "synthetic"})
    plan = SweepPlan(name="sweep", layers=(layer,), space=f"{__name__}:{space.__name__}", trials=4)
    with nullcontext() if told is None else pytest.raises((InputError, ConfigError), match=told):
        plan._check_space()
