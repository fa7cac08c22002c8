"""Do a prior bias, oversampling and a tuned threshold gain as much as a dice loss?

Every run is scored at .5 and at the threshold tuned on dev: the report has a row for each, so that the threshold is not
an arm. The dice loss is the one with the best score on the generated pairs.
"""

from __future__ import annotations

from itertools import product
from typing import Any

_CONTROLS = {"prior bias": {"model.head_bias": "prior"}, "oversampling": {"data.oversampling": "balanced"}}

ARMS: dict[str, dict[str, Any]] = {
    ", ".join([loss, *(name for name, is_on in zip(_CONTROLS, chosen, strict=True) if is_on)]): {
        "loss": loss,
        **{
            path: value
            for settings, is_on in zip(_CONTROLS.values(), chosen, strict=True)
            if is_on
            for path, value in settings.items()
        },
    }
    for loss, chosen in product(("cross_entropy", "self_adjusting_dice"), product((False, True), repeat=2))
}
BASELINE = "cross_entropy"
