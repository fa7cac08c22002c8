"""Loads a data set: from its configuration to checked splits and a load report, through the cache.

A data set is cached twice at most: as it was read, and, if `imbalance` alters its training split, as altered. Both keys
hold the hashes of the files, so a changed file is another data set, and the folder that holds the files does not
matter. The key is computed again after reading: a file that changed meanwhile would be stored under the wrong key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowTable, ArrowWriter, Records, batch_of_records
from dice_ray.data.augment import AugmentConfig
from dice_ray.data.cache import file_hash
from dice_ray.data.draws import METHOD, Hashes
from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.split_columns import WithSplitColumns
from dice_ray.data.formats.text import UTF_8
from dice_ray.data.hub import HubConfig
from dice_ray.data.imbalance import AlteredConfig, AsReadConfig, ImbalanceConfig, alter
from dice_ray.data.reading import OnBadRow, SplitSource, chunked, count_shared, store_splits
from dice_ray.data.records import LoadReport, Record, Splits, digest
from dice_ray.data.sampling import BatchesConfig, NoneConfig, OversamplingConfig
from dice_ray.data.synthetic import SyntheticConfig
from dice_ray.data.urls import expand_path, expanded, fetched, version
from dice_ray.errors import DataError, meant
from dice_ray.files import holds_secret, is_url, joined, name_of
from dice_ray.settings import Branch, Choice, Settings, nested


class FilesConfig(Branch):
    """Files of one format in one folder.

    Attributes:
        folder: The folder of the files, or its URL (`s3://bucket/folder`); `~` and `$VARIABLES` are expanded. A URL
            that holds a password or key is refused, as it is stored with each run.
        train: The file of the training split, relative to the folder; a folder with the readers `spans` (brat)
            and `folders`. Of a JSON document with several lists, `data.json#train` is the list `train`.
        dev: The file of the dev split; without it, one is drawn from the training split.
        test: The file of the test split, if there is one.
        reader: The reader of the files.
        on_bad_row: Whether a malformed row is an error, or counted and skipped.
    """

    name = "files"

    train: str
    dev: str | None = None
    test: str | None = None
    folder: str = "."
    reader: ReaderConfig
    on_bad_row: OnBadRow = "error"

    @field_validator("folder")
    @classmethod
    def _without_secrets(cls, folder: str) -> str:
        if holds_secret(folder):
            raise PydanticCustomError(
                "secret",
                "must hold no password or key: give each machine credentials (AWS_ACCESS_KEY_ID, a role), or put the "
                "whole URL into a variable, `$NAME`",
            )
        return folder

    def yields(self) -> type[Record]:
        return self.reader.yields()

    @property
    def title(self) -> str:
        """The name of the folder."""
        folder = expanded(self.folder)
        return name_of(folder) if is_url(folder) else expand_path(self.folder).resolve().name

    def read(self) -> dict[str, SplitSource]:
        """Each split that has a file."""
        return {
            split: SplitSource(path.name, path, partial(self.reader.read, path), self.on_bad_row)
            for split, path in self._paths().items()
        }

    def key(self) -> dict[str, Any]:
        """Everything the records depend on: the content of the files and the settings, but not the folder.

        Of files at URLs it is their versions: a machine that gets the records from another one does not fetch them.
        """
        settings = {name: value for name, value in nested(self).items() if name != "folder"}
        # Without the default: the keys of entries that were written before there was a choice stay as they are.
        reader = {key: value for key, value in nested(self.reader).items() if (key, value) != ("encoding", UTF_8)}
        settings["reader"] = {self.reader.name: reader}
        if is_url(expanded(self.folder)):
            return {
                **settings,
                "versions": [version(url, _setting(split)) for split, urls in self._urls().items() for url in urls],
            }
        paths = self._paths()
        files = [(split, file) for split, path in paths.items() for file in self.reader.files(path) if file.is_file()]
        # With the split: a file may be moved from the end of one folder to the beginning of the next one.
        if "classes" in self.reader.reads:  # the labels are names of folders
            settings["names"] = [f"{split}/{file.parent.name}/{file.name}" for split, file in files]
        elif any(path.is_dir() for path in paths.values()):  # the ids are names of files
            settings["names"] = [f"{split}/{file.name}" for split, file in files]
        return {**settings, "hashes": [file_hash(file) for _, file in files]}

    def _names(self) -> dict[str, str]:
        names = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: name for split, name in names.items() if name is not None}

    def _paths(self) -> dict[str, Path]:
        if is_url(expanded(self.folder)):
            # With the name in the preset: it may hold the key of a list in the file.
            names = {split: Path(name).name for split, name in self._names().items()}
            return {
                split: fetched(urls, _setting(split))[0].with_name(names[split]) for split, urls in self._urls().items()
            }
        folder = expand_path(self.folder)
        return {split: self._existing(folder, name, _setting(split)) for split, name in self._names().items()}

    def _urls(self) -> dict[str, list[str]]:
        """The URLs of the files that are read for each split."""
        folder = expanded(self.folder)
        # No folder of this machine: with the name alone, one in the working directory would be read.
        base = Path(folder)
        paths = {split: self.reader.files(base / name.lstrip("/")) for split, name in self._names().items()}
        return {
            split: [joined(folder, path.relative_to(base).as_posix()) for path in files]
            for split, files in paths.items()
        }

    def _existing(self, folder: Path, name: str, setting: str) -> Path:
        path = folder / name
        if path.is_dir() and {"brat", "classes"} & {*self.reader.reads}:
            return path
        if (file := self.reader.files(path)[0]).is_file():
            return path
        if not file.parent.is_dir():
            raise DataError(f"{setting}: there must be a file {file}, but there is no folder {file.parent}")
        others = islice((other for other in file.parent.iterdir() if other.is_file()), 1000)
        known = sorted(str(Path(name).with_name(other.name)) for other in others)
        raise DataError(
            f"{setting}: there must be a file {file}{meant(name, known) or '.'} "
            f"The folder holds: {', '.join(known[:20]) or 'no files'}."
        )


def _setting(split: str) -> str:
    return f"data.source.files.{split}"


class DataConfig(Settings):
    """The data of a run.

    Attributes:
        source: Where the records are read from.
        test_share: The share of the training split to draw as test split, for a source without one.
        dev_share: The share of the remaining training split to draw as dev split, for a source without one. Both are
            drawn stratified by label; records of the same text, and documents, stay whole.
        split_seed: The seed of these draws; with `test_share`, each seed of a study draws its own splits.
        groups: The column of groups, such as customers or documents: the records of one are never in two splits that
            are drawn, and confidence intervals on new data are for new groups.
        time: The column of dates or numbers by which the latest records are the test split, and the latest of the rest
            the dev split, in place of a draw: they are the same with every seed. With `groups`, records of train whose
            group occurs later are left out.
        imbalance: Drops or adds training records of a class; dev and test stay as they are.
        augment: How added records are made.
        oversampling: How often the training records of each class are sampled.
        batches: What epochs and steps hold of the training records.
    """

    source: Annotated[SyntheticConfig | FilesConfig | HubConfig, Choice()] = SyntheticConfig()
    test_share: float | None = Field(default=None, gt=0, lt=1)
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    split_seed: int = 0
    groups: Column | None = None
    time: Column | None = None
    imbalance: ImbalanceConfig = AsReadConfig()
    augment: AugmentConfig = AugmentConfig()
    oversampling: OversamplingConfig = NoneConfig()
    batches: BatchesConfig = BatchesConfig()

    def yields(self) -> type[Record]:
        """The type of the records, known before anything is read."""
        return self.source.yields()

    @property
    def reader(self) -> Any:
        """The reader of files, or another source: a hub has columns as some readers do."""
        return self.source.reader if isinstance(self.source, FilesConfig) else self.source

    def has(self, split: str) -> bool:
        """Whether the source itself has this split."""
        return isinstance(self.source, SyntheticConfig) or getattr(self.source, split) is not None

    def drawn(self) -> dict[str, float]:
        """The share of each split that is drawn from the training split: first test, then dev of the rest."""
        shares = {"test": self.test_share, "dev": None if self.has("dev") else self.dev_share}
        return {split: share for split, share in shares.items() if share is not None}

    def split_columns(self) -> dict[str, Column]:
        """The columns that splits are drawn by, by the names of their settings."""
        columns = {"groups": self.groups, "time": self.time}
        return {setting: column for setting, column in columns.items() if column is not None}

    def read(self) -> dict[str, SplitSource]:
        """Each split of the source, with the columns that splits are drawn by; only train needs times."""
        if not (by := self.split_columns()):
            return self.source.read()

        def with_columns(by: Mapping[str, Column]) -> dict[str, SplitSource]:
            reader = self.reader.model_copy(update={"columns": WithSplitColumns(self.reader.columns, by)})
            source = self.source
            return (source.model_copy(update={"reader": reader}) if isinstance(source, FilesConfig) else reader).read()

        without_time = {setting: column for setting, column in by.items() if setting != "time"}
        return {**with_columns(without_time), "train": with_columns(by)["train"]}

    def test_per_train(self) -> float | None:
        """The ratio of test to training records if both are drawn at random from one split, else None."""
        if self.test_share is None or self.time is not None:
            return None
        return self.test_share / (1 - self.test_share) / (1 - self.drawn().get("dev", 0.0))


def key(config: DataConfig, positive: str | None = None) -> dict[str, Any]:
    """Everything the splits depend on: the settings and the content of the files.

    Args:
        config: The data.
        positive: The label of the positive class, which `imbalance` needs.
    """
    source = config.source
    result: dict[str, Any] = {
        source.name: source.key(),
        "drawn": config.drawn(),
        "split_seed": 0 if config.time is not None else config.split_seed,
        **config.split_columns(),
    }
    if config.drawn():
        result["draw"] = METHOD
    if isinstance(config.imbalance, AlteredConfig):
        result["imbalance"] = [config.imbalance.name, nested(config.imbalance), config.augment.key(), positive]
    return result


def load(config: DataConfig, positive: str | None = None, name: str | None = None) -> Splits:
    """Read all splits, draw those that the source lacks, and alter the training split; from the cache if possible.

    Args:
        config: The data.
        positive: The label of the positive class, which `imbalance` needs.
        name: The name to list its entry of the cache by.

    Raises:
        DataError: A file is missing, malformed or changed while it was read, or a split has no record.
    """
    # The entry of the data as read is shared by all alterations of them: its key must not depend on `imbalance`.
    as_read = config.model_copy(update={"imbalance": AsReadConfig()})
    key_before, kind = key(as_read), config.yields()

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        report, found = store_splits(
            config.read(), kind, config.drawn(), config.split_seed, folder, config.split_columns()
        )
        if key(as_read) != key_before:
            raise DataError(f"the files of {config.source.title} must not change while they are read, but one did")
        return report.sizes, {"report": report.plain(), "digest": found}

    entry = cache.get_or_write("records", key_before, {"data": name or config.source.title}, write)
    records = {split: Records(table, kind) for split, table in entry.tables.items()}
    report = LoadReport.of(entry.holds["report"])
    splits = Splits(records["train"], records["dev"], records.get("test", ()), report, entry.holds["digest"])
    return _alter_train(config, splits, positive, name) if isinstance(config.imbalance, AlteredConfig) else splits


def _alter_train(config: DataConfig, as_read: Splits, positive: str | None, name: str | None) -> Splits:
    assert isinstance(config.imbalance, AlteredConfig)
    assert positive is not None, "config.checks asks for a task with a positive class"
    imbalance, positive_label = config.imbalance, positive

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        held_out = {
            split: np.fromiter((hash(record.content) for record in records), np.int64)
            for split, records in (("dev", as_read.dev), ("test", as_read.test))
            if records
        }
        held_out_contents = {value for hashes in held_out.values() for value in hashes.tolist()}
        altered = alter(imbalance, config.augment, as_read.train, held_out_contents, positive_label)
        contents = list[int]()
        with ArrowWriter(folder / "train.arrow") as file:
            for records in chunked(chain((as_read.train[index] for index in altered.kept), altered.added)):
                file.write(batch_of_records(records))
                contents += (hash(record.content) for record in records)
        # The digest is that of all splits, although only one is written.
        train = Records(ArrowTable(folder / "train.arrow"), config.yields())
        of_all = digest((train, as_read.dev, as_read.test), config.split_columns())
        all_contents: dict[str, Hashes] = {"train": np.array(contents), **held_out}
        report = replace(
            as_read.report,
            sizes={**as_read.report.sizes, "train": len(contents)},
            shared=count_shared(all_contents),
            altered=altered.description,
        )
        return {"train": len(contents)}, {"report": report.plain(), "digest": of_all}

    entry = cache.get_or_write("records", key(config, positive), {"data": name or config.source.title}, write)
    train, report = Records(entry.tables["train"], config.yields()), LoadReport.of(entry.holds["report"])
    return replace(as_read, train=train, report=report, digest=entry.holds["digest"])
