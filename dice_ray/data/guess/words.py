"""Guesses for tables with one word a row: which columns hold the sentence, the word and the tag."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.tags import TagKind
from dice_ray.data.guess.tagged import is_tag_set, tag_kind
from dice_ray.settings import Nested

SENTENCE: Final = re.compile(r"sent", re.IGNORECASE)
WORD: Final = re.compile(r"^(word|token)s?$", re.IGNORECASE)
TAG: Final = re.compile(r"^(ner|ner_?tags?|tags?|labels?|entity|pos|pos_?tags?)$", re.IGNORECASE)
MIN_WORDS: Final = 2
"""Words in a sentence, on average, in a table of words."""


def choose_words(rows: Sequence[Mapping[Column, str]]) -> tuple[Nested, TagKind] | None:
    """The value of the reader's `columns` for a table of words, and what its tags mark; None for any other table."""
    columns = list(rows[0]) if rows else []
    sentences = [column for column in columns if SENTENCE.search(str(column)) and _begins_sentences(rows, column)]
    words = [column for column in columns if WORD.match(str(column)) and not any(" " in row[column] for row in rows)]
    tags = {
        column: tag_kind(values)
        for column in columns
        if column not in (*sentences, *words) and is_tag_set(values := [row[column] for row in rows])
    }
    candidates = [column for column, kind in tags.items() if kind != "plain"]
    candidates = candidates or [column for column in tags if TAG.match(str(column))]
    if len(sentences) != 1 or len(words) != 1 or not candidates:
        return None
    kind = tags[candidates[-1]]
    written: Nested = {"sentence": sentences[0], "word": words[0], "tag": candidates[-1]}
    return {"words": written | ({} if kind == "spans" else {"tags": kind})}, kind


def _begins_sentences(rows: Sequence[Mapping[Column, str]], column: Column) -> bool:
    """Whether the values of a column mark sentences of several words: each is given once, or in all of its rows."""
    begins = [rows[0][column]] + [
        after[column] for before, after in pairwise(rows) if after[column] not in ("", before[column])
    ]
    return len(set(begins)) == len(begins) and MIN_WORDS * len(begins) <= len(rows)
