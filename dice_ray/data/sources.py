"""Where a data set comes from: a name or paths in, checked splits and a load report out."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from string import Template
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dice_ray.data.readers import ReaderConfig
from dice_ray.data.readers.base import Bad, Drop, Found, Kept, Place, unreadable
from dice_ray.data.records import LoadReport, ReadReport, Record, Splits, Tally, digest
from dice_ray.data.synthetic import SyntheticConfig, generate
from dice_ray.errors import DataError, nearest
from dice_ray.settings import Branch, Choice, Settings

NUM_PLACES_SHOWN = 5

OnBadRow: TypeAlias = Literal["error", "skip"]
Loaded: TypeAlias = tuple[tuple[Record, ...], ReadReport]


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

    def read(self) -> dict[str, Loaded]:
        """Each split that has a file."""
        folder = filled(self.folder)
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        found = {}
        for split, name in named.items():
            if name is not None:
                path = _existing(folder, name, f"data.source.files.{split}")
                found[split] = gather(path, self.reader.read(path), self.on_bad_row)
        return found


SourceConfig: TypeAlias = Annotated[SyntheticConfig | FilesConfig, Choice()]


class DataConfig(Settings):
    """The data of a run.

    Attributes:
        source: Where they come from.
        dev_share: The share of the training split that becomes the dev split where the source has none.
        split_seed: The seed of that draw.
    """

    source: SourceConfig = SyntheticConfig()
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    split_seed: int = 0

    def yields(self) -> type[Record]:
        """The kind of record that the source gives, known before anything is read."""
        return self.source.yields()


def describe(config: DataConfig) -> str:
    """A short name of the data set, for tags and tables."""
    if isinstance(config.source, SyntheticConfig):
        return f"synthetic:{config.source.kind}"
    return filled(config.source.folder).resolve().name


def stamps(config: DataConfig) -> tuple[int, ...]:
    """When each file of the data was last written: the same stamps, the same records."""
    if isinstance(config.source, SyntheticConfig):
        return ()
    folder, source = filled(config.source.folder), config.source
    files = [folder / name for name in (source.train, source.dev, source.test) if name is not None]
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())


def load(config: DataConfig) -> Splits:
    """Read all splits, draw a dev split if there is none, and say what was dropped and what stands in two splits."""
    found = generated(config.source) if isinstance(config.source, SyntheticConfig) else config.source.read()
    splits = {split: records for split, (records, _) in found.items()}
    drawn = None
    if "dev" not in splits:
        splits["train"], splits["dev"] = _with_dev(splits["train"], config.dev_share, config.split_seed)
        drawn = f"{config.dev_share:g} of train, drawn with seed {config.split_seed}"
    for split, records in splits.items():
        if not records:
            read = found.get(split, found["train"])[1]
            dropped = "".join(f"; {tally.count} rows dropped: {reason}" for reason, tally in read.dropped.items())
            raise DataError(f"the {split} split must hold a record, got none from {read.origin}{dropped}")
    report = LoadReport(
        read={split: report for split, (_, report) in found.items()},
        sizes={split: len(records) for split, records in splits.items()},
        drawn=drawn,
        shared=_shared(splits),
    )
    train, dev, test = splits["train"], splits["dev"], splits.get("test", ())
    return Splits(train, dev, test, report, digest([train, dev, test]))


def generated(config: SyntheticConfig) -> dict[str, Loaded]:
    """Each split of a generated corpus."""
    origin = f"synthetic:{config.kind}"
    return {
        split: (records, ReadReport(origin, len(records), len(records))) for split, records in generate(config).items()
    }


def gather(path: Path, rows: Iterable[Found], on_bad_row: OnBadRow) -> Loaded:
    """The records of a file and what was dropped of it; the first bad row is an error unless bad rows are skipped."""
    records: list[Record] = []
    ids: dict[str, Place] = {}
    dropped: defaultdict[str, list[Place]] = defaultdict(list)
    noted: defaultdict[str, list[Place]] = defaultdict(list)
    num_rows = 0
    for row in rows:
        num_rows += 1
        if isinstance(row, Kept) and (first := ids.setdefault(row.record.id, row.place)) != row.place:
            row = Bad(row.place, "an id that no other row has", f"{row.record.id!r}, which already stands at {first}")
        match row:
            case Kept(place, record, note):
                records.append(record)
                if note:
                    noted[note].append(place)
            case Drop(place, reason):
                dropped[reason].append(place)
            case Bad(place, expected, found):
                if on_bad_row == "error":
                    raise unreadable(path, place, expected, found)
                dropped[f"not {expected}"].append(place)
    return tuple(records), ReadReport(path.name, num_rows, len(records), _tallies(dropped), _tallies(noted))


def _tallies(places: Mapping[str, list[Place]]) -> dict[str, Tally]:
    return {reason: Tally(len(found), found[:NUM_PLACES_SHOWN]) for reason, found in places.items()}


def filled(folder: str) -> Path:
    """A folder with `~` and `$VARIABLES` filled in."""
    try:
        return Path(Template(folder).substitute(os.environ)).expanduser()
    except KeyError as error:
        raise DataError(f"data.source.files.folder {folder!r}: the variable {error.args[0]} must be set") from None
    except ValueError as error:
        raise DataError(f"data.source.files.folder {folder!r}: {error}; `$$` is a plain dollar sign") from None


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


def _with_dev(records: Sequence[Record], share: float, seed: int) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The training split in two, train and dev, in their old order; records of one group stay together."""
    groups = [getattr(record, "group", record.id) for record in records]
    order = list(dict.fromkeys(groups))
    random.Random(seed).shuffle(order)
    chosen = set(order[: max(1, round(share * len(order)))])
    train = tuple(record for record, group in zip(records, groups, strict=True) if group not in chosen)
    dev = tuple(record for record, group in zip(records, groups, strict=True) if group in chosen)
    return train, dev


def _shared(splits: Mapping[str, Sequence[Record]]) -> dict[str, int]:
    """How many records of one split also stand in another, by content."""
    shared = {}
    for first, second in [("train", "dev"), ("train", "test"), ("dev", "test")]:
        known = {record.content for record in splits.get(first, ())}
        if count := sum(record.content in known for record in splits.get(second, ())):
            shared[f"{first} and {second}"] = count
    return shared
