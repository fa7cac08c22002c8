"""Which columns of a table hold the texts and the label, from their names and values; and what task that makes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dice_ray.data.guess.base import Attempt, Guess
from dice_ray.data.readers.columns import Column
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.settings import Nested

LABELS: Final = (
    *("label", "labels", "gold_label", "gold", "class", "classes", "category", "target", "is_duplicate", "quality"),
    *("sentiment", "polarity", "intent", "topic", "relation", "answer", "rating", "stars", "score"),
)
TEXTS: Final = (
    *("text", "sentence", "content", "document", "review", "tweet", "comment", "message", "utterance", "body"),
    *("headline", "title"),
)
PAIRS: Final = (("premise", "hypothesis"), ("question", "sentence"), ("query", "passage"), ("question", "passage"))
POSITIVES: Final = frozenset(
    ["1", "1.0", "true", "yes", "y", "t", "positive", "pos", "spam", "toxic", "duplicate", "paraphrase", "entailment"]
)
MOST_LABELS: Final = 200
LONGEST_LABEL: Final = 60
UNBALANCED: Final = 1.5
"""From so many of the one label to each of the other, the other one is taken for positive."""
SEPARATORS: Final = (",", "|", ";")


@dataclass(frozen=True)
class Chosen:
    """The columns of a record: the value of the reader's `columns`, and why."""

    written: Nested
    why: str


def choose(rows: Sequence[Mapping[Column, Any]]) -> Chosen | str:
    """The columns of texts and label, or what is missing."""
    if not rows:
        return "only a header, no row"
    values = {
        column: [row[column] for row in rows if row.get(column) not in (None, "")]
        for column in dict.fromkeys(column for row in rows for column in row)
    }
    labels = [column for column, cells in values.items() if _are_labels(cells)]
    if not labels:
        if (alone := _only_value(values)) is not None:
            return alone
        return f"no column repeats 2 to {MOST_LABELS} short values, as labels do ({', '.join(map(repr, values))})"
    label = min(
        labels, key=lambda column: (_rank(column, LABELS), len(_different(values[column])), -labels.index(column))
    )
    texts = [column for column, cells in values.items() if column != label and _are_texts(cells)]
    if not texts:
        return f"beside the label {label!r} no column holds texts ({', '.join(map(repr, values))})"
    pair = _pair(texts)
    named = [column for column in texts if _rank(column, TEXTS) < len(TEXTS)]
    if pair is None and len(texts) == 2 and not named and len(_different(values[label])) == 2:
        pair = texts[0], texts[1]
    left_out = [column for column in dict.fromkeys([*labels, *texts]) if column not in (label, *(pair or ()))]
    if pair:
        if len(_different(values[label])) != 2:
            num = len(_different(values[label]))
            return f"the texts {pair[0]!r} and {pair[1]!r} make pairs, which have two labels, and {label!r} has {num}"
        return Chosen({"pair": {"first": pair[0], "second": pair[1], "label": label}}, _told(left_out))
    text = min(texts, key=lambda column: (_rank(column, TEXTS), -sum(map(len, values[column]))))
    separator = _separator(values[label])
    written = {"text": text, "label": label} | ({"separator": separator} if separator else {})
    return Chosen({"text": written}, _told([column for column in left_out if column != text]))


def classified(found: Attempt, why: dict[str, str]) -> Guess:
    """The guess for records with labels: of which task, and which label is the positive one."""
    pairs = [record.label for record in found.records if isinstance(record, PairRecord)]
    several = [record.labels for record in found.records if isinstance(record, TextRecord)]
    counts = Counter(pairs or [label for labels in several for label in labels])
    positive = next(
        (label for label in counts if label.lower() in POSITIVES), min(counts, key=lambda label: counts[label])
    )
    rarity = "The name of a positive label" if positive.lower() in POSITIVES else "The rarer label"
    others = " and ".join(repr(label) for label in counts if label != positive)
    reason = f"{rarity}; the other one is {others}."
    if pairs:
        return found.guess(
            {"sentence_pair": {"positive": positive}},
            {"task": "Two texts and one of two labels.", "task.sentence_pair.positive": reason} | why,
        )
    if any(len(labels) != 1 for labels in several):
        task: Nested = {"labels": "several"}
        told = "A text has any number of labels, which do not exclude each other."
    elif len(counts) == 2 and counts.total() - counts[positive] >= UNBALANCED * counts[positive]:
        task, told = {"positive": positive}, "A text with one of two labels."
    elif len(counts) > 2 and max(counts.values()) >= UNBALANCED * min(counts.values()):
        task, told = {"score": "macro_f1"}, f"A text with one of {len(counts)} labels."
    else:
        task, told = {}, f"A text with one of {len(counts)} labels, about equally frequent."
        told += f" `positive: {positive!r}` scores the F1 of that label." if len(counts) == 2 else ""
    return found.guess(
        {"text_classification": task},
        {
            "task": told,
            "task.text_classification.positive": f"{reason} Without it accuracy decides.",
            "task.text_classification.score": "The classes are unbalanced, and each counts the same; else `accuracy`.",
        }
        | why,
    )


def _are_labels(cells: Sequence[Any]) -> bool:
    different = _different(cells)
    short = all(len(value) <= LONGEST_LABEL for value in different)
    return 2 <= len(different) <= min(MOST_LABELS, max(2, len(cells) // 2)) and short


def _only_value(values: Mapping[Column, Sequence[Any]]) -> str | None:
    """What to say of a column that is named as labels are and has one value alone."""
    for column, cells in sorted(values.items(), key=lambda item: _rank(item[0], LABELS)):
        if len(different := _different(cells)) == 1 and _rank(column, LABELS) < len(LABELS):
            return f"the column {column!r} has one value, {next(iter(different))!r}: nothing to learn"
    return None


def _different(cells: Sequence[Any]) -> set[str]:
    return {str(value) for cell in cells for value in (cell if isinstance(cell, list) else [cell])}


def _are_texts(cells: Sequence[Any]) -> bool:
    """Whether they are strings of several words, or of Chinese, most of them different."""
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return False
    worded = sum(bool(re.search(r"[^\W\d_]\S*\s+\S|[\u3040-\u9fff]{2}", cell)) for cell in cells)
    return 2 * worded > len(cells) and 4 * len(set(cells)) > len(cells)


def _pair(texts: Sequence[Column]) -> tuple[Column, Column] | None:
    """Two columns that are named as a pair: premise and hypothesis, or the same name with 1 and 2, or a and b."""
    names = {column.lower(): column for column in texts if isinstance(column, str)}
    for first, second in PAIRS:
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
    return known.index(name) if name in known else len(known)


def _separator(cells: Sequence[Any]) -> str | None:
    """What parts several labels in one cell: it makes no more labels than cells, some of which hold one alone."""
    whole = {cell for cell in cells if isinstance(cell, str)}
    for separator in SEPARATORS:
        parts = {part.strip() for cell in whole for part in cell.split(separator)}
        are_parted = {separator in cell for cell in whole}
        if len(are_parted) == 2 and len(parts) <= len(whole) and parts & whole:
            return separator
    return None


def _told(left_out: Sequence[Column]) -> str:
    return f" Columns that could be meant too: {', '.join(map(repr, left_out))}." if left_out else ""
