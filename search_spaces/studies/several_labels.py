"""Losses for texts with several labels, of which one is rare: all pooled, or each label by its own counts.

The thresholds of each run are fitted on dev, one for each label with enough positives.
"""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses(
    "cross_entropy", "weighted_cross_entropy", "focal", "asymmetric", "distribution_balanced", "dice", "vector_scaling"
) | {
    "cross_entropy, prior bias": {"loss": "cross_entropy", "model.head_bias": "prior"},
    "weighted_cross_entropy, per label": {
        "loss": "weighted_cross_entropy",
        "loss.weighted_cross_entropy.weighting.lg.labels": "per_label",
    },
    "dice, per label": {"loss": "dice", "loss.dice.average": "per_label"},
}
BASELINE = "cross_entropy"
DATA = ("synthetic_labels",)
