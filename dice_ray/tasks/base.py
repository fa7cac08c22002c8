"""The contract of a task: load, encode, collate, facts, heads, terms, decode, score, predict.

A record is an example of the data set (a pair, a sentence, a question). A row is one input of the encoder: a record
gives one row, several windows, or one row for each query. A head turns hidden states into logits; a term holds what the
loss needs of one head. A task knows neither the loss nor the workers: rows are encoded, decoded and scored by index.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray import user_code
from dice_ray.data.records import Record
from dice_ray.errors import InputError, reason_of
from dice_ray.metrics.catalogue import metric_of
from dice_ray.metrics.classification import Counts, f1_by_name
from dice_ray.settings import Branch, Nested, nested

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from dice_ray.metrics.classification import ItemCounts
    from dice_ray.metrics.decisions import FittedDecision
    from dice_ray.models.encoder import ModelConfig
    from dice_ray.models.heads import Inputs
    from dice_ray.tasks.answers import Answers
    from dice_ray.tasks.predictions import Predictions
    from dice_ray.terms import Link, Term, TermFacts

_RecordT = TypeVar("_RecordT")

Row: TypeAlias = dict[str, Any]
"""One encoder input: the tokenizer's own keys (`input_ids`, ...), `record` (the index of its record), `cut` (whether
text was lost to the length limit), and what the task needs for targets, masks and decoding.

