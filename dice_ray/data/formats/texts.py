"""Texts with their labels: behind them in a line (fastText, TREC), in folders of classes (aclImdb), and in trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from dice_ray.data.formats.base import (
    MAX_BAD_SHARE,
    NO_TEXT,
    NO_WORDS,
    NUM_ROWS,
    READER,
    UNLABELLED,
    Bad,
    Drop,
    Guess,
    Kept,
    Labels,
    RowResult,
    Sample,
    TextReaderBranch,
)
from dice_ray.data.formats.candidates import are_labelled_texts
from dice_ray.data.formats.tags import guess_tagging, tagged_record
from dice_ray.data.formats.text import RowPlace, blocks, lines, unreadable
from dice_ray.data.records import Record, TaggedRecord, TextRecord
from dice_ray.errors import shown

_TWO_PARTS: Final = re.compile(r"([^\W\d]\w*):\w+ +(?=\S)")
"""A label of a coarse and a fine part, before a text."""
NO_CLASS: Final = "unsup"
"""The folder of texts without labels in aclImdb."""


def text_record(place: RowPlace, text: str, labels: Sequence[str] | None, id: str | None = None) -> Kept | Drop:
    """The record of a text, or why there is none; without labels (labels ignored) each text has one."""
    if not text:
        return Drop(place, NO_TEXT)
    if labels is not None and not labels:
        return Drop(place, UNLABELLED)
    return Kept(place, TextRecord(id or str(place), text, tuple(dict.fromkeys(labels or ()))))


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
            if rest and labels == "read" and not all(found):
                yield Bad(line, f"a label after {self.prefix!r}", shown(text))
            else:
                yield text_record(line, rest, found if labels == "read" else None)

    def _parted(self, rest: str) -> tuple[str, list[str]]:
        """The text and the labels of a line."""
        found = list[str]()
        if self.label != "prefixed":
            if parts := _TWO_PARTS.match(rest):
                found.append(parts.group(1) if self.label == "coarse" else parts.group().rstrip())
                rest = rest[parts.end() :]
            return rest, found
        while rest.startswith(self.prefix):
            # As fastText: a space that is not ASCII is part of the label.
            label, *after = re.split(r"\s", rest, maxsplit=1, flags=re.ASCII)
            found.append(label.removeprefix(self.prefix).rstrip(","))
            rest = "".join(after).strip()
        return rest, found

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        if sample.first_line.startswith("__label__"):
            return sample.attempt(cls).guess({READER: "Each text stands behind its labels."})
        if not _TWO_PARTS.match(sample.first_line):
            return "it begins neither with __label__ nor with a label of two parts, such as DESC:manner"
        result = sample.attempt(cls, label="fine")
        num_lines = sum(bool(text.strip()) for _, text in islice(lines(sample.path, sample.encoding), NUM_ROWS))
        if len(result.records) < (1 - MAX_BAD_SHARE) * num_lines:
            return f"{num_lines - len(result.records)} of {num_lines} lines do not begin with a label of two parts"
        # A record of logged values also begins with `name:value`.
        if not are_labelled_texts(result.records):
            return "its lines begin with words with a colon, but these do not repeat as labels do, or no texts follow"
        why = {
            READER: "Each text stands behind a label with a coarse and a fine part.",
            f"{READER}.fasttext.label": "Labels are read whole; `coarse` reads the part before the colon.",
        }
        return result.guess(why)


class FoldersConfig(TextReaderBranch):
    """A folder for each class, named as the class, with a text in each of its files `.txt`, as in aclImdb.

    Texts in a folder `unsup` have no label. If labels are ignored, a file is one text.
    """

    name = "folders"
    reads = ("classes",)
    record_type = TextRecord

    def files(self, path: Path) -> list[Path]:
        return [file for files in classes_in(path).values() for file in files] if path.is_dir() else [path]

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if labels == "ignored" and path.is_file():
            yield self._text(path.name, path, None)
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
                yield self._text(f"{label}/{file.name}", file, [label] if labels == "read" else None)

    def _text(self, place: str, file: Path, labels: list[str] | None) -> RowResult:
        return text_record(place, "".join(blocks(file, self.encoding)).strip(), labels)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        names = classes_in(sample.path)
        unlabelled = f" Texts in {NO_CLASS} have no label, and are dropped." if NO_CLASS in names else ""
        classes = ", ".join([name for name in names if name != NO_CLASS][:10])
        return sample.attempt(cls).guess(
            {READER: f"A folder for each class, a text in each file: {classes}.{unlabelled}"}
        )


def classes_in(folder: Path) -> dict[str, list[Path]]:
    """The files `.txt` in each subfolder that has some, by its name."""
    files = {path.name: sorted(path.glob("*.txt")) for path in sorted(folder.iterdir()) if path.is_dir()}
    return {name: texts for name, texts in files.items() if texts and not name.startswith(".")}


_PIECE = re.compile(r"\(|\)|[^\s()]+")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
_TRACE = "-NONE-"
_BINARY = {"0": "0", "1": "0", "3": "1", "4": "1"}


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
            nodes = _phrases(text)
            if labels == "ignored":
                words = nodes[0][1] if nodes else text.split()
                yield text_record(line, " ".join(words), None)
                continue
            if nodes is None:
                yield Bad(line, "a tree as (3 (2 It) (4 works))", shown(text))
                continue
            for number, (label, words) in enumerate(nodes[:1] if self.units == "sentences" else nodes):
                if self.classes == "binary" and label == "2":
                    yield Drop(line, "a neutral text")
                    continue
                class_ = _BINARY[label] if self.classes == "binary" else label
                yield text_record(line, " ".join(words), [class_], f"{line}.{number}" if number else None)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        if not sample.first_line.startswith("("):
            return "it does not begin with ("
        result = sample.attempt(cls)
        if result.reason:
            tagged = sample.attempt(cls, units="words")
            why = {READER: "Trees of the Penn Treebank; the words are read with their parts of speech, without traces."}
            return result.reason if tagged.reason else guess_tagging(tagged, "plain", why)
        why = {
            READER: "A tree with a label at every node in each line; its sentences are read, in five classes. "
            "`trees: {units: phrases}` reads every phrase, `trees: {classes: binary}` merges 0 with 1 and 3 with 4.",
            "task": "A text with one label.",
        }
        return Guess(result.reader, {"text_classification": {}}, why, result.records, result.bad)


def _tagged(lines: Iterable[tuple[int, str]], labels: Labels) -> Iterator[RowResult]:
    """The words of each tree and their parts of speech; where labels are ignored, any other line is a sentence."""
    first, depth, tree = 0, 0, list[str]()
    for line, text in lines:
        pieces = _PIECE.findall(text)
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
        (_BRACKETS.get(word, word.replace("\\/", "/")), tag)
        for before, tag, word, after in zip(tree, tree[1:], tree[2:], tree[3:], strict=False)
        if before == "(" and after == ")" and "(" not in (tag, word) and ")" not in (tag, word) and tag != _TRACE
    ]
    if not leaves:
        return Drop(line, NO_WORDS)
    words, tags = zip(*leaves, strict=True)
    return tagged_record(line, words, None if labels == "ignored" else tags, "plain")


def _phrases(text: str) -> list[tuple[str, list[str]]] | None:
    """The label and the words of each node, the root first; None if the text is no tree.

    >>> _phrases("(3 (2 It) (4 works))")
    [('3', ['It', 'works']), ('2', ['It']), ('4', ['works'])]
    """
    nodes: list[tuple[str, list[str]]] = []
    open_nodes: list[int] = []
    pieces = _PIECE.findall(text)
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
                nodes[node][1].append(_BRACKETS.get(piece, piece))
    return nodes if closed else None
