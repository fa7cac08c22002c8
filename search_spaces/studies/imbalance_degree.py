"""Losses on training sets with positives added, negatives added, negatives dropped, or both added: Table 8."""

from __future__ import annotations

from typing import Any

from search_spaces import arms

ARMS = arms.losses("cross_entropy", "focal", "dice", "self_adjusting_dice") | {
    name: arms.ARMS[name] for name in ("paper_dl", "paper_dsc")
}
BASELINE = "cross_entropy"
VARIANTS: dict[str, dict[str, Any]] = {
    "original": {"data.imbalance": "none"},
    "+ positive": {"data.imbalance": "add_positive"},
    "+ negative": {"data.imbalance": "add_negative"},
    "- negative": {"data.imbalance": "drop_negative"},
    "+ positive & negative": {"data.imbalance": "add_both"},
}
