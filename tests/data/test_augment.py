"""Copies of records: entities swapped alike wherever they stand, every combination once, the source in the id."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.augment import AugmentConfig, FileEntitiesConfig, FoundEntitiesConfig, GivenEntitiesConfig, copies
from dice_ray.data.entities import Gazetteer
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.errors import DataError

CITIES = ("Rome", "Paris", "Oslo", "New York")
GAZETTEER = Gazetteer({"city": CITIES, "year": ("1999", "2016", "2020")})


def test_an_entity_is_swapped_alike_in_both_sentences() -> None:
    record = PairRecord("7", "Rome in 2016 and Rome again", "is Rome nice?", "1")
    found = list(copies(record, GAZETTEER, "shared", random.Random(0)))
    assert {copy.content for copy in found} == {
        (f"{city} in 2016 and {city} again", f"is {city} nice?") for city in CITIES if city != "Rome"
    }
    assert [copy.id for copy in found] == ["7+1", "7+2", "7+3"]
    assert {copy.label for copy in found if isinstance(copy, PairRecord)} == {"1"}


def test_entities_of_one_sentence_are_swapped_where_that_is_asked_for() -> None:
    record = PairRecord("7", "Rome in 2016", "it was nice", "1")
    assert not list(copies(record, GAZETTEER, "shared", random.Random(0)))
    found = {copy.content for copy in copies(record, GAZETTEER, "any", random.Random(0))}
    assert found == {(f"{city} in {year}", "it was nice") for city, year in product(CITIES[1:], ("1999", "2020"))}


def test_an_entity_is_not_swapped_for_one_that_stands_beside_it() -> None:
    record = PairRecord("7", "Rome and Paris", "is it Rome?", "1")
    found = {copy.content[0] for copy in copies(record, GAZETTEER, "shared", random.Random(0))}
    assert found == {"Oslo and Paris", "New York and Paris"}


@given(seed=st.integers(0, 20))
def test_several_entities_of_a_kind_stay_apart_and_every_combination_comes_once(seed: int) -> None:
    record = TextRecord("a", "from Rome to Paris in 2016", ("x",))
    found = [copy.content[0] for copy in copies(record, GAZETTEER, "any", random.Random(seed))]
    expected = {
        f"from {first} to {second} in {year}"
        for first, second, year in product(("Oslo", "New York"), ("Oslo", "New York"), ("1999", "2020"))
        if first != second
    }
    assert len(found) == len(expected)
    assert set(found) == expected


def test_no_more_entities_of_a_kind_are_swapped_than_others_are_left() -> None:
    record = TextRecord("a", "Rome Paris Oslo", ("x",))
    assert {copy.content[0] for copy in copies(record, GAZETTEER, "any", random.Random(0))} == {
        "Rome Paris New York",
        "New York Paris Oslo",
        "Rome New York Oslo",
    } & {copy.content[0] for copy in copies(record, GAZETTEER, "any", random.Random(0))}
    assert len(list(copies(record, GAZETTEER, "any", random.Random(0)))) == 1


def test_entities_come_from_the_split_from_a_file_or_as_given(tmp_path: Path) -> None:
    records = [PairRecord(str(n), f"they met in {city}", f"so in {city}", "1") for n, city in enumerate(CITIES)]
    found = FoundEntitiesConfig(finder="rules")
    assert {*found.gazetteer(records).indices} == {*CITIES}
    file = tmp_path / "cities.txt"
    file.write_text("Rome\nOslo\n", encoding="utf-8")
    of_file = FileEntitiesConfig(path=str(file))
    assert {*of_file.gazetteer(records).indices} == {"Rome", "Oslo"}
    given_ones = GivenEntitiesConfig(by_kind={"city": ["Rome"]})
    assert {*given_ones.gazetteer(records).indices} == {"Rome"}
    keys = [AugmentConfig(entities=each).key() for each in (found, of_file, given_ones)]
    assert AugmentConfig(entities=of_file, swap="any").key() not in keys
    file.write_text("Rome\nParis\n", encoding="utf-8")
    assert AugmentConfig(entities=of_file).key() not in keys
    with pytest.raises(DataError, match=r"entities\.file\.path: there must be a file gone\.txt, and there is none"):
        FileEntitiesConfig(path="gone.txt").key()
