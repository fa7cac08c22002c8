"""Losses for imbalanced data that are later than those of `loss_comparison`, against cross-entropy and class weights.

`LDAM-DRW` is the setting of its paper, with class weights that begin at the end of training. A study leaves out what
does not support the link and the classes of its task.
"""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses(
    "cross_entropy",
    "weighted_cross_entropy",
    "vector_scaling",
    "ldam",
    "majority_or_minority",
    "poly",
    "distribution_balanced",
    "listwise",
) | {
    "LDAM-DRW": {"loss": "ldam", "loss.ldam.weighting": "effective_number", "loss.ldam.reweight_after": 0.8},
    "label smoothing": {"loss": "cross_entropy", "loss.cross_entropy.label_smoothing": 0.1},
}
BASELINE = "cross_entropy"
