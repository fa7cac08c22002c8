"""Arms that several studies use, as name -> path -> value: losses, and those of the paper and of its authors' code.

The paper gives no gamma; 1 is the smoothing term of its footnote 3. On WNUT17, the example-scope arms predicted only
the background class.
"""

from __future__ import annotations

from typing import Any


def arm(loss: str, **parameters: Any) -> dict[str, Any]:
    """The settings of a loss with these parameters, by path."""
    return {"loss": loss} | {f"loss.{loss}.{name}": value for name, value in parameters.items()}


def losses(*names: str) -> dict[str, dict[str, Any]]:
    """An arm for each of these losses, with its defaults."""
    return {name: arm(name) for name in names}


ARMS = {
    # DL of eq. 7: the mean over items of the squared dice loss of each item.
    "paper_dl": arm("dice", scope="example", denominator="squared", gamma=1.0),
    # TL of eq. 9: the mean over items of the Tversky loss of each item, alpha .5.
    "paper_tl": arm("tversky", scope="example", gamma=1.0),
    # DSC of eq. 11: the mean over items of the linear dice loss of p(1-p) of each item.
    "paper_dsc": arm("self_adjusting_dice", scope="example", denominator="linear", decay=1.0, gamma=1.0),
    # The loss of the authors' code, but per step: theirs is per micro-batch, which differs with accumulation.
    "authors_code": arm("self_adjusting_dice", scope="batch", denominator="squared", decay=0.01, gamma=1.0),
}
