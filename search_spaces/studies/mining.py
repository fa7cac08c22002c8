"""Does mining hard negatives gain as much as a dice loss? Cross-entropy and the best dice loss with fewer negatives."""

from __future__ import annotations

from itertools import product

from search_spaces import arms

_LOSSES = ("cross_entropy", "self_adjusting_dice")

ARMS = arms.losses(*_LOSSES) | {
    f"{loss}, {ratio} hard negatives": {"loss": loss, "mining.ratio": ratio}
    for loss, ratio in product(_LOSSES, (10, 3, 1))
}
BASELINE = "cross_entropy"
