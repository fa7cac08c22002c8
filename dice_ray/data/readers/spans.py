"""Texts with annotated spans: JSON of annotation tools (doccano, Label Studio, ...), PubTator, folders of brat.

Whatever form an annotation has, it becomes an `Annotated`: a text with spans of characters, or words with spans of
words. One function makes the record of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dice_ray.data.readers.base import (
    UNLABELLED,
    Bad,
    Drop,
    Kept,
    Labels,
    RowPlace,
    RowResult,
    TextReaderBranch,
    blocks,
    unreadable,
)
from dice_ray.data.readers.json_rows import json_rows, not_cancelled
from dice_ray.data.readers.tags import in_order
from dice_ray.data.records import NestedRecord, Record, TaggedRecord, WordSpan
from dice_ray.errors import shown
from dice_ray.settings import Settings
from dice_ray.unspaced import UNSPACED

TEXTS: Final = ("text", "data", "sentence", "content", "tokenized_text", "tokens", "words", "sentences", "document")
SPANS: Final = ("spans", "entities", "ents", "label", "labels", "annotations", "annotation", "ner")
STARTS: Final = ("start", "start_offset", "begin")
ENDS: Final = ("end", "end_offset", "stop")
TYPES: Final = ("label", "labels", "type", "entity", "entity_group", "tag")
WORD: Final = re.compile(rf"{UNSPACED.pattern}|[^\W_]+|[^\s]")
"""A character of a script that puts no spaces between words, a sequence of letters and digits, or a symbol."""
BRAT_SPAN: Final = re.compile(r"T[0-9]+\t(\S+) ([0-9]+) ([0-9]+)((?:;[0-9]+ [0-9]+)*)(?:\t(.*))?")
PUBTATOR: Final = re.compile(r"\s*([\w.-]+)\|([ta])\|(.*)")
"""A title or an abstract in PubTator, behind the number of the article."""
MISALIGNED: Final = "a span that begins or ends within a word, which is taken whole"
MISPLACED: Final = "a span whose text does not stand at its place"
OVERLAPPING: Final = "spans that overlap, of which the longest are kept"
IN_PIECES: Final = "a span of several pieces, which is left out"
Overlapping: TypeAlias = Literal["longest", "all"]
Ends: TypeAlias = Literal["after", "last"]


class AnnotatedSpan(NamedTuple):
    """A span of characters or of words as the file gives it; `text` is its text if that is given."""

    start: int
    end: int
    type: str
    text: str | None = None
    in_pieces: bool = False


class Annotated(NamedTuple):
    """A text, or its words, and its spans; None for spans that are missing or malformed."""

    text: str | tuple[str, ...]
    spans: Sequence[AnnotatedSpan] | None


class SpanSettings(Settings):
    """What spans mean, for all readers of spans.

    Attributes:
        ends: Whether the end of a span is the place `after` its last character or word, or that of the `last` one.
        overlapping: Of spans that overlap the `longest` are kept, for the task `tagging`; or `all`, for `mrc_ner`.
    """

    ends: Ends = "after"
    overlapping: Overlapping = "longest"

    def yields(self) -> type[Record]:
        """The type of the records."""
        return NestedRecord if self.overlapping == "all" else TaggedRecord

    def span_record(
        self, place: RowPlace, id: str, found: Annotated, labels: Labels = "read", document: str = ""
    ) -> RowResult:
        """The record of an annotated text."""
        text = found.text
        words = [(word.start(), word.end()) for word in WORD.finditer(text)] if isinstance(text, str) else []
        # Of spans of words, a word is a character.
        words = words if isinstance(text, str) else [(number, number + 1) for number in range(len(text))]
        written = tuple(text[start:end] for start, end in words) if isinstance(text, str) else text
        if not written:
            return Drop(place, "no words")
        if not all(written):
            return Bad(place, "no empty word", shown(" ".join(written)))
        kind = NestedRecord if self.overlapping == "all" else TaggedRecord
        if labels == "ignored":
            return Kept(place, kind(id, written, (), document), document=document or None)
        after = 1 if self.ends == "last" else 0
        spans = None if found.spans is None else [span._replace(end=span.end + after) for span in found.spans]
        if spans is None or any(not 0 <= span.start < span.end <= len(text) for span in spans):
            return Bad(place, "spans within the text, each with start, end and type", shown(found))
        in_words, notes = _in_words(text, words, spans)
        if self.overlapping == "all":
            record: Record = NestedRecord(id, written, in_order(set(in_words)), document)
        else:
            tags, overlap = _tags(len(words), in_words)
            notes += [OVERLAPPING] if overlap else []
            record = TaggedRecord(id, written, tags, document)
        return Kept(place, record, notes[0] if notes else None, document or None)


class SpansConfig(SpanSettings, TextReaderBranch):
    """JSON lines or a JSON list of texts with their spans: `[start, end, type]`, or objects with these as keys.

    A text is split into words at spaces and symbols (into characters in Chinese, Japanese and Thai). A span that does
    not align with them is widened to whole words, which is counted. Where the file has words, spans are of words. A
    folder is read as brat's: texts with annotations in files `.txt` and `.ann`, whose lines become records. A file of
    PubTator (`pmid|t|title`, `pmid|a|abstract`, then a line for each span) gives a record of each title and abstract.

    Attributes:
        ends: Whether the end of a span is the place `after` its last character or word, or that of the `last` one.
        overlapping: Of spans that overlap the `longest` are kept, for the task `tagging`; or `all`, for `mrc_ner`.
    """

    name = "spans"

    def files(self, path: Path) -> list[Path]:
        if not path.is_dir():
            return [path]
        return sorted(each for each in path.iterdir() if each.suffix in (".txt", ".ann"))

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if path.is_dir():
            yield from self._brat(path, labels)
            return
        if is_pubtator(path, self.encoding):
            yield from self._pubtator(path, labels)
            return
        for line, row in json_rows(path, self.encoding):
            if isinstance(row, Bad):
                yield row
            elif isinstance(row, dict) and row.get("answer", "accept") != "accept" and labels == "read":
                yield Drop(line, "a text that the annotator did not accept")
            elif labels == "read" and _is_unlabelled(row):
                yield Drop(line, UNLABELLED)
            elif (found := annotated(row)) is None:
                yield Bad(line, f"a text under one of {', '.join(TEXTS)}", shown(row))
            else:
                id_ = row["id"] if isinstance(row, dict) and type(row.get("id")) in (int, str) else line
                yield self.span_record(line, str(id_), found, labels)

    def _brat(self, folder: Path, labels: Labels) -> Iterator[RowResult]:
        """A record of each line of each text; spans are of characters of the whole text."""
        texts = [path for path in self.files(folder) if path.suffix == ".txt"]
        if not texts:
            raise unreadable(folder, "the folder", "texts in files .txt, each with a file .ann", "none")
        for path in texts:
            annotations = path.with_suffix(".ann")
            if labels == "read" and not annotations.is_file():
                yield Drop(path.name, "a text without annotations")
                continue
            whole, spans, start = "".join(blocks(path, self.encoding)), list[AnnotatedSpan](), 0
            for line, span in _brat_spans(self.lines(annotations)) if labels == "read" else ():
                if isinstance(span, AnnotatedSpan) and span.start < len(whole):
                    spans.append(span)
                else:  # none may be lost
                    expected = f"a span as `T1<tab>PER 0 4<tab>Anna`, within the {len(whole)} characters of {path.name}"
                    yield Bad(f"{annotations.name} line {line}", expected, shown(span))
            for number, text in enumerate(whole.split("\n"), start=1):
                if text.strip():
                    found = Annotated(text, _of_line(spans, start, start + len(text)))
                    yield self.span_record(
                        f"{path.name} line {number}", f"{path.stem}.{number}", found, labels, path.stem
                    )
                start += len(text) + 1

    def _pubtator(self, path: Path, labels: Labels) -> Iterator[RowResult]:
        """A record of each title and abstract; spans are of characters of both, with one character between them."""
        article, texts, spans, bad = "", list[tuple[int, str, str]](), list[AnnotatedSpan](), list[Bad]()
        for line, row in chain(self.lines(path), [(0, "")]):
            text, cells = PUBTATOR.match(row), row.split("\t")
            if not row.strip() or (text and text.group(1) != article):
                yield from chain(self._article(article, texts, spans, labels), bad)
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
        self, article: str, texts: Sequence[tuple[int, str, str]], spans: Sequence[AnnotatedSpan], labels: Labels
    ) -> Iterator[RowResult]:
        start, length = 0, len("\n".join(text for *_, text in texts))
        # Those behind the text must not be lost: they make its last part a bad row.
        beyond = [span for span in spans if span.start >= length]
        for line, part, text in texts:
            is_last = (line, part, text) == texts[-1]
            of_text = _of_line(spans, start, start + len(text)) + (beyond if is_last else [])
            if text.strip() or of_text:
                yield self.span_record(line, f"{article}.{part}", Annotated(text, of_text), labels, article)
            start += len(text) + 1


def is_pubtator(path: Path, encoding: str) -> bool:
    """Whether a file begins with a title or an abstract as PubTator writes them."""
    return PUBTATOR.match(next(blocks(path, encoding), "")) is not None


def annotated(row: Any) -> Annotated | None:
    """The text and the spans of an annotated row, in any of the known forms; None if it has no text."""
    if isinstance(row, list):  # spaCy: a text and its annotations
        text, found = (row[0], row[1]) if len(row) == 2 else (None, None)
        return Annotated(text, _spans(found)) if isinstance(text, str) else None
    text = _text(row) if isinstance(row, dict) else None
    return None if text is None else Annotated(text, _spans(row))


def _is_unlabelled(row: Any) -> bool:
    """Whether a row is a task of Label Studio that has no annotation, or only cancelled ones."""
    annotations = row.get("annotations") if isinstance(row, dict) else None
    if not isinstance(annotations, list) or not_cancelled(annotations):
        return False
    # In other formats an empty list means that the text has no span.
    return bool(annotations) or isinstance(row.get("data"), dict)


def _text(row: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    value = next((row[key] for key in TEXTS if key in row), None)
    if isinstance(value, dict):
        return _text(value)
    if isinstance(value, list) and all(isinstance(item, list) for item in value):  # sentences
        value = [word for sentence in value for word in sentence]
    if isinstance(value, list):
        return tuple(value) if all(isinstance(word, str) for word in value) else None
    return value if isinstance(value, str) else None


def _spans(row: Any) -> list[AnnotatedSpan] | None:
    """The spans of an annotated row; None if it has no list of them, or one of them is malformed."""
    if not isinstance(row, dict):
        return None
    values = next((row[key] for key in SPANS if isinstance(row.get(key), list | dict)), None)
    if isinstance(values, dict):  # CLUENER: by type, and by text
        values = list(_by_type(values))
    if values is None:
        return None
    if any(isinstance(value, dict) and "result" in value for value in values):  # Label Studio: the first annotation
        values = not_cancelled(values)
        first = values[0].get("result", []) if values and isinstance(values[0], dict) else None
        if not (isinstance(first, list) and all(isinstance(item, dict) for item in first)):
            return None
        values = [item.get("value") for item in first if item.get("type") in (None, "labels")]
    if isinstance(row.get("sentences"), list):  # a list for each sentence
        values = list(chain.from_iterable(value for value in values if isinstance(value, list)))
    spans = [span for value in values for span in _of_one(value)]
    return None if None in spans else [span for span in spans if span is not None]


def _by_type(values: Mapping[str, Any]) -> Iterator[Any]:
    for type_, by_text in values.items():
        for text, places in by_text.items() if isinstance(by_text, dict) else [(None, by_text)]:
            for place in places if isinstance(places, list) else [places]:
                start, end = place if isinstance(place, list) and len(place) == 2 else (None, None)
                yield {"start": start, "end": end, "label": type_, "text": text}


def _of_one(value: Any) -> Iterator[AnnotatedSpan | None]:
    """The spans of one annotation; None for a malformed one."""
    if isinstance(value, list | tuple):
        start, end, type_ = value[:3] if len(value) > 2 else (None, None, None)
        yield _span({"start": start, "end": end, "label": type_})
    elif not isinstance(value, dict):
        yield None
    elif isinstance(value.get("points"), list):  # Dataturks
        for point in value["points"]:
            yield _span({**point, "label": value.get("label")} if isinstance(point, dict) else {})
    elif isinstance(value.get("index"), list):  # W2NER: all words of the span
        words = value["index"]
        are_places = bool(words) and all(type(word) is int for word in words)
        span = _span({**value, "start": words[0], "end": words[-1]}) if are_places else None
        in_pieces = are_places and words != list(range(words[0], words[0] + len(words)))
        yield span._replace(in_pieces=in_pieces) if span else None
    else:
        yield _span(value)


def _span(value: Mapping[str, Any]) -> AnnotatedSpan | None:
    start, end, types = (next((value[key] for key in keys if key in value), None) for keys in (STARTS, ENDS, TYPES))
    type_ = types[0] if isinstance(types, list) and types else types
    text = value.get("text")
    if type(start) is not int or type(end) is not int or not isinstance(type_, str) or not type_:
        return None
    return AnnotatedSpan(start, end, type_, text if isinstance(text, str) else None)


def _brat_spans(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, AnnotatedSpan | str]]:
    """The spans in brat's annotations with their lines, and each line of a span that cannot be read; relations, events,
    attributes and notes are passed over.
    """
    for number, line in lines:
        if found := BRAT_SPAN.match(line):
            type_, start, end, pieces, text = found.groups()
            yield number, AnnotatedSpan(int(start), int(end), type_, None if pieces else text, bool(pieces))
        elif line.startswith("T"):
            yield number, line


def _of_line(spans: Sequence[AnnotatedSpan], start: int, end: int) -> list[AnnotatedSpan]:
    """The spans that begin in a line, by their places in it; one that goes on in the next line is in pieces."""
    return [
        span._replace(
            start=span.start - start,
            end=min(span.end, end) - start,
            in_pieces=span.in_pieces or span.end > end,
        )
        for span in spans
        if start <= span.start < end
    ]


def _in_words(
    text: str | tuple[str, ...], words: Sequence[tuple[int, int]], spans: Sequence[AnnotatedSpan]
) -> tuple[list[WordSpan], list[str]]:
    """The spans in words, and notes on those that do not fit them."""
    found, notes = list[WordSpan](), list[str]()
    for span in spans:
        inside = [place for place, (start, end) in enumerate(words) if start < span.end and span.start < end]
        if span.in_pieces:
            notes.append(IN_PIECES)
            continue
        at_place = text[span.start : span.end]
        if isinstance(at_place, str) and span.text is not None and span.text.strip() != at_place.strip():
            notes.append(MISPLACED)
        if not inside:  # white space
            notes.append(MISALIGNED)
            continue
        if words[inside[0]][0] < span.start or words[inside[-1]][1] > span.end:
            notes.append(MISALIGNED)
        found.append(WordSpan(span.type, inside[0], inside[-1] + 1))
    return found, notes


def _tags(num_words: int, spans: Iterable[WordSpan]) -> tuple[tuple[str, ...], bool]:
    """The IOB2 tags of the words, and whether spans overlap, of which the longest are kept."""
    tags, overlap = ["O"] * num_words, False
    for span in sorted(spans, key=lambda span: (span.first - span.end, span.first)):
        if any(tag != "O" for tag in tags[span.first : span.end]):
            overlap = True
            continue
        tags[span.first : span.end] = [f"B-{span.type}", *[f"I-{span.type}"] * (span.end - span.first - 1)]
    return tuple(tags), overlap
