"""Reads the rows of a source into stored splits: counts drops and duplicates, draws splits, in constant memory.

Only one chunk of records is in memory at a time. Whatever all records must be compared by (ids to find repeated ones,
groups to draw splits, contents to count duplicates between splits) is kept as hashes of 8 bytes. `hash` of a string
differs between processes unless PYTHONHASHSEED is set, so hashes are compared within a process and never stored.

Repeated ids are therefore found in two steps: `_SeenHashes` tells during the first pass whether a hash occurred before,
and only if one did is the source read again, to tell an id that occurs twice from two ids with the same hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dice_ray.data.arrow import ArrowTable, ArrowWriter, Records, batch_of_records
from dice_ray.data.draws import NO_DOCUMENT, Drawable, Hashes, Latest
from dice_ray.data.formats.base import UNLABELLED, Bad, Drop, Kept, RowResult
from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.text import BadRowError, RowPlace, undecoded, unreadable
from dice_ray.data.records import MALFORMED, LoadReport, ReadReport, Record, RowTally, digest, where
from dice_ray.errors import DataError, counted

_ItemT = TypeVar("_ItemT")
OnBadRow: TypeAlias = Literal["error", "skip"]

_NOT_DECODED = "text in the encoding of the reader, by default UTF-8"
REPEATED_ID = "an id that no other row has"
_NUM_PLACES_SHOWN = 5
CHUNK = 1000
"""Records in memory at once."""


@dataclass(frozen=True)
class SplitSource:
    """One split of a source, to be read.

    Attributes:
        origin: Its name in the report.
        where: Its name in errors.
        rows: Returns an iterator over its rows; each call starts at the first row.
    """

    origin: str
    where: Path
    rows: Callable[[], Iterable[RowResult]]
    on_bad_row: OnBadRow = "error"


class _SplitReader:
    """Reads a split once and counts what is dropped and noted."""

    def __init__(self, source: SplitSource) -> None:
        self.source = source
        self._num_rows = self._num_kept = 0
        self._dropped: dict[str, RowTally] = {}
        self._noted: dict[str, RowTally] = {}

    def chunks(self) -> Iterator[list[Kept]]:
        """The kept rows in their order; raises a DataError at the first bad row unless bad rows are skipped."""
        ids = _SeenHashes()
        for chunk, failure in _chunks(self.source.rows()):
            hashes = (hash(row.record.id) for row in chunk if isinstance(row, Kept))
            # NumPy for a whole chunk; `next(seen)` below belongs to the next kept row.
            seen = iter(ids.add(np.fromiter(hashes, np.int64)).tolist())
            kept = []
            for row in chunk:
                row = self._bad_if_repeated(row) if isinstance(row, Kept) and next(seen) else row
                match row:
                    case Kept(place, _, notes):
                        kept.append(row)
                        for note in notes:
                            _count(self._noted, note, place)
                    case Drop(place, reason):
                        _count(self._dropped, reason, place)
                    case Bad(place, expected, actual):
                        if self.source.on_bad_row == "error":
                            raise unreadable(self.source.where, place, expected, actual, BadRowError)
                        _count(self._dropped, f"{MALFORMED}{expected}", place)
            self._num_rows += len(chunk)
            self._num_kept += len(kept)
            if kept:
                yield kept
            # Only now: a bad row that stands before the place of the failure is the first error of the file.
            if failure:
                raise failure

    def report(self) -> ReadReport:
        """The counts, valid once all chunks are read."""
        return ReadReport(self.source.origin, self._num_rows, self._num_kept, self._dropped, self._noted)

    def _bad_if_repeated(self, row: Kept) -> RowResult:
        """A bad row if an earlier row has the same id, else the row itself."""
        first = self._first_places[row.record.id]
        if first == row.place:
            return row
        return Bad(row.place, REPEATED_ID, f"{row.record.id!r}, already the id of {where(first)}")

    @cached_property
    def _first_places(self) -> dict[str, RowPlace]:
        """The first place of each repeated id.

        Two passes over the source: the first one finds the hashes that occur twice, the second one their ids. This
        keeps memory at 8 bytes a record, and the number of passes independent of the number of repeated ids.
        """
        hashes = np.frombuffer(array("q", (hash(row.record.id) for row in self._kept_rows())), np.int64)
        values, counts = np.unique(hashes, return_counts=True)
        repeated = set(values[counts > 1].tolist())
        places = dict[str, RowPlace]()
        for row in self._kept_rows():
            if hash(row.record.id) in repeated:
                places.setdefault(row.record.id, row.place)
        return places

    def _kept_rows(self) -> Iterator[Kept]:
        for chunk, _ in _chunks(self.source.rows()):
            yield from (row for row in chunk if isinstance(row, Kept))


class _SeenHashes:
    """A set of hashes, as sorted arrays each more than twice as long as the next, so that adding is amortised."""

    def __init__(self) -> None:
        self._sorted: list[Hashes] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add hashes; returns for each whether it was added before, or occurs earlier among these."""
        _, firsts = np.unique(hashes, return_index=True)
        seen = np.ones(len(hashes), dtype=bool)
        seen[firsts] = False
        for known in self._sorted:
            seen |= known[np.searchsorted(known, hashes).clip(max=len(known) - 1)] == hashes
        if seen.all():
            return seen
        merged = [hashes[~seen]]
        while self._sorted and len(self._sorted[-1]) <= 2 * sum(map(len, merged)):
            merged.append(self._sorted.pop())
        # `np.union1d` would hold all of them three times more.
        joined = np.concatenate(merged)
        merged.clear()
        joined.sort(kind="stable")
        self._sorted.append(joined)
        return seen


