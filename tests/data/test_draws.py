"""Drawn splits: the same share of every label, whole texts and documents, and something of everything left in train."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.draws import NO_DOCUMENT, Drawable, Hashes, Latest, same_text
from dice_ray.data.records import PairRecord, QueryRecord, QuestionRecord, Record, TaggedRecord, TextRecord


def texts(labels: Sequence[tuple[str, ...]]) -> list[Record]:
    return [TextRecord(str(number), f"text {number}", each) for number, each in enumerate(labels)]


def no_documents(records: Sequence[Record]) -> Hashes:
    return np.full(len(records), NO_DOCUMENT)


def drawn(records: Sequence[Record], share: float, seed: int = 0, documents: Hashes | None = None) -> list[Record]:
    known = no_documents(records) if documents is None else documents
    is_drawn = Drawable.of(records, known, {"dev": share}).draw(share, seed)
    return [record for record, chosen in zip(records, is_drawn, strict=True) if chosen]


def counts(records: Sequence[Record]) -> Counter[str]:
    return Counter(label for record in records if isinstance(record, TextRecord) for label in record.labels)


def test_every_seed_draws_the_share_of_a_rare_label() -> None:
    """Drawn without regard to labels, dev of 600 rows at 5 % holds 0 to 6 positives by chance."""
    records = texts([("yes",) if number % 20 == 0 else ("no",) for number in range(600)])
    splits = [drawn(records, 0.1, seed) for seed in range(6)]
    assert [counts(split) for split in splits] == [{"yes": 3, "no": 57}] * 6
    assert len({tuple(record.id for record in split) for split in splits}) == 6


def test_texts_with_several_labels_are_drawn_by_their_rarest_one() -> None:
    state = random.Random(0)
    some = (("a", 0.9), ("b", 0.3), ("c", 0.03))
    records = texts([tuple(label for label, chance in some if state.random() < chance) for _ in range(1000)])
    all_of = counts(records)["c"]
    assert [counts(drawn(records, 0.2, seed))["c"] for seed in range(5)] == [round(0.2 * all_of)] * 5


def test_a_few_labels_are_all_in_the_drawn_split_and_many_are_not_forced_into_it() -> None:
    few = texts([("yes",)] * 4 + [("no",)] * 96)
    assert [counts(drawn(few, 0.1, seed))["yes"] for seed in range(5)] == [1] * 5
    many = texts([(f"label {number % 500}",) for number in range(1000)])
    assert len(drawn(many, 0.1)) == 100


def test_a_rare_label_of_few_documents_is_in_the_drawn_split() -> None:
    """No document of ten records was near enough to the one or two records that are the split's share of the label."""
    records = texts([("rare",) if number in (3, 1500) else ("often",) for number in range(2000)])
    documents = np.arange(2000) // 10 + 1
    for seed in range(9):
        splits = Drawable.of(records, documents, {"dev": 0.1}).draw(0.1, seed)
        assert counts([records[number] for number in np.flatnonzero(splits)]) == {"rare": 1, "often": 199}
    documents[[*range(300), *range(1500, 1800)]] = [1] * 300 + [2] * 300  # the two with the rare label
    splits = Drawable.of(records, documents, {"dev": 0.1}).draw(0.1, 0)
    assert counts([records[number] for number in np.flatnonzero(splits)]) == {"often": 200}, (
        "no split of twice the size"
    )


def test_a_label_of_one_text_stays_in_train() -> None:
    records = texts([("once",), *[("often",)] * 9])
    assert all(counts(drawn(records, 0.5, seed))["once"] == 0 for seed in range(9))
    assert len(drawn(texts([("a",), ("b",)]), 0.5)) == 1, "else there would be no dev split"
    assert drawn(texts([("a",)]), 0.5) == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["a", "b", "c"])), min_size=2, max_size=60),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 5),
)
def test_the_same_text_is_never_on_both_sides(rows: list[tuple[int, str]], share: float, seed: int) -> None:
    records: list[Record] = [TextRecord(str(id), f"{text}", (label,)) for id, (text, label) in enumerate(rows)]
    dev = drawn(records, share, seed)
    train = [record for record in records if record not in dev]
    assert not {same_text(record) for record in dev} & {same_text(record) for record in train}
    assert train
    assert bool(dev) == (len({text for text, _ in rows}) > 1)
    largest = max(Counter(text for text, _ in rows).values())
    num_strata = len({label for _, label in rows})
    assert abs(len(dev) - share * len(rows)) <= largest * num_strata


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PairRecord("1", "Who  is it?", "b", "1"), PairRecord("2", "B", "who is it?", "0")),
        (TextRecord("1", "Refund\nPLEASE", ("x",)), TextRecord("2", "refund please ", ())),
        (TaggedRecord("1", ("A", "b"), ("O", "O")), TaggedRecord("2", ("a", "b"), ("B-X", "O"))),
        (QueryRecord("1", ("a",), "q", "T", (), "1"), QueryRecord("2", ("a",), "other", "U", (), "2")),
        (QuestionRecord("1", "q", "text", (), True, "1"), QuestionRecord("2", "r", "text", (), False, "2")),
    ],
    ids=lambda record: type(record).__name__,
)
def test_labels_case_spacing_and_the_order_of_a_pair_make_no_other_text(one: Record, other: Record) -> None:
    assert same_text(one) == same_text(other)


