"""The predictions for a file, in formats that the usual tools of each task read."""

from __future__ import annotations

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    import pandas as pd

BREAK: Final = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class Threshold:
    """The threshold that predictions were made with.

    Attributes:
        support: The number of positives of dev that the run's tuned threshold was tuned on.
        reason: Why this one was used, worded to follow the value.
    """

    value: float
    support: int
    reason: str

    def __str__(self) -> str:
        return f"threshold {self.value:.6g}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Predictions(ABC):
    """The predictions for all records of a file, in the order of the records.

    Attributes:
        suffix: Of the file that they are written to.
        threshold: The threshold that they were made with; None for a task without one.
        notes: What else was applied: one sentence each.
    """

    suffix: ClassVar[str]
    threshold: Threshold | None = None
    notes: tuple[str, ...] = ()

    @abstractmethod
    def text(self) -> str:
        """The content of that file."""

    @abstractmethod
    def plain(self) -> Any:
        """The predictions as JSON values."""


@dataclass(frozen=True)
class TablePredictions(Predictions):
    """TSV with a header and one row for each record; probabilities are not rounded, or many would be equal."""

    suffix = ".tsv"
    columns: tuple[str, ...]
    rows: Sequence[tuple[str | float, ...]]

    def text(self) -> str:
        written = io.StringIO()
        writer = csv.writer(written, delimiter="\t", lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([cell if isinstance(cell, str) else repr(float(cell)) for cell in row])
        return written.getvalue()

    def plain(self) -> list[dict[str, str | float]]:
        """One object for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each record."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def _repr_html_(self) -> str:
        """The first and the last rows as a table, for a notebook."""
        html: str = self.frame.to_html(max_rows=20)
        return html


@dataclass(frozen=True)
class Conll(Predictions):
    """One word and its tag a line, separated by a tab; an empty line ends a sentence.

    A tab or a line break within a word becomes a space.
    """

    suffix = ".conll"
    sentences: Sequence[Sequence[tuple[str, str]]]

    def text(self) -> str:
        return "".join(
            "".join(f"{BREAK.sub(' ', word)}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in self.sentences
        )

    def plain(self) -> list[list[tuple[str, str]]]:
        """The (word, tag) pairs of each sentence."""
        return [list(sentence) for sentence in self.sentences]


@dataclass(frozen=True)
class Json(Predictions):
    """One JSON document."""

    suffix = ".json"
    document: Any

    def text(self) -> str:
        return json.dumps(self.document, ensure_ascii=False, indent=1) + "\n"

    def plain(self) -> Any:
        return self.document
