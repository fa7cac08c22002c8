"""Which losses a search leaves out, for tasks of each link."""

from __future__ import annotations

from typing import Any

import pytest

from dice_ray.config.checks import unfit
from dice_ray.config.load import resolve, values_layer
from dice_ray.run.build import prepare
from search_spaces.loss_tuning import LOSSES

SMOOTHING = "loss.cross_entropy.label_smoothing"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"task": "sentence_pair"}, {"asymmetric", "distribution_balanced"}),
        ({"task.sentence_pair.link": "sigmoid"}, set()),
        (
            {"task": "text_classification", "data.source.synthetic.kind": "texts"},
            {"asymmetric", "distribution_balanced", "listwise"},
        ),
        (
            {"task": "extractive_qa", "data.source.synthetic.kind": "questions"},
            {*LOSSES, SMOOTHING} - {"cross_entropy", "focal", "poly"},
        ),
    ],
    ids=["softmax", "sigmoid", "several classes", "positions"],
)
def test_what_does_not_fit_the_link_or_the_classes(settings: dict[str, Any], expected: set[str]) -> None:
    """Finds a search that draws what its task refuses, or leaves out what it takes."""
    config = resolve([values_layer("preset", {"data.source.synthetic.size": 40} | settings)])
    assert unfit(config, prepare(config).facts) == expected
