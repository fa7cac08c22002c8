"""Annotated texts in the JSON of annotation tools: doccano, Label Studio, Prodigy, spaCy, Dataturks and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from dice_ray.data.formats.annotated import Annotated, AnnotatedSpan
from dice_ray.data.formats.json_rows import not_cancelled

TEXTS: Final = ("text", "data", "sentence", "content", "tokenized_text", "tokens", "words", "sentences", "document")
SPANS: Final = ("spans", "entities", "ents", "label", "labels", "annotations", "annotation", "ner")
STARTS: Final = ("start", "start_offset", "begin", "start_char")
ENDS: Final = ("end", "end_offset", "stop", "end_char")
TYPES: Final = ("label", "labels", "type", "entity", "entity_group", "tag")


def annotated(row: Any) -> Annotated | None:
    """The text and the spans of an annotated row, in any of the known forms; None if it has no text."""
    if isinstance(row, list):  # spaCy: a text and its annotations
        text, found = (row[0], row[1]) if len(row) == 2 else (None, None)
        return Annotated(text, _spans(found)) if isinstance(text, str) else None
    text = _text(row) if isinstance(row, dict) else None
    return None if text is None else Annotated(text, _spans(row))


def is_unlabelled(row: Any) -> bool:
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
