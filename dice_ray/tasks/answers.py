"""Answers that any program gave to the records of a split, such as an LLM: read by id, with every fault counted.

Nothing is guessed in silence: an answer that does not say exactly one label has no label, and whatever was read in
another way than it is written is counted and named in one sentence.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from dice_ray.errors import DataError, counted, shown
from dice_ray.tasks.predictions import BREAK
from dice_ray.unspaced import UNSPACED

_Fields: TypeAlias = Mapping[str, Any]
"""What a file says of one record."""

_EDGES: Final = " \t\r\n.,:;!?\"'`*()[]{}<>#"
_GAP: Final = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")
_NEGATION: Final = re.compile(r"(?<!\w)(?:not?|non|never|neither|nor|cannot|without)(?!\w)|n['\u2019]t(?!\w)", re.I)
_NUM_SHOWN: Final = 3


class LabelNames:
    """Finds the label that a text names, in any case, between any punctuation, or as the only one in a sentence."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._exact = set(labels)
        self._by_key: dict[str, set[str]] = {}
        for label in labels:
            self._by_key.setdefault(_key(label), set()).add(label)
        # The longest first: `not_spam` must not be read as `spam`.
        forms = (r"[\s_-]+".join(map(re.escape, _GAP.split(each))) for each in sorted(labels, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(_whole, forms)), re.I)

    def named(self, text: str) -> str | None:
        """The label; None where the text names none or several, or denies one.

        >>> labels = LabelNames(("spam", "ham", "not sure"))
        >>> labels.named("Answer: Spam!"), labels.named("spam or ham?"), labels.named("This is not spam.")
        ('spam', None, None)
        """
        if text in self._exact:
            return text
        found = self._by_key.get(_key(text))
        if found is None:
            keys = {_key(match[0]) for match in self._pattern.finditer(text)}
            if len(keys) != 1 or _NEGATION.search(self._pattern.sub(" ", text)):
                return None
            found = self._by_key.get(keys.pop(), set())
        return next(iter(found)) if len(found) == 1 else None


def _key(text: str) -> str:
    text = text.strip()
    return _GAP.sub(" ", text.strip(_EDGES) or text).casefold()


def _whole(form: str) -> str:
    """The pattern of a label that is no part of another word or number."""
    return form if UNSPACED.search(form) else rf"(?<![\w-])(?<!\d[.,]){form}(?!\w|[.,]\d)"


@dataclass
class Answers:
    """The answers of a file to the records of a split.

    Attributes:
        file: Where they are from.
        by_id: What it says of each record, in the order of the records; empty for one that it lacks.
        first: Its first row.
        faults: By kind, the ids of the records, or of the file, and what it has.
    """

    file: Path
    by_id: dict[str, _Fields]
    first: _Fields
    faults: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path, ids: Sequence[str], id_name: str = "id") -> Answers:
        """Read a file: JSON lines, TSV or CSV with a header, JSON as `{ID: ANSWER}` or a list of objects, or CoNLL.

        Args:
            file: Its ending says which.
            ids: Of the records that are answered; a CoNLL file has no ids, and must have all records in this order.
            id_name: The name of the column of ids, beside `id`.

        Raises:
            DataError: It cannot be read, or a row lacks an id.
        """
        rows = _rows(file, ids)
        answers = cls(file, {id_: {} for id_ in ids}, rows[0][1])
        for place, row in rows:
            id_ = next((str(row[each]) for each in ("id", id_name, "qas_id") if row.get(each) not in (None, "")), None)
            if id_ is None:
                raise DataError(f"{file}: {place} must have an id, got {shown(dict(row))}")
            if answers.by_id.get(id_) != {}:
                answers.note("twice" if id_ in answers.by_id else "unknown", id_)
            if id_ in answers.by_id:
                answers.by_id[id_] = row
        answers.faults["missing"] = {id_: "" for id_, row in answers.by_id.items() if not row}
        return answers

    def note(self, kind: str, id_: str, found: object = "") -> None:
        """Count a fault."""
        self.faults.setdefault(kind, {})[id_] = str(found)

    def value(self, id_: str, *names: str) -> Any:
        """The first of these fields that a record has; None where it has none."""
        row = self.by_id[id_]
        return next((row[name] for name in names if row.get(name) not in (None, "")), None)

    def unread(self, id_: str, found: object) -> None:
        """Count an answer that cannot be read, of a record that the file has."""
        if self.by_id[id_]:
            self.note("unread", id_, found)

    def tags(self, id_: str, words: Sequence[str], names: LabelNames) -> list[str | None]:
        """The tags of a record's words, which must be those of the file if it has any; None for a word without one."""
        if "words" in (row := self.by_id[id_]) and row["words"] != (must := [BREAK.sub(" ", word) for word in words]):
            raise DataError(f"{self.file}: {id_} must have the words {shown(must)}, got {shown(row['words'])}")
        given = self.value(id_, "tags")
        given = given.split() if isinstance(given, str) else given
        if not isinstance(given, list) or len(given) != len(words):
            self.unread(id_, f"{len(given)} tags for {len(words)} words" if isinstance(given, list) else given)
            return [None] * len(words)
        named = [names.named(str(tag)) for tag in given]
        for tag, name in zip(map(str, given), named, strict=True):
            if name != tag and tag != "_":
                self.note("read" if name else "unread", id_, tag)
        return named

    def check(self) -> None:
        """Check, once all were read, that at least half of the records have an answer."""
        num_lacking = self._num("missing") + self._num("unread")
        if 2 * num_lacking > len(self.by_id):
            ids = ", ".join(map(repr, [*self.by_id][:_NUM_SHOWN]))
            raise DataError(
                f"{self.file} must have a label (or probability, tags, answer) of at least half of the "
                f"{len(self.by_id)} records, and {num_lacking} have none: the first ids of the records are {ids}, and "
                f"the first row of the file is {shown(dict(self.first), 200)}"
            )

    def sentence(self, counts_as: str) -> str:
        """Every fault in one sentence, with what a record without an answer counts as; empty without faults."""
        parts = [self._part(kind, noun, words) for kind, (noun, words) in _FAULTS.items()]
        if self._num("missing") + self._num("unread"):  # they are the third and the fourth kind of fault
            parts.insert(4, f"what is missing or unread counts as {counts_as}")
        return f"{'; '.join(filter(None, parts))}." if any(parts) else ""

    def _num(self, kind: str) -> int:
        return len(self.faults.get(kind, {}))

    def _part(self, kind: str, noun: str, words: str) -> str:
        found = self.faults.get(kind, {})
        listed = [f"{id_}: {shown(text, 40)}" if text else id_ for id_, text in [*found.items()][:_NUM_SHOWN]]
        listed += ["..."] * (len(found) > len(listed))
        said = words.format_map(_ONE if len(found) == 1 else _MANY)
        return f"{counted(len(found), noun)} {said} ({', '.join(listed)})" if found else ""


