"""A file that is no split of a data set, read as those are: to be predicted, or to be scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dice_ray.data.hub import HubConfig
from dice_ray.data.readers.base import Labels, ReaderBranch
from dice_ray.data.readers.columns import PairColumns, TextColumns
from dice_ray.data.readers.conll import ConllConfig
from dice_ray.data.readers.lists import QuestionColumns, TaggedColumns
from dice_ray.data.readers.mrc_ner import MrcNerConfig, query
from dice_ray.data.readers.rows import JsonlConfig, ParquetConfig, RowColumnsConfig, named
from dice_ray.data.readers.squad import SquadConfig
from dice_ray.data.readers.tables import TablesConfig
from dice_ray.data.reading import OnBadRow
from dice_ray.data.records import PairRecord, QueryRecord, QuestionRecord, ReadReport, Record, TaggedRecord, TextRecord
from dice_ray.data.sources import DataConfig, gather
from dice_ray.data.synthetic import SyntheticConfig
from dice_ray.errors import DataError

READERS: dict[type[Record], ReaderBranch] = {
    PairRecord: TablesConfig(quoting=False, columns=PairColumns()),
    TextRecord: TablesConfig(quoting=False, columns=TextColumns()),
    TaggedRecord: ConllConfig(),
    QuestionRecord: SquadConfig(),
    QueryRecord: MrcNerConfig(),
}
"""How files are read beside generated data, which have no reader; beside those of the hub, rows of the same columns."""
COLUMNS: dict[type[Record], RowColumnsConfig] = {
    PairRecord: PairColumns(),
    TextRecord: TextColumns(),
    TaggedRecord: TaggedColumns(),
    QuestionRecord: QuestionColumns(),
}
"""How rows with named values are read where the run's own data have none."""


def read(config: DataConfig, path: Path, labels: Labels) -> tuple[tuple[Record, ...], ReadReport]:
    """The records of a file, and the report of what was dropped.

    Raises:
        DataError: It is not there, cannot be read as the data are, or holds no record.
    """
    source = config.source
    reader: ReaderBranch
    on_bad_row: OnBadRow = "error"
    if not path.is_file():
        raise DataError(f"there must be a file {path.absolute()}")
    if isinstance(source, SyntheticConfig):
        reader = READERS[source.yields()]
    elif isinstance(source, HubConfig):
        reader = (ParquetConfig if path.suffix == ".parquet" else JsonlConfig)(columns=source.columns)
    else:
        reader, on_bad_row = source.reader, source.on_bad_row
    records, report = gather(path, reader.read(path, labels), on_bad_row)
    if not records:
        dropped = "".join(f"; {tally.count} rows dropped: {reason}" for reason, tally in report.dropped.items())
        raise DataError(f"{path} must hold a record that the reader `{reader.name}` finds, got none{dropped}")
    return records, report


def read_rows(config: DataConfig, rows: Iterable[Mapping[Any, Any]]) -> tuple[Record, ...]:
    """The records of rows in memory, by the columns of the run's own data where those have names; labels are not read.

    Raises:
        DataError: There are none, or one lacks what a record needs.
    """
    numbered = [(line, {str(name): value for name, value in row.items()}) for line, row in enumerate(rows, start=1)]
    of_data = config.source.columns if isinstance(config.source, HubConfig) else _columns(config)
    if config.yields() is QueryRecord:
        found = [query(f"[{line}]", row, "ignored") for line, row in numbered]
    else:
        found = list(named(of_data or COLUMNS[config.yields()], numbered, "ignored"))
    records, _ = gather(Path("the rows"), found, "error")
    if not records:
        raise DataError("there must be a row to predict, got none")
    return records


def _columns(config: DataConfig) -> RowColumnsConfig | None:
    reader = None if isinstance(config.source, SyntheticConfig | HubConfig) else config.source.reader
    return reader.columns if isinstance(reader, TablesConfig | JsonlConfig | ParquetConfig) else None
