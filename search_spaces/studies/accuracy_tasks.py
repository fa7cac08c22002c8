"""What losses that aim at F1 cost in accuracy, on SST-2 and SST-5: Table 9."""

from __future__ import annotations

from typing import Any

from search_spaces import arms

ARMS: dict[str, dict[str, Any]] = {
    loss: {"loss": loss} for loss in ("cross_entropy", "dice", "self_adjusting_dice")
} | {name: arms.ARMS[name] for name in ("paper_dl", "paper_dsc")}
BASELINE = "cross_entropy"
DATA = ("sst2", "sst5")