def gather(
    path: Path, rows: Callable[[], Iterable[RowResult]], on_bad_row: OnBadRow = "error"
) -> tuple[tuple[Record, ...], ReadReport]:
    """The records of a file, in memory, and the report of what was dropped."""
    reader = _SplitReader(SplitSource(path.name, path, rows, on_bad_row))
    return tuple(row.record for rows in reader.chunks() for row in rows), reader.report()


def store_splits(
    sources: Mapping[str, SplitSource],
    kind: type[Record],
    shares: Mapping[str, float],
    seed: int,
    folder: Path,
    by: Mapping[str, Column] = MappingProxyType({}),
) -> tuple[LoadReport, str]:
    """Read every split into an Arrow file of the folder, and draw the missing ones from the training split.

    `shares` has the share of each split to be drawn, in this order, each of what the previous ones left. `by` has the
    columns of the groups and times of the rows. Returns the report, and the digest of all splits.

    Raises:
        DataError: A split has no record, or cannot be drawn with groups or times kept whole, or a row is bad.
    """
    reports, contents, groups = dict[str, ReadReport](), dict[str, Hashes](), dict[str, Hashes]()
    times = list[NDArray[Any]]()
    for split, source in sources.items():
        reader, content_hashes, documents = _SplitReader(source), array("q"), array("q")
        with ArrowWriter(folder / f"{split}.arrow") as file:
            for rows in reader.chunks():
                file.write(batch_of_records([row.record for row in rows]))
                content_hashes.extend(hash(row.record.content) for row in rows)
                if "groups" in by or (split == "train" and shares):
                    documents.extend(NO_DOCUMENT if row.document is None else hash(row.document) for row in rows)
                if split == "train" and "time" in by:
                    times.append(np.array([row.time for row in rows]))
        reports[split], contents[split] = reader.report(), np.frombuffer(content_hashes, np.int64)
        groups[split] = np.frombuffer(documents, np.int64)
    _refuse_empty(contents, reports)
    if {each.dtype.kind for each in times} not in (set(), {"f"}, {"M"}):
        raise DataError(f"data.time: the values of {by['time']!r} must all be dates or all be numbers, got both")
    if times:
        left: Drawable = Latest(np.concatenate(times), np.zeros(len(contents["train"]), np.int32))
    elif shares:
        records = Records(ArrowTable(folder / "train.arrow"), kind)
        left = Drawable.of(records, groups["train"], shares, by.get("groups"))
    del documents  # the draw takes most of the memory
    if "groups" not in by:
        groups.clear()
    drawn, num_left_out = dict[str, str](), 0
    for split, share in shares.items():
        is_drawn, how = left.draw(share, seed), f"{share:g} of {'the rest' if drawn else 'train'}"
        stays = ~is_drawn
        if by:
            _refuse_far(split, share, is_drawn, left.groups, by)
        if groups:  # by time, a group may be in several splits: in train it is left out
            stays &= ~np.isin(groups["train"], groups["train"][is_drawn])
            num_left_out += int((~stays & ~is_drawn).sum())
            groups |= {"train": groups["train"][stays], split: groups["train"][is_drawn]}
        if times:
            since = str(left.groups[is_drawn].min()).removesuffix("T00:00:00").removesuffix(".0")
            drawn[split] = f"the latest {how} by `{by['time']}`, from {since} on, for every seed"
        else:
            drawn[split] = f"{how}, drawn with seed {seed}, stratified by label{left.note}"
        contents |= {"train": contents["train"][stays], split: contents["train"][is_drawn]}
        left = left.without(~stays)
        _refuse_empty(contents, reports)
        _divide(folder, {"train": stays, split: is_drawn})
    report = LoadReport(
        read=reports,
        sizes={split: len(hashes) for split, hashes in contents.items()},
        drawn=drawn,
        shared=count_shared(contents),
        groups=_lines_on_groups(by["groups"], groups, num_left_out) if groups else [],
    )
    stored = {split: Records(ArrowTable(folder / f"{split}.arrow"), kind) for split in contents}
    return report, digest([stored.get(split, ()) for split in ("train", "dev", "test")], by)


