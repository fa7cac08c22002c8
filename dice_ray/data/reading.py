"""From the rows of a source to stored splits: drops and duplicates counted, splits drawn, memory flat throughout.

What all records must be compared by, ids, groups and contents, is kept as hashes of 8 bytes.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from dice_ray.data.arrow import Records, Table, Writer, batch_of_records
from dice_ray.data.readers.base import Bad, Drop, Found, Kept, Place, unreadable
from dice_ray.data.records import Digest, LoadReport, ReadReport, Record, Tally
from dice_ray.errors import DataError

ItemT = TypeVar("ItemT")
OnBadRow: TypeAlias = Literal["error", "skip"]
Hashes: TypeAlias = NDArray[np.int64]

NUM_PLACES_SHOWN = 5
CHUNK = 1000
"""Records in memory at once."""


@dataclass(frozen=True)
class Part:
    """One split of a source, to be read.

    Attributes:
        origin: What the report calls it.
        where: What errors call it.
        rows: Reads its rows from the first one on.
    """

    origin: str
    where: Path
    rows: Callable[[], Iterable[Found]]
    on_bad_row: OnBadRow = "error"


class Reading:
    """Reads a part once; what was dropped and noted is counted meanwhile."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._num_rows = self._num_kept = 0
        self._dropped: dict[str, Tally] = {}
        self._noted: dict[str, Tally] = {}
        self._firsts: dict[str, Place] | None = None

    def chunks(self) -> Iterator[list[Record]]:
        """The records in their order; the first bad row is an error unless bad rows are skipped."""
        ids = Known()
        for chunk, failure in _chunks(self.part.rows()):
            hashes = (hash(row.record.id) for row in chunk if isinstance(row, Kept))
            repeated = iter(ids.add(np.fromiter(hashes, np.int64)).tolist())
            records = []
            for row in chunk:
                match self._unless_twice(row) if isinstance(row, Kept) and next(repeated) else row:
                    case Kept(place, record, note):
                        records.append(record)
                        if note:
                            _count(self._noted, note, place)
                    case Drop(place, reason):
                        _count(self._dropped, reason, place)
                    case Bad(place, expected, found):
                        if self.part.on_bad_row == "error":
                            raise unreadable(self.part.where, place, expected, found)
                        _count(self._dropped, f"not {expected}", place)
            self._num_rows += len(chunk)
            self._num_kept += len(records)
            if records:
                yield records
            if failure:
                raise failure

    def report(self) -> ReadReport:
        """What was read, once it has been."""
        return ReadReport(self.part.origin, self._num_rows, self._num_kept, self._dropped, self._noted)

    def _unless_twice(self, row: Kept) -> Found:
        """A bad row, if another one before it has its id."""
        if self._firsts is None:
            self._firsts = self._first_places()
        first = self._firsts[row.record.id]
        if first == row.place:
            return row
        return Bad(row.place, "an id that no other row has", f"{row.record.id!r}, which already stands at {first}")

    def _first_places(self) -> dict[str, Place]:
        """Where each id that stands twice stands first: two passes, as the hashes of all ids come before any id."""
        hashes = np.frombuffer(array("q", (hash(row.record.id) for row in self._kept())), np.int64)
        met, counts = np.unique(hashes, return_counts=True)
        twice = set(met[counts > 1].tolist())
        firsts = dict[str, Place]()
        for row in self._kept():
            if hash(row.record.id) in twice:
                firsts.setdefault(row.record.id, row.place)
        return firsts

    def _kept(self) -> Iterator[Kept]:
        for chunk, _ in _chunks(self.part.rows()):
            yield from (row for row in chunk if isinstance(row, Kept))


class Known:
    """The hashes that were met, in sorted arrays, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._sorted: list[Hashes] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which of the hashes were met before, here or earlier among themselves."""
        new, firsts = np.unique(hashes, return_index=True)
        met = np.ones(len(hashes), dtype=bool)
        met[firsts] = False
        for known in self._sorted:
            met |= known[np.searchsorted(known, hashes).clip(max=len(known) - 1)] == hashes
        while len(new) and self._sorted and len(self._sorted[-1]) < 2 * len(new):
            new = np.union1d(self._sorted.pop(), new)
        if len(new):
            self._sorted.append(new)
        return met


