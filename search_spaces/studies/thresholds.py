"""Do a prior bias, oversampling and a tuned threshold gain as much as a dice loss?

Every run is scored at .5 and at the threshold tuned on dev: the report has a row for each, so that the threshold is not
an arm. The dice loss is the one with the best score on the generated pairs.
"""

from __future__ import annotations

from itertools import product
from typing import Any

_PRIOR, _OVERSAMPLED = {"model.head_bias": "prior"}, {"data.oversampling": "balanced"}
_CONTROLS: dict[str, dict[str, Any]] = {
    "": {},
    ", oversampling": _OVERSAMPLED,
    ", prior bias": _PRIOR,
    ", prior bias, oversampling": _PRIOR | _OVERSAMPLED,
}

ARMS: dict[str, dict[str, Any]] = {
    f"{loss}{name}": {"loss": loss, **settings}
    for loss, (name, settings) in product(("cross_entropy", "self_adjusting_dice"), _CONTROLS.items())
}
BASELINE = "cross_entropy"
