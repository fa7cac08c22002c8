"""Text classification with one label or several: sentiment, topics, and pairs of texts with any number of classes."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import PairRecord, Record, TextRecord, groups_of
from dice_ray.errors import DataError, InputError
from dice_ray.metrics.catalogue import Kind, beta, check_score, metric, metric_of, scores_of
from dice_ray.metrics.classification import ItemCounts, item_counts, label_counts
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.metrics.rules import DecisionConfig, F1Rule, FBetaRule, OwnRule, Rule, Shifted, ShiftRule
from dice_ray.models.heads import TextHead
from dice_ray.settings import Nested
from dice_ray.tasks import text_answers
from dice_ray.tasks.base import NO_TARGET, Batch, Decoded, Row, Scores, Task, TaskBranch, others_and_rarest
from dice_ray.tasks.predictions import TablePredictions
from dice_ray.tasks.rows import classification_places, labels_of, padded, text_rows
from dice_ray.tasks.text_decider import TextDecider
from dice_ray.tasks.text_scores import by_record, calibrated_metrics, untuned_metrics
from dice_ray.terms import Link, Term, TermFacts
from dice_ray.user_code import Address

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig
    from dice_ray.tasks.answers import Answers

_Classified: TypeAlias = TextRecord | PairRecord
_BY_DECISION = "decision"
"""The score that is the value of the decision."""


def _default_score(above: Mapping[str, Any]) -> str:
    if above.get("decision"):
        return _BY_DECISION
    return "f1" if above.get("positive") or above.get("labels") == "several" else "accuracy"


class TextClassificationConfig(TaskBranch):
    """Classify texts, or pairs of texts (premise and hypothesis).

    Attributes:
        labels: `one` label for each text, by softmax; or `several` independent ones, by a sigmoid for each label.
        positive: For two labels: the one whose F1 is scored, at threshold 0.5 and with the decision fitted on dev.
        decision: What dev chooses the threshold of a positive class or of each label for, or the shifts of the logits
            of three and more classes; by default for the score, where that depends on it and is an F-beta or a function
            of yours, else for F1, and for macro F1 with several classes.
        calibration: What is applied to the probabilities before, fitted on dev.
        score: The objective: `decision` for the value of the decision, else that of untuned predictions: `accuracy`,
            `macro_f1`, `balanced_accuracy`, `mcc` or `roc_auc` (the mean over classes) for one label; with a positive
            one also its `f1`, `precision`, `recall`, `f2` or any F-beta, and `pr_auc`; for several labels the micro
            `f1`, `precision`, `recall`, F-beta, `macro_f1`, `roc_auc`; or the address of a function of the lists of
            labels and predicted labels (of lists of them, for several labels) that returns a number, the higher the
            better.
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
    decision: DecisionConfig | None = Field(None, description="that of the score")
    calibration: Literal["none", "temperature", "isotonic"] = "none"
    score: Address = Field(
        default_factory=_default_score,
        description="decision where one is chosen, f1 for a positive label or several labels, else accuracy",
    )
    link: Literal["softmax", "sigmoid"] = Field(
        default_factory=lambda above: "sigmoid" if above.get("labels") == "several" else "softmax",
        description="sigmoid for several labels, else softmax",
    )

    @model_validator(mode="after")
    def _fits(self) -> TextClassificationConfig:
        kind, rule = self._kind(), self.decision
        if kind == "labels" and self.positive is not None:
            raise ValueError("several labels have no positive one: leave `positive` out")
        if kind == "labels" and self.link == "softmax":
            raise ValueError("link must be sigmoid for several labels, got softmax")
        if kind == "classes" and self.link == "sigmoid":
            raise ValueError("link must be softmax without a `positive` label, got sigmoid")
        known = scores_of(kind)
        needs_positive = self.score in scores_of("positive") or beta(self.score) is not None
        if kind == "classes" and self.score not in known and needs_positive:
            raise ValueError(
                f"score {self.score} is that of one label: name it as `positive`, or choose {', '.join(known)}"
            )
        check_score(self.score, (*known, _BY_DECISION))
        if rule is not None and isinstance(rule, ShiftRule) == (kind != "classes"):
            must = "shift for one label of several classes" if kind == "classes" else "another than shift"
            raise ValueError(f"decision must be {must}, got {rule.name}")
        if isinstance(rule, OwnRule) and ":" in self.score and self.score != rule.function:
            raise ValueError(f"score and decision must have the same function, got {self.score} and {rule.function}")
        return self

    def _kind(self) -> Kind:
        if self.labels == "several":
            return "labels"
        return "classes" if self.positive is None else "positive"

    def rule(self) -> Rule | OwnRule | ShiftRule:
        """What the decision is fitted for."""
        if self.decision is not None:
            return self.decision
        if self._kind() == "classes":
            return ShiftRule()
        if ":" in self.score:
            return OwnRule(function=self.score)
        factor = beta(self.score)
        return F1Rule() if factor in (None, 1.0) else FBetaRule(beta=factor)

    def decided_metric(self) -> str:
        """The metric that is the value of the decision."""
        rule = self.rule()
        if isinstance(rule, ShiftRule):
            return rule.metric or (self.score if self.score in get_args(Shifted) else "macro_f1")
        return rule.metric

    def uses_decision(self) -> bool:
        """Whether predictions may use it: it is chosen, or the score is its value or follows F1."""
        is_of_score = self.score in (_BY_DECISION, self.decided_metric()) or metric(self.score).follows_f1
        return self.decision is not None or is_of_score or isinstance(self.rule(), OwnRule)

    def objective(self) -> str:
        return f"{self.decided_metric()}_tuned" if self.score == _BY_DECISION else metric_of(self.score)

    def plain_score(self) -> str:
        """The metric that decides, of untuned predictions."""
        return self.decided_metric() if self.score == _BY_DECISION else self.score

    def own_metric(self) -> str | None:
        rule = self.rule()
        return rule.function if isinstance(rule, OwnRule) else self.score if ":" in self.score else None

    def positive_label(self) -> str | None:
        return self.positive

    def scores_every_class(self) -> bool:
        return self.positive is not None or metric(self.plain_score()).needs_every_class

    def links(self) -> frozenset[Link]:
        return frozenset({self.link})

    def row_settings(self) -> Nested:
        settings = super().row_settings()
        # Keys are as when `sentence_pair` alone had a link.
        if "labels" in settings and (self.labels, self.link) != ("one", "sigmoid"):
            del settings["link"]
        for name in ("decision", "calibration"):
            del settings[name]
        return settings

    def classes(self, records: Sequence[_Classified]) -> tuple[str, ...]:
        """The labels of the training split, the positive one last."""
        labels = sorted(self.label_counts(records))
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

    def build(self, classes: tuple[str, ...]) -> _TextTask:
        return _OneLabel(self, classes) if self.labels == "one" else _SeveralLabels(self, classes)


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
    score: Address = Field(default_factory=_default_score, description="decision where one is chosen, else f1")
    link: Literal["softmax", "sigmoid"] = "softmax"

    def negatives_and_positives(self, records: Sequence[_Classified]) -> tuple[int, int]:
        """Pairs of the other label, and of the positive one."""
        return super().negatives_and_positives(records)


