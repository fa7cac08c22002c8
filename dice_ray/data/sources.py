"""Where a data set comes from: a name or paths in, checked splits and a load report out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from dice_ray.data import cache
from dice_ray.data.arrow import Records, Writer, batch_of_records
from dice_ray.data.augment import AugmentConfig
from dice_ray.data.cache import file_hash
from dice_ray.data.hub import HubConfig
from dice_ray.data.imbalance import AlteredConfig, AsReadConfig, ImbalanceConfig, altered
from dice_ray.data.oversampling import NoneConfig, OversamplingConfig
from dice_ray.data.places import filled
from dice_ray.data.readers import ReaderConfig
from dice_ray.data.readers.base import Found, Kept
from dice_ray.data.reading import Hashes, OnBadRow, Part, Reading, chunked, shared, store
from dice_ray.data.records import Digest, LoadReport, ReadReport, Record, Splits
from dice_ray.data.synthetic import SyntheticConfig, generate
from dice_ray.errors import DataError, nearest
from dice_ray.settings import Branch, Choice, Settings, nested


class FilesConfig(Branch):
    """Files of one format in one folder.

    Attributes:
        folder: Where the files lie; `~` and `$VARIABLES` are filled in.
        train: The file of the training split, below the folder.
        dev: The file of the dev split; without it one is drawn from the training split.
        test: The file of the test split, if there is one.
        reader: How the files are read.
        on_bad_row: `skip` counts a malformed row and goes on.
    """

    name = "files"

    train: str
    dev: str | None = None
    test: str | None = None
    folder: str = "."
    reader: ReaderConfig
    on_bad_row: OnBadRow = "error"

    def yields(self) -> type[Record]:
        return self.reader.yields()

    def read(self) -> dict[str, Part]:
        """Each split that has a file."""
        return {
            split: Part(path.name, path, partial(self.reader.read, path), self.on_bad_row)
            for split, path in self._paths().items()
        }

    def key(self) -> dict[str, Any]:
        """What the records depend on: what the files hold, wherever the folder lies, and how they are read."""
        paths = [other for path in self._paths().values() for other in self.reader.files(path)]
        settings = {name: value for name, value in nested(self).items() if name != "folder"}
        return {**settings, "hashes": [file_hash(path) for path in paths]}

    def _paths(self) -> dict[str, Path]:
        folder = filled(self.folder)
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            split: _existing(folder, name, f"data.source.files.{split}")
            for split, name in named.items()
            if name is not None
        }


SourceConfig: TypeAlias = Annotated[SyntheticConfig | FilesConfig | HubConfig, Choice()]


class DataConfig(Settings):
    """The data of a run.

    Attributes:
        source: Where they come from.
        test_share: The share of the training split that becomes the test split, of a source that has none.
        dev_share: The share of what is left of it that becomes the dev split where the source has none.
        split_seed: The seed of these draws; with `test_share` each seed of a study draws splits of its own.
        imbalance: What becomes of the training split: records of a class dropped or added; dev and test stay.
        augment: How records are added.
        oversampling: How often the training records of each class are drawn.
    """

    source: SourceConfig = SyntheticConfig()
    test_share: float | None = Field(default=None, gt=0, lt=1)
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    split_seed: int = 0
    imbalance: ImbalanceConfig = AsReadConfig()
    augment: AugmentConfig = AugmentConfig()
    oversampling: OversamplingConfig = NoneConfig()

    def yields(self) -> type[Record]:
        """The kind of record that the source gives, known before anything is read."""
        return self.source.yields()

    def has(self, split: str) -> bool:
        """Whether the source has this split itself."""
        return isinstance(self.source, SyntheticConfig) or getattr(self.source, split) is not None

    def drawn(self) -> dict[str, float]:
        """The share of each split that is drawn from the training split: test first, dev of what is left."""
        shares = {"test": self.test_share, "dev": None if self.has("dev") else self.dev_share}
        return {split: share for split, share in shares.items() if share is not None}

    def test_per_train(self) -> float | None:
        """How many test records there are for each training record, where both are drawn from one split."""
        if self.test_share is None:
            return None
        return self.test_share / (1 - self.test_share) / (1 - self.drawn().get("dev", 0.0))


def describe(config: DataConfig) -> str:
    """A short name of the data set, for tags and tables."""
    if isinstance(config.source, SyntheticConfig):
        return f"synthetic:{config.source.kind}"
    if isinstance(config.source, HubConfig):
        return config.source.title
    return filled(config.source.folder).resolve().name


def key(config: DataConfig, positive: str | None = None) -> dict[str, Any]:
    """What the splits depend on: the settings, and what files hold.

    Args:
        config: The data.
        positive: The label of the positive class of the task, which `imbalance` needs.
    """
    source = config.source
    of_source = nested(source) if isinstance(source, SyntheticConfig) else source.key()
    found = {source.name: of_source, "drawn": config.drawn(), "split_seed": config.split_seed}
    if isinstance(config.imbalance, AlteredConfig):
        found["imbalance"] = [config.imbalance.name, nested(config.imbalance), config.augment.key(), positive]
    return found


def load(config: DataConfig, positive: str | None = None) -> Splits:
    """Read all splits, draw those that are to be drawn, alter the training split, and say what was done.

    What was read before, by whichever process, comes from the cache.

    Args:
        config: The data.
        positive: The label of the positive class of the task, which `imbalance` needs.
    """
    as_read = config.model_copy(update={"imbalance": AsReadConfig()})
    before, kind = key(as_read), config.yields()

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        parts = generated(config.source) if isinstance(config.source, SyntheticConfig) else config.source.read()
        report, digest = store(parts, kind, config.drawn(), config.split_seed, folder)
        if key(as_read) != before:
            raise DataError(
                f"the files of {describe(config)} must stay as they are while they are read: one was changed"
            )
        return report.sizes, {"report": report.plain(), "digest": digest}

    found = cache.entry("records", before, {"data": describe(config)}, write)
    splits = {split: Records(table, kind) for split, table in found.tables.items()}
    report = LoadReport.of(found.holds["report"])
    read = Splits(splits["train"], splits["dev"], splits.get("test", ()), report, found.holds["digest"])
    return _altered(config, read, positive) if isinstance(config.imbalance, AlteredConfig) else read


def _altered(config: DataConfig, read: Splits, positive: str | None) -> Splits:
    """The splits with the training split altered."""
    assert isinstance(config.imbalance, AlteredConfig)
    assert positive is not None, "config.checks asks for a task with a positive class"
    imbalance, label = config.imbalance, positive

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        held_out = {split: _hashes(records) for split, records in (("dev", read.dev), ("test", read.test)) if records}
        outside = {one for hashes in held_out.values() for one in hashes.tolist()}
        found = altered(imbalance, config.augment, read.train, outside, label)
        digest, contents = Digest(), list[int]()
        with Writer(folder / "train.arrow") as file:
            for records in chunked(chain((read.train[place] for place in found.kept), found.added)):
                file.write(batch_of_records(records))
                digest.add(records)
                contents += (hash(record.content) for record in records)
        digest.end()
        for split in (read.dev, read.test):
            for records in chunked(split):
                digest.add(records)
            digest.end()
        report = replace(
            read.report,
            sizes={**read.report.sizes, "train": len(contents)},
            shared=shared({"train": np.array(contents), **held_out}),
            altered=found.told,
        )
        return {"train": len(contents)}, {"report": report.plain(), "digest": str(digest)}

    found = cache.entry("records", key(config, positive), {"data": describe(config)}, write)
    train = Records(found.tables["train"], config.yields())
    return replace(read, train=train, report=LoadReport.of(found.holds["report"]), digest=str(found.holds["digest"]))


def _hashes(records: Iterable[Record]) -> Hashes:
    return np.fromiter((hash(record.content) for record in records), np.int64)


def generated(config: SyntheticConfig) -> dict[str, Part]:
    """Each split of a generated corpus."""
    origin = f"synthetic:{config.kind}"
    return {
        split: Part(origin, Path(origin), partial(map, Kept, count(1), records))
        for split, records in generate(config).items()
    }


def gather(path: Path, rows: Iterable[Found], on_bad_row: OnBadRow) -> tuple[tuple[Record, ...], ReadReport]:
    """The records of a file, in memory, and what was dropped of it."""
    found, failure = list[Found](), list[DataError]()
    try:
        found.extend(rows)
    except DataError as error:
        failure.append(error)

    def again() -> Iterator[Found]:
        yield from found
        if failure:
            raise failure[0]

    reading = Reading(Part(path.name, path, again, on_bad_row))
    return tuple(record for records in reading.chunks() for record in records), reading.report()


def _existing(folder: Path, name: str, setting: str) -> Path:
    path = folder / name
    if path.is_file():
        return path
    if not folder.is_dir():
        raise DataError(f"{setting}: there must be a file {path}, but there is no folder {folder}")
    others = islice((other for other in folder.rglob("*") if other.is_file()), 1000)
    known = sorted(str(other.relative_to(folder)) for other in others)
    close = nearest(name, known)
    meant = f"; did you mean {close!r}?" if close else "."
    raise DataError(
        f"{setting}: there must be a file {path}{meant} The folder holds: {', '.join(known[:20]) or 'no files'}."
    )
