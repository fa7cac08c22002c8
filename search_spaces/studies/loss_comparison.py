"""Every loss with its defaults, against cross-entropy."""

from __future__ import annotations

from typing import Any

ARMS: dict[str, dict[str, Any]] = {
    loss: {"loss": loss}
    for loss in ("cross_entropy", "weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "tversky")
}
BASELINE = "cross_entropy"
