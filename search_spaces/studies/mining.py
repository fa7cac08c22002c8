"""Does mining hard negatives gain as much as a dice loss? Cross-entropy and the best dice loss with fewer negatives."""

from __future__ import annotations

from itertools import product
from typing import Any

_LOSSES = ("cross_entropy", "self_adjusting_dice")

ARMS: dict[str, dict[str, Any]] = {loss: {"loss": loss} for loss in _LOSSES} | {
    f"{loss}, {ratio} hard negatives": {"loss": loss, "mining.ratio": ratio}
    for loss, ratio in product(_LOSSES, (10, 3, 1))
}
BASELINE = "cross_entropy"
