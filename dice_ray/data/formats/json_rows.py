"""The rows of JSON files: one value a line, or a list of them in one document, parsed item by item.

A document need not fit into memory: its text is read in blocks, and each item of its list is parsed for itself.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, Final

from dice_ray.data.formats.base import Bad
from dice_ray.data.formats.text import blocks, lines, unreadable
from dice_ray.errors import DataError

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_LONGEST_LINE: Final = 2**24
"""The characters of a line from which it is a document: no row is as long."""
_WORDS: Final = frozenset(["tokens", "words", "tokenized_text"])
"""Keys of the words of a text."""
_TEXTS: Final = _WORDS | {"text", "sentence", "content", "question", "context"}
"""Keys of a text or its words."""


class NotJsonError(ValueError):
    """What is wrong with a text that is no JSON; `line` is None if the parser gives no line."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def parse_json(text: str) -> Any:
    """Parse JSON strictly: NaN and infinity, which Python's parser takes, are refused.

    Raises:
        NotJsonError: The text is no JSON, or is too deep or has too long a number for the parser.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.colno}", error.lineno) from None
    except RecursionError:
        raise NotJsonError("lists or objects nested too deep") from None
    except ValueError as error:
        raise NotJsonError(str(error).partition(":")[0].partition(";")[0]) from None


def _refuse_constant(constant: str) -> Any:
    """Refuses NaN and infinity, for `parse_constant` of a JSON decoder."""
    raise ValueError(f"{constant}, which is no JSON")


def parted(path: Path) -> tuple[Path, str | None]:
    """The file and the key of a list in it, of a path such as `data.json#train`; a file may have such a name itself.

    >>> parted(Path("all/data.json#train")), parted(Path("c#.json"))
    ((PosixPath('all/data.json'), 'train'), (PosixPath('c#.json'), None))
    """
    file, _, key = path.name.rpartition("#")
    has_key = file and key and "." not in key and not path.exists()
    return (path.with_name(file), key) if has_key else (path, None)


def row_lists(path: Path, encoding: str) -> list[str]:
    """The keys of the lists of rows in a document that is an object; empty if there are none, or it is no JSON."""
    if not _is_document(path, encoding):
        return []
    try:
        return [key for key, items in _lists(_Document(blocks(path, encoding))) if _is_row(next(items, None), {})]
    except NotJsonError:
        return []


def json_rows(path: Path, encoding: str, key: str | None = None) -> Iterator[tuple[int, Any]]:
    """The numbered rows of a file: by line in JSON lines, by position in a document; a `Bad` for a line without JSON.

    A document is a list, an object with one list of objects in it, such as `{"version": 1, "data": [...]}`, or one with
    a list or object of values for each column, as pandas writes them. Of an object with several lists of rows, `key`
    names the one to read.
    """
    if key is not None:
        yield from _list_of(path, encoding, key)
        return
    if _is_document(path, encoding):
        document = _Document(blocks(path, encoding))
        try:
            yield from enumerate(_rows(path, document), start=1)
        except NotJsonError as error:
            # An object that breaks in its first line may be the first of several lines.
            if document.num_items or document.is_list or error.line != 1:
                raise unreadable(path, error.line or "the file", "JSON", str(error)) from None
        else:
            return
    for line, text in lines(path, encoding):
        if text.strip():
            try:
                yield line, parse_json(text)
            except NotJsonError as error:
                yield line, Bad(line, "a JSON object", str(error))


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    try:
        return isinstance(parse_json(text), dict | list)
    except NotJsonError:
        return False


def flat(row: Any) -> Any:
    """A row with the values of nested objects, and the choices of Label Studio, beside them under dotted keys.

    >>> flat({"id": 1, "data": {"text": "a"}})
    {'id': 1, 'data': {'text': 'a'}, 'data.text': 'a'}
    >>> flat({"text": "a", "topic": {"choices": ["x", "y"]}})["topic"]
    ['x', 'y']
    """
    if not isinstance(row, dict) or not any(isinstance(value, dict) for value in row.values()):
        return row
    # JSON-MIN has a choice as a text, and several in an object.
    row = {key: value["choices"] if _is_choices(value) else value for key, value in row.items()}
    if isinstance(row.get("annotations"), list):
        row |= _choices(row["annotations"])
    nested = {
        f"{key}.{name}": value
        for key, inner in row.items()
        if isinstance(inner, dict)
        for name, value in flat(inner).items()
    }
    return row | {key: value for key, value in nested.items() if key not in row}


def first_of(values: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of the keys that there is; None if there is none."""
    return next((values[key] for key in keys if key in values), None)


