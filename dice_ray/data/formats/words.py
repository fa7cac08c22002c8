"""Tables with several rows for a record: one word a row, as Kaggle publishes named entities, or one span a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from dice_ray.data.formats.base import Bad, Labels, RowResult
from dice_ray.data.formats.columns import Column, UsedColumns, whole
from dice_ray.data.formats.span_files import ENDS, STARTS
from dice_ray.data.formats.spans import Annotated, AnnotatedSpan, SpanSettings
from dice_ray.data.formats.tags import TagKind, is_tag_set, tag_kind, tagged_record
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown
from dice_ray.settings import Nested

_Row: TypeAlias = Mapping[str, str]


class WordColumns(UsedColumns):
    """A word and its tag in each row.

    Attributes:
        sentence: The column of the sentence: a new one begins at a value that is not empty and not that of the row
            before, so that it may be given once for each sentence or in each row.
        word: The column of the word.
        tag: The column of the tag.
        tags: What the tags mark.
    """

    name = "words"
    record_type = TaggedRecord
    uses = ("sentence", "word", "tag")

    sentence: Column = "Sentence #"
    word: Column = "Word"
    tag: Column = "Tag"
    tags: TagKind = "spans"

    def sentences(self, rows: Iterable[tuple[int, _Row | Bad]]) -> Iterator[RowResult]:
        """A result for each sentence; it is bad if one of its rows may be, as a bad row between two may be of either.

        Where sentences are given once, the row that begins one is known: a bad row before it is of the one before.
        """
        is_given_once = False
        checked = (
            (line, Bad(line, "a word without line breaks (or `quoting: false`)", shown(row["word"])))
            if isinstance(row, dict) and "\n" in row["word"]
            else (line, row)
            for line, row in rows
        )
        for sentence, before, within in _grouped(
            checked, lambda row, first: row["sentence"] not in ("", first["sentence"] if first else "")
        ):
            is_given_once = is_given_once or any(not row["sentence"] for _, row in sentence)
            if spoilt := within or (None if is_given_once else before):
                yield spoilt
            elif sentence:
                words = [row["word"] for _, row in sentence]
                tags = [row["tag"].strip() for _, row in sentence if "tag" in row]
                yield tagged_record(sentence[0][0], words, tags or None, self.tags)

    @classmethod
    def choose(cls, rows: Sequence[Mapping[Column, str]]) -> tuple[Nested, TagKind] | None:
        """The value of the reader's `columns` for a table of words, and what its tags mark; None for any other one."""
        columns = list(rows[0]) if rows else []
        sentences = [column for column in columns if "sent" in str(column).lower() and _begins_sentences(rows, column)]
        words = [
            column
            for column in columns
            if re.fullmatch("(word|token)s?", str(column).lower()) and not any(" " in row[column] for row in rows)
        ]
        tags = {
            column: tag_kind(values)
            for column in columns
            if column not in (*sentences, *words) and is_tag_set(values := [row[column] for row in rows])
        }
        candidates = [column for column, kind in tags.items() if kind != "plain"]
        names = "ner|ner_?tags?|tags?|labels?|entity|pos|pos_?tags?"
        candidates = candidates or [column for column in tags if re.fullmatch(names, str(column).lower())]
        if len(sentences) != 1 or len(words) != 1 or not candidates:
            return None
        kind = tags[candidates[-1]]
        settings: Nested = {"sentence": sentences[0], "word": words[0], "tag": candidates[-1]}
        return {cls.name: settings | ({} if kind == "spans" else {"tags": kind})}, kind


