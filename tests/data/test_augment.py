"""Copies of records: entities swapped alike wherever they occur, every combination once; finders of entities."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.augment import AugmentConfig, Gazetteer, _FoundEntitiesConfig, _GivenEntitiesConfig, copies
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
    (copy,) = copies(record, GAZETTEER, "any", random.Random(0))
    assert copy.content[0] in ("Rome Paris New York", "New York Paris Oslo", "Rome New York Oslo")


def test_entities_are_found_in_the_split_or_given() -> None:
    records = [PairRecord(str(n), f"they met in {city}", f"so in {city}", "1") for n, city in enumerate(CITIES)]
    sources = (
        _FoundEntitiesConfig(finder="rules"),
        # An entity of two kinds is of the last one, so their order is a part of the key.
        _GivenEntitiesConfig(by_kind={"city": ["Rome"], "name": ["Rome"]}),
        _GivenEntitiesConfig(by_kind={"name": ["Rome"], "city": ["Rome"]}),
    )
    assert [{*source.gazetteer(records).indices} for source in sources] == [{*CITIES}, {"Rome"}, {"Rome"}]
    augment = [AugmentConfig(entities=source, swap=swap) for source in sources for swap in ("shared", "any")]
    assert len({json.dumps(each.key(), sort_keys=True) for each in augment}) == 6


TEXTS = (
    "How do I get from Paris to New Delhi in 2016?",
    "Is Paris near Rome? Rome is in Italy, and Italy is warm.",
    "The new road leads from New Delhi to Rome.",
    "We met in May; may we meet on Monday, Monday at 9 or 12?",
    "Later on Dr. Smith and then Lt. Jones met the painter Anna Berg, and Anna Berg met Tom of the mill.",
    "Why Is Every Word Of Headlines Like Chicago Big",
    "We love IBM and IBM loves us for 2,500 years, the 9th in a row.",
)


def entities_of(*texts: str, finder: str = "rules") -> dict[str, set[str]]:
    records = [TextRecord(str(number), text, ()) for number, text in enumerate(texts)]
    found = _FoundEntitiesConfig(finder=finder).gazetteer(records).entities
    return {kind: set(each) for kind, each in found.items()}


def test_rules_find_names_numbers_and_days() -> None:
    assert entities_of(*TEXTS) == {
        "0000": {"2016"},
        "0": {"9"},
        "00": {"12"},
        "0,000": {"2,500"},
        "place of 1": {"Rome", "Italy", "Paris"},
        "place of 2": {"New Delhi"},
        "name of 2": {"Anna Berg"},
        "name in capitals": {"IBM"},
        "weekday": {"Monday"},
    }


def test_what_stands_once_begins_a_sentence_or_is_abbreviated_is_no_name() -> None:
    assert "Tom" not in set().union(*entities_of(*TEXTS).values())
    twice = set().union(*entities_of(*TEXTS, *TEXTS).values())
    assert "Tom" in twice
    assert twice.isdisjoint({"How", "The", "I", "Dr", "Lt", "Smith", "Jones", "May", "9th"})
    assert not [name for name in twice if "Headlines" in name]


def test_the_longest_entity_that_ends_with_a_word_stands_there() -> None:
    gazetteer = Gazetteer({"city": ["New York", "York", "New York City", "Rome"], "price": ["5.50 euros"]})
    text = "York, New York, New Yorkers, New York City, Yorkshire, Romes and Rome: 5.50 euros"
    found = gazetteer.mentions(text)
    assert [mention.entity for mention in found] == ["York", "New York", "New York City", "Rome", "5.50 euros"]
    assert all(text[mention.start : mention.end] == mention.entity for mention in found)


def test_an_entity_begins_with_a_word() -> None:
    with pytest.raises(DataError, match="must begin with a letter or a digit, got '- x'"):
        Gazetteer({"any": ["- x"]})


def test_spacy_is_used_where_it_and_its_pipeline_are_installed(tmp_path: Path) -> None:
    try:
        import spacy
    except ImportError:
        assert _FoundEntitiesConfig().key() == _FoundEntitiesConfig(finder="rules").key()
        with pytest.raises(DataError, match="where spaCy is not installed, got 'en_core_web_sm'"):
            entities_of(*TEXTS, finder="en_core_web_sm")
        return
    language = spacy.blank("en")
    language.add_pipe("entity_ruler").add_patterns(
        [{"label": "GPE", "pattern": "New Delhi"}, {"label": "GPE", "pattern": "Rome"}]
    )
    language.to_disk(tmp_path / "pipeline")
    assert entities_of(*TEXTS, finder=str(tmp_path / "pipeline")) == {"GPE": {"New Delhi", "Rome"}}
    with pytest.raises(
        DataError, match="must be a spaCy pipeline that is installed, or a folder of one, got 'nothing'"
    ):
        entities_of(*TEXTS, finder="nothing")
