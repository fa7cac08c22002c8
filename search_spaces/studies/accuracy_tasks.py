"""The cost in accuracy of losses that aim at F1, on SST-2 and SST-5: Table 9 of the paper."""

from __future__ import annotations

from search_spaces import arms

ARMS = arms.losses("cross_entropy", "dice", "self_adjusting_dice") | {
    name: arms.ARMS[name] for name in ("paper_dl", "paper_dsc")
}
BASELINE = "cross_entropy"
DATA = ("sst2", "sst5")