def test_documents_stay_whole_if_the_split_can_hold_one() -> None:
    records = texts([("a",)] * 200)
    documents = np.repeat(np.arange(1, 21), 10)
    for seed in range(3):
        dev = drawn(records, 0.1, seed, documents)
        assert (len(dev), len({int(record.id) // 10 for record in dev})) == (20, 2)
    few = np.repeat(np.arange(1, 5), 50)
    assert Drawable.of(records, few, {"test": 0.5, "dev": 0.1}).note == ""
    assert len(drawn(records, 0.1, documents=few)) == 20


def test_documents_that_share_a_text_are_drawn_together() -> None:
    """Grouped by document alone, a text in two of them is in train and in dev; a chain of many joins them all."""
    questions: list[Record] = [
        QuestionRecord(f"{row}", "q", f"text {row // 4}", (), False, f"data[{row}]") for row in range(240)
    ]
    for seed in range(3):
        dev = drawn(questions, 0.1, seed, np.arange(1, 241))
        assert len(dev) == 24
        assert not {same_text(record) for record in dev} & {same_text(each) for each in questions if each not in dev}
    # Each document shares its last text with the next one, except for every hundredth.
    chain: list[Record] = [TextRecord(f"{n}", f"text {n - n // 3 + n // 300}", ("a",)) for n in range(3000)]
    joined = Drawable.of(chain, np.arange(3000) // 3 + 1, {"dev": 0.1})
    assert [len(set(joined.groups[n : n + 300].tolist())) for n in range(0, 3000, 300)] == [1] * 10
    assert (len(set(joined.groups.tolist())), joined.note) == (10, ", documents whole")


def test_documents_that_nearly_all_share_a_text_are_not_whole() -> None:
    """Joined by a line that most of them have, one group of 90 % of the records would leave dev without its share."""
    records: list[Record] = [
        TextRecord(f"{row}", "All rights reserved" if row % 10 == 0 and row < 900 else f"text {row}", ("a",))
        for row in range(1000)
    ]
    documents = np.arange(1000) // 10 + 1
    assert Drawable.of(records, documents, {"dev": 0.2}).note == ", documents not whole, as most of them share texts"
    dev = drawn(records, 0.2, documents=documents)
    assert len(dev) == 200
    assert "All rights reserved" not in {record.text for record in dev if isinstance(record, TextRecord)}


@pytest.mark.parametrize("num_texts", [2000, 30], ids=["few shared texts", "most groups share a text"])
def test_groups_that_the_user_names_are_never_on_two_sides(num_texts: int) -> None:
    """Documents are given up where most of them share texts, or where a split could not hold one: groups never are."""
    for seed in range(200):
        state = random.Random(seed)
        num_groups = state.randint(4, 60)
        groups = np.array([min(int(state.paretovariate(1)), num_groups) for _ in range(300)])
        records: list[Record] = [
            TextRecord(str(n), f"text {state.randrange(num_texts)}", (state.choice("aab"),)) for n in range(300)
        ]
        left = Drawable.of(records, groups, {"test": 0.2, "dev": 0.1}, "customer")
        assert ", groups by `customer` whole" in left.note
        is_test = left.draw(0.2, seed)
        rest = groups[~is_test]
        is_dev = left.without(is_test).draw(0.1, seed)
        sides = [set(groups[is_test].tolist()), set(rest[is_dev].tolist()), set(rest[~is_dev].tolist())]
        assert len(set.union(*sides)) == sum(map(len, sides)), seed


@given(
    times=st.lists(st.integers(0, 30), min_size=2, max_size=60).filter(lambda times: len(set(times)) > 1),
    share=st.floats(0.05, 0.45),
)
def test_the_latest_records_are_drawn_with_all_of_their_time(times: list[int], share: float) -> None:
    moments = np.array(times, dtype="datetime64[s]")
    is_drawn = Latest(moments, np.zeros(len(times), np.int32)).draw(share, 0)
    assert is_drawn.any()
    before, after = moments[~is_drawn], moments[is_drawn]
    assert not len(before) or before.max() < after.min()
    nearest = min(abs(int((moments >= each).sum()) - share * len(times)) for each in moments)
    assert abs(len(after) - share * len(times)) == pytest.approx(nearest)
