"""How rare must positives be before the loss matters? Training sets of one size, with 1 to 100 negatives a positive.

Dev and test keep the share of positives of the data. With `--set data.imbalance.ratio.negatives=1 --set
data.imbalance.ratio.size=3000`, the sets are smaller than the training split: they need fewer copies, or none.
"""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses(
    "cross_entropy", "weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "logit_adjusted", "dice_ce"
)
BASELINE = "cross_entropy"
VARIANTS = {f"1:{negatives}": {"data.imbalance.ratio.negatives": negatives} for negatives in (1, 10, 30, 100)}
