"""CoNLL columns: one word a line with its tag in another column, and sentences separated by blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pydantic import Field

from dice_ray.data.readers.base import Bad, Drop, Labels, RowResult, TextReaderBranch
from dice_ray.data.readers.tags import TagKind, in_document, tagged_record
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown

DOCUMENT = "-DOCSTART-"


class ConllConfig(TextReaderBranch):
    """Columns separated by tabs, or by spaces in a line without a tab; all lines have as many as the first.

    Attributes:
        word: The number of the column of the word: 0 is the first, -1 the last.
        tag: The number of the column of the tag.
        tags: What the tags mark.
        comment: The prefix of comment lines, which are counted as drops. By default there are none, as `#` may be a
            word. A line within a sentence that has all columns is a word, whatever its prefix.
        digit: Whether each word ends in a segmentation digit, which is removed (Weibo).
    """

    name = "conll"
    record_type = TaggedRecord

    word: int = 0
    tag: int = -1
    tags: TagKind = "spans"
    comment: str | None = Field(default=None, min_length=1)
    digit: bool = False

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        width = 0
        sentence: list[tuple[int, list[str]]] = []
        comments: list[Drop] = []  # of the current sentence, which is yielded first
        document: int | None = None
        # A blank line after the last one ends the last sentence.
        for line, text in chain(self.lines(path), [(0, "")]):
            columns = split(text)
            if self.comment and text.startswith(self.comment) and (not sentence or len(columns) != width):
                comments.append(Drop(line, "a comment"))
                continue
            if columns and columns[0] != DOCUMENT:
                width = width or len(columns)
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
        used = {"word": self.word} if labels == "ignored" else {"word": self.word, "tag": self.tag}
        for line, columns in rows:
            if len(columns) != width:
                return Bad(line, f"{width} columns as in the first line", f"{len(columns)}: {shown(' '.join(columns))}")
            if not all(-width <= column < width for column in used.values()) or width < len(used):
                return Bad(line, f"columns number {' and '.join(map(str, used.values()))}", f"{width} columns")
            if self.digit and not re.fullmatch(r".+[0-9]", columns[self.word]):
                return Bad(line, "a word that ends in a digit of its segmentation", shown(columns[self.word]))
        words = [columns[self.word][: -1 if self.digit else None] for _, columns in rows]
        tags = [columns[self.tag] for _, columns in rows] if "tag" in used else None
        return tagged_record(rows[0][0], words, tags, self.tags)


def split(text: str) -> list[str]:
    """Split a line into columns at tabs, else at ASCII spaces; NBSP and other Unicode spaces are part of a word."""
    if not text.strip(" \t"):
        return []
    return [cell.strip(" ") for cell in text.split("\t")] if "\t" in text else words_of(text)


def words_of(text: str) -> list[str]:
    """Split a sentence into words at ASCII spaces and tabs."""
    return [word for word in re.split("[ \t]+", text) if word]