class _TextTask(Task[_Classified]):
    """Texts with one term, `label`; a text's probabilities are the mean over its windows."""

    config: TextClassificationConfig

    @abstractmethod
    def target(self, present: list[int]) -> int | list[int]:
        """The term's target for a text with labels of these classes."""

    @abstractmethod
    def members(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """`members_NC`: which texts have which classes."""

    def texts(self, records: Sequence[_Classified]) -> list[str]:
        return [text for record in records for text in record.content]

    def encode(self, records: Sequence[_Classified], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        targets = self._targets(records)
        texts: list[Any] = [record.content if isinstance(record, PairRecord) else record.text for record in records]
        rows = text_rows(tokenizer, texts, self.config.max_length, self.config.stride)
        return [{**row, "label": targets[row["record"]]} for row in rows]

    def _targets(self, records: Sequence[_Classified]) -> list[int | list[int]]:
        """The term's target for each record."""
        indices = {label: index for index, label in enumerate(self.classes)}
        targets = []
        for record in records:
            if unknown := [label for label in record.labels if label not in indices]:
                raise DataError(f"text {record.id}: its labels must be among {self.classes}, got {unknown[0]!r}")
            targets.append(self.target([indices[label] for label in record.labels]))
        return targets

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
        return list((torch.cat([1 - p_BC, p_BC], 1) if self._has_one_logit else p_BC).tolist())

    @cached_property
    def _decider(self) -> TextDecider:
        is_exclusive, has_positive = self.config.labels == "one", self.config.positive is not None
        rule, metric = self.config.rule(), self.config.decided_metric()
        return TextDecider(self.classes, is_exclusive, has_positive, rule, metric, self.own_value)

    def decide(self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Decoded) -> FittedDecision:
        labels, probabilities_NC = by_record(rows, decoded)
        gold_NC, groups = self.members(labels), groups_of(records)
        decision = self._decider.fit(gold_NC, probabilities_NC, self.config.calibration, groups)
        return replace(decision, is_used=decision.is_used and self.config.uses_decision())

    def score(
        self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Scores:
        labels, probabilities_NC = by_record(rows, decoded)
        decider, ids, gold_NC = self._decider, [record.id for record in records], self.members(labels)
        plain_NC = decider.chosen(probabilities_NC)
        metrics = untuned_metrics(decider, gold_NC, probabilities_NC, self.config.plain_score())
        metrics |= self.own_metric(metrics, *map(decider.names, (gold_NC, plain_NC)))
        probabilities = dict(zip(ids, probabilities_NC[gold_NC].tolist(), strict=True)) if decider.is_exclusive else {}
        calibrated, tuned_items = dict[str, float](), tuple[ItemCounts, ...]()
        if decision is not None:
            tuned_NC = decider.chosen(probabilities_NC, decision, decision.tuned)
            metrics |= decision.metrics | decider.tuned_metrics(gold_NC, plain_NC, tuned_NC)
            tuned_items = item_counts(ids, *map(decider.counted, (gold_NC, tuned_NC)))
            if decider.is_exclusive and decision.calibration:
                after_NC = decision.probabilities(probabilities_NC, exclusive=True)
                metrics |= calibrated_metrics(gold_NC, after_NC, is_positive=decider.has_positive)
                calibrated = dict(zip(ids, after_NC[gold_NC].tolist(), strict=True))
        return Scores(
            metrics,
            collapsed=len(np.unique(plain_NC, axis=0 if decider.is_exclusive else None)) == 1,
            items=item_counts(ids, *map(decider.counted, (gold_NC, plain_NC))),
            tuned_items=tuned_items,
            label_probabilities=probabilities,
            calibrated_probabilities=calibrated,
            classes=dict(zip(self.classes, label_counts(gold_NC, plain_NC), strict=True)),
        )

    def predict(
        self, records: Sequence[_Classified], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> TablePredictions:
        """The label of each text, or its labels joined by `;`, and the probability of each class."""
        _, probabilities_NC = by_record(rows, decoded)
        # Untuned, labels are those that `score` counts: a calibration does not change them, a prior does.
        numbers = decision.used if decision and (decision.is_used or decision.prior is not None) else None
        chosen_NC = self._decider.chosen(probabilities_NC, decision, numbers)
        if decision is not None:
            probabilities_NC = decision.probabilities(probabilities_NC, exclusive=self._decider.is_exclusive)
        columns = ("id", "label", *(f"probability_{label}" for label in self.classes))
        cells = []
        for record, chosen_C, probabilities_C in zip(records, chosen_NC, probabilities_NC, strict=True):
            labels = ";".join(self.classes[index] for index in np.flatnonzero(chosen_C))
            cells.append((record.id, labels, *probabilities_C.tolist()))
        return TablePredictions(columns, cells)

    def score_answers(
        self, records: Sequence[_Classified], answers: Answers, dev: tuple[Sequence[_Classified], Answers] | None
    ) -> tuple[Scores, str]:
        """By their probabilities where they have any, else by their labels, which no decision changes."""
        given, decision = self._given(records, answers), None
        has_probabilities = text_answers.has_probabilities(self._decider, answers)
        if dev is not None:
            if not (has_probabilities and text_answers.has_probabilities(self._decider, dev[1])):
                raise InputError(f"a decision is fitted to probabilities, and {answers.file} or that of dev has none")
            decision = self.decide(dev[0], *self._given(*dev))
        scores = self.score(records, *given, decision or self._decider.untuned())
        metrics = {
            name: value
            for name, value in scores.metrics.items()
            if (has_probabilities or metric(name).needs_threshold)
            and (decision or not (name.startswith("threshold") or name.endswith("_tuned")))
        }
        scores = replace(scores, metrics=metrics, tuned_items=scores.tuned_items if decision else ())
        scores = scores if has_probabilities else replace(scores, label_probabilities={})
        return scores, self._decider.without_answer

    def _given(self, records: Sequence[_Classified], answers: Answers) -> tuple[list[Row], list[list[float]]]:
        """The rows of these records, one each, and what would have been decoded of them."""
        rows = [{"record": number, "label": target} for number, target in enumerate(self._targets(records))]
        ids, gold_NC = [record.id for record in records], self.members(labels_of(rows))
        return rows, text_answers.given_probabilities(ids, gold_NC, self._decider, answers)


class _OneLabel(_TextTask):
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

    def members(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(labels[:, None] == np.arange(len(self.classes)))

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        counts = np.bincount(labels_of(rows), minlength=len(self.classes)).tolist()
        return (TermFacts("label", self.config.link, self.classes, tuple(counts), 0 if len(counts) == 2 else None),)


class _SeveralLabels(_TextTask):
    """Any number of labels for each text, by a sigmoid for each label: an item is a pair of a text and a label."""

    def target(self, present: list[int]) -> list[int]:
        return [int(index in present) for index in range(len(self.classes))]

    def members(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(labels == 1)

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        by_label = labels_of(rows).sum(0).tolist()
        counts = (len(rows) * len(by_label) - sum(by_label), sum(by_label))
        return (TermFacts("label", "sigmoid", ("without", "with"), counts, 0, self.classes, tuple(by_label)),)
