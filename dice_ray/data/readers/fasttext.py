"""fastText's format: a text a line behind its labels, as `__label__sports __label__local The match ...`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from dice_ray.data.readers.base import UNLABELLED, Drop, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.records import TextRecord


class FasttextConfig(TextReaderBranch):
    """Texts with any number of labels in front.

    Attributes:
        prefix: What each label begins with.
    """

    name = "fasttext"
    record_type = TextRecord

    prefix: str = Field("__label__", min_length=1)

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, text in self.lines(path):
            rest, found = text.strip(), list[str]()
            while rest.startswith(self.prefix):
                label, _, rest = rest.partition(" ")
                found.append(label.removeprefix(self.prefix).rstrip(","))
                rest = rest.strip()
            if not rest:
                yield Drop(line, "no text")
            elif labels == "ignored":
                yield Kept(line, TextRecord(str(line), rest, ()))
            elif not found:
                yield Drop(line, UNLABELLED)
            else:
                yield Kept(line, TextRecord(str(line), rest, tuple(dict.fromkeys(found))))
