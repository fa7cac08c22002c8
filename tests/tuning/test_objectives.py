"""Several objectives: what a run reached in each, and what cannot be searched for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.run import build
from dice_ray.tuning import samplers
from dice_ray.tuning.sweep import SweepPlan

METRICS = (
    {"dev/precision": 0.9, "dev/recall": 0.2, "train/seconds": 1.0},
    {"dev/precision": 0.6, "dev/recall": 0.8, "train/seconds": 2.0},
    {"dev/precision": 0.8, "dev/recall": 0.5, "train/seconds": 3.0},
)


def test_the_values_are_those_of_the_checkpoint_kept_and_all_the_seconds() -> None:
    curve = ((5, 0.3), (10, 0.7), (15, 0.6))
    assert samplers.objective_values(("precision", "recall", "seconds"), curve, METRICS) == [0.6, 0.8, 3.0]
    assert [samplers.mode_of(name) for name in ("recall", "seconds", "brier")] == ["max", "min", "min"]


def test_a_type_that_occurs_in_no_span_has_the_f1_zero() -> None:
    """The evaluation has no F1 of it: the search ended with a KeyError, and again when it was resumed."""
    metrics = ({"dev/f1": 0.3, "dev/f1_RARE": 0.1}, {"dev/f1": 0.7})
    assert samplers.objective_values(("f1", "f1_RARE"), ((5, 0.3), (10, 0.7)), metrics) == [0.7, 0.0]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"objectives": ("recall",)}, "at least two objectives, all different, got recall"),
        ({"objectives": ("recall", "recall")}, "at least two objectives, all different, got recall, recall"),
        ({"objectives": ("recall", "f1", "recall")}, "at least two objectives, all different, got recall, f1, recall"),
        ({"scheduler": "asha"}, "must have the scheduler none, got asha"),
        ({"seeds": 2}, "must leave out --seeds"),
        ({"objectives": ("recall", "precison")}, "no objective named 'precison'; did you mean 'precision'"),
        ({"objectives": ("recall", "threshold_used")}, "no objective named 'threshold_used'"),
    ],
)
def test_what_cannot_be_searched_for(layers: tuple[Layer, ...], written: dict[str, Any], said: str) -> None:
    values: dict[str, Any] = {"scheduler": "none", "objectives": ("precision", "recall"), **written}
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4, **values)
    with pytest.raises((InputError, UnknownNameError), match=said):
        plan._check_objectives()


def test_what_can_be_searched_for(layers: tuple[Layer, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the metrics were learned from an untrained model, whose weights may not even be here."""

    def refused(*arguments: object) -> None:
        raise AssertionError("a model was built")

    monkeypatch.setattr(build, "build_model", refused)
    for named in ((), ("f1", "seconds"), ("precision", "recall", "mcc")):
        plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4, scheduler="none", objectives=named)
        plan._check_objectives()


@pytest.mark.parametrize(("task", "count"), [("tagging", "words_dropped"), ("mrc_ner", "spans_out_of_reach")])
def test_the_f1_of_each_type_of_the_data_can_be_searched_for(tmp_path: Path, task: str, count: str) -> None:
    """It depended on the predictions of an untrained model for 64 records."""
    common, rare = "a B-PER\nb O\n\n", "a O\nb B-{}\n\n"
    (tmp_path / "train.conll").write_text(common * 20 + rare.format("RARE"))
    (tmp_path / "dev.conll").write_text(common * 100 + rare.format("NEW"))
    files = {"folder": str(tmp_path), "train": "train.conll", "dev": "dev.conll", "reader": "conll"}
    values = {"task": task, "data.source.files": files, "training.batch_size": 8}
    plan = SweepPlan(
        name="sweep",
        layers=(values_layer("preset", values),),
        space="a:b",
        trials=4,
        scheduler="none",
        objectives=("f1_PER", "f1_RARE", "f1_NEW"),
    )
    plan._check_objectives()
    with pytest.raises(UnknownNameError, match="did you mean 'f1_RARE'"):
        plan.model_copy(update={"objectives": ("f1", "f1_RAER")})._check_objectives()
    with pytest.raises(UnknownNameError, match=count):  # of the data: it was maximised
        plan.model_copy(update={"objectives": ("f1", count)})._check_objectives()
