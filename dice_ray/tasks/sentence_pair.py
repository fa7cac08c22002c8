"""Binary classification of sentence pairs: MRPC, QQP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import PairRecord
from dice_ray.errors import DataError
from dice_ray.metrics.catalogue import check_score, metric_of, scores_of
from dice_ray.models.heads import TextHead
from dice_ray.tasks.base import Batch, Row, TaskBranch
from dice_ray.tasks.text_classification import OneLabel
from dice_ray.terms import Link, Term, TermFacts
from dice_ray.user_code import Address

if TYPE_CHECKING:
    from dice_ray.models.encoder import ModelConfig


class SentencePairConfig(TaskBranch):
    """Classify pairs of sentences as positive or not.

    Attributes:
        positive: The label of the positive class; there must be exactly one other label.
        score: The objective: `f1` or another metric of the positive class at threshold 0.5 (`precision`, `recall`, `f2`
            or any F-beta, `accuracy`, `macro_f1`, `balanced_accuracy`, `mcc`, `roc_auc`, `pr_auc`), or the address of a
            function of the lists of labels and predicted labels that returns a number, the higher the better.
        link: `softmax` gives two logits for each pair, `sigmoid` one.
        max_length: The longest row, in tokens; of a longer pair the longer sentence is truncated.
    """

    name = "sentence_pair"
    metric = "f1"
    records = (PairRecord,)
    stride: ClassVar[int] = 0
    """A pair is one row."""

    positive: str = "1"
    score: Address = "f1"
    link: Literal["softmax", "sigmoid"] = "softmax"
    max_length: int = Field(128, ge=8)

    @model_validator(mode="after")
    def _fits(self) -> SentencePairConfig:
        check_score(self.score, scores_of("positive"))
        return self

    def objective(self) -> str:
        return metric_of(self.score)

    def own_metric(self) -> str | None:
        return self.score if ":" in self.score else None

    def positive_label(self) -> str:
        return self.positive

    def scores_every_class(self) -> bool:
        return True

    def links(self) -> frozenset[Link]:
        return frozenset({self.link})

    def classes(self, records: Sequence[PairRecord]) -> tuple[str, ...]:
        labels = sorted({record.label for record in records})
        others = [label for label in labels if label != self.positive]
        if self.positive not in labels or len(others) != 1:
            raise DataError(
                f"sentence_pair needs exactly two labels in the training split, one of them the positive "
                f"{self.positive!r} (task.sentence_pair.positive), got {labels}"
            )
        return others[0], self.positive

    def label_counts(self, records: Sequence[PairRecord]) -> Counter[str]:
        """The number of pairs with each label."""
        return Counter(record.label for record in records)

    def negatives_and_positives(self, records: Sequence[PairRecord]) -> tuple[int, int]:
        """Pairs of the other label, and of the positive one."""
        counts = self.label_counts(records)
        return counts.total() - counts[self.positive], counts[self.positive]

    def build(self, classes: tuple[str, ...]) -> SentencePair:
        return SentencePair(self, classes)


class SentencePair(OneLabel):
    """Pairs of sentences with one term, `label`, whose background is the negative class."""

    config: SentencePairConfig

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        (facts,) = super().facts(rows)
        return (replace(facts, link=self.config.link),)

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        num_logits = 2 if self.config.link == "softmax" else 1
        return {"label": TextHead(width, num_logits, model.dropout, model.pooling)}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        logits_BC = logits["label"]
        return {"label": Term(logits_BC if self.config.link == "softmax" else logits_BC[:, 0], batch.targets["label"])}

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[list[float]]:
        """The probability of each class, by the term's link."""
        if self.config.link == "softmax":
            return super().decode(logits, batch)
        return [[1 - positive, positive] for positive in logits["label"][:, 0].double().sigmoid().tolist()]