Values are integers, floats, booleans, strings, or flat lists of numbers; all rows of a task have the same keys and
types. `encode` returns lists; rows from the cache hold read-only NumPy arrays instead, so code that takes rows must
handle both (`torch.tensor`, `numpy.asarray`)."""
Decoded: TypeAlias = Sequence[list[float]]
"""What `decode` of the shipped tasks gives: some numbers for each row, such as probabilities."""
NO_TARGET = -100
"""The target of an item that is not trained on: it has no label, or one that the training split lacks."""


@dataclass(frozen=True)
class Batch:
    """Rows padded to tensors.

    Attributes:
        inputs: The encoder's inputs.
        targets: What the task's heads and terms need besides: labels, masks, candidates.
        rows: The index of each row in its split.
    """

    inputs: Inputs
    targets: dict[str, Tensor]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """The scores of a split's predictions.

    Attributes:
        metrics: The task's metrics, `TaskBranch.objective()` among them.
        collapsed: Whether a single class was predicted for all items.
        items: The counts of each record, from which confidence intervals are computed.
        tuned_items: The same with the decision fitted on dev; empty if there is none.
        label_probabilities: The probability of each item's own label by its id; empty for tasks without one label each.
        calibrated_probabilities: The same after calibration; empty without one.
        documents: The document of each item by its id; empty if documents are not known.
        classes: The counts of each class, or type of span; empty if there are no classes.
    """

    metrics: dict[str, float]
    collapsed: bool
    items: tuple[ItemCounts, ...] = field(default=(), repr=False)
    tuned_items: tuple[ItemCounts, ...] = field(default=(), repr=False)
    label_probabilities: Mapping[str, float] = field(default_factory=dict, repr=False)
    calibrated_probabilities: Mapping[str, float] = field(default_factory=dict, repr=False)
    documents: Mapping[str, str] = field(default_factory=dict, repr=False)
    classes: Mapping[str, Counts] = field(default_factory=dict, repr=False)

    def on_dev(self, decision: FittedDecision | None) -> Scores:
        """The scores of dev itself, whose value of the decision is `FittedDecision.on_dev`."""
        if decision is None or math.isnan(decision.on_dev):
            return self
        return replace(self, metrics=self.metrics | {f"{decision.metric}_tuned": decision.on_dev})

    def named(self, split: str) -> dict[str, float]:
        """The metrics and `collapsed` by the names that MLflow has them under, `test/f1`."""
        metrics = self.metrics | {"collapsed": float(self.collapsed)}
        return {f"{split}/{name}": value for name, value in metrics.items()}


class Task(ABC, Generic[_RecordT]):
    """A task with its classes, which come from the training split or from a stored run.

    Attributes:
        classes: The class names, in the order of the logits.
    """

    def __init__(self, config: TaskBranch, classes: tuple[str, ...]) -> None:
        self.config = config
        self.classes = classes

    @abstractmethod
    def texts(self, records: Sequence[_RecordT]) -> list[str]:
        """All texts of the records, to train a tokenizer on."""

    @abstractmethod
    def encode(self, records: Sequence[_RecordT], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        """The rows of a split or of a chunk of it, in the order of the records; `record` counts from the chunk's start.

        Records without labels are encoded too; their rows are used for predictions only.
        """

    def check_labels(self, records: Sequence[_RecordT]) -> None:
        """Raise DataError, before records are trained on or scored, for one without the labels that this needs."""
        return

    @abstractmethod
    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        """The rows at these indices as padded tensors."""

    @abstractmethod
    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        """The facts of each term (classes, counts, ...) in the training split."""

    @abstractmethod
    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        """A head for each term, over hidden states of this width: `head(hidden_BLH, inputs, targets)` returns logits.

        Heads take from the settings of the model their dropout rate, and how they pool the tokens of a text.
        """

    @abstractmethod
    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        """The terms of a step, by name."""

    @abstractmethod
    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[Any]:
        """The prediction of each row, in the order of `batch.rows`: small and picklable, enough for scoring."""

    def metric_names(
        self, records: Sequence[_RecordT], rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase, model: ModelConfig
    ) -> list[str]:
        """The names of the metrics that evaluations of these records have, whatever is predicted.

        Args:
            records: Of dev; they and the classes have the types of span whose F1 an evaluation may have.
            rows: Of a few of them, which are scored without an encoder: the metrics do not depend on the predictions.
            tokenizer: That encoded the rows.
            model: For the heads.
        """
        few = records[: rows[-1]["record"] + 1]
        batch = self.collate(rows, range(len(rows)), tokenizer)
        hidden_BL1 = torch.zeros(*batch.inputs["input_ids"].shape, 1)
        heads = self.heads(1, model).items()
        with torch.no_grad():
            decoded = self.decode({name: head(hidden_BL1, batch.inputs, batch.targets) for name, head in heads}, batch)
        metrics = self.score(few, rows, decoded, self.decide(few, rows, decoded)).metrics
        types = sorted(self.config.span_types(self.classes, records))
        return [*metrics | f1_by_name(dict.fromkeys(types, Counts()))]

    def decide(self, records: Sequence[_RecordT], rows: Sequence[Row], decoded: Sequence[Any]) -> FittedDecision | None:
        """Fit the decision on dev, from all its decoded rows; by default there is none."""
        return None

    @abstractmethod
    def score(
        self, records: Sequence[_RecordT], rows: Sequence[Row], decoded: Sequence[Any], decision: FittedDecision | None
    ) -> Scores:
        """The scores of a split, from all its decoded rows: untuned, and with the tuned numbers of the decision."""

    def own_metric(
        self, others: Mapping[str, float], targets: Sequence[Any], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """The user's own metric of the labels of each record, by its name beside the others; empty without one."""
        address = self.config.own_metric()
        if address is None:
            return {}
        name = metric_of(address)
        if name in others:
            raise InputError(f"the metric {address} must have a name of its own; there is a metric {name}: rename it")
        return {name: self.own_value(targets, predictions)}

    def own_value(self, targets: Sequence[Any], predictions: Sequence[Any]) -> float:
        """The value of the user's own metric; an InputError if the function fails, or returns no finite number."""
        address = self.config.own_metric()
        try:
            value = float(self._own_function(targets, predictions))
        except Exception as error:
            raise InputError(f"the metric {address} must return a number, and raised {reason_of(error)}") from error
        if not math.isfinite(value):
            raise InputError(f"the metric {address} must return a finite number, got {value}")
        return value

    @cached_property
    def _own_function(self) -> Callable[..., Any]:
        return user_code.load(self.config.own_metric() or "")

    @abstractmethod
    def predict(
        self, records: Sequence[_RecordT], rows: Sequence[Row], decoded: Sequence[Any], decision: FittedDecision | None
    ) -> Predictions:
        """The predictions for all records, with the numbers that the decision uses; records need no labels."""

    def answer_ids(self, records: Sequence[Any], file: Path) -> list[str]:
        """The ids that answers to these records have in a file of this name."""
        return [record.id for record in records]

    def score_answers(
        self, records: Sequence[_RecordT], answers: Answers, dev: tuple[Sequence[_RecordT], Answers] | None
    ) -> tuple[Scores, str]:
        """The scores of answers that another program gave, and what a record without one counts as.

        Args:
            records: Labelled ones.
            answers: To them; what is wrong with them is noted there.
            dev: The same of dev, to fit the decision on; None to fit none.

        Raises:
            InputError: The task takes none, or no predictions of dev.
            DataError: The answers do not have what the task needs.
        """
        raise InputError(f"predictions of other programs must be for another task than {self.config.name}")


