"""Are a prior bias, oversampling and a tuned threshold worth as much as a dice loss?

Every run is scored at .5 and at the threshold tuned on dev: that is another row of a run, and no arm. The dice loss is
the one that stands best on the generated pairs.
"""

from __future__ import annotations

from itertools import product
from typing import Any

LOSSES = ("cross_entropy", "self_adjusting_dice")
CONTROLS = {"prior bias": {"model.head_bias": "prior"}, "oversampling": {"data.oversampling": "balanced"}}

ARMS: dict[str, dict[str, Any]] = {
    ", ".join([loss, *(name for name, is_on in zip(CONTROLS, chosen, strict=True) if is_on)]): {
        "loss": loss,
        **{
            path: value
            for written, is_on in zip(CONTROLS.values(), chosen, strict=True)
            if is_on
            for path, value in written.items()
        },
    }
    for loss, chosen in product(LOSSES, product((False, True), repeat=2))
}
BASELINE = "cross_entropy"
