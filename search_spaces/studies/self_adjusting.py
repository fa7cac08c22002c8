"""The effect of the factor (1-p)^decay of DSC: decay, its gradient, the scope, and the smoothing gamma."""

from __future__ import annotations

from itertools import product

from search_spaces import arms

_FACTORS = {"decay 0": {"decay": 0.0}} | {
    f"decay {decay} {gradient}": {"decay": decay, "decay_gradient": gradient}
    for decay, gradient in product((0.01, 0.1, 1.0), ("full", "stopped"))
}
ARMS = arms.losses("cross_entropy") | {
    f"{factor}, {scope}, gamma {gamma}": arms.arm("self_adjusting_dice", **_FACTORS[factor], scope=scope, gamma=gamma)
    for factor, scope, gamma in product(_FACTORS, ("batch", "example"), (0.01, 1.0))
}
BASELINE = "cross_entropy"
