"""Folders of brat: texts in files `.txt`, and annotations of the same names in files `.ann`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dice_ray.data.formats.annotated import Annotated, AnnotatedSpan, PlacedText, of_line
from dice_ray.data.formats.base import Bad, Drop, Labels, blocks, lines, unreadable
from dice_ray.errors import shown

SPAN: Final = re.compile(r"T[0-9]+\t(\S+) ([0-9]+) ([0-9]+)((?:;[0-9]+ [0-9]+)*)(?:\t(.*))?")


def brat_texts(folder: Path, encoding: str, labels: Labels) -> Iterator[PlacedText | Bad | Drop]:
    """Each line of each text with its spans; in the annotations, places are those in the whole text."""
    texts = sorted(folder.glob("*.txt"))
    if not texts:
        raise unreadable(folder, "the folder", "texts in files .txt, each with a file .ann", "none")
    for path in texts:
        annotations = path.with_suffix(".ann")
        if labels == "read" and not annotations.is_file():
            yield Drop(path.name, "a text without annotations")
            continue
        whole, spans, start = "".join(blocks(path, encoding)), list[AnnotatedSpan](), 0
        for number, span in _spans(lines(annotations, encoding)) if labels == "read" else ():
            if isinstance(span, AnnotatedSpan) and span.start < len(whole):
                spans.append(span)
            else:  # none may be lost
                expected = f"a span as `T1<tab>PER 0 4<tab>Anna`, within the {len(whole)} characters of {path.name}"
                yield Bad(f"{annotations.name} line {number}", expected, shown(span))
        for number, text in enumerate(whole.split("\n"), start=1):
            of_text = of_line(spans, start, start + len(text))
            if text.strip() or of_text:
                place, id_ = f"{path.name} line {number}", f"{path.stem}.{number}"
                yield PlacedText(place, id_, Annotated(text, of_text), path.stem)
            start += len(text) + 1


def _spans(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, AnnotatedSpan | str]]:
    """The spans in brat's annotations with their lines, and each line of a span that cannot be read; relations, events,
    attributes and notes are passed over.
    """
    for number, line in lines:
        if found := SPAN.match(line):
            type_, start, end, pieces, text = found.groups()
            yield number, AnnotatedSpan(int(start), int(end), type_, None if pieces else text, bool(pieces))
        elif line.startswith("T"):
            yield number, line
