"""Reads files and rows that are no split of a data set, to predict or score them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast, get_args

from dice_ray.data.formats.base import Kept, Labels, ReaderBranch, RowResult
from dice_ray.data.formats.columns import ID, PairColumns, TextColumns
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.formats.lists import QuestionColumns, TaggedColumns
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig, query_record
from dice_ray.data.formats.rows import ArrowConfig, JsonlConfig, ParquetConfig, RowColumnsConfig, read_named_rows
from dice_ray.data.formats.spans import WORD, SpanSettings
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.text import binary_format, undecoded
from dice_ray.data.hub import HubConfig
from dice_ray.data.reading import OnBadRow, gather
from dice_ray.data.records import (
    NestedRecord,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    ReadReport,
    Record,
    TaggedRecord,
    TextRecord,
)
from dice_ray.data.sources import DataConfig, FilesConfig
from dice_ray.data.synthetic import SyntheticConfig
from dice_ray.errors import DataError, shown
from dice_ray.unspaced import words_of

_READERS: dict[type[Record], ReaderBranch] = {
    PairRecord: TablesConfig(quoting=False, columns=PairColumns()),
    TextRecord: TablesConfig(quoting=False, columns=TextColumns()),
    TaggedRecord: ConllConfig(),
    QuestionRecord: SquadConfig(),
    QueryRecord: MrcNerReaderConfig(),
}
"""The reader of files for a run on generated data, which have no reader of their own."""
_COLUMNS: dict[type[Record], RowColumnsConfig] = {
    PairRecord: PairColumns(),
    TextRecord: TextColumns(),
    TaggedRecord: TaggedColumns(),
    NestedRecord: TaggedColumns(),
    QuestionRecord: QuestionColumns(),
}
"""The columns of rows in memory for a run whose data have no named columns."""
_EXAMPLE: dict[str, Any] = {
    "id": "1",
    "first": "The router is broken.",
    "second": "The router does not work.",
    "text": "The router is broken.",
    "words": ["Anna", "lives", "in", "Berlin"],
    "question": "Where does Anna live?",
    "context": "Anna lives in Berlin.",
}
"""Made-up values of a row, by the use of the column."""
_EXAMPLE_QUERY = {"qas_id": "1.1", "context": "Anna lives in Berlin", "query": "Find places.", "entity_label": "LOC"}


def read(config: DataConfig, path: Path, labels: Labels) -> tuple[tuple[Record, ...], ReadReport]:
    """Read a file as the data of a run are read: by their reader, or for a hub data set as rows of the same columns.

    Raises:
        DataError: The file does not exist, is malformed, or holds no record.
    """
    source = config.source
    reader: ReaderBranch
    file = next(iter(source.reader.files(path)), path) if isinstance(source, FilesConfig) else path
    if not file.is_file():
        actual = "got a folder that is not read as a whole" if file.is_dir() else "but it does not exist"
        raise DataError(f"there must be a file {file.absolute()}, {actual}")
    if path.suffix == ".parquet" or (binary := binary_format(file)) == "Parquet":
        reader = ParquetConfig(columns=_named_columns(config))
    elif binary == "Arrow":
        reader = ArrowConfig(columns=_named_columns(config))
    elif isinstance(source, SyntheticConfig):
        reader = _READERS[source.yields()]
    elif isinstance(source, HubConfig):
        reader = JsonlConfig(columns=source.columns)
    else:
        reader = source.reader
    on_bad_row: OnBadRow = getattr(source, "on_bad_row", "error")
    rows: Callable[[], Iterable[RowResult]] = partial(reader.read, path, labels)
    # Where the data have no column of ids, one named `id` may hold something else.
    if labels == "ignored" and getattr(getattr(reader, "columns", None), "id", ID) is None and _repeat_ids(rows()):
        rows = partial(_numbered, rows)
    records, report = gather(path, rows, on_bad_row)
    if not records:
        raise DataError(
            f"{path} must hold at least one record for the reader `{reader.name}`, got none{report.dropped_rows()}"
        )
    return records, report


def _repeat_ids(rows: Iterable[RowResult]) -> bool:
    ids = Counter[str]()
    with suppress(DataError):  # `gather` raises it, after the bad rows before it
        ids.update(row.record.id for row in rows if isinstance(row, Kept))
    return len(ids) < ids.total()


def _numbered(rows: Callable[[], Iterable[RowResult]]) -> Iterator[RowResult]:
    """The same rows, with their lines as ids."""
    for row in rows():
        yield replace(row, record=replace(row.record, id=str(row.place))) if isinstance(row, Kept) else row


def _named_columns(config: DataConfig) -> RowColumnsConfig:
    """The columns of rows for a run: those of its data, or if these have none, the default ones of its records."""
    if isinstance(columns := getattr(config.reader, "columns", None), get_args(get_args(RowColumnsConfig)[0])):
        return cast(RowColumnsConfig, columns)
    kind = config.yields()
    if kind not in _COLUMNS:
        raise DataError(f"a table must hold what the run reads, and {kind.__name__} has no columns: give a file")
    return _COLUMNS[kind]


def id_column(config: DataConfig) -> str:
    """The name of the column of ids: that of the data, by default `id`."""
    column = getattr(getattr(config.reader, "columns", None), "id", None)
    return column if isinstance(column, str) else ID


def read_lines(config: DataConfig, lines: Iterable[str | tuple[str, str]]) -> tuple[Record, ...]:
    """A record of each line that is not blank, with the number of the line as its id.

    A line is a text, a pair of sentences (separated by a tab, or a tuple), or a sentence: it is split into words as the
    texts of the data are, or if these hold words, at spaces; without any space, a character of a script that puts no
    spaces between words is a word.

    Raises:
        DataError: The data are of another kind, a line is no pair or no text in UTF-8, or there is no line.
    """
    columns = getattr(config.reader, "columns", None)
    has_spans = isinstance(config.reader, SpanSettings) or isinstance(columns, SpanSettings)
    kind, split = config.yields(), WORD.findall if has_spans else _words
    records: list[Record] = []
    for number, line in zip(map(str, count(1)), lines, strict=False):
        texts = [line] if isinstance(line, str) or not isinstance(line, Iterable) else [*line]
        if not all(isinstance(text, str) for text in texts):  # such as the NaN of a missing value
            raise DataError(f"line {number} must be a text, got {shown(line)}")
        if not "".join(texts).strip():
            continue
        for text in texts:
            _check_utf_8(number, text)
        if kind is PairRecord:
            pair = line.strip("\r\n").split("\t") if isinstance(line, str) else texts
            if len(pair) != 2:
                raise DataError(f"line {number} must be two sentences with a tab between them, got {shown(line)}")
            records.append(PairRecord(number, pair[0], pair[1], ""))
        elif not isinstance(line, str):
            raise DataError(f"line {number} must be a text, as the run is not on pairs, got {shown(line)}")
        elif kind is TextRecord:
            records.append(TextRecord(number, line.strip("\r\n"), ()))
        elif kind in (TaggedRecord, NestedRecord):
            records.append(TaggedRecord(number, tuple(split(line)), ()))
        else:
            raise DataError("lines must be for a task on texts, pairs or words: give a file in the format of its data")
    if not records:
        raise DataError("there must be a line to predict, got none")
    return tuple(records)


def _words(line: str) -> list[str]:
    words = line.split()
    return words if len(words) > 1 else words_of(line)


def _check_utf_8(number: str, text: str) -> None:
    """Raise a DataError for half of a surrogate pair, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        found = undecoded(text) or f"half of a surrogate pair in {shown(text)}"
        raise DataError(f"line {number} must be text in UTF-8, got {found}") from None


def read_rows(config: DataConfig, rows: Iterable[Mapping[Any, Any]]) -> tuple[Record, ...]:
    """The records of rows in memory, by the run's own columns if those have names; labels are not read.

    Raises:
        DataError: There are no rows, or a row lacks a column.
    """
    numbered = [(line, {str(name): value for name, value in row.items()}) for line, row in enumerate(rows, start=1)]
    if config.yields() is QueryRecord:
        results = [query_record(f"[{line}]", row, "ignored") for line, row in numbered]
    else:
        results = list(read_named_rows(_named_columns(config), numbered, "ignored"))
    records, _ = gather(Path("the rows"), lambda: results)
    if not records:
        raise DataError("there must be a row to predict, got none")
    return records


def example_row(config: DataConfig) -> dict[str, Any]:
    """A row as `read_rows` takes it; its texts are made up, since texts of the data must not be stored."""
    if config.yields() is QueryRecord:
        return dict(_EXAMPLE_QUERY)
    return {str(column): _EXAMPLE[use] for use, column in _named_columns(config).used("ignored").items()}
