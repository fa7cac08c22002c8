"""Files of PubTator: the title and the abstract of each article, followed by their annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from dice_ray.data.formats.annotated import Annotated, AnnotatedSpan, PlacedText, of_line
from dice_ray.data.formats.base import Bad, blocks, lines
from dice_ray.errors import shown

TEXT: Final = re.compile(r"\s*([\w.-]+)\|([ta])\|(.*)")
"""A title or an abstract, behind the number of the article."""


def is_pubtator(path: Path, encoding: str) -> bool:
    """Whether a file begins with a title or an abstract."""
    return TEXT.match(next(blocks(path, encoding), "")) is not None


def pubtator_texts(path: Path, encoding: str) -> Iterator[PlacedText | Bad]:
    """Each title and abstract with its spans; in the file, places are those in both, with a character between them."""
    article, texts, spans, bad = "", list[tuple[int, str, str]](), list[AnnotatedSpan](), list[Bad]()
    for line, row in chain(lines(path, encoding), [(0, "")]):
        text, cells = TEXT.match(row), row.split("\t")
        if not row.strip() or (text and text.group(1) != article):
            yield from chain(_article(article, texts, spans), bad)
            article, texts, spans, bad = text.group(1) if text else "", [], [], []
        if text:
            texts.append((line, text.group(2), text.group(3)))
        elif row.strip() and cells[0] != article:
            bad.append(Bad(line, f"an annotation of the article {article or 'above it'}", shown(row)))
        # Relations have names of types in place of numbers.
        elif len(cells) > 2 and cells[1].isdecimal() and cells[2].isdecimal():
            if len(cells) > 4:
                spans.append(AnnotatedSpan(int(cells[1]), int(cells[2]), cells[4].strip(), cells[3]))
            else:
                bad.append(Bad(line, "article, start, end, text and type of a span, with tabs between", shown(row)))


def _article(
    article: str, texts: Sequence[tuple[int, str, str]], spans: Sequence[AnnotatedSpan]
) -> Iterator[PlacedText]:
    start, length = 0, len("\n".join(text for *_, text in texts))
    # Those behind the text must not be lost: they make its last part a bad row.
    beyond = [span for span in spans if span.start >= length]
    for line, part, text in texts:
        is_last = (line, part, text) == texts[-1]
        of_text = of_line(spans, start, start + len(text)) + (beyond if is_last else [])
        if text.strip() or of_text:
            yield PlacedText(line, f"{article}.{part}", Annotated(text, of_text), article)
        start += len(text) + 1
