"""Table 1 of the paper, as printed (arXiv 1911.02855v3), with notes on its inconsistencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class PrintedImbalance:
    """A row of Table 1, about a training split.

    Attributes:
        note: A caveat for comparisons with it.
    """

    title: str
    negatives: str
    positives: str
    ratio: float
    note: str = ""


_QUESTIONS: Final = (
    "counted here: the words of the context for each question, its start and end positive; equal within 7 %"
)

TABLE_1: Final[dict[str, PrintedImbalance]] = {
    "conll03": PrintedImbalance(
        "CoNLL03 NER", "170K", "34K", 4.98, "rounded from 169,578 and 34,043, which the official file holds"
    ),
    "ontonotes5": PrintedImbalance("OntoNotes5.0 NER", "1.96M", "239K", 8.18),
    "squad1": PrintedImbalance(
        "SQuAD 1.1", "10.3M", "175K", 55.9, f"the printed ratio is not that of the printed counts, 58.9; {_QUESTIONS}"
    ),
    "squad2": PrintedImbalance(
        "SQuAD 2.0", "15.4M", "188K", 82.0, "no natural way of counting gives these 188K positives"
    ),
    "quoref": PrintedImbalance("QUOREF", "6.52M", "38.6K", 169, _QUESTIONS),
}
"""By the name of the preset."""
