"""Chooses the columns of a table that hold texts and label, by their names and values, and the task they make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dice_ray.data.formats.base import NOTHING_GIVEN, NUM_ROWS, Given
from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.split_columns import time_of
from dice_ray.data.records import Record, TextRecord
from dice_ray.data.split_names import NAMES
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.settings import Nested

_LABEL: Final = ("label", "labels", "gold_label", "gold", "class", "classes", "category", "target")
"""Names that say nothing but that the column is the label."""
_LABELS: Final = (
    *(*_LABEL, "is_duplicate", "quality"),
    *("sentiment", "polarity", "intent", "topic", "relation", "answer", "rating", "stars", "score"),
)
_MEASURES: Final = frozenset(["rating", "stars", "score"])
"""Names of labels that are none as a part of a name, as in `relatedness_score`."""
_TEXTS: Final = (
    *("text", "sentence", "content", "document", "review", "tweet", "comment", "message", "utterance", "body"),
    *("description", "abstract", "headline", "title"),
)
_PAIRS: Final = (
    *(("premise", "hypothesis"), ("context", "hypothesis")),
    *(("question", "sentence"), ("query", "passage"), ("question", "passage")),
)
KNOWN_NAMES: Final = frozenset([*_LABELS, *_TEXTS, *(name for pair in _PAIRS for name in pair), "id", "idx", "index"])
"""Names of columns; a row with one of them is a header."""
_GROUPS: Final = re.compile(
    "(user|customer|client|patient|author|speaker|doc|document|article|thread|conversation|session)([ _-]?(id|name))?"
)
_MAX_LABELS: Final = 200
ID_NOTE: Final = " Predictions repeat the ids; without `id`, they count lines."


def choose_columns(rows: Sequence[Mapping[Column, Any]], given: Given = NOTHING_GIVEN) -> tuple[Nested, str] | str:
    """The value of the reader's `columns` and why it is this one, or the reason why no columns fit.

    Raises:
        UnknownNameError: The rows lack a column that is given.
        InputError: A column is given for two uses.
    """
    if not rows:
        return "only a header, no row"
    values = {
        column: [row[column] for row in rows if row.get(column) not in (None, "")]
        for column in dict.fromkeys(column for row in rows for column in row)
    }
    known = {str(column): column for column in values}
    given_names = (*given.columns, *given.splits.values())
    if repeated := [name for name, count in Counter(given_names).items() if count > 1]:
        raise InputError(f"a column must have one use, and {repeated[0]!r} was given for several")
    if missing := [name for name in given_names if name not in known]:
        raise UnknownNameError("column", missing[0], known)
    values = {column: cells for column, cells in values.items() if str(column) not in given.splits.values()}
    reason = "The label repeats few values, texts are long and differ."
    # Named as one of ids, with another value in each row.
    named_id = [
        column for column in values if str(column).lower().endswith(("id", "_no")) and str(column) not in given.columns
    ]
    ids = [column for column in named_id if len({str(cell) for cell in values[column]}) == len(rows)]
    ids = ids if given.id is None else [known[given.id]]
    id_: Nested = {"id": ids[0]} if ids else {}
    own_texts = [known[name] for name in given.texts]
    values = {column: cells for column, cells in values.items() if column not in id_.values()}
    free = {column: cells for column, cells in values.items() if column not in own_texts}
    labels = [column for column, cells in free.items() if _are_labels(cells)]
    if given.label is None and (splits := next((column for column in labels if _are_splits(values[column])), None)):
        return (
            f"the column {splits!r} says which split a row is of: write a file for each split, or name the column of "
            "the labels by --label-column to read all rows for training"
        )
    labels = labels if given.label is None else [known[given.label]]
    if not labels:
        more = ""
        if len(rows) >= NUM_ROWS - 1:  # without the header of a table
            more = f" in the first {NUM_ROWS:,} rows: if the file is sorted by label, name its column by --label-column"
        for column, cells in sorted(values.items(), key=lambda item: _rank(item[0], _LABELS)):
            if len(distinct := _distinct(cells)) == 1 and _rank(column, _LABELS) < len(_LABELS):
                return f"the column {column!r} has one value, {next(iter(distinct))!r}{more or ': nothing to learn'}"
        names = ", ".join(map(repr, values))
        return f"no column repeats 2 to {_MAX_LABELS} short values, as labels do ({names}){more}"
    # Of the columns with a value in most rows the one with the best name, of equal ones that with the fewest labels, of
    # equal ones the last.
    label = min(
        labels,
        key=lambda column: (
            2 * len(values[column]) < len(rows),
            _rank(column, _LABELS) if _is_scale(values[column]) else _likeness(column, _LABELS),
            len(_distinct(values[column])),
            -labels.index(column),
        ),
    )
    if given.label is None and _is_scale(values[label]):
        return f"the column {label!r} holds numbers on a scale, not classes: no task learns them"
    texts = own_texts or [column for column, cells in values.items() if column != label and _are_texts(cells)]
    # Also columns that are 0 in all of these rows: a rare label may occur in later ones.
    one_hot = [column for column, cells in free.items() if isinstance(column, str) and _are_flags(cells)]
    num_both = sum(column in labels for column in one_hot)
    is_label = given.label is not None or _rank(label, _LABEL) < len(_LABEL)
    # Of fewer than three columns of 0 and 1, one is the label and the other a feature.
    if not is_label and num_both >= 3 and len(texts) == 1 and label in one_hot:
        columns = {"text": {"text": texts[0], "one_hot": one_hot, **id_}}
        reason += " Each column of 0 and 1 is a label; --label-column reads one of them."
        return columns, reason + _alternatives(rows, [], columns, given)
    if not texts:
        return f"beside the label {label!r} no column holds texts ({', '.join(map(repr, values))})"
    pair = (own_texts[0], own_texts[1]) if len(own_texts) > 1 else _pair(texts)
    named = [column for column in texts if _rank(column, _TEXTS) < len(_TEXTS)]
    distinct = {value.lower() for value in _distinct(values[label])}
    is_one = not any(isinstance(cell, list) for cell in values[label])
    inferences = {"entailment", "neutral", "contradiction", "e", "n", "c", "-"}  # from a premise to a hypothesis
    if pair is None and len(texts) == 2 and not named and is_one and (len(distinct) == 2 or distinct <= inferences):
        pair = texts[0], texts[1]
    others = [column for column in dict.fromkeys([*labels, *texts]) if column not in (label, *(pair or ()))]
    if pair:
        columns = {"pair": {"first": pair[0], "second": pair[1], "label": label, **id_}}
        return columns, reason + _alternatives(rows, others, columns, given)
    text = min(texts, key=lambda column: (_likeness(column, _TEXTS), -sum(map(len, values[column]))))
    separator = _separator(values[label])
    columns = {"text": {"text": text, "label": label, **id_} | ({"separator": separator} if separator else {})}
    others = [column for column in others if column != text]
    return columns, reason + _alternatives(rows, others, columns, given)


def are_labelled_texts(records: Sequence[Record]) -> bool:
    """Whether the labels of texts, one each, repeat as labels do, and the texts differ as texts do."""
    texts = [record for record in records if isinstance(record, TextRecord)]
    return _are_labels([record.labels[0] for record in texts]) and _are_texts([record.text for record in texts])


def begins_with_names(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the first row has the name of a column; one that recurs below it is a label, such as `question`."""
    return any(
        isinstance(cell, str)
        and cell.strip().lower() in KNOWN_NAMES
        and all(row[number : number + 1] != [cell] for row in rows[1:])
        for number, cell in enumerate(rows[0])
    )


