"""Reading in chunks: the same drops, duplicates, errors and draws as of records held all at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data import reading
from dice_ray.data.arrow import ArrowTable, ArrowWriter, Records, batch_of_records
from dice_ray.data.formats.base import Bad, Drop, Kept, RowResult
from dice_ray.data.reading import SplitSource, _SeenHashes, _SplitReader, count_shared, gather, store_splits
from dice_ray.data.records import (
    AnswerSpan,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    Record,
    RowTally,
    TaggedRecord,
    TextRecord,
    digest,
)
from dice_ray.errors import DataError

RECORDS: list[list[Record]] = [
    [PairRecord(str(number), f"a{number}", "😀\u200b\u2028", "1") for number in range(5)],
    [TextRecord("1", "", ()), TextRecord("2", "b", ("x", "y"))],
    [TextRecord("1", "", (), "Ann"), TextRecord("2", "b", ("x", "y"), "Bob")],
    [TaggedRecord("1", ("a", "\xa0"), ("B-X", "O")), TaggedRecord("2", (), ())],
    [
        QuestionRecord("1", "q", "c", ((AnswerSpan("c", 0),), (AnswerSpan("d", -1), AnswerSpan("e", 5))), False, "g"),
        QuestionRecord("2", "q", "c", (), True, "g"),
    ],
    [QueryRecord("1", ("a", "b"), "q", "T", ((0, 1), (0, 2)), "1"), QueryRecord("2", ("a",), "q", "U", (), "1")],
]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 3)


def kept(ids: Sequence[str]) -> list[RowResult]:
    return [Kept(line, TextRecord(id_, f"text {line}", ("x",))) for line, id_ in enumerate(ids, start=1)]


def test_texts_of_an_entry_without_groups_are_read(tmp_path: Path) -> None:
    """Entries of older versions have no column for the document."""
    batch = batch_of_records(RECORDS[1])
    with ArrowWriter(tmp_path / "a.arrow") as file:
        file.write(batch.select(batch.schema.names[:-1]))
    assert list(Records(ArrowTable(tmp_path / "a.arrow"), TextRecord)) == RECORDS[1]


@pytest.mark.parametrize("records", RECORDS, ids=lambda records: type(records[0]).__name__)
def test_every_kind_of_record_is_read_back_unchanged(records: list[Record], tmp_path: Path) -> None:
    with ArrowWriter(tmp_path / "a.arrow") as file:
        for chunk in (records[:1], records[1:]):
            file.write(batch_of_records(chunk))
    found = Records(ArrowTable(tmp_path / "a.arrow"), type(records[0]))
    assert list(found) == records
    assert found == records
    assert found != [*records[:-1], records[0]]
    assert [found[index] for index in range(len(records))] == records
    assert (found[-1], found[1:], len(found)) == (records[-1], records[1:], len(records))
    assert digest([found]) == digest([records])
    with pytest.raises(IndexError, match=f"row {len(records)} of {len(records)}"):
        found[len(records)]


@given(chunks=st.lists(st.lists(st.integers(0, 30)), max_size=30))
def test_seen_hashes_are_those_added_before(chunks: list[list[int]]) -> None:
    known, before = _SeenHashes(), set[int]()
    for chunk in chunks:
        expected = []
        for value in chunk:
            expected.append(value in before)
            before.add(value)
        assert known.add(np.array(chunk, dtype=np.int64)).tolist() == expected


def test_hashes_are_compared_in_little_memory() -> None:
    """10 million records are inspected within 1 GiB; `np.union1d` and `np.isin` take 39 and 57 bytes for each."""
    num, known = 1 << 17, _SeenHashes()
    hashes = np.random.default_rng(0).permutation(num)
    tracemalloc.start()
    for chunk in np.split(hashes, 128):
        known.add(chunk)
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 26 * num
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    assert count_shared({"train": hashes, "dev": hashes[: num // 8]}) == {"train and dev": num // 8}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 16 * num


@pytest.mark.parametrize("second", [3, 5, 9])
def test_a_repeated_id_is_found_in_any_chunk(second: int) -> None:
    ids = [str(line) for line in range(1, 11)]
    ids[second - 1] = "2"
    with pytest.raises(
        DataError, match=f"line {second}: expected an id that no other row has, found '2', already the id of line 2"
    ):
        gather(Path("a"), lambda: kept(ids))
    records, report = gather(Path("a"), lambda: kept(ids), "skip")
    assert len(records) == 9
    assert report.dropped == {"not an id that no other row has": RowTally(1, [second])}


def test_repeated_ids_are_reported_in_a_constant_number_of_passes() -> None:
    ids = [str(line % 20) for line in range(60)]
    starts = []

    def rows() -> Iterator[RowResult]:
        starts.append(1)
        yield from kept(ids)

    reader = _SplitReader(SplitSource("a", Path("a"), rows, "skip"))
    assert [row.record.id for rows in reader.chunks() for row in rows] == ids[:20]
    assert reader.report().dropped == {"not an id that no other row has": RowTally(40, [21, 22, 23, 24, 25])}
    assert len(starts) == 3


def test_of_several_errors_the_first_in_the_file_is_raised() -> None:
    def rows() -> Iterator[RowResult]:
        yield from kept(["1", "1"])
        yield Bad(3, "a table", "a hole")
        raise DataError("the end is missing")

    with pytest.raises(DataError, match="line 2: expected an id"):
        gather(Path("a"), rows)
    with pytest.raises(DataError, match="the end is missing"):
        gather(Path("a"), rows, "skip")


def test_drops_and_notes_are_counted_over_all_chunks() -> None:
    rows: list[RowResult] = [Drop(line, "no label") for line in range(1, 8)]
    rows += [Kept(line, TextRecord(str(line), "a", ()), ("odd",)) for line in range(8, 11)]
    reader = _SplitReader(SplitSource("a", Path("a"), lambda: rows))
    assert [len(chunk) for chunk in reader.chunks()] == [2, 1]
    report = reader.report()
    assert (report.rows, report.kept) == (10, 3)
    assert report.dropped == {"no label": RowTally(7, [1, 2, 3, 4, 5])}
    assert report.noted == {"odd": RowTally(3, [8, 9, 10])}


def test_half_a_surrogate_pair_is_a_bad_row() -> None:
    rows: list[RowResult] = [*kept(["1", "2"]), Kept(3, TextRecord("3", "\ud83d", ("x",)))]
    with pytest.raises(DataError, match="line 3: expected text in UTF-8, found half of a surrogate pair"):
        gather(Path("a"), lambda: rows)
    records, report = gather(Path("a"), lambda: rows, "skip")
    assert [record.id for record in records] == ["1", "2"]
    assert report.dropped["not text in UTF-8"].first == [3]


def test_a_drawn_dev_split_is_stored_apart(tmp_path: Path) -> None:
    part = SplitSource("a", Path("a"), lambda: kept([str(line) for line in range(1, 21)]))
    report, found = store_splits({"train": part}, TextRecord, {"dev": 0.2}, 0, tmp_path)
    train, dev = (Records(ArrowTable(tmp_path / f"{split}.arrow"), TextRecord) for split in ("train", "dev"))
    assert report.sizes == {"train": 16, "dev": 4}
    assert sorted(int(record.id) for record in [*train, *dev]) == list(range(1, 21))
    assert found == digest([train, dev, ()])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dev.arrow", "train.arrow"]
