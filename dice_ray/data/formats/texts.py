"""Texts behind their labels, one a line (fastText, TREC), or in files, with a folder for each class (aclImdb)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from dice_ray.data.formats.base import (
    NO_TEXT,
    UNLABELLED,
    Bad,
    Drop,
    Kept,
    Labels,
    RowResult,
    TextReaderBranch,
    blocks,
    unreadable,
)
from dice_ray.data.records import TextRecord
from dice_ray.errors import shown

TWO_PARTS: Final = re.compile(r"([^\W\d]\w*):\w+ +(?=\S)")
"""A label of a coarse and a fine part, before a text."""
NO_CLASS: Final = "unsup"
"""The folder of texts without labels in aclImdb."""


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
                yield Drop(line, NO_TEXT)
            elif labels == "ignored":
                yield Kept(line, TextRecord(str(line), rest, ()))
            elif not found:
                yield Drop(line, UNLABELLED)
            elif not all(found):
                yield Bad(line, f"a label after {self.prefix!r}", shown(text))
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
            # As fastText: a space that is not ASCII is part of the label.
            label, *after = re.split(r"\s", rest, maxsplit=1, flags=re.ASCII)
            found.append(label.removeprefix(self.prefix).rstrip(","))
            rest = "".join(after).strip()
        return rest, found


class FoldersConfig(TextReaderBranch):
    """A folder for each class, named as the class, with a text in each of its files `.txt`, as in aclImdb.

    Texts in a folder `unsup` have no label. If labels are ignored, a file is one text.
    """

    name = "folders"
    record_type = TextRecord

    def files(self, path: Path) -> list[Path]:
        return [file for files in classes_in(path).values() for file in files] if path.is_dir() else [path]

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if labels == "ignored" and path.is_file():
            yield self._text(path.name, path, ())
            return
        classes = classes_in(path) if path.is_dir() else {}
        if not classes:
            raise unreadable(path, "the folder", "a folder for each class, with texts in files .txt", "none")
        # A text of each class in turn: the first rows show all classes.
        by_class = [[(label, file) for file in files] for label, files in classes.items()]
        for label, file in filter(None, chain.from_iterable(zip_longest(*by_class))):
            if label == NO_CLASS and labels == "read":
                yield Drop(f"{label}/{file.name}", UNLABELLED)
            else:
                yield self._text(f"{label}/{file.name}", file, (label,) if labels == "read" else ())

    def _text(self, place: str, file: Path, labels: tuple[str, ...]) -> RowResult:
        text = "".join(blocks(file, self.encoding)).strip()
        return Kept(place, TextRecord(place, text, labels)) if text else Drop(place, NO_TEXT)


def classes_in(folder: Path) -> dict[str, list[Path]]:
    """The files `.txt` in each subfolder that has some, by its name."""
    files = {path.name: sorted(path.glob("*.txt")) for path in sorted(folder.iterdir()) if path.is_dir()}
    return {name: texts for name, texts in files.items() if texts and not name.startswith(".")}
