"""The two sets of Table 8 whose shares the paper prints otherwise than its additions make them, in both forms.

+ negative is printed with 21 % positives, + positive & negative with 50/50. At its size the latter is + positive, drawn
again: what the two differ by is what a draw is worth.
"""

from __future__ import annotations

from typing import Any

from search_spaces.studies import imbalance_degree

ARMS = imbalance_degree.ARMS
BASELINE = imbalance_degree.BASELINE
VARIANTS: dict[str, dict[str, Any]] = {
    "+ negative": imbalance_degree.VARIANTS["+ negative"],
    "+ negative, 21 % as printed": {"data.imbalance.composed.positive_share": 0.21},
    "+ positive": imbalance_degree.VARIANTS["+ positive"],
    "+ positive & negative, 50/50 as printed": {
        "data.imbalance.composed.positive_share": 0.5,
        "data.imbalance.composed.seed": 1,
    },
}
