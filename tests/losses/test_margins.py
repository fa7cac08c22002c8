"""A shifted loss is the loss of shifted logits, for every link of two classes, mined or not, item by item or by set."""

from __future__ import annotations

import pytest
import torch

from dice_ray.losses import CrossEntropyConfig, DiceConfig
from dice_ray.losses.margins import shifted
from dice_ray.losses.mining import MiningConfig
from dice_ray.terms import Link, TermFacts

LOGITS = torch.tensor([2.0, -1.0, 3.0, 0.0, 1.0, -2.0])
TARGETS = torch.tensor([1, 0, 0, 0, 0, 1])


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("config", [CrossEntropyConfig(), DiceConfig()], ids=["item mean", "set"])
@pytest.mark.parametrize("ratio", [0, 1])
def test_it_is_the_loss_of_shifted_logits(link: Link, config: CrossEntropyConfig | DiceConfig, ratio: float) -> None:
    """Finds a shift of the first class, or one that a step of several micro-batches takes for another kind of loss."""
    loss = MiningConfig(ratio=ratio).wrap(config.build(TermFacts("label", link, ("no", "yes"), (4, 2), 0)))
    logits = LOGITS if link == "sigmoid" else torch.stack((torch.zeros(6), LOGITS), 1)
    moved = LOGITS + 1.5 if link == "sigmoid" else torch.stack((torch.zeros(6), LOGITS + 1.5), 1)
    assert shifted(loss, 1.5)(logits, TARGETS).item() == pytest.approx(loss(moved, TARGETS).item())
    assert shifted(loss, 1.5).is_item_mean == loss.is_item_mean
    assert shifted(loss, 0.0) is loss
