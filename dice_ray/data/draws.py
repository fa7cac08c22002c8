"""Draws splits from the training split: stratified by label, with the records of one text or document on one side.

A draw decides on groups. Records of the same text form a group, since a model that was trained on one of them knows the
others; the records of one document form a group where the file marks documents and there are enough of them. Documents
that share a text are one group. A group belongs to the stratum of its rarest label. Of each stratum the same share of
records is drawn, the rarest one first; what a stratum could not give, because its groups are too large or too few, is
drawn from the next one.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dice_ray.data.records import NestedRecord, QueryRecord, QuestionRecord, Record, TaggedRecord

Hashes: TypeAlias = NDArray[np.int64]
_Numbers: TypeAlias = NDArray[np.int32]

NO_DOCUMENT = 0
_MAX_JOINED = 0.5
"""The largest share of the records in one group of joined documents: a line that nearly all documents have joins them,
and what is left for the other splits would be the few that do not have it."""


@dataclass(frozen=True)
class Drawable:
    """What is known of the records that splits are drawn from, one entry each.

    Attributes:
        groups: The group; all records of one go into the same split.
        strata: The rank of the record's rarest label among all labels, 0 for the rarest.
        note: What is done with documents, for the load report; empty if there are too few of them, or none.
    """

    groups: NDArray[Any]
    strata: _Numbers
    note: str = ""

    @classmethod
    def of(
        cls, records: Sequence[Record], documents: Hashes, shares: Mapping[str, float], groups: int | str | None = None
    ) -> Self:
        """The groups and strata of records, which are read twice.

        Args:
            records: All records to draw from.
            documents: The document of each record, `NO_DOCUMENT` for none.
            shares: The share of each split. Documents are kept whole only if the smallest split can hold one of them,
                also after documents that share a text are joined; else records are grouped by text alone.
            groups: The column of `documents`, if the user names one: then it is these that are kept whole.
        """
        texts, counts = array("q"), Counter[str]()
        for record in records:
            texts.append(hash(same_text(record)))
            counts.update(_labels(record))
        # Equally frequent labels in the order of the file, which is the same in every process.
        ranks = {label: rank for rank, (label, _) in enumerate(sorted(counts.items(), key=lambda item: item[1]))}
        strata = np.fromiter(
            (min((ranks[label] for label in _labels(each)), default=len(ranks)) for each in records), np.int32
        )
        by_text, in_document = np.frombuffer(texts, np.int64), documents != NO_DOCUMENT
        smallest = min(shares.values())
        num_documents = len(np.unique(documents[in_document]))
        what = "documents" if groups is None else f"groups by `{groups}`"
        if groups is None and num_documents * smallest < 1:
            return cls(by_text, strata)
        joined = _joined(by_text, np.where(in_document, documents, by_text))
        num_joined = len(np.unique(joined[in_document]))
        if num_joined < num_documents and (
            num_joined * smallest < 1 or np.bincount(joined).max() > _MAX_JOINED * len(joined)
        ):
            if groups is not None:
                return cls(documents, strata, f", {what} whole, equal texts not, as most of these groups share some")
            return cls(by_text, strata, ", documents not whole, as most of them share texts")
        return cls(joined, strata, f", {what} whole")

    def without(self, is_drawn: NDArray[np.bool_]) -> Self:
        """What is left after a draw."""
        return type(self)(self.groups[~is_drawn], self.strata[~is_drawn], self.note)

    def draw(self, share: float, seed: int) -> NDArray[np.bool_]:
        """Draw a share of the records in whole groups; returns for each record whether it is drawn.

        At least one group of each stratum is left. If the number of groups to draw is at least twice the number of
        strata, one is drawn from each stratum that has several, unless that group alone is larger than the share. With
        several groups, at least one is drawn.
        """
        firsts, members = _numbered(self.groups)
        sizes = np.bincount(members).astype(np.int32)
        strata = np.full(len(firsts), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(strata, members, self.strata)
        # In the order of the file: hashes are not the same in every process, but the draw must be.
        order = array("i", np.argsort(firsts).astype(np.int32).tobytes())
        random.Random(seed).shuffle(order)
        by_stratum = _split(np.frombuffer(order, np.int32), strata)
        gives_each = 2 * len(by_stratum) <= share * len(sizes)
        chosen = np.zeros(len(sizes), dtype=bool)
        goal = 0.0
        for groups in by_stratum:
            goal += share * sizes[groups].sum()
            drawn = _fill(groups, sizes, goal)
            if gives_each and not len(drawn) and len(groups) > 1 and sizes[groups[0]] <= share * len(self.groups):
                drawn = groups[:1]
            chosen[drawn] = True
            goal -= sizes[drawn].sum()
        if not chosen.any() and len(sizes) > 1:
            chosen[by_stratum[-1][0]] = True
        is_drawn: NDArray[np.bool_] = chosen[members]
        return is_drawn


class Latest(Drawable):
    """Records of which the latest are drawn: the groups are their times, and the strata are not used."""

    def draw(self, share: float, seed: int) -> NDArray[np.bool_]:
        times, counts = np.unique(self.groups, return_counts=True)
        num_since = counts[::-1].cumsum()[::-1]
        is_drawn: NDArray[np.bool_] = self.groups >= times[np.abs(num_since - share * len(self.groups)).argmin()]
        return is_drawn


def _numbered(groups: Hashes | _Numbers) -> tuple[_Numbers, _Numbers]:
    """The first record of each group, and the number of each record's group, as `np.unique` gives them.

    It needs a third of the memory of `np.unique`: for many records, the draw needs more memory than all else.
    """
    order = np.argsort(groups, kind="stable").astype(np.int32)
    begins = np.ones(len(groups), dtype=bool)
    ordered = groups[order]
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    del ordered
    members = np.empty(len(groups), np.int32)
    members[order] = np.cumsum(begins, dtype=np.int32) - 1
    return order[begins], members


def _joined(by_text: Hashes, by_document: Hashes) -> _Numbers:
    """For each record a number that it shares with all records of its text or its document, and with theirs in turn."""
    (_, texts), (_, documents) = _numbered(by_text), _numbered(by_document)
    least = np.arange(texts.max() + 1, dtype=np.int32)
    while True:
        of_document = np.full(documents.max() + 1, np.iinfo(np.int32).max, np.int32)
        np.minimum.at(of_document, documents, least[texts])
        lower = least.copy()
        np.minimum.at(lower, texts, of_document[documents])
        # A number is itself a text of the group: its own number is as low or lower, so long chains take few rounds.
        lower = lower[lower]
        if np.array_equal(lower, least):
            return least[texts]
        least = lower


def same_text(record: Record) -> tuple[str, ...]:
    """What records of the same text have in common: not the label, case and spacing, nor which text of a pair is first.

    For questions it is the context, and for queries the sentence: those on one of them belong together.
    """
    match record:
        case TaggedRecord() | NestedRecord() | QueryRecord():
            return tuple(word.casefold() for word in record.words)
        case QuestionRecord():
            return (_plain(record.context),)
    return tuple(sorted(map(_plain, record.content)))


def _labels(record: Record) -> Sequence[str]:
    """The labels that drawn splits are stratified by: tags, types of spans, or whether a question has an answer."""
    match record:
        case TaggedRecord():
            return record.tags
        case NestedRecord():
            return [span.type for span in record.spans]
        case QueryRecord():
            return (record.type,) if record.spans else ()
        case QuestionRecord():
            return ("impossible" if record.impossible else "possible",)
    return record.labels


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _split(order: _Numbers, strata: _Numbers) -> list[_Numbers]:
    """The groups of each stratum, the rarest first, in the given order."""
    ordered = order[np.argsort(strata[order], kind="stable")]
    parts: list[_Numbers] = np.split(ordered, np.flatnonzero(np.diff(strata[ordered])) + 1)
    return parts


def _fill(groups: _Numbers, sizes: _Numbers, goal: float) -> _Numbers:
    """Groups, in the given order, with about `goal` records in all; at least one group is left over.

    A group that would make the total further from the goal is skipped.
    """
    drawn, num_records = array("i"), 0
    # Not as lists, whose numbers take ten times the memory.
    for group, size in zip(groups.data, sizes[groups].data, strict=True):
        if len(drawn) == len(groups) - 1 or num_records + 0.5 > goal:
            break
        if num_records + size / 2 <= goal:
            drawn.append(group)
            num_records += size
    return np.frombuffer(drawn, np.int32)
