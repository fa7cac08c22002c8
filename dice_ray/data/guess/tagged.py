"""Guesses for tagged words: CoNLL-U, CoNLL columns, sentences with a file of tags, and word_TAG."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from dice_ray.data.formats.base import lines
from dice_ray.data.formats.conll import BEGIN, DOCUMENT, split
from dice_ray.data.formats.sentences import stem_of
from dice_ray.data.formats.tags import TagKind, parsed, word_spans
from dice_ray.data.guess.base import NUM_ROWS, READER, Attempt, Guess, attempt, is_chinese, is_json
from dice_ray.data.guess.choose import are_labels, are_texts, guess_classification
from dice_ray.data.guess.folder import TAG_FILE, split_of
from dice_ray.data.records import NestedRecord, TaggedRecord, TextRecord
from dice_ray.settings import Nested

NUM_LINES: Final = 10 * NUM_ROWS
MAX_TAGS: Final = 300
"""The largest number of distinct values of a column of tags."""
SEPARATORS: Final = ("_", "/", "|", "#")
PENN: Final = re.compile(r"=====+\s*$|\[ \S+/\S+ ")
NUM_PENN: Final = 100
"""The first lines, of which one has a noun phrase in brackets."""
MAPPING: Final = "mapping.txt"
"""TweetEval's file of the names of labels: a number, a tab, and the name in each line."""


def guess_conllu(path: Path, encoding: str) -> Guess | str:
    """CoNLL-U, with its universal parts of speech if it has them."""
    result = attempt(path, encoding, {"conllu": {}})
    if result.reason == "no row with a label":
        result = attempt(path, encoding, {"conllu": {"tag": "xpos"}})
    if result.reason:
        return result.reason
    why = {
        READER: "10 columns with numbered words.",
        f"{READER}.conllu.tag": "The file has no universal parts of speech.",
    }
    return guess_tagging(result, "plain", why)


def guess_conll(path: Path, encoding: str) -> Guess | str:
    """CoNLL columns: which column holds the words and which the tags, and what the tags mark."""
    if next((text for _, text in lines(path, encoding) if text.strip()), "").startswith(BEGIN):
        return _guess_conll_2012(path, encoding)
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
    kinds = {number: tag_kind([row[number] for row in full_rows]) for number in tags}
    spans = [number for number, kind in kinds.items() if kind != "plain"]
    tag, why_tag = _tag_column(full_rows, spans) if spans else (tags[-1], "The last column that holds tags.")
    if first_break >= len(rows) and not spans:
        return "no blank line separates sentences"
    if sum(" " in row[word] or " " in row[tag] for row in full_rows) > len(full_rows) / 100:
        return f"spaces within the words of column {word} or the tags of column {tag}"
    written: Nested = {} if word == 0 else {"word": word}
    written |= {} if tag == width - 1 else {"tag": tag}
    written |= {} if kinds[tag] == "spans" else {"tags": kinds[tag]}
    if len(full_rows) > 50 and all(re.fullmatch(r".+[0-9]", row[word]) for row in full_rows):
        written["digit"] = True
    result = attempt(path, encoding, {"conll": written})
    if result.reason and hash_rows:
        # Lines that begin with # may be comments. If some are words (#rstats), only `# ` can be the comment prefix.
        known = {row[tag] for row in full_rows}
        words = {row[word] for row in hash_rows if len(row) == width and (row[tag] in known or parsed(row[tag]))}
        if comment := "#" if not words else "# " if "#" not in words else None:
            result = attempt(path, encoding, {"conll": written | {"comment": comment}})
    if result.reason:
        return result.reason
    why = _reasons(word, tag, why_tag, spans or tags)
    (written,) = result.reader.values()
    with_inner = [number for number in spans if number != tag and kinds[number] == kinds[tag] == "spans"]
    if inner := [number for number in with_inner if _lies_within(path, encoding, written, number)]:
        result = attempt(path, encoding, {"conll": written | {"inner": inner}})
        columns = " and ".join(map(str, inner))
        why[f"{READER}.conll.inner"] = f"The spans of column {columns} lie within those of column {tag}."
        return result.reason or guess_nested(
            result, f"Without `inner`, the task `tagging` reads column {tag} alone.", why
        )
    return guess_tagging(result, kinds[tag], why)


def _guess_conll_2012(path: Path, encoding: str) -> Guess | str:
    """CoNLL-2012 (OntoNotes): the word is in column 3 and the brackets of names are in column 10."""
    result = attempt(path, encoding, {"conll": {"word": 3, "tag": 10, "tags": "brackets"}})
    why = {READER: "CoNLL-2012: words in column 3, brackets of named entities in column 10."}
    return result.reason or guess_tagging(result, "brackets", why)


