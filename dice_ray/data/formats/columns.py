"""Which columns of a row make a record, for all readers whose rows have named or numbered columns."""

from __future__ import annotations

import ast
import json
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from pydantic import Field

from dice_ray.data.formats.base import NO_TEXT, UNLABELLED, Bad, Drop, Kept, Labels, RowResult
from dice_ray.data.formats.json_rows import NotJsonError, parse_json
from dice_ray.data.records import PairRecord, Record, TextRecord
from dice_ray.errors import shown
from dice_ray.settings import Branch

ID: Final = "id"
"""The column that predictions take the ids from where the data have no column of ids."""
ONE_HOT: Final = "one_hot "
"""The beginning of the use of a column of one label."""
_APPLIES: Final = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_ITEM: Final = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\.\.\.|None|nan""")
"""A text in an array as NumPy writes it, or what stands for a missing one, or for those left out of a long array."""
_ARRAY: Final = re.compile(rf"\[(?:{_ITEM.pattern})(?:\s+(?:{_ITEM.pattern}))+\]")
LABELS: Final = frozenset(["label", "tag", "tags", "spans", "answers", "start", "end"])
"""The uses of columns of labels, which files to predict need not have."""
TEXTS: Final = frozenset(["text", "first", "second"])
"""The uses of columns whose null is an empty text; a question must have both of its texts."""
Column: TypeAlias = int | str
"""A column by its name, or by its number: 0 is the first, -1 the last."""


def whole(cell: object) -> str:
    """A cell as text, whole numbers without the `.0` that pandas writes where other cells of a column are missing.

    >>> whole(3.0), whole("-3.0 "), whole("3.5"), whole("v3.0")
    ('3', '-3', '3.5', 'v3.0')
    """
    text = str(cell).strip()
    number = text.removesuffix(".0")
    return number if number.removeprefix("-").isdecimal() else text


class UsedColumns(Branch):
    """Which columns of one or several rows make a record.

    Attributes:
        uses: The fields that name a column, where they are not None.
    """

    record_type: ClassVar[type[Record]]
    uses: ClassVar[tuple[str, ...]]

    def yields(self) -> type[Record]:
        return self.record_type

    def used(self, labels: Labels = "read") -> dict[str, Column]:
        """The columns that a row must have, by their use."""
        uses = [use for use in self.uses if labels == "read" or use not in LABELS]
        return {use: column for use in uses if (column := getattr(self, use)) is not None}


class ColumnsBranch(UsedColumns, ABC):
    """Which columns of a row make a record.

    Attributes:
        id: The column of the record's id; without one, the line number is the id.
    """

    id: Column | None = None

    @abstractmethod
    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
        """The record of a row, or why there is none, from the values of its used columns: strings, but for lists and
        labels.
        """


class _LabelledColumns(ColumnsBranch, ABC):
    """Texts, and a label or labels."""

    def with_label(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values with those of all columns of labels as `label`."""
        return values

    def labels(self, cell: str) -> list[str]:
        return [cell.strip()] if cell.strip() else []

    def holds_several(self, cell: object) -> bool:
        """Whether a cell can hold several labels: an empty one then means that no label applies, not a missing one."""
        return False

    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
        values = self.with_label(values)
        if "label" not in values:  # to predict, each row is kept
            return self.record(line, values, [])
        label = values["label"] if values["label"] == values["label"] else None  # NaN is a missing value of pandas
        items = label if isinstance(label, list) else [] if label is None else [label]
        if not all(isinstance(item, str | int | float) and item == item for item in items):
            return Bad(line, f"a label as {self.used().get('label', 'label')!r}", shown(label))
        texts = [item.strip() if isinstance(item, str) else json.dumps(item) for item in items]
        cells = [[text] if isinstance(label, list) else self.labels(text) for text in texts]
        labels = [part for cell in cells for part in cell if part]
        if not labels and (label is None or not self.holds_several(label)):
            return Drop(line, UNLABELLED)
        # Of a pair, one text may be empty.
        if not any(values[use].strip() for use in TEXTS & values.keys()):
            return Drop(line, NO_TEXT)
        return self.record(line, {use: value for use, value in values.items() if use != "label"}, labels)

    @abstractmethod
    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> RowResult:
        """The record of a row, from the values of its used columns and its labels, which are empty if ignored."""


