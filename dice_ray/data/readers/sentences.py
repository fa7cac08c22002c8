"""One sentence a line: `word_TAG` pairs, or words in one file and their tags in another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal

from pydantic import Field

from dice_ray.data.readers.base import Bad, Labels, RowResult, TextReaderBranch, unreadable
from dice_ray.data.readers.conll import words_of
from dice_ray.data.readers.tags import TagKind, tagged_record
from dice_ray.data.records import TaggedRecord
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
    """Words separated by spaces in one file, and their tags on the same line of another.

    Attributes:
        tag_file: The file of tags, in the same folder; `*` stands for the sentence file up to its first dot.
        tags: What the tags mark.
    """

    name = "parallel"
    record_type = TaggedRecord

    tag_file: str = "tags.txt"
    tags: TagKind = "spans"

    def files(self, path: Path) -> list[Path]:
        return [path, self._tag_file(path)]

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if labels == "ignored":
            for line, text in self.lines(path):
                if words := words_of(text):
                    yield tagged_record(line, words, None, self.tags)
            return
        other = self._tag_file(path)
        if not other.is_file():
            raise unreadable(path, 1, f"a file of tags {other.name} beside it", "none")
        for sentence, tags in zip_longest(self.lines(path), self.lines(other)):
            if sentence is None or tags is None:
                file, line = (path, tags[0]) if sentence is None else (other, sentence[0])
                raise unreadable(file, line, "as many lines as in the other file", f"the end after {line - 1}")
            words, word_tags = words_of(sentence[1]), words_of(tags[1])
            if len(words) != len(word_tags):
                yield Bad(sentence[0], "as many tags as words", f"{len(word_tags)} tags for {len(words)} words")
            elif words:
                yield tagged_record(sentence[0], words, word_tags, self.tags)

    def _tag_file(self, path: Path) -> Path:
        return path.with_name(self.tag_file.replace("*", path.name.partition(".")[0]))