def _are_labels(cells: Sequence[Any]) -> bool:
    """Whether cells repeat a few short values, as labels do."""
    if any(isinstance(cell, dict) for cell in cells):
        return False
    distinct = _distinct(cells)
    are_short = all(len(value) <= 60 for value in distinct)
    if any(isinstance(cell, list) and len({str(item) for item in cell}) < len(cell) for cell in cells):
        return False  # such as the heads of words: no label applies twice
    return 2 <= len(distinct) <= min(_MAX_LABELS, max(2, len(cells) // 2)) and are_short


def _is_scale(cells: Sequence[Any]) -> bool:
    """Whether the values are numbers on a scale, as the similarity of two sentences is: many, and not all whole."""
    distinct = _distinct(cells)
    # Up to ten values may be half stars.
    if len(distinct) <= 10 or not all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value) for value in distinct):
        return False
    return any(float(value) % 1 for value in distinct)


def _are_flags(cells: Sequence[Any]) -> bool:
    """Whether the values say for each row if a label applies, with -1 for rows without labels; all may be 0."""
    found = {str(cell).lower() for cell in cells} - {"-1"}
    return any({no} <= found <= {no, yes} for no, yes in (("0", "1"), ("0.0", "1.0"), ("false", "true")))


def _distinct(cells: Sequence[Any]) -> set[str]:
    return {str(value) for cell in cells for value in (cell if isinstance(cell, list) else [cell])}


