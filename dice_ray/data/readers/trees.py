"""PTB trees of the Stanford Sentiment Treebank with a label at every node: `(3 (2 It) (4 works))`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dice_ray.data.readers.base import Bad, Drop, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.records import TextRecord
from dice_ray.errors import shown

PIECE = re.compile(r"\(|\)|[^\s()]+")
BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
BINARY = {"0": "0", "1": "0", "3": "1", "4": "1"}


class TreesConfig(TextReaderBranch):
    """Texts of trees, words separated by spaces; `-LRB-` and `-RRB-` become brackets.

    If labels are ignored, each line is one text, a tree or plain text.

    Attributes:
        units: The sentence of each tree, or each phrase in it.
        classes: `five` as labelled; `binary` merges 0 with 1 and 3 with 4, and drops the neutral 2.
    """

    name = "trees"
    record_type = TextRecord

    units: Literal["sentences", "phrases"] = "sentences"
    classes: Literal["five", "binary"] = "five"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, text in self.lines(path):
            if not text.strip():
                continue
            nodes = phrases(text)
            if labels == "ignored":
                words = nodes[0][1] if nodes else text.split()
                yield Kept(line, TextRecord(str(line), " ".join(words), ()))
                continue
            if nodes is None:
                yield Bad(line, "a tree as (3 (2 It) (4 works))", shown(text))
                continue
            for number, (label, words) in enumerate(nodes[:1] if self.units == "sentences" else nodes):
                if self.classes == "binary" and label == "2":
                    yield Drop(line, "a neutral text")
                    continue
                class_ = BINARY[label] if self.classes == "binary" else label
                name = str(line) if number == 0 else f"{line}.{number}"
                yield Kept(line, TextRecord(name, " ".join(words), (class_,)))


def phrases(text: str) -> list[tuple[str, list[str]]] | None:
    """The label and the words of each node, the root first; None if the text is no tree.

    >>> phrases("(3 (2 It) (4 works))")
    [('3', ['It', 'works']), ('2', ['It']), ('4', ['works'])]
    """
    nodes: list[tuple[str, list[str]]] = []
    open_nodes: list[int] = []
    pieces = PIECE.findall(text)
    closed = False
    for before, piece in zip(["", *pieces], pieces, strict=False):
        if closed or (not open_nodes and piece != "("):
            return None
        if before == "(":
            if piece not in {"0", "1", "2", "3", "4"}:
                return None
            nodes[-1] = (piece, [])
        elif piece == "(":
            open_nodes.append(len(nodes))
            nodes.append(("", []))
        elif piece == ")":
            if not nodes[open_nodes.pop()][1]:
                return None
            closed = not open_nodes
        else:
            for node in open_nodes:
                nodes[node][1].append(BRACKETS.get(piece, piece))
    return nodes if closed else None
