"""Tables with one word a row, as Kaggle publishes named entities: the sentence, the word and its tag in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from dice_ray.data.readers.base import Bad, Labels, RowResult
from dice_ray.data.readers.columns import Column
from dice_ray.data.readers.tags import TagKind, tagged_record
from dice_ray.data.records import Record, TaggedRecord
from dice_ray.settings import Branch


class WordColumns(Branch):
    """A word and its tag in each row.

    Attributes:
        sentence: The column of the sentence: a new one begins at a value that is not empty and not that of the row
            before, so that it may be given once for each sentence or in each row.
        word: The column of the word.
        tag: The column of the tag.
        tags: What the tags mark.
    """

    name = "words"
    record_type: ClassVar[type[Record]] = TaggedRecord

    sentence: Column = "Sentence #"
    word: Column = "Word"
    tag: Column = "Tag"
    tags: TagKind = "spans"

    def used(self, labels: Labels = "read") -> dict[str, Column]:
        """The columns that a row must have, by their use."""
        used = {"sentence": self.sentence, "word": self.word}
        return used if labels == "ignored" else used | {"tag": self.tag}

    def yields(self) -> type[Record]:
        """The type of the records."""
        return self.record_type

    def sentences(self, rows: Iterable[tuple[int, Mapping[str, str] | Bad]]) -> Iterator[RowResult]:
        """A result for each sentence; it is bad if one of its rows is."""
        start, known = 0, ""
        words: list[str] = []
        tags: list[str] = []
        bad: Bad | None = None

        def ended() -> Iterator[RowResult]:
            if bad is not None:
                yield bad
            elif words:
                yield tagged_record(start, words, tags or None, self.tags)

        for line, row in rows:
            if isinstance(row, Bad):
                bad = bad or row
                continue
            if row["sentence"] not in ("", known):
                yield from ended()
                start, known, bad = line, row["sentence"], None
                words, tags = [], []
            start = start or line
            words.append(row["word"])
            if "tag" in row:
                tags.append(row["tag"])
        yield from ended()
