"""Tags of every scheme come out as IOB2 of the same spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.formats.base import Kept
from dice_ray.data.formats.tags import _SEVERAL_TYPES, tagged_record
from dice_ray.data.records import TaggedRecord

Spans = list[tuple[int, str]]
"""Lengths with a type, or with none for words outside."""


def written(spans: Spans, begin: str, inside: str, end: str, single: str) -> list[str]:
    tags = []
    for length, type_ in spans:
        if not type_:
            tags += ["O"] * length
        elif length == 1:
            tags.append(f"{single}-{type_}")
        else:
            tags += [f"{begin}-{type_}", *[f"{inside}-{type_}"] * (length - 2), f"{end}-{type_}"]
    return tags


def iob2(tags: list[str]) -> list[str]:
    """The tags as a reader yields them."""
    found = tagged_record(1, ["word"] * len(tags), tags, "spans")
    assert isinstance(found, Kept)
    assert isinstance(found.record, TaggedRecord)
    return list(found.record.tags)


def iob1(spans: Spans) -> list[str]:
    tags, before = [], ""
    for length, type_ in spans:
        first = "B" if type_ and type_ == before else "I"
        tags += [f"{first}-{type_}", *[f"I-{type_}"] * (length - 1)] if type_ else ["O"] * length
        before = type_
    return tags


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "PER", "LOC"])), max_size=8))
def test_the_same_spans_in_five_schemes(spans: Spans) -> None:
    expected = written(spans, "B", "I", "I", "B")
    schemes = {"iob2": "BIIB", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}
    assert all(iob2(written(spans, *letters)) == expected for letters in schemes.values())
    assert iob2(iob1(spans)) == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O I-A I-A", "O B-A I-A"),
        ("B-A I-B", "B-A B-B"),
        ("I-A O I-A", "B-A O B-A"),
        ("E-A I-A", "B-A B-A"),
        ("L-A I-A", "B-A B-A"),
        ("U-A I-A", "B-A B-A"),
        ("B I O B B", "B I O B B"),
        ("B-PER.NOM I-PER.NOM B-geo-loc I-geo-loc", "B-PER.NOM I-PER.NOM B-geo-loc I-geo-loc"),
        ("b-per i-per o b-geo-loc", "B-per I-per O B-geo-loc"),
        ("B_PER I_PER O", "B-PER I-PER O"),
        ("PER-B PER-I O geo-loc-B", "B-PER I-PER O B-geo-loc"),
    ],
)
def test_orphans_begin_a_span_as_conlleval_sees_them(tags: str, expected: str) -> None:
    assert iob2(tags.split()) == expected.split()


def test_bare_types_are_spans_of_neighbouring_words() -> None:
    """They were read as parts of speech, so that each word of a name was scored as a name of its own."""
    found = tagged_record(1, list("abcde"), ["PER", "PER", "O", "LOC", "PER"], "types")
    assert found == Kept(1, TaggedRecord("1", tuple("abcde"), ("B-PER", "I-PER", "O", "B-LOC", "B-PER")))


def test_of_several_types_the_first_is_read_and_that_is_noted() -> None:
    """`B-person,B-group` was a type of its own, `person,B-group`."""
    found = tagged_record(1, ["a", "b"], ["B-person,B-group", "I-person,I-group"], "spans")
    assert found == Kept(1, TaggedRecord("1", ("a", "b"), ("B-person", "I-person")), (_SEVERAL_TYPES,))
    other = tagged_record(1, ["a"], ["B-LOC,GPE"], "spans")
    assert other == Kept(1, TaggedRecord("1", ("a",), ("B-LOC,GPE",)))
