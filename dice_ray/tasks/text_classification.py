"""Text classification with one label or several: sentiment, topics, and pairs of texts with any number of classes."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import PairRecord, Record, TextRecord
from dice_ray.errors import DataError
from dice_ray.metrics.catalogue import Kind, beta, check_score, metric, metric_of, scores_of
from dice_ray.metrics.classification import (
    Counts,
    ItemCounts,
    binary_scores,
    chosen_constant,
    chosen_f_beta,
    class_counts,
    class_scores,
    confusion,
    constant_f1,
    constant_micro,
    f1_by_name,
    item_counts,
    label_counts,
    macro_roc_auc,
    micro_and_macro,
)
from dice_ray.metrics.decisions import UNTUNED_THRESHOLD, threshold_decisions
from dice_ray.models.heads import TextHead
from dice_ray.settings import Nested
from dice_ray.tasks.base import NO_TARGET, Batch, Decisions, Row, Scores, Task, WindowedBranch, others_and_rarest
from dice_ray.tasks.predictions import TablePredictions
from dice_ray.tasks.rows import classification_places, labels_of, padded, text_rows
from dice_ray.terms import Link, Term, TermFacts
from dice_ray.user_code import Address

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig

_Classified: TypeAlias = TextRecord | PairRecord


class TextClassificationConfig(WindowedBranch):
    """Classify texts, or pairs of texts (premise and hypothesis).

    Attributes:
        labels: `one` label for each text, by softmax; or `several` independent ones, by a sigmoid for each label.
        positive: For two labels: the one whose F1 is scored, at threshold 0.5 and at a threshold tuned on dev.
        score: The objective: `accuracy`, `macro_f1`, `balanced_accuracy`, `mcc` or `roc_auc` (the mean over classes)
            for one label; with a positive one also its `f1`, `precision`, `recall`, `f2` or any F-beta, and `pr_auc`,
            at threshold 0.5; for several labels the micro `f1`, `precision`, `recall`, F-beta, `macro_f1`, `roc_auc`.
            Or the address of a function of the lists of labels and predicted labels (of lists of them, for several
            labels) that returns a number, the higher the better.
        link: `sigmoid` for several labels. One label has a logit for each class, by `softmax`; with a positive one also
            a single logit, by `sigmoid`.
        max_length: The longest row, in tokens; a longer text becomes several overlapping rows, whose probabilities are
            averaged. Of a longer pair the longer text is truncated.
        stride: The overlap of those rows, in tokens.
    """

    name = "text_classification"
    classifies_texts = True
    records: ClassVar[tuple[type[Record], ...]] = (TextRecord, PairRecord)

    labels: Literal["one", "several"] = "one"
    positive: str | None = None
    score: Address = Field(
        default_factory=lambda above: "f1" if above.get("positive") or above.get("labels") == "several" else "accuracy",
        description="f1 for a positive label or several labels, else accuracy",
    )
    link: Literal["softmax", "sigmoid"] = Field(
        default_factory=lambda above: "sigmoid" if above.get("labels") == "several" else "softmax",
        description="sigmoid for several labels, else softmax",
    )

    @model_validator(mode="after")
    def _fits(self) -> TextClassificationConfig:
        if self.labels == "several" and self.positive is not None:
            raise ValueError("several labels have no positive one: leave `positive` out")
        if self.labels == "several" and self.link == "softmax":
            raise ValueError("link must be sigmoid for several labels, got softmax")
        if self.labels == "one" and self.link == "sigmoid" and self.positive is None:
            raise ValueError("link must be softmax without a `positive` label, got sigmoid")
        known = scores_of(self._kind())
        needs_positive = self.score in scores_of("positive") or beta(self.score) is not None
        if self.labels == "one" and self.positive is None and self.score not in known and needs_positive:
            raise ValueError(
                f"score {self.score} is that of one label: name it as `positive`, or choose {', '.join(known)}"
            )
        check_score(self.score, known)
        return self

    def _kind(self) -> Kind:
        if self.labels == "several":
            return "labels"
        return "classes" if self.positive is None else "positive"

    def objective(self) -> str:
        return metric_of(self.score)

    def own_metric(self) -> str | None:
        return self.score if ":" in self.score else None

    def positive_label(self) -> str | None:
        return self.positive

    def scores_every_class(self) -> bool:
        return self.positive is not None or metric(self.score).needs_every_class

    def links(self) -> frozenset[Link]:
        return frozenset({self.link})

    def row_settings(self) -> Nested:
        settings = super().row_settings()
        # Keys are as when `sentence_pair` alone had a link.
        if "labels" in settings and (self.labels, self.link) != ("one", "sigmoid"):
            del settings["link"]
        return settings

    def classes(self, records: Sequence[_Classified]) -> tuple[str, ...]:
        """The labels of the training split, the positive one last."""
        labels = sorted({label for record in records for label in record.labels})
        if self.positive is not None and (self.positive not in labels or len(labels) != 2):
            raise DataError(
                f"{self.name} with a positive label needs exactly two labels in the training split, one of them "
                f"{self.positive!r} (task.{self.name}.positive), got {labels[:20]}"
            )
        if len(labels) < (2 if self.labels == "one" else 1):
            raise DataError(f"text_classification needs at least two labels in the training split, got {labels}")
        return tuple(sorted(labels, key=lambda label: label == self.positive))

    def label_counts(self, records: Sequence[_Classified]) -> Counter[str]:
        return Counter(label for record in records for label in record.labels)

    def negatives_and_positives(self, records: Sequence[_Classified]) -> tuple[int, int]:
        """Texts of the other label, and of the positive one; of several classes, all others against the rarest; where
        a text may have several labels, pairs of a text and a label that it lacks, and that it has.
        """
        counts = self.label_counts(records)
        if self.labels == "several":
            return len(records) * len(counts) - counts.total(), counts.total()
        if self.positive is None:
            return others_and_rarest(counts)
        return counts.total() - counts[self.positive], counts[self.positive]

    def build(self, classes: tuple[str, ...]) -> TextTask:
        return OneLabel(self, classes) if self.labels == "one" else _SeveralLabels(self, classes)


class SentencePairConfig(TextClassificationConfig):
    """Classify pairs of sentences as positive or not: `text_classification` with a positive label.

    Attributes:
        positive: The label of the positive class; there must be exactly one other label.
        score: The objective: one of those of `text_classification` with a positive label.
        link: `softmax` gives two logits for each pair, `sigmoid` one.
        max_length: The longest row, in tokens; of a longer pair the longer sentence is truncated.
    """

    name = "sentence_pair"
    records = (PairRecord,)
    labels: ClassVar[Literal["one"]] = "one"  # type: ignore[misc]  # fixed here, so no setting
    stride: ClassVar[int] = 0  # type: ignore[misc]

    positive: str = "1"
    score: Address = "f1"
    link: Literal["softmax", "sigmoid"] = "softmax"

    def negatives_and_positives(self, records: Sequence[_Classified]) -> tuple[int, int]:
        """Pairs of the other label, and of the positive one."""
        return super().negatives_and_positives(records)


class TextTask(Task[_Classified]):
    """Texts with one term, `label`; a text's probabilities are the mean over its windows."""

    config: TextClassificationConfig

    @abstractmethod
    def target(self, present: list[int]) -> int | list[int]:
        """The term's target for a text with labels of these classes."""

    @abstractmethod
    def chosen(self, probabilities_C: NDArray[np.floating[Any]], decisions: Decisions) -> list[int]:
        """The predicted classes of a text, with the decisions of dev."""

    def texts(self, records: Sequence[_Classified]) -> list[str]:
        return [text for record in records for text in record.content]

    def encode(self, records: Sequence[_Classified], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        indices = {label: index for index, label in enumerate(self.classes)}
        labels = []
        for record in records:
            if unknown := [label for label in record.labels if label not in indices]:
                raise DataError(f"text {record.id}: its labels must be among {self.classes}, got {unknown[0]!r}")
            labels.append(self.target([indices[label] for label in record.labels]))
        texts: list[Any] = [record.content if isinstance(record, PairRecord) else record.text for record in records]
        rows = text_rows(tokenizer, texts, self.config.max_length, self.config.stride)
        for row in rows:
            row["label"] = labels[row["record"]]
        return rows

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        chosen = [rows[index] for index in indices]
        targets = {"label": torch.from_numpy(labels_of(chosen)), "cls": classification_places(chosen, tokenizer)}
        return Batch(padded(chosen, tokenizer), targets, tuple(indices))

    @property
    def _has_one_logit(self) -> bool:
        return self.config.labels == "one" and self.config.link == "sigmoid"

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        num_logits = 1 if self._has_one_logit else len(self.classes)
        return {"label": TextHead(width, num_logits, model.dropout, model.pooling)}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        logits_BC = logits["label"]
        return {"label": Term(logits_BC[:, 0] if self._has_one_logit else logits_BC, batch.targets["label"])}

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[list[float]]:
        """The probability of each class."""
        logits_BC = logits["label"].double()
        p_BC = logits_BC.softmax(-1) if self.config.link == "softmax" else logits_BC.sigmoid()
        probabilities: list[list[float]] = (torch.cat([1 - p_BC, p_BC], 1) if self._has_one_logit else p_BC).tolist()
        return probabilities

    @property
    def untuned_threshold(self) -> float | None:
        has_threshold = self.config.positive is not None or self.config.labels == "several"
        return UNTUNED_THRESHOLD if has_threshold else None

    def decide(self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Sequence[list[float]]) -> Decisions:
        if self.untuned_threshold is None:
            return {}
        labels, probabilities_NC = _by_record(rows, decoded)
        positive = probabilities_NC if self.config.labels == "several" else probabilities_NC[:, 1]
        return threshold_decisions(positive.ravel(), labels.ravel(), self.config.objective())

    def predict(
        self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Sequence[list[float]], decisions: Decisions
    ) -> TablePredictions:
        """The label of each text, or its labels joined by `;`, and the probability of each class."""
        _, probabilities_NC = _by_record(rows, decoded)
        columns = ("id", "label", *(f"probability_{label}" for label in self.classes))
        cells = []
        for record, probabilities_C in zip(records, probabilities_NC, strict=True):
            labels = ";".join(self.classes[index] for index in self.chosen(probabilities_C, decisions))
            cells.append((record.id, labels, *probabilities_C.tolist()))
        return TablePredictions(columns, cells)


class OneLabel(TextTask):
    """One class for each text, by softmax, or of two classes the second one by sigmoid."""

    def check_labels(self, records: Sequence[_Classified]) -> None:
        for record in records:
            if len(record.labels) != 1:
                raise DataError(
                    f"text {record.id} must have one label, got {record.labels or 'none'}; "
                    "task.text_classification.labels=several takes any number"
                )

    def target(self, present: list[int]) -> int:
        return present[0] if present else NO_TARGET

    def chosen(self, probabilities_C: NDArray[np.floating[Any]], decisions: Decisions) -> list[int]:
        """The most probable class; with a positive class, whether its probability is above the threshold."""
        if self.config.positive is None:
            return [int(probabilities_C.argmax())]
        return [int(probabilities_C[1] > decisions["threshold"])]

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        counts = np.bincount(labels_of(rows), minlength=len(self.classes)).tolist()
        return (TermFacts("label", self.config.link, self.classes, tuple(counts), 0 if len(counts) == 2 else None),)

    def score(
        self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Sequence[list[float]], decisions: Decisions
    ) -> Scores:
        labels_N, probabilities_NC = _by_record(rows, decoded)
        predicted_N = probabilities_NC.argmax(-1)
        counts_CC = confusion(labels_N, predicted_N, len(self.classes))
        by_class = class_counts(self.classes, counts_CC)
        most_frequent = np.full_like(labels_N, counts_CC.sum(1).argmax())
        constant = class_scores(confusion(labels_N, most_frequent, len(self.classes))) | {"roc_auc": 0.5}
        stored = constant.keys() & {"accuracy", "macro_f1", self.config.score}
        metrics = class_scores(counts_CC) | {f"constant_{name}": constant[name] for name in sorted(stored)}
        if self.config.positive is None:
            metrics |= f1_by_name(by_class)
            metrics["roc_auc"] = macro_roc_auc(probabilities_NC, labels_N[:, None] == np.arange(len(self.classes)))
        else:
            positive_N = probabilities_NC[:, 1]
            metrics = binary_scores(positive_N, labels_N, 0.5) | metrics | decisions
            metrics["f1_tuned"] = binary_scores(positive_N, labels_N, decisions["threshold"])["f1"]
            metrics["constant_f1"] = constant_f1(labels_N)
            metrics |= chosen_constant(self.config.score, labels_N)
            metrics |= chosen_f_beta(self.config.score, by_class[self.config.positive])
        names = [[self.classes[index] for index in of.tolist()] for of in (labels_N, predicted_N)]
        metrics |= self.own_metric(metrics, *names)
        at_threshold_N = probabilities_NC[:, 1] > decisions.get("threshold", UNTUNED_THRESHOLD)
        tuned_items = self._items(records, labels_N, at_threshold_N) if decisions else ()
        own_N = probabilities_NC[range(len(labels_N)), labels_N]
        return Scores(
            metrics,
            collapsed=len(np.unique(predicted_N)) == 1,
            items=self._items(records, labels_N, predicted_N),
            tuned_items=tuned_items,
            label_probabilities={record.id: float(p) for record, p in zip(records, own_N, strict=True)},
            classes=by_class,
        )

    def _items(
        self, records: Sequence[_Classified], labels_N: NDArray[np.int64], predicted_N: NDArray[Any]
    ) -> tuple[ItemCounts, ...]:
        """The counts of the positive class, or of all classes if none is positive.

        The F1 of the latter is the accuracy, even if the score is `macro_f1`, which is no ratio of counts of items.
        """
        counted = [1] if self.config.positive is not None else range(len(self.classes))
        gold_NC, predicted_NC = (np.stack([of == class_ for class_ in counted], 1) for of in (labels_N, predicted_N))
        return item_counts([record.id for record in records], gold_NC, predicted_NC)


class _SeveralLabels(TextTask):
    """Any number of labels for each text, by a sigmoid for each label: an item is a pair of a text and a label."""

    def target(self, present: list[int]) -> list[int]:
        return [int(index in present) for index in range(len(self.classes))]

    def chosen(self, probabilities_C: NDArray[np.floating[Any]], decisions: Decisions) -> list[int]:
        return np.flatnonzero(probabilities_C > decisions["threshold"]).tolist()

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        by_label = labels_of(rows).sum(0).tolist()
        counts = (len(rows) * len(by_label) - sum(by_label), sum(by_label))
        return (TermFacts("label", "sigmoid", ("without", "with"), counts, 0, self.classes, tuple(by_label)),)

    def score(
        self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Sequence[list[float]], decisions: Decisions
    ) -> Scores:
        labels_NC, probabilities_NC = _by_record(rows, decoded)
        gold_NC, predicted_NC = labels_NC == 1, probabilities_NC > 0.5
        at_threshold_NC = probabilities_NC > decisions["threshold"]
        counts, tuned = label_counts(gold_NC, predicted_NC), label_counts(gold_NC, at_threshold_NC)
        by_label = dict(zip(self.classes, counts, strict=True))
        metrics = {
            **micro_and_macro(counts),
            **{f"{name}_tuned": value for name, value in micro_and_macro(tuned).items() if "f1" in name},
            **decisions,
            **self._constants(gold_NC),
            **f1_by_name(by_label),
            "roc_auc": macro_roc_auc(probabilities_NC, gold_NC),
        }
        metrics |= chosen_f_beta(self.config.score, sum(counts, Counts()))
        metrics |= self.own_metric(metrics, self._names(gold_NC), self._names(predicted_NC))
        ids = [record.id for record in records]
        return Scores(
            metrics,
            collapsed=bool(predicted_NC.all() or not predicted_NC.any()),
            items=item_counts(ids, gold_NC, predicted_NC),
            tuned_items=item_counts(ids, gold_NC, at_threshold_NC),
            classes=by_label,
        )

    def _names(self, has_NC: NDArray[np.bool_]) -> list[list[str]]:
        return [[self.classes[index] for index in np.flatnonzero(has_C)] for has_C in has_NC]

    def _constants(self, gold_NC: NDArray[np.bool_]) -> dict[str, float]:
        """The scores of predicting the same labels for every text: both F1, and the score that decides."""
        of_all_labels = micro_and_macro(label_counts(gold_NC, np.ones_like(gold_NC)))
        known = {"macro_f1": of_all_labels["macro_f1"], "roc_auc": 0.5}
        names = {"f1", "macro_f1", self.config.score} - {self.config.own_metric()}
        return {
            f"constant_{name}": known[name] if name in known else constant_micro(gold_NC, partial(_micro, name))
            for name in sorted(names)
        }


def _micro(name: str, counts: Counts) -> float:
    return (counts.scores | chosen_f_beta(name, counts))[name]


def _by_record(
    rows: Sequence[Row], decoded: Sequence[list[float]]
) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    """The targets of each record, and its probabilities: the mean over its windows."""
    records = np.array([row["record"] for row in rows])
    _, firsts, num_windows = np.unique(records, return_index=True, return_counts=True)
    sums_NC = np.add.reduceat(np.array(decoded), firsts)
    return labels_of([rows[first] for first in firsts.tolist()]), sums_NC / num_windows[:, None]
