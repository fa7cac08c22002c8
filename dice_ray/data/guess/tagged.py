"""Guesses for tagged words: CoNLL-U, CoNLL columns, sentences beside their tags, and word_TAG."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from dice_ray.data.guess.base import NUM_ROWS, READER, Attempt, Guess, attempt, is_chinese, is_json
from dice_ray.data.readers.base import lines
from dice_ray.data.readers.conll import DOCUMENT, split
from dice_ray.data.readers.conllu import NUM_COLUMNS
from dice_ray.data.readers.tags import SPAN_TAG
from dice_ray.data.records import TaggedRecord
from dice_ray.settings import Nested

NUM_LINES: Final = 10 * NUM_ROWS
MOST_TAGS: Final = 300
"""A column with more values holds no tags."""
SEPARATORS: Final = ("_", "/", "|", "#")
TAG_FILE: Final = re.compile(r"tag|label|seq\.out|\.ner\b|\.pos\b", re.IGNORECASE)


def universal(path: Path) -> Guess | str:
    """CoNLL-U, its universal parts of speech where it has them."""
    found = attempt(path, {"conllu": {}})
    other = attempt(path, {"conllu": {"tag": "xpos"}}) if found.missed == "no row with a label" else found
    if other.missed:
        return other.missed
    why = {
        READER: f"{NUM_COLUMNS} columns with numbered words.",
        f"{READER}.conllu.tag": "The universal parts of speech are left out.",
    }
    return tagging(other, "plain", why)


def columns(path: Path) -> Guess | str:
    """CoNLL columns: which one holds words and which one tags, and what the tags mark."""
    rows, marked, first_break = list[list[str]](), list[list[str]](), NUM_LINES
    for _, text in islice(lines(path), NUM_LINES):
        cells = split(text)
        if cells and cells[0] != DOCUMENT:
            (marked if cells[0].startswith("#") else rows).append(cells)
        elif rows:
            first_break = min(first_break, len(rows))
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda size: widths[size], default=0)
    if width < 2:
        return "one column only"
    whole = [row for row in rows if len(row) == width]
    word = _word_column(whole, width)
    tags = [number for number in range(width) if number != word and _holds_tags([row[number] for row in whole])]
    if not tags:
        return f"of {width} columns none holds tags"
    spans = [number for number in tags if are_spans({row[number] for row in whole})]
    tag = (spans or tags)[-1]
    if first_break >= len(rows) and not spans:
        return "no line without text parts its sentences"
    if sum(" " in row[word] or " " in row[tag] for row in whole) > len(whole) / 100:
        return f"spaces within the words of column {word} or the tags of column {tag}"
    written: Nested = {} if word == 0 else {"word": word}
    written |= {} if tag == width - 1 else {"tag": tag}
    written |= {} if spans else {"tags": "plain"}
    if len(whole) > 50 and all(re.fullmatch(r".+[0-9]", row[word]) for row in whole):
        written["digit"] = True
    found = attempt(path, {"conll": written})
    if found.missed and marked:
        known = {row[tag] for row in whole}
        words = {
            row[word] for row in marked if len(row) == width and (row[tag] in known or SPAN_TAG.fullmatch(row[tag]))
        }
        if comment := "#" if not words else "# " if "#" not in words else None:
            found = attempt(path, {"conll": written | {"comment": comment}})
    if found.missed:
        return found.missed
    return tagging(found, "spans" if spans else "plain", _reasons(word, tag, spans or tags))


def _reasons(word: int, tag: int, tags: Sequence[int]) -> dict[str, str]:
    others = [str(number) for number in tags if number != tag]
    alternative = f" So does column {' and '.join(others)}: give its number as `tag` to take it." if others else ""
    return {
        READER: f"A word a line, its tag in column {tag} (0 is the first).{alternative}",
        f"{READER}.conll.word": f"Column {word} has the most different values.",
        f"{READER}.conll.tag": "The last column that holds tags.",
        f"{READER}.conll.digit": "Every word ends in a digit, as in Weibo, where it tells the segmentation.",
        f"{READER}.conll.comment": "Lines that begin with it do not have the columns of the others.",
    }


def parallel(path: Path) -> Guess | str:
    """Sentences beside a file with as many tags in each line."""
    stem = path.name.partition(".")[0]
    missed = f"no file of tags beside {path.name}, as tags.txt or {stem}.tags"
    if is_json(path):
        return "its first line is JSON"
    for other in _tag_files(path):
        pattern = f"*{other.removeprefix(stem)}" if other.startswith(f"{stem}.") else other
        for kind in ("spans", "plain"):
            found = attempt(path, {"parallel": {"tag_file": pattern} | ({} if kind == "spans" else {"tags": kind})})
            if found.missed:
                missed = f"with {other}: {found.missed}"
                continue
            records = [record for record in found.records if isinstance(record, TaggedRecord)]
            tags = [tag for record in records for tag in record.tags]
            if not few(tags) or 2 * len(set(tags)) > len(tags):
                missed = f"with {other}: more different tags than a tag set has"
            elif any(len(record.words) > 1 for record in records):
                why = {READER: f"{other} beside it has a tag for each word, line by line."}
                if "*" in pattern:
                    star = "`*` stands for the name of the file of sentences up to its dot."
                    why[f"{READER}.parallel.tag_file"] = star
                return tagging(found, kind, why)
    return missed


def _tag_files(path: Path) -> list[str]:
    """The names beside a file that speak of tags, with its ending or its name up to the dot."""
    stem = path.name.partition(".")[0]
    beside = sorted(other.name for other in path.parent.iterdir() if other.is_file() and other.name != path.name)
    named = [name for name in beside if TAG_FILE.search(name)]
    return [name for name in named if name.endswith(path.suffix) or name.startswith(f"{stem}.")]


def word_tag(path: Path) -> Guess | str:
    """Words with their tags behind a separator."""
    missed = ""
    for separator in SEPARATORS:
        found = attempt(path, {"word_tag": {} if separator == "_" else {"separator": separator}})
        tags = {tag for record in found.records if isinstance(record, TaggedRecord) for tag in record.tags}
        if found.missed or not few(tags):
            missed = missed or found.missed or "more different tags than a tag set has"
            continue
        kind = "spans" if are_spans(tags) else "plain"
        if kind == "spans":
            found = attempt(path, {"word_tag": found.reader["word_tag"] | {"tags": "spans"}})
        return tagging(found, kind, {READER: f"Every word has a tag behind {separator!r}."})
    return missed


def tagging(found: Attempt, kind: str, why: dict[str, str]) -> Guess:
    """Tagging of spans or of plain tags; Chinese words with plain tags by character, as they are scored."""
    words = [word for record in found.records[:1000] if isinstance(record, TaggedRecord) for word in record.words]
    task: Nested = {} if kind == "spans" else {"tags": "plain"}
    if kind == "plain" and is_chinese(words) and any(len(word) > 1 for word in words):
        task["unit"] = "character"
    (reader,) = found.reader
    scheme = "Tags of spans as O, B-TYPE, I-TYPE." if kind == "spans" else "One tag a word, as parts of speech."
    return found.guess(
        {"tagging": task},
        {
            "task": scheme if kind == "spans" else f"{scheme} `background: TAG` if one of them is not of interest.",
            "task.tagging.unit": "Chinese words: segmentation and tags at once; `word` takes the words as given.",
            f"{READER}.{reader}.tags": scheme,
        }
        | why,
    )


def _word_column(rows: Sequence[Sequence[str]], width: int) -> int:
    """The column with the most different values, numbers apart; the first of several."""
    values = [{row[number] for row in rows if not row[number].isdigit()} for number in range(width)]
    return max(range(width), key=lambda number: len(values[number]))


def _holds_tags(cells: Sequence[str]) -> bool:
    """Whether the values repeat, and are names rather than numbers or texts."""
    return few(cells) and (len(set(cells)) > 1) and not all(cell.isdigit() or cell in "_-" for cell in set(cells))


def few(tags: Iterable[str]) -> bool:
    return len(set(tags)) <= MOST_TAGS


def are_spans(tags: set[str]) -> bool:
    """Whether they are tags of spans, some of them outside of all or begun by a letter and a dash."""
    return all(SPAN_TAG.fullmatch(tag) for tag in tags) and any(tag[1:2] == "-" for tag in tags)