class PairColumns(_LabelledColumns):
    """Two sentences and a label.

    Attributes:
        first: The column of the first sentence.
        second: The column of the second sentence.
        label: The column of the label. In one named `gold_label`, as in SNLI and MNLI, `-` is no label.
    """

    name = "pair"
    record_type = PairRecord
    uses = ("id", "first", "second", "label")

    first: Column = "sentence1"
    second: Column = "sentence2"
    label: Column = "label"

    def labels(self, cell: str) -> list[str]:
        # SNLI and MNLI write - where the annotators did not agree on a label; elsewhere it may be one, as in + and -.
        return [] if self.label == "gold_label" and cell.strip() == "-" else super().labels(cell)

    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> RowResult:
        if len(labels) > 1:
            return Bad(line, "one label", ", ".join(labels))
        return Kept(line, PairRecord(values.get("id", str(line)), values["first"], values["second"], *(labels or [""])))


class TextColumns(_LabelledColumns):
    """A text and its label or labels.

    Attributes:
        text: The column of the text.
        label: The column of the label or labels.
        one_hot: Columns of one label each, which applies where the cell is 1 or true, in place of `label`.
        separator: The separator of several labels in one cell; an empty cell then means that no label applies. Without
            one, a cell is one label.
        lists: Whether a cell of a table holds a list of labels, as JSON or Python write it.
    """

    name = "text"
    record_type = TextRecord
    uses = ("id", "text", "label")

    text: Column = "sentence"
    label: Column = "label"
    one_hot: tuple[str, ...] = ()
    separator: str | None = Field(default=None, min_length=1)
    lists: bool = False

    def used(self, labels: Labels = "read") -> dict[str, Column]:
        used = super().used(labels)
        if self.one_hot and labels == "read":
            del used["label"]
            used |= {f"{ONE_HOT}{name}": name for name in self.one_hot}
        return used

    def with_label(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.lists and isinstance(cell := values.get("label"), str) and isinstance(found := literal(cell), list):
            return {**values, "label": found}
        if not self.one_hot or not any(use.startswith(ONE_HOT) for use in values):  # labels are ignored
            return values
        cells = {use.removeprefix(ONE_HOT): cell for use, cell in values.items() if use.startswith(ONE_HOT)}
        others = {use: value for use, value in values.items() if not use.startswith(ONE_HOT)}
        applies = {name: _APPLIES.get(str(cell).strip().lower()) for name, cell in cells.items()}
        # Jigsaw marks rows without labels by -1.
        return others | {"label": None if None in applies.values() else [name for name, is_ in applies.items() if is_]}

    def labels(self, cell: str) -> list[str]:
        cells = cell.split(self.separator) if self.separator else [cell]
        return [label.strip() for label in cells if label.strip()]

    def holds_several(self, cell: object) -> bool:
        return isinstance(cell, list) or (self.separator is not None and cell is not None)

    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> RowResult:
        return Kept(line, TextRecord(values.get("id", str(line)), values["text"], tuple(dict.fromkeys(labels))))


def literal(cell: str) -> Any:
    """The value of a cell that holds a list or an object as JSON or Python write it, else its text; None if empty.

    Also an array of texts as NumPy writes it is a list, with None for what is no text.

    >>> literal("['a', 'b']"), literal('{"text": ["a"]}'), literal("a [b]"), literal("")
    (['a', 'b'], {'text': ['a']}, 'a [b]', None)
    >>> literal("['a' 'b']"), literal("['a' ... 'z']")
    (['a', 'b'], ['a', None, 'z'])
    >>> literal("{{}}")  # no value of Python
    '{{}}'
    """
    if not cell.strip().startswith(("[", "{", "(")):
        return cell or None
    try:
        return parse_json(cell)
    except NotJsonError:
        pass
    try:
        with warnings.catch_warnings(action="ignore"):  # of a backslash in a text
            # Python would join the texts of an array to one, as no commas separate them.
            if _ARRAY.fullmatch(cell.strip()):
                return [ast.literal_eval(text) if text else None for text in _ITEM.findall(cell)]
            value = ast.literal_eval(cell.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # TypeError: `{{}}`
        return cell
    return value if isinstance(value, dict) else list(value) if isinstance(value, list | tuple) else cell
