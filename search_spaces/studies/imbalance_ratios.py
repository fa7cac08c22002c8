"""Losses on training sets of one size with 1 to 100 negatives for each positive."""

from __future__ import annotations

from search_spaces.studies import imbalance_degree

ARMS = imbalance_degree.ARMS
BASELINE = imbalance_degree.BASELINE
VARIANTS = {f"1:{negatives}": {"data.imbalance.ratio.negatives": negatives} for negatives in (1, 3, 10, 30, 100)}
