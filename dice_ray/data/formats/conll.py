"""CoNLL columns: one word a line with its tag in another column, and sentences separated by blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pydantic import Field, model_validator

from dice_ray.data.formats.base import Bad, Drop, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.tags import TagKind, in_document, nested_record, tagged_record
from dice_ray.data.records import NestedRecord, Record, TaggedRecord
from dice_ray.errors import shown

DOCUMENT = "-DOCSTART-"
BEGIN, END = "#begin document", "#end document"
"""The first and the last line of a document of CoNLL-2012."""


class ConllConfig(TextReaderBranch):
    """Columns separated by tabs, or by spaces in a line without a tab; all lines have as many as the first.

    Attributes:
        word: The number of the column of the word: 0 is the first, -1 the last.
        tag: The number of the column of the tag.
        inner: The numbers of columns with tags of further spans, which may lie within those of `tag` (GermEval). With
            these, the records have spans that may nest, for the task `mrc_ner`.
        tags: What the tags mark. With `brackets` (CoNLL-2012), sentences may differ in their number of columns, and
            the lines `#begin document` and `#end document` are no words.
        comment: The prefix of comment lines, which are counted as drops. By default there are none, as `#` may be a
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
        comments: list[Drop] = []  # of the current sentence, which is yielded first
        document: int | None = None
        # A blank line after the last one ends the last sentence.
        for line, text in chain(self.lines(path), [(0, "")]):
            if self.tags == "brackets" and text.startswith((BEGIN, END)):
                text = DOCUMENT if text.startswith(BEGIN) else ""
            columns = split(text)
            if self.comment and text.startswith(self.comment) and (not sentence or len(columns) != width):
                comments.append(Drop(line, "a comment"))
                continue
            if columns and columns[0] != DOCUMENT:
                width = len(columns) if not width or (self.tags == "brackets" and not sentence) else width
                sentence.append((line, columns))
                continue
            if sentence:
                yield in_document(self._sentence(sentence, width, labels), document)
            yield from comments
            sentence, comments = [], []
            if columns:
                document = line
                yield Drop(line, "a document mark")

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
