"""CoNLL columns: a word a line, its tag in another column, sentences apart by lines without text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from dice_ray.data.readers.base import Bad, Drop, Found, Labels, ReaderBranch, lines, shown
from dice_ray.data.readers.tags import TagKind, tagged
from dice_ray.data.records import Record, TaggedRecord

DOCUMENT = "-DOCSTART-"


class ConllConfig(ReaderBranch):
    """Columns apart by a tab, or by spaces in a line without a tab; all lines have as many as the first.

    Attributes:
        word: The number of the word's column: 0 is the first, -1 the last.
        tag: The number of the tag's column.
        tags: What the tags mark.
        comment: What a comment line begins with; none takes every line for a word, as `#` may be one. A line with all
            columns within a sentence is a word nevertheless; comments are counted.
        digit: Whether each word ends in a digit of its segmentation, which is cut off (Weibo).
    """

    name = "conll"

    word: int = 0
    tag: int = -1
    tags: TagKind = "spans"
    comment: str | None = Field(default=None, min_length=1)
    digit: bool = False

    def yields(self) -> type[Record]:
        return TaggedRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        width = 0
        sentence: list[tuple[int, list[str]]] = []
        comments: list[Drop] = []
        for line, text in lines(path):
            columns = split(text)
            if self.comment and text.startswith(self.comment) and (not sentence or len(columns) != width):
                comments.append(Drop(line, "a comment"))
                continue
            if columns and columns[0] != DOCUMENT:
                width = width or len(columns)
                sentence.append((line, columns))
                continue
            if sentence:
                yield self._sentence(sentence, width, labels)
            yield from comments
            sentence, comments = [], []
            if columns:
                yield Drop(line, "a document mark")
        if sentence:
            yield self._sentence(sentence, width, labels)
        yield from comments

    def _sentence(self, rows: list[tuple[int, list[str]]], width: int, labels: Labels) -> Found:
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
        return tagged(rows[0][0], words, tags, self.tags)


def split(text: str) -> list[str]:
    """The columns of a line: a tab or ASCII spaces part them, never an NBSP or another space of Unicode."""
    if not text.strip(" \t"):
        return []
    return [cell.strip(" ") for cell in text.split("\t")] if "\t" in text else words_of(text)


def words_of(text: str) -> list[str]:
    """The words of a sentence in one line, apart by ASCII spaces or tabs."""
    return [word for word in re.split("[ \t]+", text) if word]