def not_cancelled(annotations: list[Any]) -> list[Any]:
    """The annotations of a task in Label Studio without those that the annotator cancelled."""
    return [each for each in annotations if not (isinstance(each, dict) and each.get("was_cancelled"))]


def _is_choices(value: Any) -> bool:
    return isinstance(value, dict) and [*value] == ["choices"] and isinstance(value["choices"], list)


def _choices(annotations: list[Any]) -> dict[str, list[Any]]:
    """The choices in the first annotation of Label Studio that is not cancelled, as `annotations.NAME`."""
    results = (each.get("result") for each in not_cancelled(annotations) if isinstance(each, dict))
    found = dict[str, list[Any]]()
    for item in next((result for result in results if isinstance(result, list)), []):
        match item:
            case {"type": "choices", "from_name": str(name), "value": {"choices": [*choices]}}:
                found.setdefault(f"annotations.{name}", []).extend(choices)
    return found


def _list_of(path: Path, encoding: str, key: str) -> Iterator[tuple[int, Any]]:
    """The numbered items of one list in a document that is an object."""
    known = list[str]()
    try:
        for name, items in _lists(_Document(blocks(path, encoding))):
            if name == key:
                yield from enumerate(items, start=1)
                return
            known.append(name)
    except NotJsonError as error:
        raise unreadable(path, error.line or "the file", "JSON", str(error)) from None
    raise unreadable(path, "the document", f"a list {key!r}", ", ".join(map(repr, known)) or "no list with a key")


