"""CoNLL-U: the ten columns of Universal Dependencies, read for the part of speech."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dice_ray.data.readers.base import Bad, Drop, Found, Labels, ReaderBranch, lines, shown
from dice_ray.data.readers.tags import tagged
from dice_ray.data.records import Record, TaggedRecord

NUM_COLUMNS = 10
NO_WORD = re.compile(r"\d+-\d+|\d+\.\d+")
COLUMNS = {"upos": 3, "xpos": 4}


class ConlluConfig(ReaderBranch):
    """Syntactic words: multiword ranges (`29-30`) and empty nodes (`8.1`) are not words of their own.

    Attributes:
        tag: The universal part of speech, or that of the language.
    """

    name = "conllu"

    tag: Literal["upos", "xpos"] = "upos"

    def yields(self) -> type[Record]:
        return TaggedRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        sentence: list[tuple[int, str]] = []
        for line, text in lines(path):
            if text.strip(" \t"):
                if not text.startswith("#"):
                    sentence.append((line, text))
            elif sentence:
                yield self._sentence(sentence, labels)
                sentence = []
        if sentence:
            yield self._sentence(sentence, labels)

    def _sentence(self, rows: list[tuple[int, str]], labels: Labels) -> Found:
        words: list[str] = []
        tags: list[str] = []
        for line, text in rows:
            columns = text.split("\t")
            if len(columns) != NUM_COLUMNS:
                return Bad(line, f"{NUM_COLUMNS} columns apart by tabs", f"{len(columns)}: {shown(text)}")
            if columns[0] != str(len(words) + 1):
                if NO_WORD.fullmatch(columns[0]):
                    continue
                return Bad(line, f"the word number {len(words) + 1}", shown(columns[0]))
            words.append(columns[1])
            tags.append(columns[COLUMNS[self.tag]])
        place = rows[0][0]
        if labels == "ignored":
            return tagged(place, words, None, "plain")
        return Drop(place, f"a word without {self.tag}") if "_" in tags else tagged(place, words, tags, "plain")
