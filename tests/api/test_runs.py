"""A lone run from Python, and what is stored of one that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dice_ray
from dice_ray.errors import InputError
from dice_ray.files import runs_folder
from dice_ray.run.names import TRAIN_EXPERIMENT
from dice_ray.tracking.reader import read

QUICK = {"data.source.synthetic.size": 100, "training.epochs": 1}
LOSS = """
from dice_ray.losses.cross_entropy import CrossEntropyLoss

class Mine(CrossEntropyLoss):
    def losses(self, items):
        raise ValueError("a mistake\\nand more words about it")

def build(facts):
    return Mine(facts.link)
"""


@pytest.mark.parametrize("name", ["mlflow.runName", "dice_ray.id", "a=b", "", "a//b", "a/", "a/./b", "a/../b", 1])
def test_a_tag_of_a_reserved_or_impossible_name_is_refused_before_the_run(name: Any) -> None:
    with pytest.raises(InputError, match="the name of a tag must be"):
        dice_ray.train("synthetic_pairs", QUICK, name="mine", tags={name: "x"})
    assert not (runs_folder() / "mine").exists()


@pytest.mark.parametrize(("note", "tags"), [(None, {"team": 1}), (2, None), (None, {"a": "\udce9"}), ("\udce9", None)])
def test_a_tag_or_note_that_mlflow_cannot_store_is_refused_before_the_run(note: Any, tags: Any) -> None:
    """It failed when the run had been trained, and MLflow never held that run."""
    with pytest.raises(InputError, match=r"must be text in UTF-8, got (1|2|'.udce9')"):
        dice_ray.train("synthetic_pairs", QUICK, name="mine", note=note, tags=tags)
    assert not (runs_folder() / "mine").exists()


def test_a_crash_in_a_custom_loss_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    """It was stored as KILLED, as if someone had stopped the run."""
    (tmp_path / "mine.py").write_text(LOSS)
    mine = QUICK | {"loss.custom.target": "mine.py:build"}
    with pytest.raises(ValueError, match="a mistake"):
        dice_ray.train("synthetic_pairs", mine, name="mine")
    (run,) = read(TRAIN_EXPERIMENT).to_dict("records")
    assert (run["status"], run["tags.failure"]) == ("FAILED", "ValueError: a mistake")
    (tmp_path / "mine.py").write_text(LOSS.replace("raise ValueError(", "return super().losses(items)  # ("))
    (tmp_path / "elsewhere").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICE_RAY_RUNS", str(tmp_path / "dice_ray_runs"))
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
        patch.chdir("elsewhere")
        dice_ray.resume("mine")
    (run,) = read(TRAIN_EXPERIMENT).to_dict("records")
    assert (run["status"], run["tags.failure"]) == ("FINISHED", "")
