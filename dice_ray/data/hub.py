"""Data sets of the Hugging Face hub, or folders laid out as there: what `load_dataset` reads without a script."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.data.places import filled
from dice_ray.data.readers.base import Found
from dice_ray.data.readers.classes import names_in
from dice_ray.data.readers.columns import PairColumns
from dice_ray.data.readers.rows import RowColumnsConfig, named
from dice_ray.data.reading import CHUNK, OnBadRow, Part
from dice_ray.data.records import Record
from dice_ray.errors import DataError, first_line, nearest
from dice_ray.settings import Branch, nested

if TYPE_CHECKING:
    import datasets


class HubConfig(Branch):
    """A data set by its id on the Hugging Face hub, or by a folder on this machine, which is looked for first.

    Attributes:
        id: The id on the hub (`nyu-mll/glue`), or the folder, in which `~` and `$VARIABLES` are filled in.
        config: The configuration, where the data set has several (`mrpc`).
        revision: The branch, tag or commit on the hub; without it, the newest.
        train: The name of the training split there.
        dev: That of the dev split; without it one is drawn from the training split.
        test: That of the test split, if there is one.
        columns: Which columns make a record; numbers of class labels are read by their names.
        on_bad_row: `skip` counts a malformed row and goes on.
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
        """A short name of the data set."""
        folder = self._folder()
        return "/".join([folder.resolve().name if folder else self.id, *([self.config] if self.config else [])])

    def read(self) -> dict[str, Part]:
        """Each split that is named.

        Raises:
            DataError: There is no such data set, split or column, or it cannot be had.
        """
        folder, parts = self._folder(), {}
        for split, dataset in self._datasets().items():
            origin = f"{self.title}{_revision(dataset, folder)}, {dataset.split}"
            parts[split] = Part(origin, Path(origin), partial(self._rows, dataset), self.on_bad_row)
        return parts

    def key(self) -> dict[str, Any]:
        """What the records depend on: how they are read, and the fingerprint of what was loaded."""
        prints = {split: dataset._fingerprint for split, dataset in self._datasets().items()}
        settings = {name: value for name, value in nested(self).items() if name != "id"}
        return {**settings, "fingerprints": prints}

    def _rows(self, dataset: datasets.Dataset) -> Iterator[Found]:
        classes = names_in(dataset.features.to_dict())
        columns = list(dict.fromkeys(map(str, self.columns.used().values())))
        line = 0
        for table in dataset.select_columns(columns).with_format("arrow").iter(batch_size=CHUNK):
            yield from named(self.columns, enumerate(table.to_pylist(), start=line + 1), classes=classes)
            line += table.num_rows

    def _datasets(self) -> dict[str, datasets.Dataset]:
        """The splits, whose columns are there."""
        folder = self._folder()
        if folder is not None and self.revision is not None:
            raise DataError(f"data.source.hub.revision: must be left out for a folder, and {folder} is one")
        stamps = () if folder is None else _stamps(folder)
        known = _loaded(str(folder or self.id), self.config, self.revision, stamps)
        found = {}
        for split, wanted in (("train", self.train), ("dev", self.dev), ("test", self.test)):
            if wanted is None:
                continue
            if wanted not in known:
                raise DataError(
                    _lacks(f"data.source.hub.{split}", f"a split {wanted!r} in {self.title}", wanted, known)
                )
            found[split] = known[wanted]
            for use, column in self.columns.used().items():
                names = found[split].column_names
                if str(column) not in names:
                    setting = f"data.source.hub.columns.{self.columns.name}.{use}"
                    what = f"a column {str(column)!r} in the split {wanted!r} of {self.title}"
                    raise DataError(_lacks(setting, what, str(column), names))
        return found

    def _folder(self) -> Path | None:
        """The folder on this machine, if the id is one."""
        path = filled(self.id, "data.source.hub.id")
        if path.is_file():
            raise DataError(
                f"data.source.hub.id: must be an id on the hub or a folder, and {path} is a file: {OTHERWISE}"
            )
        return path if path.is_dir() else None


OTHERWISE = "files are read by data.source.files, with reader parquet or jsonl"
"""What works without a hub."""


@lru_cache(maxsize=4)
def _loaded(
    where: str, config: str | None, revision: str | None, stamps: tuple[tuple[str, int], ...]
) -> datasets.DatasetDict:
    """The data set, asked for once by a process; the stamps of a folder tell when it was changed."""
    import datasets

    here = Path(where).is_dir()
    try:
        with _quiet():
            return datasets.load_dataset(where, config, revision=revision)
    except datasets.exceptions.DatasetNotFoundError as error:
        must = f"{where!r} must be a folder on this machine, or the id of a data set that the hub shows to you"
        raise DataError(f"data.source.hub.id: {must}. {_said(error)}") from None
    except ConnectionError as error:
        must = f"{where!r} is no folder on this machine, so the hub must be reached, and it cannot"
        raise DataError(
            f"data.source.hub.id: {must} ({_said(error)}). Without a network, give the folder of a copy; {OTHERWISE}"
        ) from None
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        if "scripts are no longer supported" in str(error):
            raise DataError(
                f"data.source.hub.id: {where!r} must hold data alone, and has a loading script, which is never run. "
                f"On the hub, another revision may hold Parquet files (often `refs/convert/parquet`); {OTHERWISE}"
            ) from None
        kind = "folder" if here else "data set"
        raise DataError(
            f"data.source.hub: the {kind} {where!r} must be readable to load_dataset: {_said(error)}"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars where nobody watches, and no word of every try to reach the hub."""
    import datasets
    from huggingface_hub.utils import logging

    bars, level = datasets.are_progress_bars_disabled(), logging.get_verbosity()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if not bars:
            datasets.enable_progress_bars()


def _stamps(folder: Path) -> tuple[tuple[str, int], ...]:
    """When each file of a folder was last written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in files)


def _revision(dataset: datasets.Dataset, folder: Path | None) -> str:
    """The commit of a data set of the hub: `load_dataset` names the folder of its copy by it."""
    files = dataset.cache_files
    return "" if folder is not None or not files else f"@{Path(files[0]['filename']).parent.name[:12]}"


def _lacks(setting: str, what: str, name: str, known: Any) -> str:
    close = nearest(name, known)
    meant = f"; did you mean {close!r}?" if close else "."
    return f"{setting}: there must be {what}{meant} There: {', '.join(known)}."


def _said(error: BaseException) -> str:
    """The first line of a reason; where a file could not be read, that of what is wrong with it."""
    import datasets

    while isinstance(error, datasets.exceptions.DatasetGenerationError) and error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)
