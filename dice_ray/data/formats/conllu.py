"""CoNLL-U, the ten columns of Universal Dependencies, read for parts of speech."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

from dice_ray.data.formats.base import Bad, Drop, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.tags import in_document, tagged_record
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown

NUM_COLUMNS = 10
NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")
NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
COLUMNS = {"upos": 3, "xpos": 4}


class ConlluConfig(TextReaderBranch):
    """Syntactic words with their part of speech; multiword ranges (`29-30`) and empty nodes (`8.1`) are skipped.

    Attributes:
        tag: `upos`, the universal part of speech, or `xpos`, that of the language.
    """

    name = "conllu"
    record_type = TaggedRecord

    tag: Literal["upos", "xpos"] = "upos"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        sentence: list[tuple[int, str]] = []
        document: int | None = None
        # A blank line after the last one ends the last sentence.
        for line, text in chain(self.lines(path), [(0, "")]):
            if text.strip(" \t"):
                if not text.startswith("#"):
                    sentence.append((line, text))
                elif NEW_DOCUMENT.match(text):
                    document = line
            elif sentence:
                yield in_document(self._sentence(sentence, labels), document)
                sentence = []

    def _sentence(self, rows: list[tuple[int, str]], labels: Labels) -> RowResult:
        words: list[str] = []
        tags: list[str] = []
        for line, text in rows:
            columns = text.split("\t")
            if len(columns) != NUM_COLUMNS:
                return Bad(line, f"{NUM_COLUMNS} columns apart by tabs", f"{len(columns)}: {shown(text)}")
            if columns[0] != str(len(words) + 1):
                if NOT_A_WORD.fullmatch(columns[0]):
                    continue
                return Bad(line, f"the word number {len(words) + 1}", shown(columns[0]))
            words.append(columns[1])
            tags.append(columns[COLUMNS[self.tag]])
        place = rows[0][0]
        if labels == "ignored":
            return tagged_record(place, words, None, "plain")
        return Drop(place, f"a word without {self.tag}") if "_" in tags else tagged_record(place, words, tags, "plain")
