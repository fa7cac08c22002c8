"""Trees in brackets: of the Stanford Sentiment Treebank, `(3 (2 It) (4 works))`, and of the Penn Treebank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from dice_ray.data.formats.base import NO_WORDS, Bad, Drop, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.tags import tagged_record
from dice_ray.data.records import Record, TaggedRecord, TextRecord
from dice_ray.errors import shown

PIECE = re.compile(r"\(|\)|[^\s()]+")
BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
TRACE = "-NONE-"
BINARY = {"0": "0", "1": "0", "3": "1", "4": "1"}


class TreesConfig(TextReaderBranch):
    """Texts of trees, words separated by spaces; `-LRB-` and `-RRB-` become brackets.

    If labels are ignored, each line is one text, a tree or plain text.

    Attributes:
        units: The sentence of each tree, or each phrase in it, with its label; or with `words` the words with their
            parts of speech, from trees of the Penn Treebank (`.mrg`) over any number of lines, without traces. A split
            that is drawn from phrases has parts of the sentences in training: give files for dev and test.
        classes: `five` as labelled; `binary` merges 0 with 1 and 3 with 4, and drops the neutral 2.
    """

    name = "trees"
    units: Literal["sentences", "phrases", "words"] = "sentences"
    classes: Literal["five", "binary"] = "five"

    def yields(self) -> type[Record]:
        return TaggedRecord if self.units == "words" else TextRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if self.units == "words":
            yield from _tagged(self.lines(path), labels)
            return
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


def _tagged(lines: Iterable[tuple[int, str]], labels: Labels) -> Iterator[RowResult]:
    """The words of each tree and their parts of speech; where labels are ignored, any other line is a sentence."""
    first, depth, tree = 0, 0, list[str]()
    for line, text in lines:
        pieces = PIECE.findall(text)
        if labels == "ignored" and not tree and pieces and pieces[0] != "(":
            yield tagged_record(line, text.split(), None, "plain")
            continue
        for piece in pieces:
            first = first if tree else line
            tree.append(piece)
            depth += (piece == "(") - (piece == ")")
            if depth <= 0:
                yield _leaves(first, tree, labels)
                depth, tree = 0, []
    if tree:
        yield Bad(first, "a tree whose brackets close", shown(" ".join(tree)))


def _leaves(line: int, tree: Sequence[str], labels: Labels) -> RowResult:
    """The words of a tree: each stands between its part of speech and a closing bracket."""
    if tree[0] != "(":
        return Bad(line, "a tree as ( (S (NP (PRP It) ) ) )", shown(" ".join(tree)))
    leaves = [
        (BRACKETS.get(word, word.replace("\\/", "/")), tag)
        for before, tag, word, after in zip(tree, tree[1:], tree[2:], tree[3:], strict=False)
        if before == "(" and after == ")" and "(" not in (tag, word) and ")" not in (tag, word) and tag != TRACE
    ]
    if not leaves:
        return Drop(line, NO_WORDS)
    words, tags = zip(*leaves, strict=True)
    return tagged_record(line, words, None if labels == "ignored" else tags, "plain")


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
