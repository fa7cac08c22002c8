"""Every shipped study makes a plan on data that fit it: all its arms are run, and no two of its cells are the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dice_ray import api
from dice_ray.api.library import read_study
from dice_ray.api.presets import layers_of
from dice_ray.losses import LossConfig
from dice_ray.run.names import names_of
from dice_ray.settings import branches_of
from dice_ray.tuning.cells import Variant
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.study_file import layers_by_variant, with_draws
from search_spaces import arms
from search_spaces.draws import draws
from search_spaces.studies import imbalance_degree, later_losses, loss_comparison, self_adjusting, tversky_alpha

ACCURACY = {"task.text_classification.score": "accuracy"}
ON: dict[str, tuple[str, dict[str, Any]]] = {"accuracy_tasks": ("synthetic_texts", ACCURACY)}
"""The generated data and settings of the studies that do not run on generated pairs by themselves."""
LEFT_OUT = {"loss_comparison": 1, "formulations": 11, "later_losses": 1}
"""Arms that do not go with the data: those for sigmoids; in `formulations`, all but two with positions."""


def plan_of(name: str) -> StudyPlan:
    study = read_study(name)
    if study.space:
        study = with_draws(name, study, draws, None, None, None, crossed=False)
    preset, settings = ON.get(name, (study.data[0], {}))
    found = {
        name: layers
        for name, (_, layers, _) in layers_by_variant(
            [preset], partial(layers_of, settings=settings), [], study.variants
        ).items()
    }
    variants = {variant: Variant(layers=tuple(layers)) for variant, layers in found.items() if variant is not None}
    layers = tuple(next(iter(found.values())))
    return StudyPlan(
        name=name, layers=layers, arms=study.arms, baseline=study.baseline, seeds=(1, 2), variants=variants
    )


def test_presets_of_one_name_have_data_of_different_names() -> None:
    presets = ["mrpc", "a/mine.yaml", "b/mine.yaml", "other.yaml"]
    assert list(names_of(presets).values()) == ["mrpc", "a/mine", "b/mine", "other"]
    assert list(names_of(["/x/c/mine.yaml", "/y/c/mine.yaml"]).values()) == ["x/c/mine", "y/c/mine"]
    assert list(names_of(["mine.yaml", "c/mine.yaml"]).values()) == ["mine", "c/mine"]
    assert list(names_of(["."]).values()) == [""], "which is refused later, as a preset"
    encoders = ["v1/encoder", "v2/encoder", "org/other"]
    assert list(layers_by_variant(["mrpc"], partial(layers_of, settings={}), encoders, {})) == [
        "v1/encoder",
        "v2/encoder",
        "other",
    ]


@pytest.mark.parametrize("name", api.names()["studies"])
def test_a_study_has_a_plan(name: str) -> None:
    plan = plan_of(name)
    cells, left_out = plan.grid().cells, plan.grid().left_out
    assert len(left_out) == LEFT_OUT.get(name, 0), left_out
    assert len(cells) == 2 * (len(plan.arms) * len(plan.digests) - len(left_out))
    assert len({cell.id for cell in cells}) == len(cells)
    for cell in cells:
        plan.config(cell)


def test_every_loss_but_custom_is_an_arm() -> None:
    compared = {*loss_comparison.ARMS, *later_losses.ARMS}
    assert compared - {*branches_of(LossConfig)} == {*arms.ARMS, "LDAM-DRW", "label smoothing"}
    assert {*branches_of(LossConfig)} - compared == {"custom"}


def test_what_cannot_take_a_link_is_left_out_with_the_reason() -> None:
    left_out = plan_of("loss_comparison").grid().left_out
    assert [(each.variant, each.arm) for each in left_out] == [(None, "asymmetric")]
    assert "must take the softmax link of task sentence_pair, got asymmetric" in left_out[0].reason
    found = plan_of("formulations").grid().left_out
    assert {each.variant for each in found} == {"position"}
    assert set(loss_comparison.ARMS) - {each.arm for each in found} == {"cross_entropy", "focal"}


def test_the_arms_are_those_of_the_tables() -> None:
    assert {"cross_entropy", "focal", "paper_dl", "paper_dsc"} < set(imbalance_degree.ARMS), "the rows of Table 8"
    columns = ["original", "+ positive", "+ negative", "- negative", "+ positive & negative"]
    assert list(imbalance_degree.VARIANTS)[:5] == columns
    plan = plan_of("tversky_alpha")
    for cell in plan.grid().cells:
        if cell.arm != "cross_entropy":
            assert cell.arm is not None
            loss: Any = plan.config(cell).loss
            scope, alpha = {"paper_tl": "example", "tversky": "batch"}[cell.arm.split()[0]], float(cell.arm.split()[1])
            assert (loss.scope, loss.alpha, loss.beta) == (scope, alpha, pytest.approx(1 - alpha))
    assert len(tversky_alpha.ARMS) == 1 + 2 * 9
    assert len(self_adjusting.ARMS) == 1 + 7 * 2 * 2
