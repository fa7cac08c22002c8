"""TermFacts (statistics of a term in the training split) and Term (its tensors in a step)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

Link: TypeAlias = Literal["softmax", "sigmoid", "position"]
"""How logits become probabilities.

softmax: `logits_NC`, one class per item. sigmoid: one logit per item, p = [1 - sigmoid(z), sigmoid(z)]; each label of a
multi-label text is a two-class item. position: `logits_NL`, a softmax over the positions of a sequence, one per item.
"""


@dataclass(frozen=True)
class TermFacts:
    """Statistics of a term in the training split, counted once by its task and read by loss, head bias and checkpoint.

    Attributes:
        name: Name of the head that produces the logits, such as "label" or "start".
        link: How the logits become probabilities.
        classes: Class names in the order of the logits; a two-class term has two, also with one logit.
        counts: Number of unmasked items of each class in the training split.
        background: Index of the class that is not of interest, None if every class is; always 0 for a two-class term.
        labels: Names of the labels of a multi-label term, in the order of its logits; their items lie side by side.
        label_counts: Number of items of the training split with each of these labels.
    """

    name: str
    link: Link
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    background: int | None = None
    labels: tuple[str, ...] = ()
    label_counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.classes) == len(self.counts), (
            f"{self.name}: {len(self.classes)} classes, {len(self.counts)} counts"
        )
        assert len(self.classes) != 2 or self.background == 0, f"{self.name}: a two-class term has background 0"
        assert len(self.labels) == len(self.label_counts), f"{self.name}: each label has a count"

    @property
    def by_label(self) -> tuple[TermFacts, ...]:
        """Each label of a multi-label term as a two-class term of its own; its classes are named after the label."""
        num_items = self.num_items // max(len(self.labels), 1)
        return tuple(
            TermFacts(self.name, self.link, (f"without {label}", label), (num_items - count, count), background=0)
            for label, count in zip(self.labels, self.label_counts, strict=True)
        )

    @property
    def num_items(self) -> int:
        return sum(self.counts)

    @property
    def foreground(self) -> tuple[int, ...]:
        """The indices of all classes except the background."""
        return tuple(index for index in range(len(self.classes)) if index != self.background)

    @property
    def log_prior(self) -> tuple[float, ...]:
        """The log of each class's share of the items; an absent class counts as one item."""
        filled = [max(count, 1) for count in self.counts]
        return tuple(math.log(count / sum(filled)) for count in filled)


@dataclass(frozen=True)
class Term:
    """The tensors of one head in one step, as the task passes them to the training loop.

    Attributes:
        logits: `logits_...C` (softmax), `logits_...` (sigmoid) or `logits_...L` (position); classes are on the last
            axis.
        targets: `targets_...`, class indices, or 0 and 1 for sigmoid.
        mask: `mask_...`, true where an item counts; None means all. For position: `mask_...L`, the allowed positions.
        weight: Factor of this term in the step's loss.
    """

    logits: Tensor
    targets: Tensor
    mask: Tensor | None = None
    weight: float = 1.0
