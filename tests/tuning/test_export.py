"""The best configuration of a sweep as a preset: it says where it comes from, and trains what the trial trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import Layer, read_layer, resolve, values_layer
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.tuning.export import preset
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan import AUTOMATIC
from dice_ray.tuning.plan_file import store
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

METRICS = ({"dev/f1": 0.5},)


@pytest.fixture
def folder(tmp_path: Path, layers: tuple[Layer, ...]) -> Path:
    folder = tmp_path / "sweep"
    above = values_layer("--set", {})
    machine = values_layer(AUTOMATIC, {"training.precision": "fp32"})
    store(
        SweepPlan(name="sweep", layers=(*layers, above, machine), space="a:b", trials=2, seed=3, digest="2ee5"), folder
    )
    ledger = Ledger(folder / "ledger.jsonl")
    for id_, params, score in (
        ("0001", {"loss": "focal", "loss.focal.gamma": 1.5}, 0.6),
        ("0002", {"loss": "dice", "training.lr": 5e-3}, 0.5),
    ):
        ledger.append(TrialSpec(id=id_, params=params, seed=3))
        ledger.append(TrialOutcome(id=id_, state="done", curve=((5, score),), metrics=METRICS))
    return folder


def as_run(text: str, tmp_path: Path) -> Layer:
    (tmp_path / "best.yaml").write_text(text)
    return read_layer(tmp_path / "best.yaml")


def test_the_preset_holds_what_was_written_alone(folder: Path, tmp_path: Path) -> None:
    text = preset(folder)
    layer = as_run(text, tmp_path)
    assert layer.values["loss"] == {"focal": {"gamma": 1.5}}
    assert layer.values["training"] == {"epochs": 3, "lr": 1e-3, "batch_size": 32, "seed": 3}
    assert layer.values.keys() == {"task", "data", "training", "loss"}
    assert text.startswith(
        "# Trial 0001 of the sweep sweep: run it by `dice-ray train`.\n# From preset, searched in a:b"
    )
    assert "\n# Ranked by this score, which is optimistic since the trial was selected by it.\n" in text
    assert "\n# dev/f1 0.6000 with seed 3.\n" in text
    assert "\n# Data digest: 2ee5.\n" in text


def test_the_preset_is_the_run_of_its_trial(folder: Path, tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=2, seed=3)
    trial = Ledger(folder / "ledger.jsonl").specs["0002"]
    assert resolve([as_run(preset(folder, "0002"), tmp_path)]) == plan.config(trial)


def test_other_seeds_decide_where_there_are_some(folder: Path) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    for trial, score in (("0001", 0.2), ("0002", 0.4)):
        again = ledger.specs[trial].model_copy(update={"id": f"{trial}-1004", "seed": 1004, "rerun_of": trial})
        ledger.append(again)
        ledger.append(TrialOutcome(id=again.id, state="done", curve=((5, score),), metrics=METRICS))
    text = preset(folder)
    assert "Trial 0002 of" in text
    assert "\n# Ranked by the mean over 1 other seeds: 0.4000.\n" in text


def test_what_cannot_be_exported_is_told(folder: Path, tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    with pytest.raises(UnknownNameError, match="no trial of sweep with a score named '0009'"):
        preset(folder, "0009")
    with pytest.raises(UnknownNameError, match="no sweep or study named 'swep'; did you mean 'sweep'"):
        preset(folder.parent / "swep")
    empty = SweepPlan(name="empty", layers=layers, space="a:b", trials=2)
    store(empty, tmp_path / "empty")
    with pytest.raises(RunError, match="must hold a trial with a score, and holds none"):
        preset(tmp_path / "empty")
    store(StudyPlan(name="study", layers=layers, arms={"a": {}}, baseline="a", seeds=(1,)), tmp_path / "study")
    with pytest.raises(RunError, match="it holds a study"):
        preset(tmp_path / "study")
    several = empty.model_copy(update={"objectives": ("precision", "recall"), "scheduler": "none"})
    (folder / "plan.yaml").unlink()
    store(several, folder)
    with pytest.raises(InputError, match="name a trial of its Pareto front"):
        preset(folder)
    assert "Trial 0002" in preset(folder, "0002")
