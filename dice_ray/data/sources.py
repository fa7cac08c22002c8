"""Loads a data set: from its configuration to checked splits and a load report, through the cache.

A data set is cached as it was read, and again with the records of `extra`, and as `imbalance` alters it. All keys
hold the hashes of the files, so a changed file is another data set, and the folder that holds the files does not
matter. The key is computed again after reading: a file that changed meanwhile would be stored under the wrong key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowTable, ArrowWriter, Records, batch_of_records
from dice_ray.data.augment import AugmentConfig
from dice_ray.data.draws import Hashes, same_text
from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.split_columns import WithSplitColumns
from dice_ray.data.hub import HubConfig
from dice_ray.data.imbalance import AlteredConfig, AsReadConfig, FewPositivesConfig, ImbalanceConfig, alter
from dice_ray.data.reading import OnBadRow, SplitSource, chunked, count_shared, gather, store_splits
from dice_ray.data.records import LoadReport, Record, Splits, digest
from dice_ray.data.sampling import BatchesConfig, NoneConfig, OversamplingConfig
from dice_ray.data.synthetic import SyntheticConfig
from dice_ray.data.urls import expand_path, expanded, fetched, version
from dice_ray.errors import DataError, counted, meant
from dice_ray.files import file_hash, holds_secret, is_url, joined, name_of
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
        extra: A file of further training records, which no other split is drawn from. Those whose content, or group by
            `data.groups`, is in dev or test are left out.
        reader: The reader of the files.
        on_bad_row: Whether a malformed row is an error, or counted and skipped.
    """

    name = "files"

    train: str
    dev: str | None = None
    test: str | None = None
    extra: str | None = None
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
        return {
            split: SplitSource(path.name, path, partial(self.reader.read, path), self.on_bad_row)
            for split, path in self._paths().items()
        }

    def key(self) -> dict[str, Any]:
        """Everything the records depend on: the content of the files and the settings, but not the folder.

        Of files at URLs it is their versions: a machine that gets the records from another one does not fetch them.
        """
        settings = {name: value for name, value in nested(self).items() if name != "folder"}
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

    def extra_digest(self) -> str:
        """A hash of the file of further training records and of how it is read."""
        alone = self.model_copy(update={"train": self.extra, "dev": None, "test": None, "extra": None})
        return hashlib.sha256(json.dumps(alone.key(), sort_keys=True).encode()).hexdigest()[:16]

    def _names(self) -> dict[str, str]:
        names = {"train": self.train, "dev": self.dev, "test": self.test, "extra": self.extra}
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
        split_seed: The seed of these draws, and of few positives; with either, each seed of a study draws its own.
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
    """Everything the splits depend on: the settings and the content of the files, and the label of the positive class,
    which `imbalance` needs.
    """
    source = config.source
    result: dict[str, Any] = {
        source.name: source.key(),
        "drawn": config.drawn(),
        "split_seed": 0 if config.time is not None else config.split_seed,
        **config.split_columns(),
    }
    if isinstance(imbalance := _imbalance(config), AlteredConfig):
        result["imbalance"] = [imbalance.name, nested(imbalance), config.augment.key(), positive]
    return result


def _imbalance(config: DataConfig) -> ImbalanceConfig:
    """Few positives are drawn by the seed of the splits too."""
    if not isinstance(config.imbalance, FewPositivesConfig):
        return config.imbalance
    return config.imbalance.model_copy(update={"seed": config.imbalance.seed + config.split_seed})


