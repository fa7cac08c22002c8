"""Is the best loss with the best batches and the best decision better than one of them alone?

A report has a row for the untuned predictions of each run and one for the decision fitted on dev, so the decision is no
arm: `--threshold untuned` compares without it. `half positives` has as many steps as the baseline; undersampled epochs
hold three negatives for each positive and are shorter; their control has epochs of the same size, with the share of
positives of the data.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from search_spaces import arms

_HALF = {"data.batches.positive_share": 0.5}
_UNDERSAMPLED = {"data.batches.undersampling": "each_epoch", "data.batches.undersampling.each_epoch.negatives": 3.0}
_CORRECTED = {"data.batches.correct_prior": True}
_BATCHES: dict[str, dict[str, Any]] = {
    "half positives": _HALF,
    "half positives, corrected": _HALF | _CORRECTED,
    "undersampled": _UNDERSAMPLED,
}
_LOSSES = ("cross_entropy", "weighted_cross_entropy", "dice", "vector_scaling")

ARMS = (
    arms.losses(*_LOSSES)
    | {f"{loss}, {name}": {"loss": loss, **_BATCHES[name]} for loss, name in product(_LOSSES, _BATCHES)}
    | {
        "cross_entropy, undersampled, corrected": {"loss": "cross_entropy", **_UNDERSAMPLED, **_CORRECTED},
        "cross_entropy, control of undersampled": {
            "loss": "cross_entropy",
            **_UNDERSAMPLED,
            "data.batches.undersampling.each_epoch.drops": "any",
        },
    }
)
BASELINE = "cross_entropy"
DATA = ("synthetic_rare",)
