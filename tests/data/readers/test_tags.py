"""Tags of every scheme come out as IOB2 of the same spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.readers.tags import iob2

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
    ],
)
def test_orphans_begin_a_span_as_conlleval_sees_them(tags: str, expected: str) -> None:
    assert iob2(tags.split()) == expected.split()