def store(
    parts: Mapping[str, Part], kind: type[Record], shares: Mapping[str, float], seed: int, folder: Path
) -> tuple[LoadReport, str]:
    """Read every part into an Arrow file of the folder, and draw from the training split those that are not there.

    Args:
        parts: The splits of the source.
        kind: Of its records.
        shares: The share of each split that is drawn, one after the other of what the one before has left.
        seed: Of the draws.
        folder: Where the splits are written.

    Returns:
        The report and the digest.
    """
    read, contents = dict[str, ReadReport](), dict[str, Hashes]()
    groups = array("q")
    for split, part in parts.items():
        reading, found = Reading(part), array("q")
        with Writer(folder / f"{split}.arrow") as file:
            for records in reading.chunks():
                file.write(batch_of_records(records))
                found.extend(hash(record.content) for record in records)
                if split == "train" and shares:
                    alone = "content" if "test" in shares else "id"  # what stands twice is not tested on
                    groups.extend(hash(getattr(record, "group", getattr(record, alone))) for record in records)
        read[split], contents[split] = reading.report(), np.array(found)
    _refuse_empty(contents, read)
    of_train = np.array(groups)
    for split, share in shares.items():
        is_drawn = drawn(of_train, share, seed)
        contents |= {"train": contents["train"][~is_drawn], split: contents["train"][is_drawn]}
        of_train = of_train[~is_drawn]
        _refuse_empty(contents, read)
        _divide(folder, split, is_drawn)
    report = LoadReport(
        read=read,
        sizes={split: len(hashes) for split, hashes in contents.items()},
        drawn={
            split: f"{share:g} of {'the rest' if number else 'train'}, drawn with seed {seed}"
            for number, (split, share) in enumerate(shares.items())
        },
        shared=shared(contents),
    )
    digest = Digest()
    for split in ("train", "dev", "test"):
        if split in contents:
            for records in chunked(Records(Table(folder / f"{split}.arrow"), kind)):
                digest.add(records)
        digest.end()
    return report, str(digest)


def chunked(items: Iterable[ItemT]) -> Iterator[list[ItemT]]:
    """The items, so many at once as are held in memory."""
    rest = iter(items)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def drawn(groups: Hashes, share: float, seed: int) -> NDArray[np.bool_]:
    """Which records make the split that is drawn: those of a share of the groups."""
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    order = array("q", np.argsort(firsts).tobytes())
    random.Random(seed).shuffle(order)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[np.array(order[: max(1, round(share * len(order)))])] = True
    is_chosen: NDArray[np.bool_] = chosen[members]
    return is_chosen


def _divide(folder: Path, split: str, is_drawn: NDArray[np.bool_]) -> None:
    """Put the records of the training split that make another split into a file of their own."""
    whole = (folder / "train.arrow").rename(folder / "whole.arrow")
    first = 0
    with Writer(folder / "train.arrow") as train, Writer(folder / f"{split}.arrow") as other:
        for batch in Table(whole).batches():
            of_batch = pa.array(is_drawn[first : first + batch.num_rows])
            train.write(batch.filter(pa.compute.invert(of_batch)))
            other.write(batch.filter(of_batch))
            first += batch.num_rows
    whole.unlink()


def _refuse_empty(contents: Mapping[str, Hashes], read: Mapping[str, ReadReport]) -> None:
    for split, hashes in contents.items():
        if not len(hashes):
            report = read.get(split, read["train"])
            dropped = "".join(f"; {tally.count} rows dropped: {reason}" for reason, tally in report.dropped.items())
            raise DataError(f"the {split} split must hold a record, got none from {report.origin}{dropped}")


def shared(contents: Mapping[str, Hashes]) -> dict[str, int]:
    """How many records of one split also stand in another, by content."""
    found = {}
    for first, second in [("train", "dev"), ("train", "test"), ("dev", "test")]:
        if first in contents and second in contents:
            count = int(np.isin(contents[second], contents[first]).sum())
            if count:
                found[f"{first} and {second}"] = count
    return found


def _chunks(rows: Iterable[Found]) -> Iterator[tuple[list[Found], DataError | None]]:
    """The rows in chunks, and what made the file unreadable after the last one."""
    rest = iter(rows)
    failure = None
    while failure is None:
        chunk: list[Found] = []
        try:
            chunk.extend(islice(rest, CHUNK))
        except DataError as error:
            failure = error
        if not chunk and failure is None:
            return
        yield _whole(chunk), failure


def _whole(chunk: list[Found]) -> list[Found]:
    """The rows, those bad that JSON escapes half a character in: no file can hold it, and no tokenizer takes it."""
    records = [row.record for row in chunk if isinstance(row, Kept)]
    try:
        if records:
            batch_of_records(records)
    except UnicodeEncodeError:
        if len(chunk) > 1:
            return [row for one in chunk for row in _whole([one])]
        return [Bad(chunk[0].place, "text in UTF-8", "half of a surrogate pair")]
    return chunk


def _count(tallies: dict[str, Tally], reason: str, place: Place) -> None:
    tally = tallies.get(reason, Tally(0, []))
    first = tally.first if tally.count >= NUM_PLACES_SHOWN else [*tally.first, place]
    tallies[reason] = Tally(tally.count + 1, first)