def _are_texts(cells: Sequence[Any]) -> bool:
    """Whether most are strings of several words, or of Chinese, and more than a quarter are distinct."""
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return False
    num_with_words = sum(bool(re.search(r"[^\W\d_]\S*\s+\S|[\u3040-\u9fff]{2}", cell)) for cell in cells)
    return 2 * num_with_words > len(cells) and 4 * len(set(cells)) > len(cells)


def _pair(texts: Sequence[Column]) -> tuple[Column, Column] | None:
    """Two columns named as a pair: premise and hypothesis, or names that differ in 1 and 2, or a and b.

    The shortest names first: MNLI has `sentence1_parse` beside `sentence1`.
    """
    names = {column.lower(): column for column in sorted(map(str, texts), key=len) if column in texts}
    for first, second in _PAIRS:
        if first in names and second in names:
            return names[first], names[second]
    for name, column in names.items():
        for one, two in (("1", "2"), ("a", "b"), ("first", "second")):
            pattern = rf"{one}$|^{one}(?=_)|(?<=#){one}(?=\W)" if one != "1" else "1"
            other = re.sub(pattern, two, name, count=1)
            if other != name and other in names:
                return column, names[other]
    return None


def _rank(column: Column, known: Sequence[str]) -> int:
    name = str(column).lower()
    # Columns of choices in Label Studio are labels whatever their name.
    if name.startswith("annotations.") and known is _LABELS:
        return -1
    return known.index(name) if name in known else len(known)


def _likeness(column: Column, known: Sequence[str]) -> float:
    """The rank of a column among known names, or of the best one that is a word of its name, as in `Review Text`."""
    rank = _rank(column, known)
    words = [word for word in re.findall("[a-z]+", str(column).lower()) if word not in _MEASURES]
    return min([float(rank), *(known.index(word) + 0.5 for word in words if word in known)])


def _are_splits(cells: Sequence[Any]) -> bool:
    """Whether all values are names of splits, one of them that of training."""
    found = {str(cell).lower() for cell in cells}
    return any(re.fullmatch(NAMES["train"], name) for name in found) and all(
        re.fullmatch("|".join(NAMES.values()), name) for name in found
    )


def _separator(cells: Sequence[Any]) -> str | None:
    """The separator of several labels in one cell, if there is one.

    It occurs in some values but not in all, and splitting at it gives no more labels than there were values, of which
    at least one is itself a label.
    """
    whole = {cell for cell in cells if isinstance(cell, str)}
    for separator in (",", "|", ";"):
        parts = {part.strip() for cell in whole for part in cell.split(separator)}
        has_separator = {separator in cell for cell in whole}
        if len(has_separator) == 2 and len(parts) <= len(whole) and parts & whole:
            return separator
    return None


def _alternatives(rows: Sequence[Mapping[Any, Any]], others: Sequence[Column], columns: Nested, given: Given) -> str:
    """What else could be chosen, also of columns that look like groups or times and have no other use."""
    (uses,) = columns.values()
    note = f" Other candidate columns: {', '.join(map(repr, others))}." if others else ""
    note += ID_NOTE if "id" in uses else ""
    used = {*map(str, uses.values()), *given.splits.values()}
    found = dict[str, str]()
    for column in (each for each in map(str, rows[0]) if each not in used):
        cells = [row[column] for row in rows if row.get(column) not in (None, "")]
        if cells and all(isinstance(time_of(cell), np.datetime64) for cell in cells):
            found.setdefault("time", column)
        elif _GROUPS.fullmatch(column.lower()) and 1 < len(_distinct(cells)) < len(cells):
            found.setdefault("groups", column)
    hints = " or ".join(f"`{key}: {column}`" for key, column in found.items() if key not in given.splits)
    return note + (f" Splits can be drawn by {hints} beside `source`." if hints else "")