def load(config: DataConfig, positive: str | None = None, name: str | None = None) -> Splits:
    """Read all splits, draw those that the source lacks, and change the training split; from the cache if possible.

    `imbalance` needs the label of the positive class. An entry of the cache is listed by the name.

    Raises:
        DataError: A file is missing, malformed or changed while it was read, or a split has no record.
    """
    # The entry of the data as read is shared by all changes of them: its key must depend on no change.
    with_extra = config.model_copy(update={"imbalance": AsReadConfig()})
    has_extra = isinstance(config.source, FilesConfig) and config.source.extra is not None
    source = config.source.model_copy(update={"extra": None}) if has_extra else config.source
    as_read = with_extra.model_copy(update={"source": source})
    key_before, kind = key(as_read), config.yields()

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        report, found = store_splits(
            as_read.read(), kind, config.drawn(), config.split_seed, folder, config.split_columns()
        )
        _refuse_changed(as_read, key_before)
        return report.sizes, {"report": report.plain(), "digest": found}

    entry = cache.get_or_write("records", key_before, {"data": name or config.source.title}, write)
    records = {split: Records(table, kind) for split, table in entry.tables.items()}
    report = LoadReport.of(entry.holds["report"])
    splits = Splits(records["train"], records["dev"], records.get("test", ()), report, entry.holds["digest"])
    if has_extra:
        splits = _with_train(with_extra, key(with_extra), splits, name, partial(_with_extra, with_extra))
    if isinstance(imbalance := _imbalance(config), AlteredConfig):
        assert positive is not None, "config.checks asks for a task with a positive class"
        change = partial(_altered, imbalance, config.augment, positive)
        splits = _with_train(config, key(config, positive), splits, name, change)
    return splits


def _refuse_changed(config: DataConfig, before: dict[str, Any]) -> None:
    if key(config) != before:
        raise DataError(f"the files of {config.source.title} must not change while they are read, but one did")


_Change: TypeAlias = Callable[[Splits, Collection[int]], tuple[Iterable[Record], LoadReport]]
"""The records of a changed training split, and the report of how it was changed, from the splits and the hashes of the
texts of dev and test."""


def _altered(
    imbalance: AlteredConfig, augment: AugmentConfig, positive: str, splits: Splits, held_out: Collection[int]
) -> tuple[Iterable[Record], LoadReport]:
    kept, added, description = alter(imbalance, augment, splits.train, held_out, positive)
    altered = "; ".join(filter(None, [splits.report.altered, description]))
    return chain((splits.train[index] for index in kept), added), replace(splits.report, altered=altered)


def _with_extra(config: DataConfig, splits: Splits, held_out: Collection[int]) -> tuple[Iterable[Record], LoadReport]:
    before, source = key(config), config.read()["extra"]
    records, read = gather(source.where, source.rows, source.on_bad_row)
    _refuse_changed(config, before)
    groups = {_group(each) for each in chain(splits.dev, splits.test)} if config.groups is not None else set[str]()
    new = [each for each in records if hash(same_text(each)) not in held_out and _group(each) not in groups]
    description = f"{counted(len(new), 'record')} of {source.origin} added to {len(splits.train)}"
    if num_left_out := len(records) - len(new):
        description += f"; {num_left_out} left out, as dev or test has their text or group"
    # Files may number their records alike.
    named = (replace(each, id=f"{source.origin} {each.id}") for each in new)
    report = replace(splits.report, read=splits.report.read | {"extra": read}, altered=description)
    return chain(splits.train, named), report


def _group(record: Record) -> str:
    return str(getattr(record, "document", ""))


def _with_train(config: DataConfig, key: dict[str, Any], splits: Splits, name: str | None, change: _Change) -> Splits:
    """The splits with a changed training split, from the cache if possible."""

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        held_out = {
            split: np.fromiter((hash(record.content) for record in records), np.int64)
            for split, records in (("dev", splits.dev), ("test", splits.test))
            if records
        }
        changed, report = change(splits, {hash(same_text(record)) for record in chain(splits.dev, splits.test)})
        contents = list[int]()
        with ArrowWriter(folder / "train.arrow") as file:
            for records in chunked(changed):
                file.write(batch_of_records(records))
                contents += (hash(record.content) for record in records)
        # The digest is that of all splits, although only one is written.
        train = Records(ArrowTable(folder / "train.arrow"), config.yields())
        of_all = digest((train, splits.dev, splits.test), config.split_columns())
        all_contents: dict[str, Hashes] = {"train": np.array(contents), **held_out}
        sizes = {**report.sizes, "train": len(contents)}
        report = replace(report, sizes=sizes, shared=count_shared(all_contents))
        return {"train": len(contents)}, {"report": report.plain(), "digest": of_all}

    entry = cache.get_or_write("records", key, {"data": name or config.source.title}, write)
    train, report = Records(entry.tables["train"], config.yields()), LoadReport.of(entry.holds["report"])
    return replace(splits, train=train, report=report, digest=entry.holds["digest"])
