"""The rows of JSON files: one value a line, or a list of objects in one document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from dice_ray.data.readers.base import Bad, NotJsonError, document, lines, parse_json
from dice_ray.errors import DataError


def json_rows(path: Path, encoding: str) -> Iterator[tuple[int, Any]]:
    """The numbered rows of a file: by line in JSON lines, by position in a document; a `Bad` for a line without JSON.

    A document is a list, or an object with one list of objects in it, such as `{"version": 1, "data": [...]}`.
    """
    if (found := _rows_of_document(path, encoding)) is not None:
        yield from enumerate(found, start=1)
        return
    for line, text in lines(path, encoding):
        if text.strip():
            try:
                yield line, parse_json(text)
            except NotJsonError as error:
                yield line, Bad(line, "a JSON object", str(error))


def _rows_of_document(path: Path, encoding: str) -> list[Any] | None:
    """The rows if the file is one document, which is read whole; None for JSON lines, and for what is no JSON."""
    first = list(islice((text for _, text in lines(path, encoding) if text.strip()), 2))
    try:
        begins_whole = isinstance(parse_json(first[0]), dict | list) if first else False
    except NotJsonError:
        begins_whole = False
    if not first or first[0].lstrip()[:1] not in ("[", "{") or (begins_whole and len(first) > 1):
        return None
    try:
        root = document(path, encoding)
    except DataError:
        return None
    if isinstance(root, list):
        return root
    inner = [
        value for value in root.values() if isinstance(value, list) and all(isinstance(row, dict) for row in value)
    ]
    # An object with a list of objects may also be a single row, but then it has a text beside the list.
    is_row = any(isinstance(value, str) and " " in value for value in root.values())
    return inner[0] if len(inner) == 1 and inner[0] and not is_row else None


def flat(row: Any) -> Any:
    """A row with the values of nested objects beside them, under dotted keys.

    >>> flat({"id": 1, "data": {"text": "a"}})
    {'id': 1, 'data': {'text': 'a'}, 'data.text': 'a'}
    """
    if not isinstance(row, dict) or not any(isinstance(value, dict) for value in row.values()):
        return row
    nested = {
        f"{key}.{name}": value
        for key, inner in row.items()
        if isinstance(inner, dict)
        for name, value in flat(inner).items()
    }
    return row | {key: value for key, value in nested.items() if key not in row}