def chunked(items: Iterable[_ItemT]) -> Iterator[list[_ItemT]]:
    """The items in lists of `CHUNK`."""
    rest = iter(items)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def _divide(folder: Path, parts: Mapping[str, NDArray[np.bool_]]) -> None:
    """Divide the records of the training split into the files of these splits."""
    whole = (folder / "train.arrow").rename(folder / "whole.arrow")
    for split, is_in in parts.items():
        first = 0
        with ArrowWriter(folder / f"{split}.arrow") as file:
            for batch in ArrowTable(whole).batches():
                file.write(batch.filter(pa.array(is_in[first : first + batch.num_rows])))
                first += batch.num_rows
    whole.unlink()


def _lines_on_groups(column: Column, groups: Mapping[str, Hashes], num_left_out: int) -> list[str]:
    """What the load report says of groups, with a warning for those that are in two splits."""
    unique = {split: np.unique(hashes) for split, hashes in groups.items()}
    _, sizes = np.unique(np.concatenate([*groups.values()]), return_counts=True)
    lines = [f"  {counted(len(sizes), 'group')} by `{column}`, largest {100 * sizes.max() / sizes.sum():.2g} %"]
    if num_left_out:
        lines.append(f"  {counted(num_left_out, 'record')} left out of train, whose groups occur in a later split")
    for pair, count in count_shared(unique).items():
        first, _, second = pair.partition(" and ")
        found = f"{count:,} of {counted(len(unique[second]), 'group')} of {second} also occur in {first}"
        lines.append(f"Warning: {found} (data.groups): scores on {second} may be too high for new groups.")
    return lines


