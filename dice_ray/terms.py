"""TermFacts (what the training split says of a term) and Term (its tensors in a step)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

Link: TypeAlias = Literal["softmax", "sigmoid", "position"]
"""How logits become probabilities.

softmax: `logits_NC`, one class an item. sigmoid: one logit an item, p = [1 - sigmoid(z), sigmoid(z)]; several labels a
text are as many two-class items. position: a softmax over the positions of a sequence, `logits_NL`, one an item.
"""


@dataclass(frozen=True)
class TermFacts:
    """What the training split says of a term, counted once by its task; loss, head bias and checkpoint read it.

    Attributes:
        name: The head that the term scores, "label" or "start".
        link: How its logits become probabilities.
        classes: Class names in the order of the logits; a two-class term has two, also with one logit.
        counts: Unmasked items of each class in the training split.
        background: The index of the class that is not of interest, if one is; a two-class term always has 0.
    """

    name: str
    link: Link
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    background: int | None = None

    def __post_init__(self) -> None:
        assert len(self.classes) == len(self.counts), (
            f"{self.name}: {len(self.classes)} classes, {len(self.counts)} counts"
        )
        assert len(self.classes) != 2 or self.background == 0, f"{self.name}: a two-class term has background 0"

    @property
    def num_items(self) -> int:
        return sum(self.counts)

    @property
    def foreground(self) -> tuple[int, ...]:
        """The indices of every class but background."""
        return tuple(index for index in range(len(self.classes)) if index != self.background)

    @property
    def log_prior(self) -> tuple[float, ...]:
        """The log share of each class, an absent class counted as one item."""
        filled = [max(count, 1) for count in self.counts]
        return tuple(math.log(count / sum(filled)) for count in filled)


@dataclass(frozen=True)
class Term:
    """What a task hands the loop for one head in one step.

    Attributes:
        logits: `logits_...C` (softmax), `logits_...` (sigmoid) or `logits_...L` (position): classes on the last axis.
        targets: `targets_...`, class indices, or 0 and 1 for sigmoid.
        mask: `mask_...`, true where an item counts; none means all. For position: `mask_...L`, the positions allowed.
        weight: The share of this term in the step's loss.
    """

    logits: Tensor
    targets: Tensor
    mask: Tensor | None = None
    weight: float = 1.0
