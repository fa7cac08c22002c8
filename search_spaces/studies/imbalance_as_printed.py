"""The two training sets of Table 8 whose printed shares contradict the described additions, in both versions.

The paper prints + negative with 21 % positives and + positive & negative with 50/50. At its printed size, the latter is
a second random draw of + positive: their difference shows the effect of the draw alone.
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
