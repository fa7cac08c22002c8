"""Data given in Python: stored once as Parquet files, with the preset that names them, as `init` writes it for files.

From then on they are files: workers on other machines read them, a resumed run finds them, and a report names the
preset that reruns it. So they lie in the runs folder, which every machine sees, and not in the cache, which is cleared.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray.errors import DataError, InputError, first_line
from dice_ray.files import file_hash, write_atomically
from dice_ray.run.names import check_name, given_folder

if TYPE_CHECKING:
    import datasets
    import pandas as pd

    from dice_ray.config.load import Layer
    from dice_ray.data.formats.base import Given

    Table: TypeAlias = pd.DataFrame | datasets.Dataset
    """A table with named columns."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables in place of the files of a preset. Columns and task are guessed as `dice-ray init` does.

    Attributes:
        train: The training split: a pandas DataFrame or a `datasets.Dataset`.
        dev: The dev split; without it, dev is drawn from the training split.
        test: The test split.
        text_columns: The column of the texts, or the two columns of pairs; guessed where not given, as are the others.
        label_column: The column of the labels.
        id_column: The column of the ids; by default a record's id is its row.
        group_column: The column of groups: the records of one are never in two splits that are drawn.
        time_column: The column of dates or numbers by which the latest records are drawn as dev.
        positive: The positive label.
        preset: A shipped preset's name, or a YAML file: its settings are used with these data in place of its own. By
            default only what was guessed is set.
        name: Of the data, in the names of runs and in reports.
    """

    train: Table
    dev: Table | None = None
    test: Table | None = None
    text_columns: Sequence[str] = ()
    label_column: str | None = None
    id_column: str | None = None
    positive: str | None = None
    preset: str | Path | None = None
    name: str = "table"
    group_column: str | None = None
    time_column: str | None = None


if TYPE_CHECKING:
    Preset: TypeAlias = str | Path | Tables | Table
    """A shipped preset's name, a YAML file, or data given in Python."""


def given_of(
    text_columns: Sequence[object],
    label_column: object,
    id_column: object,
    group_column: object,
    time_column: object,
    positive: object,
    encoding: str | None = None,
    format: str | None = None,
) -> Given:
    """What the user says of tables or files, in place of a guess: columns and the positive label may be numbers.

    Raises:
        InputError: The columns of texts are no list of at most two.
    """
    from dice_ray.data.formats.base import Given
    from dice_ray.settings import without_numpy

    if isinstance(text_columns, str) or len(text_columns) > 2:
        raise InputError(f"text_columns must be a list of one column or two, got {text_columns!r}")
    columns = label_column, id_column, group_column, time_column
    label, id_, groups, time = (None if column is None else str(column) for column in columns)
    if not isinstance(positive, str | None):
        positive = json.dumps(without_numpy(positive), default=str)  # as a cell is read: True is `true`
    by = {key: name for key, name in (("groups", groups), ("time", time)) if name is not None}
    return Given(tuple(map(str, text_columns)), label, id_, positive, encoding, format, by)


def preset_of(data: Tables, below: Layer | None) -> Path:
    """The file of the preset that is written for data given in Python, with the settings of the layer `below`.

    A table that is refused leaves nothing behind: its texts may be private.

    Raises:
        InputError: A split is no table, or has a column that Parquet cannot hold.
        UnknownNameError: The training split lacks a column that is named; the error lists its columns.
        DataError: Columns or task cannot be guessed, or a row cannot be read.
    """
    from dice_ray.config.init import start

    given = given_of(
        data.text_columns, data.label_column, data.id_column, data.group_column, data.time_column, data.positive
    )
    parent = given_folder()
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        unfinished = Path(scratch) / "whole"
        unfinished.mkdir()
        content = hashlib.sha256(repr((given, below)).encode())
        tables = {"train": data.train, "dev": data.dev, "test": data.test}
        splits = [split for split, table in tables.items() if split == "train" or table is not None]
        for split in splits:
            file = unfinished / f"{split}.parquet"
            _write(tables[split], file, split)
            content.update(f"{split} {file_hash(file)}".encode())
        folder = parent / content.hexdigest()[:16]
        if is_new := not folder.exists():
            unfinished.rename(folder)
    try:
        file = folder / f"{check_name(data.name)}.yaml"
        if not file.exists():
            paths = {split: folder / f"{split}.parquet" for split in splits}
            starter = start(paths["train"], paths.get("dev"), paths.get("test"), given, below, data.name)
            write_atomically(file, starter.text)
    except BaseException as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, DataError):  # of the files that the user does not know
            raise DataError(re.sub(rf"\S*{folder.name}/(\w+)\.parquet", r"the table \1", str(error))) from error
        raise
    return file


@contextmanager
def table_file(table: str | Path | Table) -> Iterator[Path]:
    """The path of a file, or of a table as a temporary Parquet file that is named by its content."""
    if isinstance(table, str | Path):
        from dice_ray.data.urls import local_file

        yield local_file(table, "FILE")
        return
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as folder:
        file = Path(folder) / "table.parquet"
        _write(table, file, "the data")
        yield file.rename(file.with_name(f"table-{file_hash(file)[:12]}.parquet"))


def _write(table: Any, file: Path, what: str) -> None:
    """Write a table as Parquet; class labels of a `datasets.Dataset` keep their names."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    datasets = sys.modules.get("datasets")  # loaded if the table is one of its
    if datasets is not None and isinstance(table, datasets.Dataset):
        table.to_parquet(file)
        return
    if not isinstance(table, pd.DataFrame):
        splits = ", ".join(map(str, table)) if isinstance(table, dict) else ""
        named = f": name its splits {splits}, as in Tables(train=..., test=...)" if splits else ""
        kind = type(table).__name__
        raise InputError(f"{what} must be a pandas DataFrame or a datasets.Dataset, got {kind}{named}")
    table = table.set_axis([str(column) for column in table.columns], axis=1)
    try:
        parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), file)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"each column of {what} must have a name of its own and values of one type, which a Parquet file can hold, "
            f"and: {first_line(error)}"
        ) from error
