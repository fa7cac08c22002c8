"""Log probabilities for the losses.

Invariant: everything is computed in fp32 (fp64 for fp64 logits), and stays finite for logits up to 1e4 in magnitude,
whatever the type of the logits. A log probability comes from the logits, never as log(p), since p underflows to 0;
then its gradient is bounded by 1. Explicit types make the result independent of autocast.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.losses.items import Items


def target_log_prob(items: Items, smoothing: float = 0.0) -> Tensor:
    """`log_p_N` of each item's target class; smoothed, (1 - smoothing) log p_t + smoothing mean_j log p_j."""
    if items.is_two_class:
        margin_N = items.logits * items.signs
        log_p_N = F.logsigmoid(margin_N)
        # The log odds of two classes are their margin.
        return log_p_N - smoothing / 2 * margin_N if smoothing else log_p_N
    log_p_NC = items.logits.log_softmax(-1, torch.promote_types(items.logits.dtype, torch.float32))
    log_p_N = log_p_NC.gather(1, items.targets[:, None])[:, 0]
    return torch.lerp(log_p_N, log_p_NC.mean(-1), smoothing) if smoothing else log_p_N
