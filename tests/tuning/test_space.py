"""Spaces by their address: found, pickled, and refused with what is known."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from optuna.trial import FixedTrial

from dice_ray.errors import InputError
from dice_ray.tuning.space import Space

SPACE = """
from optuna import Trial

def rate(trial):
    trial.suggest_float("training.lr", 1e-5, 1e-3)

def wrong(trial):
    trial.suggest_float("training.lr", "low", 1)

def leave(trial):
    raise SystemExit

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
        trial = FixedTrial({"loss": "focal", "loss.focal.gamma": 1.0, "model.head_bias": "zero", "training.lr": 1e-4})
        space(trial)
        assert trial.params


def test_a_space_that_returns_something_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"must return nothing, and .*mine.py:constants returned dict"):
        Space(f"{file}:constants")(FixedTrial({}))


def test_a_space_that_raises_names_itself_and_why(file: Path) -> None:
    with pytest.raises(InputError, match=r"mine.py:wrong must suggest a trial, and raised TypeError: '>' not"):
        Space(f"{file}:wrong")(FixedTrial({}))
    with pytest.raises(
        InputError, match="must suggest a trial, and raised SystemExit"
    ):  # it ended the command silently
        Space(f"{file}:leave")(FixedTrial({}))


def test_an_edited_file_is_read_again_but_not_while_it_is_searched(file: Path) -> None:
    space, trial = Space(f"{file}:rate"), FixedTrial({"training.lr": 1e-4, "training.epochs": 1})
    space(trial)
    stat = file.stat()
    file.write_text(SPACE.replace('float("training.lr", 1e-5, 1e-3)', 'int("training.epochs", 1, 3)'))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for now, path in ((space, "training.lr"), (Space(space.address), "training.epochs")):
        trial = FixedTrial({"training.lr": 1e-4, "training.epochs": 1})
        now(trial)
        assert list(trial.params) == [path]
