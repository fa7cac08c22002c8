"""What a run predicts for a file, in the formats that its task's own tools read."""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


class Predictions(ABC):
    """The predictions for all records of a file, in their order.

    Attributes:
        suffix: Of a file of them.
    """

    suffix: ClassVar[str]

    @abstractmethod
    def text(self) -> str:
        """The content of a file of predictions."""

    @abstractmethod
    def plain(self) -> Any:
        """The same as values that JSON has."""


@dataclass(frozen=True)
class Table(Predictions):
    """TSV with a header, a row a record; probabilities have six decimals."""

    suffix = ".tsv"
    columns: tuple[str, ...]
    rows: Sequence[tuple[str | float, ...]]

    def text(self) -> str:
        written = io.StringIO()
        writer = csv.writer(written, delimiter="\t", lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([cell if isinstance(cell, str) else f"{cell:.6f}" for cell in row])
        return written.getvalue()

    def plain(self) -> list[dict[str, str | float]]:
        """An object a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Conll(Predictions):
    """A word and its tag a line, apart by a tab; an empty line ends a sentence."""

    suffix = ".conll"
    sentences: Sequence[Sequence[tuple[str, str]]]

    def text(self) -> str:
        return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in self.sentences)

    def plain(self) -> list[list[tuple[str, str]]]:
        """The words of each sentence, each with its tag."""
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
