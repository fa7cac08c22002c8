"""Guesses for tagged words: CoNLL-U, CoNLL columns, sentences with a file of tags, and word_TAG."""

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
MAX_TAGS: Final = 300
"""The largest number of distinct values of a column of tags."""
SEPARATORS: Final = ("_", "/", "|", "#")
TAG_FILE: Final = re.compile(r"tag|label|seq\.out|\.ner\b|\.pos\b", re.IGNORECASE)


def guess_conllu(path: Path, encoding: str) -> Guess | str:
    """CoNLL-U, with its universal parts of speech if it has them."""
    result = attempt(path, encoding, {"conllu": {}})
    if result.reason == "no row with a label":
        result = attempt(path, encoding, {"conllu": {"tag": "xpos"}})
    if result.reason:
        return result.reason
    why = {
        READER: f"{NUM_COLUMNS} columns with numbered words.",
        f"{READER}.conllu.tag": "The file has no universal parts of speech.",
    }
    return guess_tagging(result, "plain", why)


def guess_conll(path: Path, encoding: str) -> Guess | str:
    """CoNLL columns: which column holds the words and which the tags, and what the tags mark."""
    rows, hash_rows, first_break = list[list[str]](), list[list[str]](), NUM_LINES
    for _, text in islice(lines(path, encoding), NUM_LINES):
        cells = split(text)
        if cells and cells[0] != DOCUMENT:
            (hash_rows if cells[0].startswith("#") else rows).append(cells)
        elif rows:
            first_break = min(first_break, len(rows))
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda size: widths[size], default=0)
    if width < 2:
        return "one column only"
    full_rows = [row for row in rows if len(row) == width]
    # The words have the most distinct values that are no numbers, in the first of equal columns.
    word = max(range(width), key=lambda number: len({row[number] for row in full_rows if not row[number].isdigit()}))
    tags = [number for number in range(width) if number != word and _holds_tags([row[number] for row in full_rows])]
    if not tags:
        return f"of {width} columns none holds tags"
    spans = [number for number in tags if are_span_tags({row[number] for row in full_rows})]
    tag = (spans or tags)[-1]
    if first_break >= len(rows) and not spans:
        return "no blank line separates sentences"
    if sum(" " in row[word] or " " in row[tag] for row in full_rows) > len(full_rows) / 100:
        return f"spaces within the words of column {word} or the tags of column {tag}"
    written: Nested = {} if word == 0 else {"word": word}
    written |= {} if tag == width - 1 else {"tag": tag}
    written |= {} if spans else {"tags": "plain"}
    if len(full_rows) > 50 and all(re.fullmatch(r".+[0-9]", row[word]) for row in full_rows):
        written["digit"] = True
    result = attempt(path, encoding, {"conll": written})
    if result.reason and hash_rows:
        # Lines that begin with # may be comments. If some are words (#rstats), only `# ` can be the comment prefix.
        known = {row[tag] for row in full_rows}
        words = {
            row[word] for row in hash_rows if len(row) == width and (row[tag] in known or SPAN_TAG.fullmatch(row[tag]))
        }
        if comment := "#" if not words else "# " if "#" not in words else None:
            result = attempt(path, encoding, {"conll": written | {"comment": comment}})
    if result.reason:
        return result.reason
    return guess_tagging(result, "spans" if spans else "plain", _reasons(word, tag, spans or tags))


def _reasons(word: int, tag: int, tags: Sequence[int]) -> dict[str, str]:
    others = [str(number) for number in tags if number != tag]
    alternative = (
        f" Column {' and '.join(others)} also holds tags: set `tag` to its number to read it." if others else ""
    )
    return {
        READER: f"One word a line, its tag in column {tag} (0 is the first).{alternative}",
        f"{READER}.conll.word": f"Column {word} has the most different values.",
        f"{READER}.conll.tag": "The last column that holds tags.",
        f"{READER}.conll.digit": "Every word ends in a digit, as in Weibo, where it marks the segmentation.",
        f"{READER}.conll.comment": "Lines with this prefix do not have the columns of the others.",
    }


