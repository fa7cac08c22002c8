"""The contract of a task: load, encode, collate, facts, heads, terms, decode, score, predict.

A record is what the user sees (a pair, a sentence, a question). A row is what the encoder sees: a record gives one row,
or several windows, or one a query. A head turns hidden states into logits; a term is what the loss takes of one head. A
task knows no loss, and nothing of workers: rows are encoded, decoded and scored by their index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from pydantic import Field, model_validator
from torch import Tensor, nn

from dice_ray.data.records import Record
from dice_ray.settings import Branch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.metrics.classification import Counts, ItemCounts
    from dice_ray.models.encoder import Inputs
    from dice_ray.tasks.predictions import Predictions
    from dice_ray.terms import Link, Term, TermFacts

RecordT = TypeVar("RecordT")

Row: TypeAlias = dict[str, Any]
"""One encoder input: the tokenizer's own keys (`input_ids`, ...), `record` (the index of its record), `cut` (whether
text was lost to the length limit), and what the task needs for targets, masks and decoding.

Its values are whole numbers, floats, booleans, texts, or flat lists of numbers, and all rows of a task have the same
keys and kinds of values. `encode` gives lists as lists; from the cache they come as arrays of NumPy that are not to be
written to, so whatever takes rows must take both (`torch.tensor`, `numpy.asarray`)."""
Decisions: TypeAlias = dict[str, float]
"""What dev decides for a run and test only applies: a threshold."""


@dataclass(frozen=True)
class Batch:
    """Rows padded to tensors.

    Attributes:
        inputs: What the encoder takes.
        targets: What the task's heads and terms need beside it: labels, masks, candidates.
        rows: The index of each row in its split.
    """

    inputs: Inputs
    targets: dict[str, Tensor]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """What a split's predictions are worth.

    Attributes:
        metrics: The task's metrics, `TaskBranch.objective()` among them.
        collapsed: Whether one class only was predicted.
        items: The counts of each record, on which intervals on new data rest.
        tuned_items: The same at the threshold tuned on dev; none where no threshold is tuned.
        classes: The counts of each class, or type of span; none where there are no classes.
    """

    metrics: dict[str, float]
    collapsed: bool
    items: tuple[ItemCounts, ...] = field(default=(), repr=False)
    tuned_items: tuple[ItemCounts, ...] = field(default=(), repr=False)
    classes: Mapping[str, Counts] = field(default_factory=dict, repr=False)


class Task(ABC, Generic[RecordT]):
    """One task with its classes: built from its configuration and the training split, or from what its run stored.

    Attributes:
        classes: What it was built with.
    """

    classes: tuple[str, ...]

    @abstractmethod
    def texts(self, records: Sequence[RecordT]) -> list[str]:
        """Every text of the records, for a tokenizer that is trained on the data."""

    @abstractmethod
    def encode(self, records: Sequence[RecordT], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        """The rows of records, in their order: of a split, or of a chunk of one, `record` counted from its start.

        Records without labels have rows too, of which only predictions are made.
        """

    @abstractmethod
    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        """The rows at these indices as padded tensors."""

    @abstractmethod
    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        """What the training split says of each term."""

    @abstractmethod
    def heads(self, facts: Sequence[TermFacts], width: int, dropout: float) -> dict[str, nn.Module]:
        """A head for each term: `head(hidden_BLH, inputs, targets)` gives the term's logits."""

    @abstractmethod
    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        """The terms of a step, by name."""

    @abstractmethod
    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[Any]:
        """What scoring needs of each row, small and picklable, in the order of `batch.rows`."""

    @abstractmethod
    def decide(self, records: Sequence[RecordT], rows: Sequence[Row], decoded: Sequence[Any]) -> Decisions:
        """What dev decides, from its decoded rows."""

    @abstractmethod
    def score(
        self, records: Sequence[RecordT], rows: Sequence[Row], decoded: Sequence[Any], decisions: Decisions
    ) -> Scores:
        """The scores of a split, from all its decoded rows."""

    @abstractmethod
    def predict(
        self, records: Sequence[RecordT], rows: Sequence[Row], decoded: Sequence[Any], decisions: Decisions
    ) -> Predictions:
        """What is predicted for each record under what dev decided, whether it has a label or not."""


class TaskBranch(Branch, ABC):
    """The configuration of a task: one branch of `task`, which builds the task.

    Attributes:
        metric: The task's usual metric.
        records: What the task reads: any one of these.
    """

    metric: ClassVar[str]
    records: ClassVar[tuple[type[Record], ...]]

    def objective(self) -> str:
        """The metric on dev that decides which checkpoint and which trial is best."""
        return self.metric

    def positive_label(self) -> str | None:
        """The label of the positive class, where each record has one label of two; else none."""
        return None

    @abstractmethod
    def links(self) -> frozenset[Link]:
        """The links of the task's terms: a loss must take them all."""

    @abstractmethod
    def classes(self, records: Sequence[Any]) -> tuple[str, ...]:
        """The class names of the training split, in the order of the logits."""

    @abstractmethod
    def label_counts(self, records: Sequence[Any]) -> Counter[str]:
        """How many items of these records have each label."""

    @abstractmethod
    def negatives_and_positives(self, records: Sequence[Any]) -> tuple[int, int]:
        """The negative and positive items of the records, as in the paper's Table 1; its docstring says how."""

    @abstractmethod
    def build(self, classes: tuple[str, ...]) -> Task[Any]:
        """The task for these classes."""


class WindowedBranch(TaskBranch, ABC):
    """The configuration of a task whose longer texts become several rows that overlap.

    Attributes:
        max_length: The longest row, in tokens.
        stride: By how many tokens the rows of a text overlap.
    """

    max_length: int = Field(128, ge=8)
    stride: int = Field(default_factory=lambda above: above.get("max_length", 0) // 4, ge=0, description="max_length/4")

    @model_validator(mode="after")
    def _windows_move_on(self) -> Self:
        if self.stride > self.max_length // 2:
            raise ValueError(f"stride must be at most half of max_length {self.max_length}, got {self.stride}")
        return self


def others_and_rarest(counts: Counter[str]) -> tuple[int, int]:
    """The items of the rarest label against all others: the hardest of the tasks "one label or not"."""
    rarest = min(counts.values(), default=0)
    return counts.total() - rarest, rarest