def _refuse_far(
    split: str, share: float, is_drawn: NDArray[np.bool_], groups: NDArray[Any], by: Mapping[str, Column]
) -> None:
    """Raise a DataError for a split that is far from its share because groups or times are kept whole."""
    wanted, num = share * len(is_drawn), int(is_drawn.sum())
    if wanted / 2 <= num <= max(2 * wanted, 1):
        return
    setting, part = ("time", "time") if "time" in by else ("groups", "group that shares no text with others")
    _, sizes = np.unique(groups, return_counts=True)
    raise DataError(
        f"data.{setting}: {split} must have about {share:g} of {counted(len(is_drawn), 'record')}, with those of one "
        f"{by[setting]!r} together, and the draw gives {num:,}: the largest {part} has {sizes.max():,}, and there are "
        f"{len(sizes):,}. Set another data.{split}_share, or give a {split} file"
    )


def _refuse_empty(contents: Mapping[str, Hashes], reports: Mapping[str, ReadReport]) -> None:
    for split, hashes in contents.items():
        if not len(hashes):
            report = reports.get(split, reports["train"])
            drawn = ""
            if split not in reports or report.kept:  # another split is drawn from it
                is_one_text = len(set(chain.from_iterable(contents.values()))) == 1
                several = (
                    "records of one text, which stays in one split" if is_one_text else "too few records to draw it"
                )
                has = "1 record" if report.kept == 1 else several
                drawn = f": it has {has}; give a file of your own"
            if UNLABELLED in report.dropped and not report.kept:
                drawn += " (records without labels cannot be scored, they are for `dice-ray predict`)"
            raise DataError(
                f"the {split} split must hold a record, got none from {report.origin}{drawn}{report.dropped_rows()}"
            )


def count_shared(contents: Mapping[str, Hashes]) -> dict[str, int]:
    """For each pair of splits, how many records of the second have the content of a record of the first; none for 0."""
    # `np.isin` would take six times the memory of both.
    ordered = {split: np.sort(contents[split]) for split in ("train", "dev", "test") if split in contents}
    counts = {}
    for first, second in combinations(ordered, 2):
        places = np.searchsorted(ordered[first], ordered[second])
        counts[f"{first} and {second}"] = int((ordered[first].take(places, mode="clip") == ordered[second]).sum())
    return {pair: count for pair, count in counts.items() if count}


def _chunks(rows: Iterable[RowResult]) -> Iterator[tuple[list[RowResult], DataError | None]]:
    """The rows in chunks; the last one with the error that ended the reading, if any."""
    rest = iter(rows)
    failure = None
    while failure is None:
        chunk: list[RowResult] = []
        try:
            chunk.extend(islice(rest, CHUNK))
        except DataError as error:
            failure = error
        if not chunk and failure is None:
            return
        yield _refuse_surrogates(chunk), failure


def _refuse_surrogates(chunk: list[RowResult]) -> list[RowResult]:
    """The rows, with a bad row for each record that holds half a surrogate pair.

    It stands for a byte that is not of the file's encoding, or JSON has escaped it. It cannot be written as UTF-8, and
    no tokenizer takes it.
    """
    records = [row.record for row in chunk if isinstance(row, Kept)]
    try:
        # A whole chunk at once; only if it fails, each row by itself.
        if records:
            batch_of_records(records)
    except UnicodeEncodeError as error:
        if len(chunk) > 1:
            return [checked for row in chunk for checked in _refuse_surrogates([row])]
        if (found := undecoded(error.object)) is None:
            return [Bad(chunk[0].place, "text in UTF-8", "half of a surrogate pair")]
        advice = "set its `encoding`, which `dice-ray init` guesses, or `on_bad_row: skip`"
        return [Bad(chunk[0].place, _NOT_DECODED, f"{found}: {advice}")]
    return chunk


def _count(tallies: dict[str, RowTally], reason: str, place: RowPlace) -> None:
    tally = tallies.get(reason, RowTally(0, []))
    tallies[reason] = RowTally(tally.count + 1, [*tally.first, place][:_NUM_PLACES_SHOWN])
