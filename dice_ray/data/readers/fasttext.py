"""Texts behind their labels, one a line: fastText's `__label__sports The match ...`, TREC's `HUM:ind Who won ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from dice_ray.data.readers.base import UNLABELLED, Drop, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.records import TextRecord

TWO_PARTS: Final = re.compile(r"([^\W\d]\w*):\w+ +(?=\S)")
"""A label of a coarse and a fine part, before a text."""


class FasttextConfig(TextReaderBranch):
    """Texts with any number of labels in front, or with one label of two parts as TREC's questions have it.

    Attributes:
        prefix: What each label begins with.
        label: What a label is: a word with the prefix; or of a label of two parts, such as `DESC:manner`, the whole
            (`fine`) or the first part (`coarse`).
    """

    name = "fasttext"
    record_type = TextRecord

    prefix: str = Field("__label__", min_length=1)
    label: Literal["prefixed", "fine", "coarse"] = "prefixed"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, text in self.lines(path):
            rest, found = self._parted(text.strip())
            if not rest:
                yield Drop(line, "no text")
            elif labels == "ignored":
                yield Kept(line, TextRecord(str(line), rest, ()))
            elif not found:
                yield Drop(line, UNLABELLED)
            else:
                yield Kept(line, TextRecord(str(line), rest, tuple(dict.fromkeys(found))))

    def _parted(self, rest: str) -> tuple[str, list[str]]:
        """The text and the labels of a line."""
        found = list[str]()
        if self.label != "prefixed":
            if parts := TWO_PARTS.match(rest):
                found.append(parts.group(1) if self.label == "coarse" else parts.group().rstrip())
                rest = rest[parts.end() :]
            return rest, found
        while rest.startswith(self.prefix):
            label, _, rest = rest.partition(" ")
            found.append(label.removeprefix(self.prefix).rstrip(","))
            rest = rest.strip()
        return rest, found
