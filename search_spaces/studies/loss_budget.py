"""Losses at equal tuning budget, each with its own parameters: as `tuning_budget`, and fair to losses that have some.

All losses are run with the same random draws from the space of the optimizer; each loss adds a draw from its own space.
"""

from __future__ import annotations

from search_spaces import arms, loss_tuning
from search_spaces.optimizer_tuning import optimizer_tuning

ARMS = arms.losses(
    "cross_entropy", "weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "vector_scaling", "ldam", "poly"
)
BASELINE = "cross_entropy"
SPACE = optimizer_tuning
SPACES = {loss: loss_tuning.LOSSES[loss] for loss in ARMS}
