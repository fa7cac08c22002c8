"""The effect of alpha in the Tversky loss (beta 1 - alpha): Table 10, by the paper's equation and in batch scope."""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses("cross_entropy") | {
    f"{name} {tenths / 10}": {**settings, "loss.tversky.alpha": tenths / 10}
    for name, settings in (("paper_tl", arms.ARMS["paper_tl"]), ("tversky", {"loss": "tversky"}))
    for tenths in range(1, 10)
}
BASELINE = "cross_entropy"
