"""CoNLL columns, one word a line with its tag in another column, and CoNLL-U."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, model_validator

from dice_ray.data.formats.base import NUM_ROWS, READER, Bad, Drop, Guess, Labels, RowResult, Sample, TextReaderBranch
from dice_ray.data.formats.tags import (
    TagKind,
    guess_tagging,
    in_document,
    is_tag_set,
    nested_record,
    parsed,
    tag_kind,
    tagged_record,
    word_spans,
)
from dice_ray.data.formats.text import lines, spaced_words
from dice_ray.data.records import NestedRecord, Record, TaggedRecord
from dice_ray.errors import shown
from dice_ray.settings import Nested

_DOCUMENT: Final = "-DOCSTART-"
_BEGIN: Final = "#begin document"
"""The first line of a document of CoNLL-2012."""
_NUM_LINES: Final = 10 * NUM_ROWS


class ConllConfig(TextReaderBranch):
    """Columns separated by tabs, or by spaces in a line without a tab; all lines have as many as the first.

    Attributes:
        word: The number of the column of the word: 0 is the first, -1 the last.
        tag: The number of the column of the tag.
        inner: The numbers of columns with tags of further spans, which may lie within those of `tag` (GermEval). With
            these, the records have spans that may nest, for the task `mrc_ner`.
        tags: What the tags mark. With `brackets` (CoNLL-2012), sentences may differ in their number of columns, and
            the lines `#begin document` and `#end document` are no words.
        comment: The prefix of comment lines. By default there are none, as `#` may be a
            word. A line within a sentence that has all columns is a word, whatever its prefix.
        digit: Whether each word ends in a segmentation digit, which is removed (Weibo).
    """

    name = "conll"
    is_lax = True

    word: int = 0
    tag: int = -1
    inner: tuple[int, ...] = ()
    tags: TagKind = "spans"
    comment: str | None = Field(default=None, min_length=1)
    digit: bool = False

    @model_validator(mode="after")
    def _fits(self) -> ConllConfig:
        if self.inner and self.tags == "plain":
            raise ValueError("inner tags must mark spans, got tags: plain")
        return self

    def yields(self) -> type[Record]:
        return NestedRecord if self.inner else TaggedRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        width = 0
        sentence: list[tuple[int, list[str]]] = []
        document: int | None = None
        # A blank line after the last one ends the last sentence.
        for line, text in chain(self.lines(path), [(0, "")]):
            if self.tags == "brackets" and text.startswith((_BEGIN, "#end document")):
                text = _DOCUMENT if text.startswith(_BEGIN) else ""
            columns = _split(text)
            if self.comment and text.startswith(self.comment) and (not sentence or len(columns) != width):
                continue  # no row, so it is not counted
            if columns and columns[0] != _DOCUMENT:
                width = len(columns) if not width or (self.tags == "brackets" and not sentence) else width
                sentence.append((line, columns))
                continue
            if sentence:
                yield in_document(self._sentence(sentence, width, labels), document)
            sentence = []
            document = line if columns else document

    def _sentence(self, rows: list[tuple[int, list[str]]], width: int, labels: Labels) -> RowResult:
        layers = [] if labels == "ignored" else [self.tag, *self.inner]
        used = [self.word, *layers]
        for line, columns in rows:
            if len(columns) != width:
                return Bad(line, f"{width} columns as in the first line", f"{len(columns)}: {shown(' '.join(columns))}")
            if not all(-width <= column < width for column in used) or width < len(used):
                return Bad(line, f"columns number {' and '.join(map(str, used))}", f"{width} columns")
            if self.digit and not re.fullmatch(r".+[0-9]", columns[self.word]):
                return Bad(line, "a word that ends in a digit of its segmentation", shown(columns[self.word]))
        words = [columns[self.word][: -1 if self.digit else None] for _, columns in rows]
        tags = [[columns[layer] for _, columns in rows] for layer in layers]
        if self.inner:
            return nested_record(rows[0][0], words, tags, self.tags)
        return tagged_record(rows[0][0], words, tags[0] if tags else None, self.tags)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """Which column holds the words and which the tags, and what the tags mark."""
        if sample.first_line.startswith(_BEGIN):
            result = sample.attempt(cls, word=3, tag=10, tags="brackets")
            why = {READER: "CoNLL-2012: words in column 3, brackets of named entities in column 10."}
            return guess_tagging(result, "brackets", why)
        rows, hash_rows, first_break = list[list[str]](), list[list[str]](), _NUM_LINES
        for _, text in islice(lines(sample.path, sample.encoding), _NUM_LINES):
            cells = _split(text)
            if cells and cells[0] != _DOCUMENT:
                (hash_rows if cells[0].startswith("#") else rows).append(cells)
            elif rows:
                first_break = min(first_break, len(rows))
        widths = Counter(map(len, rows))
        width = max(widths, key=lambda size: widths[size], default=0)
        if width < 2:
            return "one column only"
        full_rows = [row for row in rows if len(row) == width]
        columns = [[row[number] for row in full_rows] for number in range(width)]
        # The words have the most distinct values that are no numbers, in the first of equal columns.
        word = max(range(width), key=lambda number: len({cell for cell in columns[number] if not cell.isdigit()}))
        tags = [number for number in range(width) if number != word and _holds_tags(columns[number])]
        if not tags:
            return f"of {width} columns none holds tags"
        kinds = {number: tag_kind(columns[number]) for number in tags}
        spans = [number for number, kind in kinds.items() if kind != "plain"]
        tag, why_tag = _tag_column(columns, spans) if spans else (tags[-1], "The last column that holds tags.")
        if first_break >= len(rows) and not spans:
            return "no blank line separates sentences"
        if sum(" " in row[word] or " " in row[tag] for row in full_rows) > len(full_rows) / 100:
            return f"spaces within the words of column {word} or the tags of column {tag}"
        settings: Nested = {} if word == 0 else {"word": word}
        settings |= {} if tag == width - 1 else {"tag": tag}
        settings |= {} if kinds[tag] == "spans" else {"tags": kinds[tag]}
        if len(full_rows) > 50 and all(re.fullmatch(r".+[0-9]", cell) for cell in columns[word]):
            settings["digit"] = True
        result = sample.attempt(cls, **settings)
        if result.reason and hash_rows:
            # Lines that begin with # may be comments. If some are words (#rstats), only `# ` can be the prefix.
            known = set(columns[tag])
            words = {row[word] for row in hash_rows if len(row) == width and (row[tag] in known or parsed(row[tag]))}
            if comment := "#" if not words else "# " if "#" not in words else None:
                settings["comment"] = comment
                result = sample.attempt(cls, **settings)
        if result.reason:
            return result.reason
        others = " and ".join(str(number) for number in spans or tags if number != tag)
        alternative = f" Column {others} also holds tags: set `tag` to its number to read it." if others else ""
        why = {
            READER: f"One word a line, its tag in column {tag} (0 is the first).{alternative}",
            f"{READER}.conll.word": f"Column {word} has the most different values.",
            f"{READER}.conll.tag": why_tag,
            f"{READER}.conll.digit": "Every word ends in a digit, as in Weibo, where it marks the segmentation.",
            f"{READER}.conll.comment": "Lines with this prefix do not have the columns of the others.",
        }
        with_inner = [number for number in spans if number != tag and kinds[number] == kinds[tag] == "spans"]
        if inner := [
            number
            for number in with_inner
            if _lie_within(result.records, sample.attempt(cls, **(settings | {"tag": number})).records)
        ]:
            why[f"{READER}.conll.inner"] = (
                f"The spans of column {' and '.join(map(str, inner))} lie within those of column {tag}. Without "
                f"`inner`, the task `tagging` reads column {tag} alone."
            )
            return sample.attempt(cls, **settings, inner=inner).guess(why)
        return guess_tagging(result, kinds[tag], why)


def _lie_within(outer: Sequence[Record], inner: Sequence[Record]) -> bool:
    """Whether most spans of a column are parts of spans of the column of tags, as in nested annotations."""
    outer_spans, inner_spans = (
        [word_spans(record.tags) for record in records if isinstance(record, TaggedRecord)]
        for records in (outer, inner)
    )
    num_parts = sum(
        any(around.first <= span.first and span.end <= around.end and span[1:] != around[1:] for around in spans)
        for spans, within in zip(outer_spans, inner_spans, strict=False)
        for span in within
    )
    return 2 * num_parts > sum(map(len, inner_spans)) > 0


def _tag_column(columns: Sequence[Sequence[str]], candidates: Sequence[int]) -> tuple[int, str]:
    """The column of the tags among those of span tags, and why.

    Chunks, as in CoNLL-2003, hold most words; of other spans, those of nested annotations too, the outer ones are more.
    """
    num_outside = {number: sum(tag in ("O", "o") for tag in columns[number]) for number in candidates}
    entities = [number for number in candidates if 2 * num_outside[number] > len(columns[number])]
    if len(entities) < 2:
        return (entities or candidates)[-1], "The last column that holds tags."
    outer = min(entities, key=lambda number: num_outside[number])
    others = " and ".join(str(number) for number in entities if number != outer)
    return outer, f"It marks more words than column {others}, which may hold spans within these."


def _holds_tags(cells: Sequence[str]) -> bool:
    """Whether the values are a tag set: few, more than one, and not only numbers."""
    distinct = set(cells)
    return is_tag_set(cells) and len(distinct) > 1 and not all(cell.isdigit() or cell in "_-" for cell in distinct)


def _split(text: str) -> list[str]:
    """Split a line into columns at tabs, else at ASCII spaces; NBSP and other Unicode spaces are part of a word."""
    if not text.strip(" \t"):
        return []
    return [cell.strip(" ") for cell in text.split("\t")] if "\t" in text else spaced_words(text)


class ConlluConfig(TextReaderBranch):
    """Syntactic words with their part of speech; multiword ranges (`29-30`) and empty nodes (`8.1`) are skipped.

    Attributes:
        tag: `upos`, the universal part of speech, or `xpos`, that of the language.
    """

    name = "conllu"
    record_type = TaggedRecord

    tag: Literal["upos", "xpos"] = "upos"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        sentence: list[tuple[int, str]] = []
        document: int | None = None
        # A blank line after the last one ends the last sentence.
        for line, text in chain(self.lines(path), [(0, "")]):
            if text.strip(" \t"):
                if not text.startswith("#"):
                    sentence.append((line, text))
                elif re.match(r"#\s*newdoc\b", text):
                    document = line
            elif sentence:
                yield in_document(self._sentence(sentence, labels), document)
                sentence = []

    def _sentence(self, rows: list[tuple[int, str]], labels: Labels) -> RowResult:
        words: list[str] = []
        tags: list[str] = []
        for line, text in rows:
            columns = text.split("\t")
            if len(columns) != 10:
                return Bad(line, "10 columns apart by tabs", f"{len(columns)}: {shown(text)}")
            if columns[0] != str(len(words) + 1):
                if re.fullmatch(r"\d+-\d+|\d+\.\d+", columns[0]):
                    continue
                return Bad(line, f"the word number {len(words) + 1}", shown(columns[0]))
            words.append(columns[1])
            tags.append(columns[3 if self.tag == "upos" else 4])
        place = rows[0][0]
        if labels == "ignored":
            return tagged_record(place, words, None, "plain")
        return Drop(place, f"a word without {self.tag}") if "_" in tags else tagged_record(place, words, tags, "plain")

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """With the universal parts of speech if the file has them."""
        result = sample.attempt(cls)
        if result.reason == "no row with a label":
            result = sample.attempt(cls, tag="xpos")
        why = {
            READER: "10 columns with numbered words.",
            f"{READER}.conllu.tag": "The file has no universal parts of speech.",
        }
        return guess_tagging(result, "plain", why)
