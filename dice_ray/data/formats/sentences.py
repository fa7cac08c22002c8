"""One sentence a line: `word_TAG` pairs, or sentences in one file, and their tags or labels in another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from dice_ray.data.formats.base import READER, Bad, Guess, Labels, RowResult, Sample, TextReaderBranch
from dice_ray.data.formats.candidates import are_labelled_texts
from dice_ray.data.formats.json_rows import is_json
from dice_ray.data.formats.tags import TagKind, guess_tagging, is_tag_set, named, tag_kind, tagged_record, tags_of
from dice_ray.data.formats.text import lines, spaced_words, unreadable
from dice_ray.data.formats.texts import text_record
from dice_ray.data.records import Record, TaggedRecord, TextRecord
from dice_ray.data.split_names import split_of
from dice_ray.errors import shown
from dice_ray.settings import Nested

_TAG_FILE: Final = re.compile(r"tag|label|seq\.out|\.ner\b|\.pos\b", re.IGNORECASE)
"""Names of files of tags or labels."""


class WordTagConfig(TextReaderBranch):
    """Words with their tags, as `The_DT cat_NN`; if labels are ignored, a line may have no tags.

    Attributes:
        separator: The separator between a word and its tag; a word may itself contain it.
        tags: What the tags mark.
        layout: With `lines`, each line is a sentence. `penn` is that of the Penn Treebank (`.pos`): noun phrases in
            square brackets, and sentences over several lines up to one with a full stop or a line of `=`.
    """

    name = "word_tag"
    is_lax = True
    record_type = TaggedRecord

    separator: str = Field(default="_", min_length=1)
    tags: TagKind = "plain"
    layout: Literal["lines", "penn"] = "lines"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, text in self.lines(path) if self.layout == "lines" else self._sentences(path):
            pairs = [pair.rpartition(self.separator) for pair in spaced_words(text)]
            if labels == "ignored" and pairs:
                is_tagged = all(word and tag for word, _, tag in pairs)
                words = [word for word, _, _ in pairs] if is_tagged else spaced_words(text)
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
            found = [word.replace("\\/", "/") for word in spaced_words(text) if word not in "[]"]
            is_rule = bool(found) and set("".join(found)) == {"="}
            first = first if words else line
            words += [] if is_rule else found
            # Not at a blank line: some versions have one after each phrase.
            if words and (is_rule or line == 0 or any(word.endswith(f"{self.separator}.") for word in found)):
                yield first, " ".join(words)
                words = []

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        first_lines = islice(lines(sample.path, sample.encoding), 100)
        if any(re.match(r"=====+\s*$|\[ \S+/\S+ ", text) for _, text in first_lines):
            result = sample.attempt(cls, separator="/", layout="penn")
            why = {READER: "The Penn Treebank: words with their tags, noun phrases in square brackets."}
            return guess_tagging(result, "plain", why)
        reason = ""
        for separator in ("_", "/", "|", "#"):
            settings = {} if separator == "_" else {"separator": separator}
            result = sample.attempt(cls, **settings)
            tags = tags_of(result.records)
            if result.reason or not is_tag_set(tags):
                reason = reason or result.reason or "too many different tags for a tag set"
                continue
            if (kind := tag_kind(tags)) != "plain":
                result = sample.attempt(cls, **settings, tags=kind)
            return guess_tagging(result, kind, {READER: f"Every word is followed by {separator!r} and a tag."})
        return reason


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
    is_lax = True

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
                    yield text_record(line, text.strip(), None)
                elif words := spaced_words(text):
                    yield tagged_record(line, words, None, self.tags)
            return
        other = self._tag_file(path)
        if not other.is_file():
            raise unreadable(path, 1, f"a file of tags {other.name} beside it", "none")
        for sentence, tags in zip_longest(self.lines(path), self.lines(other)):
            if sentence is None or tags is None:
                file, line = (path, tags[0]) if sentence is None else (other, sentence[0])
                raise unreadable(file, line, "as many lines as in the other file", f"the end after {line - 1}")
            line = sentence[0]
            if self.units == "words":
                words = spaced_words(sentence[1])
                found = named(line, spaced_words(tags[1]), self.names, len(words))
                if words or isinstance(found, Bad):
                    yield found if isinstance(found, Bad) else tagged_record(line, words, found, self.tags)
                continue
            text, label = sentence[1].strip(), tags[1].strip()
            labels_read = [label] if text and label else []
            found = named(line, labels_read, self.names, len(labels_read))
            if text or label:
                yield found if isinstance(found, Bad) else text_record(line, text, found)

    def _tag_file(self, path: Path) -> Path:
        return path.with_name(self.tag_file.replace("*", _stem_of(path.name, self.units)))

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """With a file of as many tags on each line, or of a label on each line, in the same folder."""
        path, stem = sample.path, _stem_of(sample.path.name, "words")
        if is_json(sample.first_line):
            return "its first line is JSON"
        reason = f"no file of tags beside {path.name}, such as tags.txt or {stem}.tags"
        for other in sorted(each.name for each in path.parent.iterdir() if each.is_file() and each.name != path.name):
            is_beside = other.endswith(path.suffix) or other.startswith(f"{stem}.")
            # Not the file of another split: only the first rows are read here, of which it may have as many.
            if not _TAG_FILE.search(other) or not is_beside or split_of(other) not in (None, split_of(path.name)):
                continue
            found = cls._fits_tags(sample, other)
            if isinstance(found, str):
                with_labels = cls._fits_labels(sample, other)
                found = found if isinstance(with_labels, str) else with_labels
            if isinstance(found, Guess):
                return found
            reason = f"with {other}: {found}"
        return reason

    @classmethod
    def _fits_tags(cls, sample: Sample, other: str) -> Guess | str:
        """The guess for words with a file of their tags."""
        stem = _stem_of(sample.path.name, "words")
        settings: Nested = {"tag_file": f"*{other.removeprefix(stem)}" if other.startswith(f"{stem}.") else other}
        result = sample.attempt(cls, **settings, tags="plain")
        if result.reason:
            return result.reason
        tags = tags_of(result.records)
        if not is_tag_set(tags) or 2 * len(set(tags)) > len(tags):
            return "too many different tags for a tag set"
        if not any(isinstance(record, TaggedRecord) and len(record.words) > 1 for record in result.records):
            return "no sentence of several words"
        if (kind := tag_kind(tags)) != "plain":
            result = sample.attempt(cls, **settings, **({} if kind == "spans" else {"tags": kind}))
        why = {READER: f"The file {other} has a tag for each word, line by line."}
        if "*" in settings["tag_file"]:
            why[f"{READER}.parallel.tag_file"] = "`*` stands for the name of the sentence file up to its first dot."
        return guess_tagging(result, kind, why)

    @classmethod
    def _fits_labels(cls, sample: Sample, other: str) -> Guess | str:
        """The guess for texts with a file of their labels; TweetEval has names of the numbers in `mapping.txt`."""
        stem = _stem_of(sample.path.name, "texts")
        tag_file = f"*{other.removeprefix(stem)}" if other.startswith(stem) else other
        settings: Nested = {"tag_file": tag_file, "units": "texts"}
        result = sample.attempt(cls, **settings)
        if result.reason:
            return result.reason
        if not are_labelled_texts(result.records):
            return "its lines are no labels of texts"
        why = {READER: f"The file {other} has a label for each text, line by line."}
        if "*" in tag_file:
            stands_for = "`*` stands for the name of the file of texts up to its first dot, without `_text`."
            why[f"{READER}.parallel.tag_file"] = stands_for
        names = _names_of_labels(sample.path.with_name("mapping.txt"))
        labels = {label for record in result.records if isinstance(record, TextRecord) for label in record.labels}
        if names and labels <= set(map(str, range(len(names)))):
            result = sample.attempt(cls, **settings, names=names)
            why[f"{READER}.parallel.names"] = f"The names of the labels 0 to {len(names) - 1}, from mapping.txt."
        return result.guess(why)


def _stem_of(name: str, units: Literal["words", "texts"]) -> str:
    """What `*` stands for in the name of the file of tags or labels."""
    stem = name.partition(".")[0]
    return stem.removesuffix("_text") if units == "texts" else stem


def _names_of_labels(path: Path) -> list[str]:
    """The names of the labels in lines `number<tab>name`, 0 first; empty without such a file, or if a number lacks."""
    if not path.is_file():
        return []
    rows = [text.split("\t") for _, text in lines(path) if text.strip()]
    names = [row[1].strip() for row in rows if len(row) > 1]
    numbers = [row[0].strip() for row in rows if len(row) > 1]
    is_whole = len(set(names)) == len(rows) and numbers == [str(number) for number in range(len(rows))]
    return names if is_whole else []
