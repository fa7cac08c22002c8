"""One sentence a line: `word_TAG` pairs, or sentences in one file, and their tags or labels in another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal

from pydantic import Field

from dice_ray.data.formats.base import (
    NO_TEXT,
    UNLABELLED,
    Bad,
    Drop,
    Kept,
    Labels,
    RowResult,
    TextReaderBranch,
    unreadable,
)
from dice_ray.data.formats.conll import words_of
from dice_ray.data.formats.tags import TagKind, named, tagged_record
from dice_ray.data.records import Record, TaggedRecord, TextRecord
from dice_ray.errors import shown


class WordTagConfig(TextReaderBranch):
    """Words with their tags, as `The_DT cat_NN`; if labels are ignored, a line may have no tags.

    Attributes:
        separator: The separator between a word and its tag; a word may itself contain it.
        tags: What the tags mark.
        layout: With `lines`, each line is a sentence. `penn` is that of the Penn Treebank (`.pos`): noun phrases in
            square brackets, and sentences over several lines up to one with a full stop or a line of `=`.
    """

    name = "word_tag"
    record_type = TaggedRecord

    separator: str = Field(default="_", min_length=1)
    tags: TagKind = "plain"
    layout: Literal["lines", "penn"] = "lines"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, text in self.lines(path) if self.layout == "lines" else self._sentences(path):
            pairs = [pair.rpartition(self.separator) for pair in words_of(text)]
            if labels == "ignored" and pairs:
                is_tagged = all(word and tag for word, _, tag in pairs)
                words = [word for word, _, _ in pairs] if is_tagged else words_of(text)
                yield tagged_record(line, words, None, self.tags)
                continue
            if malformed := [pair for pair in pairs if not (pair[0] and pair[2])]:
                yield Bad(line, f"words with tags as word{self.separator}TAG", shown("".join(malformed[0])))
            elif pairs:
                yield tagged_record(line, [pair[0] for pair in pairs], [pair[2] for pair in pairs], self.tags)

    def _sentences(self, path: Path) -> Iterator[tuple[int, str]]:
        """The sentences of the Penn Treebank, each in one line."""
        first, words = 0, list[str]()
        for line, text in chain(self.lines(path), [(0, "")]):
            found = [word.replace("\\/", "/") for word in words_of(text) if word not in "[]"]
            is_rule = bool(found) and set("".join(found)) == {"="}
            first = first if words else line
            words += [] if is_rule else found
            # Not at a blank line: some versions have one after each phrase.
            if words and (is_rule or line == 0 or any(word.endswith(f"{self.separator}.") for word in found)):
                yield first, " ".join(words)
                words = []


class ParallelConfig(TextReaderBranch):
    """Words separated by spaces in one file, and their tags on the same line of another; or texts and their labels.

    Attributes:
        tag_file: The file of tags or labels, in the same folder; `*` stands for the sentence file up to its first dot,
            and of texts without `_text` before it.
        tags: What the tags mark.
        units: What a line of the other file is of: the `words` of a sentence, or a text (`texts`), as in TweetEval.
        names: The tags or labels that the numbers mean, 0 first; not needed where the file has names.
    """

    name = "parallel"
    tag_file: str = "tags.txt"
    tags: TagKind = "spans"
    units: Literal["words", "texts"] = "words"
    names: tuple[str, ...] = ()

    def yields(self) -> type[Record]:
        return TextRecord if self.units == "texts" else TaggedRecord

    def files(self, path: Path) -> list[Path]:
        return [path, self._tag_file(path)]

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if labels == "ignored":
            for line, text in self.lines(path):
                if self.units == "texts" and text.strip():
                    yield Kept(line, TextRecord(str(line), text.strip(), ()))
                elif words := words_of(text):
                    yield tagged_record(line, words, None, self.tags)
            return
        other = self._tag_file(path)
        if not other.is_file():
            raise unreadable(path, 1, f"a file of tags {other.name} beside it", "none")
        for sentence, tags in zip_longest(self.lines(path), self.lines(other)):
            if sentence is None or tags is None:
                file, line = (path, tags[0]) if sentence is None else (other, sentence[0])
                raise unreadable(file, line, "as many lines as in the other file", f"the end after {line - 1}")
            if self.units == "texts":
                yield from self._text(sentence[0], sentence[1].strip(), tags[1].strip())
            else:
                yield from self._words(sentence[0], words_of(sentence[1]), words_of(tags[1]))

    def _text(self, line: int, text: str, label: str) -> Iterator[RowResult]:
        """The record of a text; none of a line that is blank in both files."""
        if not text and label:
            yield Drop(line, NO_TEXT)
        elif text and not label:
            yield Drop(line, UNLABELLED)
        elif text:
            found = named(line, [label], self.names)
            yield found if isinstance(found, Bad) else Kept(line, TextRecord(str(line), text, tuple(found)))

    def _words(self, line: int, words: list[str], tags: list[str]) -> Iterator[RowResult]:
        if len(words) != len(tags):
            yield Bad(line, "as many tags as words", f"{len(tags)} tags for {len(words)} words")
        elif isinstance(found := named(line, tags, self.names), Bad):
            yield found
        elif words:
            yield tagged_record(line, words, found, self.tags)

    def _tag_file(self, path: Path) -> Path:
        return path.with_name(self.tag_file.replace("*", stem_of(path.name, self.units)))


def stem_of(name: str, units: Literal["words", "texts"]) -> str:
    """What `*` stands for in the name of the file of tags or labels."""
    stem = name.partition(".")[0]
    return stem.removesuffix("_text") if units == "texts" else stem
