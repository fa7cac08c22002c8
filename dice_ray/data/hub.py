"""Data sets of the Hugging Face hub, or local folders of the same layout, read by `load_dataset` without scripts.

A data set is identified by the fingerprint that `datasets` computes of what it loaded, so loading precedes every use
of the cache. `_load` is memoised for the process; for a folder, the modification times of its files are part of the
memo's key, so that a changed folder is loaded again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.data.formats.base import RowResult
from dice_ray.data.formats.columns import PairColumns
from dice_ray.data.formats.rows import RowColumnsConfig, class_names, read_named_rows
from dice_ray.data.reading import CHUNK, OnBadRow, SplitSource
from dice_ray.data.records import Record
from dice_ray.data.urls import expand_path
from dice_ray.errors import DataError, first_line, meant
from dice_ray.output import quiet
from dice_ray.settings import Branch, nested

if TYPE_CHECKING:
    import datasets

_ALTERNATIVE = "files are read by data.source.files, with reader parquet or jsonl"


class HubConfig(Branch):
    """A data set by its id on the Hugging Face hub, or by a local folder, also one that `save_to_disk` wrote.

    If a local folder has this name, it is used, and the hub is not asked.

    Attributes:
        id: The id on the hub (`nyu-mll/glue`), or the folder; `~` and `$VARIABLES` are expanded.
        config: The configuration, for a data set with several (`mrpc`).
        revision: The branch, tag or commit on the hub; by default the newest commit.
        train: The name of the training split on the hub.
        dev: The name of the dev split; without it, one is drawn from the training split.
        test: The name of the test split, if there is one.
        columns: Which columns make a record; numbers of class labels are replaced by their names.
        on_bad_row: Whether a malformed row is an error, or counted and skipped.
    """

    name = "hub"

    id: str
    config: str | None = None
    revision: str | None = None
    train: str = "train"
    dev: str | None = None
    test: str | None = None
    columns: RowColumnsConfig = PairColumns()
    on_bad_row: OnBadRow = "error"

    def yields(self) -> type[Record]:
        return self.columns.yields()

    @property
    def title(self) -> str:
        folder = self._folder()
        return "/".join([folder.resolve().name if folder else self.id, *([self.config] if self.config else [])])

    def read(self) -> dict[str, SplitSource]:
        """Each split that is named.

        Raises:
            DataError: The data set, a split or a column does not exist, or the data set cannot be loaded.
        """
        folder, sources = self._folder(), {}
        for split, dataset in self._datasets().items():
            # `load_dataset` names the folder of its cached copy by the commit.
            files = dataset.cache_files if folder is None else []
            commit = f"@{Path(files[0]['filename']).parent.name[:12]}" if files else ""
            origin = f"{self.title}{commit}, {dataset.split or split}"
            sources[split] = SplitSource(origin, Path(origin), partial(self._rows, dataset), self.on_bad_row)
        return sources

    def key(self) -> dict[str, Any]:
        """Everything the records depend on: the settings, and the fingerprint of what was loaded."""
        fingerprints = {split: dataset._fingerprint for split, dataset in self._datasets().items()}
        settings = {name: value for name, value in nested(self).items() if name != "id"}
        return {**settings, "fingerprints": fingerprints}

    def _rows(self, dataset: datasets.Dataset) -> Iterator[RowResult]:
        columns = list(dict.fromkeys(map(str, self.columns.used().values())))
        tables = dataset.select_columns(columns).with_format("arrow").iter(batch_size=CHUNK)
        rows = (row for table in tables for row in table.to_pylist())
        classes = class_names(dataset.features.to_dict())
        return read_named_rows(self.columns, enumerate(rows, start=1), classes=classes)

    def _datasets(self) -> dict[str, datasets.Dataset]:
        """The splits by our names, with their columns checked."""
        folder = self._folder()
        if folder is not None and self.revision is not None:
            raise DataError(f"data.source.hub.revision: must be left out for a folder, and {folder} is one")
        if folder is not None and self.config is not None and is_saved(folder):
            must = "must be left out for a data set that `save_to_disk` has written, and"
            raise DataError(f"data.source.hub.config: {must} {folder} is one")
        loaded = _load(str(folder or self.id), self.config, self.revision, _modified(folder) if folder else ())
        splits = {}
        for split, name in (("train", self.train), ("dev", self.dev), ("test", self.test)):
            if name is None:
                continue
            if name not in loaded:
                raise _missing(f"data.source.hub.{split}", f"a split {name!r} in {self.title}", name, loaded)
            splits[split] = loaded[name]
            for use, column in self.columns.used().items():
                columns = loaded[name].column_names
                if str(column) not in columns and (use != "time" or split == "train"):  # only train is drawn by time
                    of_record = f"source.hub.columns.{self.columns.name}.{use}"
                    setting = f"data.{use if use in ('groups', 'time') else of_record}"
                    what = f"a column {str(column)!r} in the split {name!r} of {self.title}"
                    raise _missing(setting, what, str(column), columns)
        return splits

    def _folder(self) -> Path | None:
        """The local folder, if the id is one."""
        path = expand_path(self.id, "data.source.hub.id")
        if path.is_file():
            raise DataError(
                f"data.source.hub.id: must be an id on the hub or a folder, and {path} is a file: {_ALTERNATIVE}"
            )
        return path if path.is_dir() else None


def local_splits(folder: Path) -> datasets.DatasetDict:
    """The splits of a folder that `load_dataset` reads, or that `save_to_disk` wrote."""
    return _load(str(folder), None, None, _modified(folder))


def _modified(folder: Path) -> tuple[tuple[str, int], ...]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple((str(file), file.stat().st_mtime_ns) for file in files)


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` has written the folder."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


@lru_cache(maxsize=4)
def _load(
    path: str, config: str | None, revision: str | None, modified: tuple[tuple[str, int], ...]
) -> datasets.DatasetDict:
    """Load a data set once in a process, and again if the modification times of its folder change."""
    import datasets

    try:
        with _quiet():
            if is_saved(Path(path)):
                saved = datasets.load_from_disk(path)
                return saved if isinstance(saved, datasets.DatasetDict) else datasets.DatasetDict(train=saved)
            return datasets.load_dataset(path, config, revision=revision)
    except datasets.exceptions.DatasetNotFoundError as error:
        raise DataError(
            f"data.source.hub.id: {path!r} must be a local folder, or the id of a data set that you can access on the "
            f"hub. {_describe_error(error)}"
        ) from None
    except ConnectionError as error:
        raise DataError(
            f"data.source.hub.id: {path!r} is no local folder, so the hub must be reached, and it cannot be "
            f"({_describe_error(error)}). Without a network, give the folder of a copy; {_ALTERNATIVE}"
        ) from None
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        if "scripts are no longer supported" in str(error):
            raise DataError(
                f"data.source.hub.id: {path!r} must hold only data, and has a loading script, which is never run. "
                f"On the hub, another revision may hold Parquet files (often `refs/convert/parquet`); {_ALTERNATIVE}"
            ) from None
        kind = "folder" if Path(path).is_dir() else "data set"
        raise DataError(
            f"data.source.hub: the {kind} {path!r} must be readable by load_dataset: {_describe_error(error)}"
        ) from None


def _quiet() -> AbstractContextManager[None]:
    """No progress bars outside a terminal, and no log message for each attempt to reach the hub."""
    import datasets

    shows_bars = sys.stderr.isatty() or datasets.are_progress_bars_disabled()
    bars = None if shows_bars else (datasets.disable_progress_bars, datasets.enable_progress_bars)
    return quiet("huggingface_hub", bars=bars)


def _missing(setting: str, what: str, name: str, known: Iterable[str]) -> DataError:
    names = list(known)
    return DataError(f"{setting}: there must be {what}{meant(name, names) or '.'} Known: {', '.join(names)}.")


def _describe_error(error: BaseException) -> str:
    """The first line of an error; of its cause, if `datasets` only reports that generating the data set failed."""
    import datasets

    while isinstance(error, datasets.exceptions.DatasetGenerationError) and error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)