class TaskBranch(Branch, ABC):
    """The configuration of a task: one branch of `task`, which builds the task.

    Attributes:
        records: The types of records that the task reads.
        classifies_texts: Whether a whole text has labels, from a head that pools the tokens; none may be new in dev or
            test.
        max_length: The longest row, in tokens; a longer text becomes several overlapping rows (windows).
        stride: The overlap of a text's rows, in tokens.
    """

    classifies_texts: ClassVar[bool] = False
    records: ClassVar[tuple[type[Record], ...]]

    max_length: int = Field(128, ge=8)
    stride: int = Field(default_factory=lambda above: above.get("max_length", 0) // 4, ge=0, description="max_length/4")

    @model_validator(mode="after")
    def _windows_move_on(self) -> Self:
        if self.stride > self.max_length // 2:
            raise ValueError(f"stride must be at most half of max_length {self.max_length}, got {self.stride}")
        return self

    def objective(self) -> str:
        """The metric that decides, on dev, which checkpoint and which trial is best; by default `f1`."""
        return "f1"

    def own_metric(self) -> str | None:
        """The address of the user's own metric, if there is one."""
        return None

    def uses_decision(self) -> bool:
        """Whether predictions may use the decision, which is not so where it is fitted for another score."""
        return True

    def positive_label(self) -> str | None:
        """The label of the positive class, if each record has one of two labels; else `None`."""
        return None

    def row_settings(self) -> Nested:
        """The settings that rows and facts depend on, as part of the key of cached rows."""
        return nested(self)

    @abstractmethod
    def links(self) -> frozenset[Link]:
        """The links of the task's terms: the loss must support all of them."""

    @abstractmethod
    def classes(self, records: Sequence[Any]) -> tuple[str, ...]:
        """The class names of the training split, in the order of the logits."""

    @abstractmethod
    def label_counts(self, records: Sequence[Any]) -> Counter[str]:
        """The number of items of each label."""

    def support(self, records: Sequence[Any], classes: Iterable[str]) -> Counter[str]:
        """The number of items of dev or test that are scored, by class; 0 for one of these classes without any."""
        counts = Counter(dict.fromkeys(classes, 0))
        counts.update(self.label_counts(records))
        return counts

    def span_types(self, classes: Iterable[str], records: Sequence[Any]) -> set[str]:
        """The types of span of the classes and of these records: an evaluation has the F1 of those that occur in it.

        Empty for a task whose evaluations all have the same metrics.
        """
        return set()

    def scores_every_class(self) -> bool:
        """Whether the objective is the score of a class or a mean over classes, undefined without items of each."""
        return False

    @abstractmethod
    def negatives_and_positives(self, records: Sequence[Any]) -> tuple[int, int]:
        """The numbers of negative and positive items, as in the paper's Table 1.

        The docstring of each implementation says what it counts: `inspect` shows it to users.
        """

    @abstractmethod
    def build(self, classes: tuple[str, ...]) -> Task[Any]:
        """The task for these classes."""


def others_and_rarest(counts: Counter[str]) -> tuple[int, int]:
    """The numbers of items of all other labels and of the rarest one, the most imbalanced one-against-rest task."""
    rarest = min(counts.values(), default=0)
    return counts.total() - rarest, rarest
