"""Binary classification of sentence pairs: MRPC, QQP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import PairRecord
from dice_ray.errors import DataError
from dice_ray.metrics.classification import (
    UNTUNED_THRESHOLD,
    binary_scores,
    class_counts,
    confusion,
    constant_f1,
    item_counts,
    threshold_decisions,
)
from dice_ray.metrics.objectives import OF_TWO, check_score, chosen_constant, chosen_f_beta, metric_of
from dice_ray.models.heads import TextHead
from dice_ray.tasks.base import NO_TARGET, Batch, Decisions, Row, Scores, Task, TaskBranch
from dice_ray.tasks.predictions import TablePredictions
from dice_ray.tasks.rows import classification_places, labels_of, padded, pair_rows
from dice_ray.terms import Link, Term, TermFacts
from dice_ray.user_code import Address

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig


class SentencePairConfig(TaskBranch):
    """Classify pairs of sentences as positive or not.

    Attributes:
        positive: The label of the positive class; there must be exactly one other label.
        score: The objective: `f1` or another metric of the positive class at threshold 0.5 (`precision`, `recall`, `f2`
            or any F-beta, `accuracy`, `balanced_accuracy`, `mcc`, `roc_auc`, `pr_auc`), or the address of a function
            of the lists of labels and predicted labels that returns a number, the higher the better.
        link: `softmax` gives two logits for each pair, `sigmoid` one.
        max_length: The longest row, in tokens; of a longer pair the longer sentence is truncated.
    """

    name = "sentence_pair"
    metric = "f1"
    records = (PairRecord,)

    positive: str = "1"
    score: Address = "f1"
    link: Literal["softmax", "sigmoid"] = "softmax"
    max_length: int = Field(128, ge=8)

    @model_validator(mode="after")
    def _fits(self) -> SentencePairConfig:
        check_score(self.score, OF_TWO)
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


class SentencePair(Task[PairRecord]):
    """Pairs of sentences with one term, `label`, whose background is the negative class."""

    config: SentencePairConfig

    def texts(self, records: Sequence[PairRecord]) -> list[str]:
        return [text for record in records for text in (record.first, record.second)]

    def encode(self, records: Sequence[PairRecord], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        indices = {label: index for index, label in enumerate(self.classes)}
        rows = pair_rows(tokenizer, [record.content for record in records], self.config.max_length)
        for record, row in zip(records, rows, strict=True):
            if record.label and record.label not in indices:
                raise DataError(f"pair {record.id}: its label must be one of {self.classes}, got {record.label!r}")
            row["label"] = indices.get(record.label, NO_TARGET)
        return rows

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        chosen = [rows[index] for index in indices]
        cls_B = classification_places(chosen, tokenizer)
        targets = {"label": torch.tensor([row["label"] for row in chosen]), "cls": cls_B}
        return Batch(padded(chosen, tokenizer), targets, tuple(indices))

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        positives = sum(row["label"] for row in rows)
        counts = (len(rows) - positives, positives)
        return (TermFacts("label", self.config.link, self.classes, counts, background=0),)

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        num_logits = 2 if self.config.link == "softmax" else 1
        return {"label": TextHead(width, num_logits, model.dropout, model.pooling)}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        logits_BC = logits["label"]
        return {"label": Term(logits_BC if self.config.link == "softmax" else logits_BC[:, 0], batch.targets["label"])}

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[float]:
        """The probability of the positive class, by the term's link."""
        logits_BC = logits["label"].double()
        positive = logits_BC.softmax(-1)[:, 1] if self.config.link == "softmax" else logits_BC[:, 0].sigmoid()
        return [float(probability) for probability in positive.tolist()]

    @property
    def untuned_threshold(self) -> float:
        return UNTUNED_THRESHOLD

    def decide(self, records: Sequence[PairRecord], rows: Sequence[Row], decoded: Sequence[float]) -> Decisions:
        return threshold_decisions(np.array(decoded), labels_of(rows), self.config.objective())

    def score(
        self, records: Sequence[PairRecord], rows: Sequence[Row], decoded: Sequence[float], decisions: Decisions
    ) -> Scores:
        probabilities, labels = np.array(decoded), labels_of(rows)
        tuned = binary_scores(probabilities, labels, decisions["threshold"])
        metrics = {
            **binary_scores(probabilities, labels, 0.5),
            "f1_tuned": tuned["f1"],
            **decisions,
            "constant_f1": constant_f1(labels),
            **chosen_constant(self.config.score, labels),
        }
        ids, gold_N1 = [record.id for record in records], labels[:, None] == 1
        predicted, at_threshold = probabilities > 0.5, probabilities > decisions["threshold"]
        classes = class_counts(self.classes, confusion(labels, predicted.astype(np.int64), 2))
        metrics |= chosen_f_beta(self.config.score, classes[self.config.positive])
        names = [[self.classes[index] for index in of.astype(int).tolist()] for of in (labels, predicted)]
        metrics |= self.own_metric(metrics, *names)
        return Scores(
            metrics,
            collapsed=bool(predicted.all() or not predicted.any()),
            items=item_counts(ids, gold_N1, predicted[:, None]),
            tuned_items=item_counts(ids, gold_N1, at_threshold[:, None]),
            label_probabilities=dict(zip(ids, np.where(labels == 1, probabilities, 1 - probabilities), strict=True)),
            classes=classes,
        )

    def predict(
        self, records: Sequence[PairRecord], rows: Sequence[Row], decoded: Sequence[float], decisions: Decisions
    ) -> TablePredictions:
        """The label at the threshold, and the probability of each label."""
        columns = ("id", "label", *(f"probability_{label}" for label in self.classes))
        cells = [
            (record.id, self.classes[int(positive > decisions["threshold"])], 1 - positive, positive)
            for record, positive in zip(records, decoded, strict=True)
        ]
        return TablePredictions(columns, cells)