class SpanRows(SpanSettings, UsedColumns):
    """A text and one of its spans in each row; the rows of a text follow each other.

    Without a column of ids, a text that returns with other spans is malformed: each of its records would lack some.

    Attributes:
        text: The column of the text; a new one begins at another text, or at another id.
        start: The column of the span's first character; a row without one is a text without spans.
        end: The column of its end.
        label: The column of its type.
        id: The column of the text's id.
    """

    name = "span_rows"
    uses = ("text", "start", "end", "label", "id")

    text: Column = "text"
    start: Column = "start"
    end: Column = "end"
    label: Column = "label"
    id: Column | None = None

    def sentences(self, rows: Iterable[tuple[int, _Row | Bad]]) -> Iterator[RowResult]:
        """A result for each text; it is bad if one of its rows may be, as a bad row between two may be of either."""
        known: dict[int, int] = {}  # hashes of each text and of its spans
        for text, before, within in _grouped(
            rows,
            lambda row, first: first is None or any(row[use] != first[use] for use in ("text", "id") if use in row),
        ):
            spans, bad = list[AnnotatedSpan](), within
            for line, row in text:
                if row.get("start", "").strip() or row.get("label", "").strip():
                    start, end = (whole(row[use]) for use in ("start", "end"))
                    if start.isdecimal() and end.isdecimal() and row["label"].strip():
                        spans.append(AnnotatedSpan(int(start), int(end), row["label"].strip()))
                    elif bad is None:
                        bad = Bad(line, "numbers as start and end, and a label", shown(" ".join(row.values())))
            if spoilt := before or bad:
                yield spoilt
                continue
            if not text:
                continue
            line, row = text[0]
            if self.id is None and (own := hash(frozenset(spans))) != known.setdefault(hash(row["text"]), own):
                yield Bad(line, "the rows of a text one after the other, with all of its spans", shown(row["text"]))
                continue
            labels: Labels = "read" if "label" in row else "ignored"
            yield self.span_record(line, row.get("id", str(line)), Annotated(row["text"], spans), labels=labels)

    @classmethod
    def choose(cls, rows: Sequence[Mapping[Column, str]]) -> Nested | None:
        """The columns of a table with a span in each row; None for any other table."""
        names = {str(column).lower(): column for column in (rows[0] if rows else ())}
        uses = {
            "text": ("text", "sentence", "content", "document", "context"),
            "start": STARTS,
            "end": ENDS,
            "label": ("label", "type", "entity_type", "tag", "entity_label", "category", "class"),
            "id": ("id", "doc_id", "text_id", "document_id", "sentence_id"),
        }
        named = {use: [names[name] for name in known if name in names] for use, known in uses.items()}
        # One that counts the rows is none of the texts: each span would be alone in a copy of its text.
        texts = named["text"][:1]
        named["id"] = [each for each in named["id"] if texts and _is_of_texts(rows, each, *texts)]
        found = {use: columns[0] for use, columns in named.items() if columns}
        if not {"text", "start", "end", "label"} <= found.keys():
            return None
        places = [whole(row[found[use]]) for row in rows for use in ("start", "end")]
        if not all(not place or place.isdecimal() for place in places):
            return None
        return {use: column for use, column in found.items() if column != use or use == "id"}


def _grouped(
    rows: Iterable[tuple[int, _Row | Bad]], begins: Callable[[_Row, _Row | None], bool]
) -> Iterator[tuple[list[tuple[int, _Row]], Bad | None, Bad | None]]:
    """The rows of each record, the bad row directly before them, if any, and the first bad one among them.

    `begins` decides whether a row begins a record, from the row and the first one of the record before. The first group
    has the rows before any that begins a record, often none.
    """
    group: list[tuple[int, _Row]] = []
    before: Bad | None = None
    within: Bad | None = None
    last: Bad | None = None  # directly before this row
    for line, row in rows:
        if isinstance(row, Bad):
            within, last = within or row, row
            continue
        if begins(row, group[0][1] if group else None):
            yield group, before, within
            group, before, within = [], last, None
        last = None
        group.append((line, row))
    yield group, before, within


def _is_of_texts(rows: Sequence[Mapping[Column, str]], column: Column, text: Column) -> bool:
    """Whether a column does not change within the rows of a text."""
    return all(before[column] == after[column] for before, after in pairwise(rows) if before[text] == after[text])


def _begins_sentences(rows: Sequence[Mapping[Column, str]], column: Column) -> bool:
    """Whether the values of a column mark sentences of several words: each is given once, or in all of its rows."""
    begins = [rows[0][column]] + [
        after[column] for before, after in pairwise(rows) if after[column] not in ("", before[column])
    ]
    return len(set(begins)) == len(begins) and 2 * len(begins) <= len(rows)
