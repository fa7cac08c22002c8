"""Entities: found where they stand, by rules, by spaCy, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.data.entities import AUTO, RULES, Gazetteer, find_entities, read_entities, resolve_finder
from dice_ray.errors import DataError

TEXTS = (
    "How do I get from Paris to New Delhi in 2016?",
    "Is Paris near Rome? Rome is in Italy, and Italy is warm.",
    "The new road leads from New Delhi to Rome.",
    "We met in May; may we meet on Monday, Monday at 9 or 12?",
    "Later on Dr. Smith and then Lt. Jones met the painter Anna Berg, and Anna Berg met Tom of the mill.",
    "Why Is Every Word Of Headlines Like Chicago Big",
    "We love IBM and IBM loves us for 2,500 years, the 9th in a row.",
)


def entities_of(*texts: str) -> dict[str, set[str]]:
    return {kind: set(each) for kind, each in find_entities(lambda: texts, RULES).items()}


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


def test_a_file_has_an_entity_a_line_and_its_kind_before_a_tab(tmp_path: Path) -> None:
    file = tmp_path / "entities.tsv"
    for encoding in ("utf-8", "utf-8-sig"):
        file.write_text("city\tRome\ncity\tNew York\n\nlamp\n", encoding=encoding)
        assert read_entities(file) == {"city": ["Rome", "New York"], "entity": ["lamp"]}
    file.write_bytes("Zürich".encode("latin-1"))
    with pytest.raises(DataError, match=r"entities\.tsv must be text in UTF-8"):
        read_entities(file)


@pytest.mark.parametrize("line", ["\tRome", "city\t", "city\tRome\tItaly"])
def test_a_line_of_another_form_is_refused(line: str, tmp_path: Path) -> None:
    file = tmp_path / "entities.tsv"
    file.write_text(f"city\tParis\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: must be an entity, or a kind, a tab and an entity"):
        read_entities(file)


def test_an_entity_begins_with_a_word() -> None:
    with pytest.raises(DataError, match="must begin with a letter or a digit, got '- x'"):
        Gazetteer({"any": ["- x"]})


def test_spacy_is_used_where_it_and_its_pipeline_are_installed(tmp_path: Path) -> None:
    try:
        import spacy
    except ImportError:
        assert resolve_finder(AUTO) == RULES
        with pytest.raises(DataError, match="where spaCy is not installed, got 'en_core_web_sm'"):
            find_entities(lambda: TEXTS, "en_core_web_sm")
        return
    language = spacy.blank("en")
    language.add_pipe("entity_ruler").add_patterns(
        [{"label": "GPE", "pattern": "New Delhi"}, {"label": "GPE", "pattern": "Rome"}]
    )
    language.to_disk(tmp_path / "pipeline")
    assert find_entities(lambda: TEXTS, str(tmp_path / "pipeline")) == {"GPE": ["New Delhi", "Rome"]}
    with pytest.raises(
        DataError, match="must be a spaCy pipeline that is installed, or a folder of one, got 'nothing'"
    ):
        find_entities(lambda: TEXTS, "nothing")