_ONE: Final = {"was": "was", "it": "it", "s": "s", "is": "is", "has": "has"}
_MANY: Final = {"was": "were", "it": "they", "s": "", "is": "are", "has": "have"}
_FAULTS: Final = {
    "read": ("answer", "with other case or extra text {was} read as the label that {it} name{s}"),
    "empty": ("answer", "{was} read as no answer"),
    "missing": ("id", "{is} missing"),
    "unread": ("answer", "cannot be read, or name{s} no label or several"),
    "unknown": ("id", "{is} not of the split: left out"),
    "twice": ("id", "{is} given more than once: the last answer counts"),
    "alone": ("answer", "{has} a label without a probability: it is taken as 1"),
    "differs": ("label", "{is} not that of the probabilities at .5: the probabilities count"),
}
"""What is said of each kind of fault, behind its number."""


def _rows(file: Path, ids: Sequence[str]) -> list[tuple[str, _Fields]]:
    """The rows of a file and the place of each."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"predictions must be a text file in UTF-8, and {file} cannot be read: {error}") from error
    read = {".jsonl": _json_lines, ".json": _json, ".tsv": _table, ".csv": _table, ".conll": _conll}
    if file.suffix.lower() not in read:
        raise DataError(f"predictions must be a file that ends in {', '.join(read)}, got {file}")
    rows = [*read[file.suffix.lower()](file, text, ids)]
    if not rows:
        raise DataError(f"{file} must hold predictions, and is empty")
    for place, row in rows:
        if not isinstance(row, Mapping):
            raise DataError(f"{file}: {place} must be an object with an id, got {shown(row)}")
    return rows


def _json_lines(file: Path, text: str, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"line {number}", _loaded(file, line, f"line {number}")


def _json(file: Path, text: str, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    document = _loaded(file, text, "it")
    if isinstance(document, Mapping):
        document = [{"id": id_, "answer": answer} for id_, answer in document.items()]
    if not isinstance(document, list):
        raise DataError(f"{file} must be an object with an answer for each id, or a list, got {shown(document)}")
    yield from ((f"entry {number}", row) for number, row in enumerate(document, start=1))


def _loaded(file: Path, text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: {place} must be JSON, and is not: {error}") from error


def _table(file: Path, text: str, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    reader = csv.DictReader(io.StringIO(text), delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
    try:
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{file}: line {reader.line_num} must have as many cells as the header")
            yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise DataError(f"{file}: line {reader.line_num} must be a row of a table: {error}") from error


def _conll(file: Path, text: str, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", text.strip("\n"))]
    if len(blocks) != len(ids):
        raise DataError(f"{file} must have the {len(ids)} sentences of the split in their order, got {len(blocks)}")
    for id_, lines in zip(ids, blocks, strict=True):
        pairs = [line.rpartition("\t")[::2] if "\t" in line else line.rpartition(" ")[::2] for line in lines]
        yield f"sentence {id_}", {"id": id_, "words": [word for word, _ in pairs], "tags": [tag for _, tag in pairs]}
