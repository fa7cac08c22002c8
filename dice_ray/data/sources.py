"""Loads a data set: from its configuration to checked splits and a load report, through the cache.

A data set is cached twice at most: as it was read, and, if `imbalance` alters its training split, as altered. Both keys
hold the hashes of the files, so a changed file is another data set, and the folder that holds the files does not
matter. The key is computed again after reading: a file that changed meanwhile would be stored under the wrong key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowWriter, Records, batch_of_records
from dice_ray.data.augment import AugmentConfig
from dice_ray.data.draws import METHOD, Hashes
from dice_ray.data.formats.base import Kept, RowResult
from dice_ray.data.hub import HubConfig
from dice_ray.data.imbalance import AlteredConfig, AsReadConfig, ImbalanceConfig, NoneConfig, OversamplingConfig, alter
from dice_ray.data.reading import OnBadRow, SplitReader, SplitSource, chunked, count_shared, store_splits
from dice_ray.data.records import Digest, LoadReport, ReadReport, Record, Splits
from dice_ray.data.split_files import FilesConfig
from dice_ray.data.synthetic import SyntheticConfig, generate
from dice_ray.errors import DataError
from dice_ray.settings import Choice, Settings, nested

SourceConfig: TypeAlias = Annotated[SyntheticConfig | FilesConfig | HubConfig, Choice()]


class DataConfig(Settings):
    """The data of a run.

    Attributes:
        source: Where the records are read from.
        test_share: The share of the training split to draw as test split, for a source without one.
        dev_share: The share of the remaining training split to draw as dev split, for a source without one. Both are
            drawn stratified by label; records of the same text, and documents, stay whole.
        split_seed: The seed of these draws; with `test_share`, each seed of a study draws its own splits.
        imbalance: Drops or adds training records of a class; dev and test stay as they are.
        augment: How added records are made.
        oversampling: How often the training records of each class are sampled.
    """

    source: SourceConfig = SyntheticConfig()
    test_share: float | None = Field(default=None, gt=0, lt=1)
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    split_seed: int = 0
    imbalance: ImbalanceConfig = AsReadConfig()
    augment: AugmentConfig = AugmentConfig()
    oversampling: OversamplingConfig = NoneConfig()

    def yields(self) -> type[Record]:
        """The type of the records, known before anything is read."""
        return self.source.yields()

    def has(self, split: str) -> bool:
        """Whether the source itself has this split."""
        return isinstance(self.source, SyntheticConfig) or getattr(self.source, split) is not None

    def drawn(self) -> dict[str, float]:
        """The share of each split that is drawn from the training split: first test, then dev of the rest."""
        shares = {"test": self.test_share, "dev": None if self.has("dev") else self.dev_share}
        return {split: share for split, share in shares.items() if share is not None}

    def test_per_train(self) -> float | None:
        """The ratio of test to training records if both are drawn from one split, else None."""
        if self.test_share is None:
            return None
        return self.test_share / (1 - self.test_share) / (1 - self.drawn().get("dev", 0.0))


def describe(config: DataConfig) -> str:
    """A short name of a data set that was given none: what is generated, the name on the hub, or the folder."""
    if isinstance(config.source, SyntheticConfig):
        return f"synthetic:{config.source.kind}"
    return config.source.title


def key(config: DataConfig, positive: str | None = None) -> dict[str, Any]:
    """Everything the splits depend on: the settings and the content of the files.

    Args:
        config: The data.
        positive: The label of the positive class, which `imbalance` needs.
    """
    source = config.source
    result: dict[str, Any] = {
        source.name: nested(source) if isinstance(source, SyntheticConfig) else source.key(),
        "drawn": config.drawn(),
        "split_seed": config.split_seed,
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
        source = config.source
        splits = generated(source) if isinstance(source, SyntheticConfig) else source.read()
        report, digest = store_splits(splits, kind, config.drawn(), config.split_seed, folder)
        if key(as_read) != key_before:
            raise DataError(f"the files of {describe(config)} must not change while they are read, but one did")
        return report.sizes, {"report": report.plain(), "digest": digest}

    entry = cache.get_or_write("records", key_before, {"data": name or describe(config)}, write)
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
        digest, contents = Digest(), list[int]()
        with ArrowWriter(folder / "train.arrow") as file:
            for records in chunked(chain((as_read.train[index] for index in altered.kept), altered.added)):
                file.write(batch_of_records(records))
                digest.add(records)
                contents += (hash(record.content) for record in records)
        digest.end()
        # The digest is that of all splits, in the order of `store_splits`, although only one is written.
        for split in (as_read.dev, as_read.test):
            for records in chunked(split):
                digest.add(records)
            digest.end()
        all_contents: dict[str, Hashes] = {"train": np.array(contents), **held_out}
        report = replace(
            as_read.report,
            sizes={**as_read.report.sizes, "train": len(contents)},
            shared=count_shared(all_contents),
            altered=altered.description,
        )
        return {"train": len(contents)}, {"report": report.plain(), "digest": str(digest)}

    entry = cache.get_or_write("records", key(config, positive), {"data": name or describe(config)}, write)
    train, report = Records(entry.tables["train"], config.yields()), LoadReport.of(entry.holds["report"])
    return replace(as_read, train=train, report=report, digest=entry.holds["digest"])


def generated(config: SyntheticConfig) -> dict[str, SplitSource]:
    """The splits of a generated corpus."""
    origin = f"synthetic:{config.kind}"
    return {
        split: SplitSource(origin, Path(origin), partial(map, Kept, count(1), records))
        for split, records in generate(config).items()
    }


def gather(path: Path, rows: Iterable[RowResult], on_bad_row: OnBadRow) -> tuple[tuple[Record, ...], ReadReport]:
    """The records of a file, in memory, and the report of what was dropped."""
    # In a list, as SplitReader starts again at the first row (twice, to name a repeated id), and `rows` may not.
    results, failure = list[RowResult](), list[DataError]()
    try:
        results.extend(rows)
    except DataError as error:
        failure.append(error)

    def replay() -> Iterator[RowResult]:
        yield from results
        if failure:
            raise failure[0]

    reader = SplitReader(SplitSource(path.name, path, replay, on_bad_row))
    return tuple(row.record for rows in reader.chunks() for row in rows), reader.report()