def _lies_within(path: Path, encoding: str, written: Nested, column: int) -> bool:
    """Whether most spans of a column are parts of spans of the column of tags, as in nested annotations."""
    both = (
        attempt(path, encoding, {"conll": written | {"tag": number}}) for number in (written.get("tag", -1), column)
    )
    outer, inner = (
        [word_spans(record.tags) for record in result.records if isinstance(record, TaggedRecord)] for result in both
    )
    num_parts = sum(
        any(of.first <= span.first and span.end <= of.end and span[1:] != of[1:] for of in around)
        for around, within in zip(outer, inner, strict=False)
        for span in within
    )
    return 2 * num_parts > sum(map(len, inner)) > 0


def _tag_column(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> tuple[int, str]:
    """The column of the tags among those of span tags, and why.

    Chunks, as in CoNLL-2003, hold most words; of other spans, those of nested annotations too, the outer ones are more.
    """
    num_outside = {column: sum(row[column] in ("O", "o") for row in rows) for column in columns}
    entities = [column for column in columns if 2 * num_outside[column] > len(rows)]
    if len(entities) < 2:
        return (entities or columns)[-1], "The last column that holds tags."
    outer = min(entities, key=lambda column: num_outside[column])
    others = " and ".join(str(column) for column in entities if column != outer)
    return outer, f"It marks more words than column {others}, which may hold spans within these."


def _reasons(word: int, tag: int, why_tag: str, tags: Sequence[int]) -> dict[str, str]:
    others = [str(number) for number in tags if number != tag]
    alternative = (
        f" Column {' and '.join(others)} also holds tags: set `tag` to its number to read it." if others else ""
    )
    return {
        READER: f"One word a line, its tag in column {tag} (0 is the first).{alternative}",
        f"{READER}.conll.word": f"Column {word} has the most different values.",
        f"{READER}.conll.tag": why_tag,
        f"{READER}.conll.digit": "Every word ends in a digit, as in Weibo, where it marks the segmentation.",
        f"{READER}.conll.comment": "Lines with this prefix do not have the columns of the others.",
    }


def guess_parallel(path: Path, encoding: str) -> Guess | str:
    """Sentences, with a file of as many tags on each line, or of a label on each line, in the same folder."""
    stem, text_stem = stem_of(path.name, "words"), stem_of(path.name, "texts")
    reason = f"no file of tags beside {path.name}, such as tags.txt or {stem}.tags"
    if is_json(path, encoding):
        return "its first line is JSON"
    siblings = sorted(other.name for other in path.parent.iterdir() if other.is_file() and other.name != path.name)
    for other in siblings:
        is_beside = other.endswith(path.suffix) or other.startswith(f"{stem}.")
        # Not the file of another split: only the first rows are read here, of which it may have as many.
        if not TAG_FILE.search(other) or not is_beside or split_of(other) not in (None, split_of(path.name)):
            continue
        pattern = f"*{other.removeprefix(stem)}" if other.startswith(f"{stem}.") else other
        found = _guess_tags(path, encoding, pattern, other)
        if isinstance(found, str):
            pattern = f"*{other.removeprefix(text_stem)}" if other.startswith(text_stem) else other
            of_texts = _guess_labels(path, encoding, pattern, other)
            found = found if isinstance(of_texts, str) else of_texts
        if isinstance(found, Guess):
            return found
        reason = f"with {other}: {found}"
    return reason


def _guess_tags(path: Path, encoding: str, tag_file: str, other: str) -> Guess | str:
    """The guess for words with a file of their tags."""
    settings: Nested = {"tag_file": tag_file}
    result = attempt(path, encoding, {"parallel": settings | {"tags": "plain"}})
    if result.reason:
        return result.reason
    records = [record for record in result.records if isinstance(record, TaggedRecord)]
    tags = [tag for record in records for tag in record.tags]
    kind = tag_kind(tags)
    if not is_tag_set(tags) or 2 * len(set(tags)) > len(tags):
        return "too many different tags for a tag set"
    if not any(len(record.words) > 1 for record in records):
        return "no sentence of several words"
    if kind != "plain":
        result = attempt(path, encoding, {"parallel": settings | ({} if kind == "spans" else {"tags": kind})})
    why = {READER: f"The file {other} has a tag for each word, line by line."}
    if "*" in tag_file:
        why[f"{READER}.parallel.tag_file"] = "`*` stands for the name of the sentence file up to its first dot."
    return guess_tagging(result, kind, why)


def _guess_labels(path: Path, encoding: str, tag_file: str, other: str) -> Guess | str:
    """The guess for texts with a file of their labels; numbers are replaced by the names in a file `mapping.txt`."""
    settings: Nested = {"tag_file": tag_file, "units": "texts"}
    result = attempt(path, encoding, {"parallel": settings})
    if result.reason:
        return result.reason
    records = [record for record in result.records if isinstance(record, TextRecord)]
    labels = [record.labels[0] for record in records]
    if not are_labels(labels) or not are_texts([record.text for record in records]):
        return "its lines are no labels of texts"
    why = {READER: f"The file {other} has a label for each text, line by line."}
    if "*" in tag_file:
        stands_for = "`*` stands for the name of the file of texts up to its first dot, without `_text`."
        why[f"{READER}.parallel.tag_file"] = stands_for
    names = _names_of_labels(path.with_name(MAPPING))
    if names and set(labels) <= set(map(str, range(len(names)))):
        result = attempt(path, encoding, {"parallel": settings | {"names": names}})
        why[f"{READER}.parallel.names"] = f"The names of the labels 0 to {len(names) - 1}, from {MAPPING}."
    return guess_classification(result, why)


def _names_of_labels(path: Path) -> list[str]:
    """The names of the labels, 0 first; empty if there is no such file, or it has not one for each number."""
    if not path.is_file():
        return []
    rows = [text.split("\t") for _, text in lines(path) if text.strip()]
    names = [row[1].strip() for row in rows if len(row) > 1]
    numbers = [row[0].strip() for row in rows if len(row) > 1]
    is_whole = len(set(names)) == len(rows) and numbers == [str(number) for number in range(len(rows))]
    return names if is_whole else []


def guess_word_tag(path: Path, encoding: str) -> Guess | str:
    """Words followed by a separator and their tag."""
    reason = ""
    if any(PENN.match(text) for _, text in islice(lines(path, encoding), NUM_PENN)):
        result = attempt(path, encoding, {"word_tag": {"separator": "/", "layout": "penn"}})
        why = {READER: "The Penn Treebank: words with their tags, noun phrases in square brackets."}
        return result.reason or guess_tagging(result, "plain", why)
    for separator in SEPARATORS:
        result = attempt(path, encoding, {"word_tag": {} if separator == "_" else {"separator": separator}})
        tags = [tag for record in result.records if isinstance(record, TaggedRecord) for tag in record.tags]
        if result.reason or not is_tag_set(tags):
            reason = reason or result.reason or "too many different tags for a tag set"
            continue
        kind = tag_kind(tags)
        if kind != "plain":
            settings = {} if separator == "_" else {"separator": separator}
            result = attempt(path, encoding, {"word_tag": settings | {"tags": kind}})
        return guess_tagging(result, kind, {READER: f"Every word is followed by {separator!r} and a tag."})
    return reason


def guess_tagging(result: Attempt, kind: TagKind, why: dict[str, str]) -> Guess:
    """The guess for tagged words; Chinese words with plain tags are tagged by character, as they are scored."""
    words = [word for record in result.records[:1000] if isinstance(record, TaggedRecord) for word in record.words]
    task: Nested = {"tags": "plain"} if kind == "plain" else {}
    if kind == "plain" and is_chinese(words) and any(len(word) > 1 for word in words):
        task["unit"] = "character"
    (reader,) = result.reader
    scheme = {
        "spans": "Tags of spans as O, B-TYPE, I-TYPE.",
        "types": "O, or the type of a span: neighbouring words of one type are taken for one span.",
        "brackets": "Spans in brackets: (TYPE*, *, *) and (TYPE).",
        "plain": "One tag a word, as parts of speech.",
    }[kind]
    return result.guess(
        {"tagging": task},
        {
            "task": scheme if kind != "plain" else f"{scheme} Set `background: TAG` if one of them is not of interest.",
            "task.tagging.unit": "Chinese words: segmentation and tags at once; `word` tags the given words.",
            f"{READER}.{reader}.tags": scheme,
        }
        | why,
    )


def guess_nested(result: Attempt, alternative: str, why: dict[str, str]) -> Guess:
    """The guess for words with spans that may nest, which one tag a word cannot express."""
    num_types = len(
        {span.type for record in result.records if isinstance(record, NestedRecord) for span in record.spans}
    )
    reasons = {
        "task": f"Spans lie within other spans. There is a query for each of the {num_types} types, so that a sentence "
        f"goes through the encoder {num_types} times. {alternative}"
    }
    return result.guess({"mrc_ner": {"spans": "nested"}}, reasons | why)


def _holds_tags(cells: Sequence[str]) -> bool:
    """Whether the values are a tag set: few, more than one, and not only numbers."""
    return (
        is_tag_set(cells) and (len(set(cells)) > 1) and not all(cell.isdigit() or cell in "_-" for cell in set(cells))
    )


def is_tag_set(tags: Iterable[str]) -> bool:
    return len(set(tags)) <= MAX_TAGS


def tag_kind(tags: Sequence[str]) -> TagKind:
    """What a sequence of tags marks, by the tags that occur in it.

    Bare types, and B and I without a type, are spans only if most words are outside of them: a tag set of parts of
    speech may have a tag O too, and segmentation has B, M, E and S.
    """
    distinct = set(tags)
    letters = [parsed(tag) for tag in distinct]
    is_outside_most = 2 * sum(tag in ("O", "o") for tag in tags) > len(tags)
    if all(letters) and (any(letter[1] for letter in letters if letter) or (is_outside_most and len(distinct) > 1)):
        return "spans"
    are_types = all(len(tag) > 1 or tag in ("O", "o") for tag in distinct) and len(distinct) > 1
    return "types" if are_types and is_outside_most else "plain"
