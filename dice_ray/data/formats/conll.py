"""CoNLL columns, one word a line with its tag in another column, and CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dice_ray.data.formats.base import Bad, Drop, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.tags import TagKind, in_document, nested_record, tagged_record
from dice_ray.data.records import NestedRecord, Record, TaggedRecord
from dice_ray.errors import shown

DOCUMENT = "-DOCSTART-"
BEGIN = "#begin document"
"""The first line of a document of CoNLL-2012."""


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
            if self.tags == "brackets" and text.startswith((BEGIN, "#end document")):
                text = DOCUMENT if text.startswith(BEGIN) else ""
            columns = split(text)
            if self.comment and text.startswith(self.comment) and (not sentence or len(columns) != width):
                continue  # no row, so it is not counted
            if columns and columns[0] != DOCUMENT:
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


def split(text: str) -> list[str]:
    """Split a line into columns at tabs, else at ASCII spaces; NBSP and other Unicode spaces are part of a word."""
    if not text.strip(" \t"):
        return []
    return [cell.strip(" ") for cell in text.split("\t")] if "\t" in text else words_of(text)


def words_of(text: str) -> list[str]:
    """Split a sentence into words at ASCII spaces and tabs."""
    return [word for word in re.split("[ \t]+", text) if word]


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