def guess_parallel(path: Path, encoding: str) -> Guess | str:
    """Sentences, with a file of as many tags on each line in the same folder."""
    stem = path.name.partition(".")[0]
    reason = f"no file of tags beside {path.name}, such as tags.txt or {stem}.tags"
    if is_json(path, encoding):
        return "its first line is JSON"
    siblings = sorted(other.name for other in path.parent.iterdir() if other.is_file() and other.name != path.name)
    for other in siblings:
        if not TAG_FILE.search(other) or not (other.endswith(path.suffix) or other.startswith(f"{stem}.")):
            continue
        pattern = f"*{other.removeprefix(stem)}" if other.startswith(f"{stem}.") else other
        for kind in ("spans", "plain"):
            result = attempt(
                path, encoding, {"parallel": {"tag_file": pattern} | ({} if kind == "spans" else {"tags": kind})}
            )
            if result.reason:
                reason = f"with {other}: {result.reason}"
                continue
            records = [record for record in result.records if isinstance(record, TaggedRecord)]
            tags = [tag for record in records for tag in record.tags]
            if not is_tag_set(tags) or 2 * len(set(tags)) > len(tags):
                reason = f"with {other}: too many different tags for a tag set"
            elif any(len(record.words) > 1 for record in records):
                why = {READER: f"The file {other} has a tag for each word, line by line."}
                if "*" in pattern:
                    why[f"{READER}.parallel.tag_file"] = (
                        "`*` stands for the name of the sentence file up to its first dot."
                    )
                return guess_tagging(result, kind, why)
    return reason


def guess_word_tag(path: Path, encoding: str) -> Guess | str:
    """Words followed by a separator and their tag."""
    reason = ""
    for separator in SEPARATORS:
        result = attempt(path, encoding, {"word_tag": {} if separator == "_" else {"separator": separator}})
        tags = {tag for record in result.records if isinstance(record, TaggedRecord) for tag in record.tags}
        if result.reason or not is_tag_set(tags):
            reason = reason or result.reason or "too many different tags for a tag set"
            continue
        kind = "spans" if are_span_tags(tags) else "plain"
        if kind == "spans":
            result = attempt(path, encoding, {"word_tag": result.reader["word_tag"] | {"tags": "spans"}})
        return guess_tagging(result, kind, {READER: f"Every word is followed by {separator!r} and a tag."})
    return reason


def guess_tagging(result: Attempt, kind: str, why: dict[str, str]) -> Guess:
    """The guess for tagged words; Chinese words with plain tags are tagged by character, as they are scored."""
    words = [word for record in result.records[:1000] if isinstance(record, TaggedRecord) for word in record.words]
    task: Nested = {} if kind == "spans" else {"tags": "plain"}
    if kind == "plain" and is_chinese(words) and any(len(word) > 1 for word in words):
        task["unit"] = "character"
    (reader,) = result.reader
    scheme = "Tags of spans as O, B-TYPE, I-TYPE." if kind == "spans" else "One tag a word, as parts of speech."
    return result.guess(
        {"tagging": task},
        {
            "task": scheme if kind == "spans" else f"{scheme} Set `background: TAG` if one of them is not of interest.",
            "task.tagging.unit": "Chinese words: segmentation and tags at once; `word` tags the given words.",
            f"{READER}.{reader}.tags": scheme,
        }
        | why,
    )


def _holds_tags(cells: Sequence[str]) -> bool:
    """Whether the values are a tag set: few, more than one, and not only numbers."""
    return (
        is_tag_set(cells) and (len(set(cells)) > 1) and not all(cell.isdigit() or cell in "_-" for cell in set(cells))
    )


def is_tag_set(tags: Iterable[str]) -> bool:
    return len(set(tags)) <= MAX_TAGS


def are_span_tags(tags: set[str]) -> bool:
    """Whether all are span tags, at least one of them with a type."""
    return all(SPAN_TAG.fullmatch(tag) for tag in tags) and any(tag[1:2] == "-" for tag in tags)
