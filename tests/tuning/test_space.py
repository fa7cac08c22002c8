"""Spaces by their address: found, pickled, and refused with what is known."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from optuna.trial import FixedTrial

from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tuning.space import Space, load

SPACE = """
from optuna import Trial

def rate(trial):
    trial.suggest_float("training.lr", 1e-5, 1e-3)

def constants(trial):
    return {"training.lr": 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SPACE)
    return path


def test_a_space_of_a_module_and_one_of_a_file(file: Path) -> None:
    for address in ("search_spaces.loss_tuning:focal", f"{file}:rate"):
        space = pickle.loads(pickle.dumps(Space(address)))
        trial = FixedTrial({"loss": "focal", "loss.focal.gamma": 1.0, "training.lr": 1e-4})
        space(trial)
        assert trial.params


def test_a_space_that_returns_something_is_refused(file: Path) -> None:
    with pytest.raises(RunError, match=r"must return nothing, and .*mine.py:constants returned dict"):
        Space(f"{file}:constants")(FixedTrial({}))


def test_an_unknown_function_names_the_spaces_of_the_file(file: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'rate'\? Known: constants, rate"):
        load(f"{file}:rates")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("no_such_module:space", "no_such_module"),
        ("nowhere.py:space", "a file that is there"),
        ("space", "module:function"),
    ],
)
def test_an_address_that_leads_nowhere(address: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        load(address)
