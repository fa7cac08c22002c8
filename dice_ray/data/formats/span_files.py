"""Texts with annotated spans as files hold them: JSON of annotation tools, folders of brat, PubTator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dice_ray.data.formats.base import READER, UNLABELLED, Bad, Drop, Guess, Labels, RowResult, Sample, TextReaderBranch
from dice_ray.data.formats.json_rows import first_of, json_rows, not_cancelled
from dice_ray.data.formats.spans import Annotated, AnnotatedSpan, SpanSettings, guess_spans
from dice_ray.data.formats.text import RowPlace, blocks, lines, unreadable
from dice_ray.errors import shown

_TEXTS: Final = ("text", "data", "sentence", "content", "tokenized_text", "tokens", "words", "sentences", "document")
_SPANS: Final = ("spans", "entities", "ents", "label", "labels", "annotations", "annotation", "ner")
STARTS: Final = ("start", "start_offset", "begin", "start_char")
ENDS: Final = ("end", "end_offset", "stop", "end_char")
_TYPES: Final = ("label", "labels", "type", "entity", "entity_group", "tag")


class _PlacedText(NamedTuple):
    """An annotated text, its place in the file, and the document that it is a part of."""

    place: RowPlace
    id: str
    annotated: Annotated
    document: str = ""


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
    value = first_of(row, _TEXTS)
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
    values = next((row[key] for key in _SPANS if isinstance(row.get(key), list | dict)), None)
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
    start, end, types = (first_of(value, keys) for keys in (STARTS, ENDS, _TYPES))
    type_ = types[0] if isinstance(types, list) and types else types
    text = value.get("text")
    if type(start) is not int or type(end) is not int or not isinstance(type_, str) or not type_:
        return None
    return AnnotatedSpan(start, end, type_, text if isinstance(text, str) else None)


_Part: TypeAlias = tuple[RowPlace, str, str]
"""The place, the id and the text of a part of a document."""


def _parts_with_spans(document: str, parts: Sequence[_Part], spans: Sequence[AnnotatedSpan]) -> Iterator[_PlacedText]:
    """The parts that have a text or a span: a span's places are those in the document, with a character between parts.

    A span is of the part that it begins in, or at the break before it; one that goes on in the next part is in pieces.
    """
    start, length = 0, len("\n".join(text for *_, text in parts))
    for number, (place, id_, text) in enumerate(parts, start=1):
        end = start + len(text)
        own = [
            span._replace(
                start=max(0, span.start - start),
                end=min(span.end, end) - start,
                in_pieces=span.in_pieces or span.end > end,
            )
            for span in spans
            if start - 1 <= span.start < end
        ]
        if number == len(parts):
            # Those behind the text must not be lost: they make its last part a bad row.
            own += [span for span in spans if span.start >= length]
        if text.strip() or own:
            yield _PlacedText(place, id_, Annotated(text, own), document)
        start = end + 1


_BRAT_SPAN: Final = re.compile(r"T[0-9]+\t(\S+) ([0-9]+) ([0-9]+)((?:;[0-9]+ [0-9]+)*)(?:\t(.*))?")


def _brat_texts(folder: Path, encoding: str, labels: Labels) -> Iterator[_PlacedText | Bad | Drop]:
    """Each line of each text with its spans; in the annotations, places are those in the whole text."""
    texts = sorted(folder.glob("*.txt"))
    if not texts:
        raise unreadable(folder, "the folder", "texts in files .txt, each with a file .ann", "none")
    for path in texts:
        annotations = path.with_suffix(".ann")
        if labels == "read" and not annotations.is_file():
            yield Drop(path.name, "a text without annotations")
            continue
        whole, spans = "".join(blocks(path, encoding)), list[AnnotatedSpan]()
        for number, span in _brat_spans(lines(annotations, encoding)) if labels == "read" else ():
            if isinstance(span, AnnotatedSpan) and span.start < len(whole):
                spans.append(span)
            else:  # none may be lost
                expected = f"a span as `T1<tab>PER 0 4<tab>Anna`, within the {len(whole)} characters of {path.name}"
                yield Bad(f"{annotations.name} line {number}", expected, shown(span))
        numbered = enumerate(whole.split("\n"), start=1)
        parts = [(f"{path.name} line {number}", f"{path.stem}.{number}", text) for number, text in numbered]
        yield from _parts_with_spans(path.stem, parts, spans)


def _brat_spans(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, AnnotatedSpan | str]]:
    """The spans in brat's annotations with their lines, and each line of a span that cannot be read; relations, events,
    attributes and notes are passed over.
    """
    for number, line in lines:
        if found := _BRAT_SPAN.match(line):
            type_, start, end, pieces, text = found.groups()
            yield number, AnnotatedSpan(int(start), int(end), type_, None if pieces else text, bool(pieces))
        elif line.startswith("T"):
            yield number, line


_PUBTATOR_TEXT: Final = re.compile(r"\s*([\w.-]+)\|([ta])\|(.*)")
"""A title or an abstract, behind the number of the article."""


def _is_pubtator(path: Path, encoding: str) -> bool:
    """Whether a file begins with a title or an abstract."""
    return _PUBTATOR_TEXT.match(next(blocks(path, encoding), "")) is not None


def _pubtator_texts(path: Path, encoding: str) -> Iterator[_PlacedText | Bad]:
    """Each title and abstract with its spans; in the file, places are those in both, with a character between them."""
    article, parts, spans, bad = "", list[_Part](), list[AnnotatedSpan](), list[Bad]()
    for line, row in chain(lines(path, encoding), [(0, "")]):
        text, cells = _PUBTATOR_TEXT.match(row), row.split("\t")
        if not row.strip() or (text and text.group(1) != article):
            yield from chain(_parts_with_spans(article, parts, spans), bad)
            article, parts, spans, bad = text.group(1) if text else "", [], [], []
        if text:
            parts.append((line, f"{article}.{text.group(2)}", text.group(3)))
        elif row.strip() and cells[0] != article:
            bad.append(Bad(line, f"an annotation of the article {article or 'above it'}", shown(row)))
        # Relations have names of types in place of numbers.
        elif len(cells) > 2 and cells[1].isdecimal() and cells[2].isdecimal():
            if len(cells) > 4:
                spans.append(AnnotatedSpan(int(cells[1]), int(cells[2]), cells[4].strip(), cells[3]))
            else:
                bad.append(Bad(line, "article, start, end, text and type of a span, with tabs between", shown(row)))


class SpansConfig(SpanSettings, TextReaderBranch):
    """JSON lines or a JSON list of texts with their spans: `[start, end, type]`, or objects with these as keys.

    A text is split into words at spaces and symbols (into characters in Chinese, Japanese and Thai). A span that does
    not align with them is widened to whole words, which is counted. Where the file has words, spans are of words. A
    folder is read as brat's: texts with annotations in files `.txt` and `.ann`, whose lines become records. A file of
    PubTator (`pmid|t|title`, `pmid|a|abstract`, then a line for each span) gives a record of each title and abstract.
    """

    name = "spans"
    reads = ("text", "brat")

    def files(self, path: Path) -> list[Path]:
        if not path.is_dir():
            return [path]
        return sorted(each for each in path.iterdir() if each.suffix in (".txt", ".ann"))

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if path.is_dir():
            texts: Iterator[_PlacedText | Bad | Drop] = _brat_texts(path, self.encoding, labels)
        elif _is_pubtator(path, self.encoding):
            texts = _pubtator_texts(path, self.encoding)
        else:
            texts = self._json_texts(path, labels)
        for text in texts:
            yield self.span_record(*text, labels=labels) if isinstance(text, _PlacedText) else text

    def _json_texts(self, path: Path, labels: Labels) -> Iterator[_PlacedText | Bad | Drop]:
        for line, row in json_rows(path, self.encoding):
            if isinstance(row, Bad):
                yield row
            elif isinstance(row, dict) and row.get("answer", "accept") != "accept" and labels == "read":
                yield Drop(line, "a text that the annotator did not accept")
            elif labels == "read" and _is_unlabelled(row):
                yield Drop(line, UNLABELLED)
            elif (found := annotated(row)) is None:
                yield Bad(line, f"a text under one of {', '.join(_TEXTS)}", shown(row))
            else:
                id_ = row["id"] if isinstance(row, dict) and type(row.get("id")) in (int, str) else line
                yield _PlacedText(line, str(id_), found)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """JSON, PubTator, or a folder of brat's files."""
        may_be_json = sample.path.is_dir() or sample.first_line.startswith(("[", "{"))
        if not may_be_json and not _is_pubtator(sample.path, sample.encoding):
            return "it is no JSON, and begins with no title as PubTator writes it"
        return guess_spans(partial(sample.attempt, cls), f"{READER}.spans")
