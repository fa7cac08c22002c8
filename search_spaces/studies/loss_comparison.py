"""Every loss with its defaults, and the paper's own settings, against cross-entropy."""

from __future__ import annotations

from typing import Any

from search_spaces import arms

ARMS: dict[str, dict[str, Any]] = {
    loss: {"loss": loss}
    for loss in ("cross_entropy", "weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "tversky")
} | arms.ARMS
BASELINE = "cross_entropy"
