"""Losses on training sets with positives added, negatives added or dropped, or both added: Table 8.

The paper prints 21 % positives for + negative, and 50/50 for + positive & negative. Sets of that size with that share
are variants of their own: the second one is + positive, drawn again.
"""

from __future__ import annotations

from typing import Any

from search_spaces import arms

ARMS: dict[str, dict[str, Any]] = {
    loss: {"loss": loss} for loss in ("cross_entropy", "focal", "dice", "self_adjusting_dice")
} | {name: arms.ARMS[name] for name in ("paper_dl", "paper_dsc")}
BASELINE = "cross_entropy"
VARIANTS: dict[str, dict[str, Any]] = {
    "original": {"data.imbalance": "none"},
    "+ positive": {"data.imbalance": "add_positive"},
    "+ negative": {"data.imbalance": "add_negative"},
    "- negative": {"data.imbalance": "drop_negative"},
    "+ positive & negative": {"data.imbalance": "add_both"},
    "+ negative, 21 % as printed": {"data.imbalance.composed.positive_share": 0.21},
    "+ positive & negative, 50/50 as printed": {
        "data.imbalance.composed.positive_share": 0.5,
        "data.imbalance.composed.seed": 1,
    },
}
