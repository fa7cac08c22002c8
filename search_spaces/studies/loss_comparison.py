"""The paper's losses and three alternatives, and the paper's own settings, against cross-entropy: Tables 3 to 7."""

from __future__ import annotations

from search_spaces import arms

_LOSSES = (
    "cross_entropy",
    "weighted_cross_entropy",
    "focal",
    "dice",
    "self_adjusting_dice",
    "tversky",
    "dice_ce",
    "logit_adjusted",
    "asymmetric",
)
"""`later_losses` has the others. A study leaves out those that do not support the link of its task."""
ARMS = arms.losses(*_LOSSES) | arms.ARMS
BASELINE = "cross_entropy"