class _Document:
    """A JSON document, whose values are parsed one after the other from blocks of its text.

    `json` would hold a whole document. ijson names no line of an error, refuses a whole document for one byte that is
    not of the encoding, and reads half of a surrogate pair as a question mark.
    """

    def __init__(self, texts: Iterator[str]) -> None:
        self._blocks = texts
        self._text, self._at, self._line = "", 0, 1
        self._decoder = JSONDecoder(parse_constant=_refuse_constant)
        self.num_items = 0
        self.is_list = False

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, characters: str) -> str:
        """Pass one of these characters, and return it."""
        if not (found := self.peek()) or found not in characters:
            raise self._error(f"expected {' or '.join(characters)}, found {found or 'the end'}")
        self._at += 1
        return found

    def value(self) -> Any:
        """Parse and pass the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                # The end of a block may cut a literal or an escape, which have up to 16 characters.
                is_cut = error.msg.startswith("Unterminated") or error.pos + 16 >= len(self._text)
                if not is_cut or not self._more():
                    raise self._error(error.msg, error.pos) from None
            except RecursionError:
                raise self._error("lists or objects nested too deep") from None
            except ValueError as error:
                raise self._error(str(error)) from None
            else:
                # A number at the end of a block may go on in the next one.
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value

    def items(self) -> Iterator[Any]:
        for _ in self._entries("[", "]"):
            yield self.value()
            self.num_items += 1

    def fields(self) -> Iterator[str]:
        """The keys of an object; after each of them its value must be taken."""
        for _ in self._entries("{", "}"):
            if self.peek() != '"':
                raise self._error("expected a key in quotes")
            key = self.value()
            self.take(":")
            yield key

    def _entries(self, opening: str, closing: str) -> Iterator[None]:
        """Passes the brackets and commas around the entries of a list or object; yields where one must be taken."""
        self.take(opening)
        if self.peek() == closing:
            self.take(closing)
            return
        while True:
            yield
            if self.take(f",{closing}") == closing:
                return

    def end(self) -> None:
        if self.peek():
            raise self._error("Extra data")

    def _more(self) -> bool:
        """Read on; of the text only what is not passed is kept. False at the end of the file."""
        rest = self._text[self._at :]
        # As much as there is: an item of many blocks is then parsed a few times only.
        new = "".join(islice(self._blocks, 1 + len(rest) // 2**20))
        if new:
            self._line += self._text.count("\n", 0, self._at)
            self._text, self._at = rest + new, 0
        return bool(new)

    def _error(self, problem: str, at: int | None = None) -> NotJsonError:
        at = self._at if at is None else at
        column = at - self._text.rfind("\n", 0, at)
        return NotJsonError(f"{problem} at character {column}", self._line + self._text.count("\n", 0, at))


def _is_document(path: Path, encoding: str) -> bool:
    """Whether a file is one JSON value: it is a list or object of one line, or its first line is none of these."""
    text = line = newline = ""
    for block in blocks(path, encoding):
        text = (text + block).lstrip()
        line, newline, rest = text.partition("\n")
        if rest.strip() or len(text) > _LONGEST_LINE:
            break
    else:
        newline = ""
    is_value = text.startswith(("[", "{"))
    if not newline or not is_value:
        return is_value
    try:
        parse_json(line)
    except NotJsonError:
        return True
    return False


def _rows(path: Path, document: _Document) -> Iterator[Any]:
    """The rows of a document; a DataError at its end if several of its lists hold rows."""
    if document.peek() == "[":
        document.is_list = True
        yield from document.items()
        document.end()
        return
    root, names = dict[str, Any](), list[str]()
    for key in document.fields():
        if document.peek() != "[":
            root[key] = document.value()
            continue
        items = document.items()
        first = list(islice(items, 1))
        # An object with a list of objects may also be a single row, but then it has a text before the list.
        if not first or not _is_row(first[0], root) or _has_text(root):
            root[key] = [*first, *items]
            continue
        names.append(key)
        for item in (each for part in (first, items) for each in part):
            yield dict(zip(root["columns"], item, strict=False)) if "columns" in root else item
    document.end()
    if len(names) > 1:
        raise DataError(
            f"{path}: expected one list of rows in the document, found {', '.join(map(repr, names))}: name the list of "
            f"each split, such as `train: {path.name}#{names[0]}`, or write each to a file of its own"
        )
    if not names and root.get("data") != []:
        yield from _transposed(root)


def _lists(document: _Document) -> Iterator[tuple[str, Iterator[Any]]]:
    """The lists in a document that is an object, with their keys; items that are not taken are passed over."""
    if document.peek() != "{":
        return
    for key in document.fields():
        if document.peek() != "[":
            document.value()
            continue
        items = document.items()
        yield key, items
        deque(items, maxlen=0)


def _is_row(item: Any, root: dict[str, Any]) -> bool:
    """Whether an item of a list is a row: an object, a text with what is said of it, or a list for known columns."""
    if isinstance(item, dict):
        return True
    if not isinstance(item, list):
        return False
    columns = root.get("columns")
    is_annotated = len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str | dict)
    return is_annotated or (isinstance(columns, list) and len(columns) == len(item))


def _has_text(root: dict[str, Any]) -> bool:
    return not _TEXTS.isdisjoint(root) or any(isinstance(value, str) and " " in value for value in root.values())


def _transposed(root: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The rows of an object with a list, or an object by row, for each column; itself if it is none."""
    columns = [list(value.values()) if isinstance(value, dict) else value for value in root.values()]
    are_equally_long = all(isinstance(column, list) for column in columns) and len(set(map(len, columns))) == 1
    are_rows = are_equally_long and len(columns) > 1 and len(columns[0]) > 1
    # Else it may be a single row with a list of words and a list of tags.
    if not are_rows or any(_are_words(root[key]) for key in _WORDS & root.keys()):
        return [root]
    if not any(isinstance(value, str) and " " in value for column in columns for value in column[:20]):
        return [root]
    return (dict(zip(root, values, strict=True)) for values in zip(*columns, strict=True))


def _are_words(value: Any) -> bool:
    """Whether a value is a list of texts of which most are single words: some tokens hold a space, as `New York`."""
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return is_list and 2 * sum(" " in item for item in value) < len(value)
