"""What helps with 20, 50 or 100 positives and all negatives: a loss, steps with more positives, or only a threshold?

Each seed draws its own positives, the fewer among the more, the same for all arms.
"""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses("cross_entropy", "weighted_cross_entropy", "majority_or_minority", "vector_scaling") | {
    "cross_entropy, a quarter positives": {"loss": "cross_entropy", "data.batches.positive_share": 0.25}
}
BASELINE = "cross_entropy"
VARIANTS = {f"{num} positives": {"data.imbalance.few_positives.positives": num} for num in (20, 50, 100)}
