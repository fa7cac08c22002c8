"""How often training rows are drawn, and what each step holds of them; no split is altered.

The class counts stay those of the split: weights of the loss and the prior bias of the head are computed from it, not
from what is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice, Settings


class NoneConfig(Branch):
    """Every record once."""

    name = "none"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        """The relative frequency of each record, at least 1."""
        return [1.0] * len(is_positive)


class BalancedConfig(Branch):
    """The rarer class as often as the other."""

    name = "balanced"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        num_positives = sum(is_positive)
        if not num_positives:
            raise DataError(
                f"data.oversampling balanced needs positives in the training split, got none in {len(is_positive)}"
            )
        ratio = (len(is_positive) - num_positives) / num_positives
        return [max(1.0, ratio) if positive else max(1.0, 1 / ratio) for positive in is_positive]


class FactorConfig(Branch):
    """Positives more often.

    Attributes:
        times: How many times as often as negatives.
    """

    name = "factor"

    times: float = Field(ge=1)

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        return [self.times if positive else 1.0 for positive in is_positive]


OversamplingConfig: TypeAlias = Annotated[NoneConfig | BalancedConfig | FactorConfig, Choice()]
"""How the training records are sampled; the number of steps stays that of the split."""


class EachEpochConfig(Branch):
    """All positives, and as many negatives as are asked for, drawn anew in each epoch: epochs become shorter.

    Attributes:
        negatives: The number of negatives for each positive.
        drops: Which records an epoch leaves out: `negatives`; or `any`, as many records of both classes at random: a
            control of equal size and steps, with the share of positives of the split.
    """

    name = "each_epoch"

    negatives: float = Field(1.0, gt=0)
    drops: Literal["negatives", "any"] = "negatives"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        """The share of the epochs that each row is part of."""
        num_positives, num_negatives = sum(is_positive), len(is_positive) - sum(is_positive)
        # Rounded, so that the epochs of both have the same size.
        num_kept = round(self.negatives * num_positives)
        if not 0 < num_kept < num_negatives:
            raise DataError(
                f"data.batches.undersampling.each_epoch must leave out negatives: {self.negatives:g} for each of "
                f"{num_positives} positives are {num_kept}, and the training split has {num_negatives}"
            )
        if self.drops == "any":
            return [(num_positives + num_kept) / len(is_positive)] * len(is_positive)
        return [1.0 if positive else num_kept / num_negatives for positive in is_positive]


class BatchesConfig(Settings):
    """What an epoch and its steps hold of the training rows; at most one of the first three is set.

    Attributes:
        positive_share: Each step holds this share of positives, rounded to rows, at least one and not all of them:
            both classes are drawn in passes of their own, as often as needed. The number of steps stays.
        undersampling: Whether each epoch leaves out negatives.
        size: The number of rows of an epoch, all of them as often: a control of equal size and steps for an arm that
            has more rows, or fewer.
        correct_prior: Correct the probabilities for the share of positives of the training split, where more or fewer
            are drawn: the training is the same, and the log-odds of what was drawn are subtracted from the logits.
    """

    positive_share: float | None = Field(None, gt=0, lt=1)
    undersampling: Annotated[NoneConfig | EachEpochConfig, Choice()] = NoneConfig()
    size: int | None = Field(None, ge=1)
    correct_prior: bool = False
