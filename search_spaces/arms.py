"""Arms that several studies use, as name -> path -> value: losses, and those of the paper and of its authors' code.

The paper gives no gamma; 1 is the smoothing term of its footnote 3. On WNUT17, the example-scope arms predicted only
the background class.
"""

from __future__ import annotations

from typing import Any

ARMS: dict[str, dict[str, Any]] = {
    # DL of eq. 7: the mean over items of the squared dice loss of each item.
    "paper_dl": {
        "loss": "dice",
        "loss.dice.scope": "example",
        "loss.dice.denominator": "squared",
        "loss.dice.gamma": 1.0,
    },
    # TL of eq. 9: the mean over items of the Tversky loss of each item, alpha .5.
    "paper_tl": {"loss": "tversky", "loss.tversky.scope": "example", "loss.tversky.gamma": 1.0},
    # DSC of eq. 11: the mean over items of the linear dice loss of p(1-p) of each item.
    "paper_dsc": {
        "loss": "self_adjusting_dice",
        "loss.self_adjusting_dice.scope": "example",
        "loss.self_adjusting_dice.denominator": "linear",
        "loss.self_adjusting_dice.decay": 1.0,
        "loss.self_adjusting_dice.gamma": 1.0,
    },
    # The loss of the authors' code, but per step: theirs is per micro-batch, which differs with accumulation.
    "authors_code": {
        "loss": "self_adjusting_dice",
        "loss.self_adjusting_dice.scope": "batch",
        "loss.self_adjusting_dice.denominator": "squared",
        "loss.self_adjusting_dice.decay": 0.01,
        "loss.self_adjusting_dice.gamma": 1.0,
    },
}


def losses(*names: str) -> dict[str, dict[str, Any]]:
    """An arm for each of these losses, with its defaults."""
    return {name: {"loss": name} for name in names}
