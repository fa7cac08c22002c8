"""Every loss with its defaults, and the paper's own settings, against cross-entropy: Tables 3 to 7."""

from __future__ import annotations

from typing import Any

from search_spaces import arms

LOSSES = (
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
"""All but `custom`; those that do not take the links of a task are left out of its study."""
ARMS: dict[str, dict[str, Any]] = {loss: {"loss": loss} for loss in LOSSES} | arms.ARMS
BASELINE = "cross_entropy"
