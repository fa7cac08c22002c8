"""Losses at equal tuning budget: each is run with the same random draws from the space of the optimizer, once a draw.

The tuning is replicated with the losses, so that a difference is not that of two single searches.
"""

from __future__ import annotations

from search_spaces import arms
from search_spaces.optimizer_tuning import optimizer_tuning

ARMS = arms.losses("cross_entropy", "weighted_cross_entropy", "focal", "dice", "self_adjusting_dice")
BASELINE = "cross_entropy"
SPACE = optimizer_tuning
