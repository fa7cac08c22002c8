"""Thresholds of the starts and of the ends of spans, fitted on dev: for queries, and for answers of several spans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dice_ray.metrics.decisions import UNTUNED_THRESHOLD, FittedDecision, Numbers
from dice_ray.metrics.fitting import fit_spans

UNTUNED: Final[Numbers] = {"start": UNTUNED_THRESHOLD, "end": UNTUNED_THRESHOLD}
_LEVELS: Final = (UNTUNED_THRESHOLD, 0.35, 0.7, 0.2, 0.9, 0.1, 0.03)
_PAIRS: Final = sorted(product(_LEVELS, repeat=2), key=lambda pair: sum(abs(each - UNTUNED_THRESHOLD) for each in pair))
START_K1, END_K1 = np.array(_PAIRS).T[..., None]
"""The pairs of thresholds that are tried on dev, the untuned one first."""
LOWEST_THRESHOLD: Final = min(_LEVELS)


def kept(likely_BX: Tensor, untuned_BX: Tensor, p_BX: Tensor) -> Tensor:
    """`kept_BX`: what is predicted without tuning, and of the rest that some thresholds predict the most probable."""
    doubtful_BX = p_BX * (likely_BX & ~untuned_BX)
    # The 16 most probable of each row: with new heads nearly everything is likely.
    least_B1 = doubtful_BX.topk(min(16, doubtful_BX.shape[1])).values[:, -1:]
    return untuned_BX | (likely_BX & (p_BX >= least_B1))


def fitted(counts: Sequence[NDArray[Any]], groups: Sequence[str] | None) -> FittedDecision:
    """The pair of thresholds with the highest micro F1, from `counts_K3` of each record; see `fit_spans`."""
    pairs = [{"start": start, "end": end} for start, end in _PAIRS]
    return fit_spans(pairs, np.stack(counts, 1), groups)
