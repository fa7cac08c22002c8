"""Tagging: named entities as IOB2 spans and parts of speech, by word or by character."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from dice_ray.data.records import TaggedRecord, groups_of
from dice_ray.errors import DataError
from dice_ray.metrics.classification import Counts, ratio
from dice_ray.metrics.decisions import FittedDecision, Numbers
from dice_ray.metrics.fitting import fit_spans
from dice_ray.metrics.spans import Span, counts_of_choices, span_counts, spans_of
from dice_ray.models.heads import TokenHead
from dice_ray.tasks.answers import Answers, LabelNames
from dice_ray.tasks.base import NO_TARGET, Batch, Decoded, Row, Scores, Task, TaskBranch, others_and_rarest
from dice_ray.tasks.predictions import Conll
from dice_ray.tasks.rows import decided, padded, paddings_before, whole_numbers, windows
from dice_ray.tasks.span_scoring import constant_f1, span_answers, split_scores
from dice_ray.terms import Link, Term, TermFacts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig

_IOB2: Final = re.compile(r"O|[BI](-.*)?")
_Word: TypeAlias = tuple[int, str, float]
"""A word that a row decides: its place in its record, its best tag besides the background, and its margin."""


class TaggingConfig(TaskBranch):
    """Tag the words of a sentence; the score is the micro F1 of spans.

    Attributes:
        tags: `spans` for IOB2 tags; `plain` for one tag a word, each word being a span of its own.
        background: The tag of words without interest, `O` for spans; none for parts of speech.
        unit: What is tagged. `character` splits words into characters with B- and I- tags: with plain tags this is
            joint segmentation and tagging, as parts of speech are scored in Chinese.
        max_length: The longest row, in tokens; a longer sentence becomes several overlapping rows.
        stride: The overlap of those rows, in tokens.
    """

    name = "tagging"
    records = (TaggedRecord,)

    tags: Literal["spans", "plain"] = "spans"
    background: str | None = Field(
        default_factory=lambda above: "O" if above.get("tags") == "spans" else None,
        description="O for spans, none for plain tags",
    )
    unit: Literal["word", "character"] = "word"

    def links(self) -> frozenset[Link]:
        return frozenset({"softmax"})

    def classes(self, records: Sequence[TaggedRecord]) -> tuple[str, ...]:
        """The tags of the training split, the background first."""
        tags = sorted(self.label_counts(records))
        no_spans = [tag for tag in tags if tag != self.background and not _IOB2.fullmatch(tag)]
        if self.tags == "spans" and no_spans:
            raise DataError(
                f"tagging: the tags of spans must be {self.background}, B-TYPE and I-TYPE, got {no_spans[0]!r} in the "
                "training split; task.tagging.tags=plain takes any tags, one a word"
            )
        if self.background not in (None, *tags):
            raise DataError(
                f"tagging: the background {self.background!r} (task.tagging.background) must be a tag of the training "
                f"split, which has {tags[:20]}"
            )
        if len(tags) < 2:
            raise DataError(f"tagging needs at least two tags in the training split, got {tags}")
        return tuple(sorted(tags, key=lambda tag: tag != self.background))

    def label_counts(self, records: Sequence[TaggedRecord]) -> Counter[str]:
        """The number of words or characters with each tag."""
        return Counter(tag for record in records for tag in self.tagged(record)[1])

    def support(self, records: Sequence[TaggedRecord], classes: Iterable[str]) -> Counter[str]:
        """Spans by type; words or characters, whatever their tags, if all tags are scored together."""
        if self.background is None:
            return Counter(words=self.label_counts(records).total())
        is_type = self.tags == "plain" and self.unit == "word"
        counts = Counter({tag if is_type else tag[2:]: 0 for tag in classes if tag != self.background})
        counts.update(type_ for record in records for type_, _, _ in self.spans(self.tagged(record)[1]))
        return counts

    def span_types(self, classes: Iterable[str], records: Sequence[TaggedRecord]) -> set[str]:
        return {type_ for tag in {*classes, *self.label_counts(records)} for type_, _, _ in self.spans([tag])}

    def negatives_and_positives(self, records: Sequence[TaggedRecord]) -> tuple[int, int]:
        """Words (or characters) of the background, and all others; without a background all tags against the rarest."""
        counts = self.label_counts(records)
        if self.background is None:
            return others_and_rarest(counts)
        return counts[self.background], counts.total() - counts[self.background]

    def build(self, classes: tuple[str, ...]) -> _Tagging:
        return _Tagging(self, classes)

    def tagged(self, record: TaggedRecord) -> tuple[Sequence[str], Sequence[str]]:
        """The words or characters of a record, and their tags; no tags if the record has no labels."""
        if self.unit == "word":
            return record.words, record.tags
        characters = [character for word in record.words for character in word]
        pairs = zip(record.words, record.tags, strict=True) if record.tags else ()
        return characters, [self._spread(tag, place) for word, tag in pairs for place in range(len(word))]

    def spans(self, tags: Sequence[str | None]) -> set[Span]:
        """The spans of a record's tags; a word without a tag is outside of all spans."""
        if self.tags == "plain" and self.unit == "word":
            return {(tag, place, place + 1) for place, tag in enumerate(tags) if tag not in (None, self.background)}
        return spans_of([tag if tag and tag != self.background else "O" for tag in tags])

    def _spread(self, tag: str, place: int) -> str:
        if tag == self.background:
            return tag
        if self.tags == "plain":
            return f"{'I' if place else 'B'}-{tag}"
        return f"I{tag[1:]}" if place else tag


class _Tagging(Task[TaggedRecord]):
    """Tagging with one term, `tag`, whose items are the first pieces of words, each in exactly one window."""

    config: TaggingConfig

    @property
    def _has_background(self) -> bool:
        return self.config.background is not None

    def texts(self, records: Sequence[TaggedRecord]) -> list[str]:
        return [" ".join(self.config.tagged(record)[0]) for record in records]

    def encode(self, records: Sequence[TaggedRecord], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        indices = {tag: index for index, tag in enumerate(self.classes)}
        units = [self.config.tagged(record) for record in records]
        encoded = windows(tokenizer, [words for words, _ in units], self.config.max_length, self.config.stride)
        rows = []
        for (_, gold), of_record in zip(units, encoded, strict=True):
            for window, items in zip(of_record, decided([window.words for window in of_record]), strict=True):
                tags = [indices.get(gold[word], NO_TARGET) if gold else NO_TARGET for word in items]
                rows.append({**window.row, "words": list(items), "places": list(items.values()), "tags": tags})
        return rows

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        chosen = [rows[index] for index in indices]
        inputs = padded(chosen, tokenizer)
        tags_BL = torch.full_like(inputs["input_ids"], NO_TARGET)
        items_BL = torch.zeros_like(tags_BL, dtype=torch.bool)
        for number, (row, padding) in enumerate(zip(chosen, paddings_before(chosen, tokenizer), strict=True)):
            places = torch.tensor(row["places"], dtype=torch.long) + padding
            tags_BL[number, places] = torch.tensor(row["tags"], dtype=torch.long)
            items_BL[number, places] = True
        return Batch(inputs, {"tag": tags_BL, "item": items_BL}, tuple(indices))

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        counts = Counter(tag for tags in whole_numbers(rows, "tags") for tag in tags)
        # A term of two classes always has a background, even if the task names none.
        background = 0 if self._has_background or len(self.classes) == 2 else None
        by_class = tuple(counts[index] for index in range(len(self.classes)))
        return (TermFacts("tag", "softmax", self.classes, by_class, background),)

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        return {"tag": TokenHead(width, len(self.classes), model.dropout)}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        tags_BL = batch.targets["tag"]
        return {"tag": Term(logits["tag"], tags_BL, tags_BL != NO_TARGET)}

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[list[float]]:
        """The best class besides the background of each word that a row decides, then the margins of all these words.

        A margin is the logit of the background minus that of the best other class, so that any bias of the background
        can be applied later; without a background it is -inf.
        """
        items_BL = batch.targets["item"]
        logits_NC = logits["tag"][items_BL].double()  # the difference of two floats of lower precision is exact
        num_other = len(self.classes) - self._has_background
        best_N, class_N = logits_NC[:, -num_other:].max(-1)
        margin_N = logits_NC[:, 0] - best_N if self._has_background else torch.full_like(best_N, -torch.inf)
        classes, margins = iter((class_N + self._has_background).tolist()), iter(margin_N.tolist())
        sizes = items_BL.sum(-1).tolist()
        return [[*islice(classes, size), *islice(margins, size)] for size in sizes]

    def decide(self, records: Sequence[TaggedRecord], rows: Sequence[Row], decoded: Decoded) -> FittedDecision | None:
        """A bias of the background's logit, for the F1 of spans."""
        if not self._has_background:
            return None
        gold = [self.config.tagged(record)[1] for record in records]
        by_record = self._decided(records, rows, decoded)
        # From a quarter of the words that are in spans to four times as many are tagged: biases beside each other
        # differ by the same share of them, also where the model is sure that most words are background.
        limits = np.sort([-margin for words in by_record for *_, margin in words])[::-1]
        num_inside = sum(tag != self.config.background for tags in gold for tag in tags)
        places = np.unique(np.geomspace(0.25, 4, 41) * num_inside).round().astype(int)
        places = places[(places > 0) & (places < len(limits))]
        biases = sorted({0.0, *((limits[places - 1] + limits[places]) / 2).tolist()}, key=abs)
        limit_K1, counts = -np.array(biases)[:, None], []
        for words, tags in zip(by_record, gold, strict=True):
            is_tagged_KM = np.array([margin for *_, margin in words]) < limit_K1
            found = partial(self._spans, len(tags))
            counts.append(counts_of_choices(words, is_tagged_KM, found, self.config.spans(tags)))
        return fit_spans([{"background": bias} for bias in biases], np.stack(counts, 1), groups_of(records))

    def score(
        self, records: Sequence[TaggedRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Scores:
        """Scores over spans as conlleval forms them, also from invalid tag sequences; accuracy over tags.

        A word that the tokenizer drops is predicted as the background, or as no tag if there is none.
        """
        gold = [list(self.config.tagged(record)[1]) for record in records]
        by_record = self._decided(records, rows, decoded)
        predicted = self._predicted(records, by_record)
        num_words, frequencies = sum(map(len, gold)), Counter(tag for tags in gold for tag in tags)
        num_right = sum(
            tag == guess for pair in zip(gold, predicted, strict=True) for tag, guess in zip(*pair, strict=True)
        )
        others = {
            "accuracy": ratio(num_right, num_words),
            "constant_f1": constant_f1([*map(self.config.spans, gold)], num_words),
            "constant_accuracy": ratio(max(frequencies.values()), num_words),
            "words_dropped": float(num_words - sum(len(row["words"]) for row in rows)),
        }
        tuned = [] if decision is None else self._predicted(records, by_record, decision.tuned)
        one_class = len({tag if margin < 0 else None for words in by_record for _, tag, margin in words}) == 1
        return split_scores(
            [record.id for record in records],
            list(map(self._counts, gold, predicted)),
            others,
            collapsed=one_class,
            decision=decision,
            tuned=map(self._counts, gold, tuned),
        )

    def predict(
        self, records: Sequence[TaggedRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Conll:
        """The predicted tag of each word or character; `_` for one without, that the tokenizer drops."""
        by_record = self._decided(records, rows, decoded)
        predicted = self._predicted(records, by_record, None if decision is None else decision.used)
        units = [self.config.tagged(record)[0] for record in records]
        return Conll(
            [
                [(unit, tag or "_") for unit, tag in zip(*sentence, strict=True)]
                for sentence in zip(units, predicted, strict=True)
            ]
        )

    def score_answers(
        self, records: Sequence[TaggedRecord], answers: Answers, dev: tuple[Sequence[TaggedRecord], Answers] | None
    ) -> tuple[Scores, str]:
        """Over spans, by the tags of a CoNLL file, or `tags` of each record."""
        names, units = LabelNames(self.classes), [self.config.tagged(record) for record in records]
        predicted = [answers.tags(record.id, words, names) for record, (words, _) in zip(records, units, strict=True)]
        counts = [self._counts(gold, tags) for (_, gold), tags in zip(units, predicted, strict=True)]
        counts_as = "words outside of all spans" if self._has_background else "wrong"
        return span_answers(dict(zip([record.id for record in records], counts, strict=True)), answers, dev), counts_as

    def _predicted(
        self, records: Sequence[TaggedRecord], by_record: Sequence[Sequence[_Word]], numbers: Numbers | None = None
    ) -> list[list[str | None]]:
        """The predicted tag of each unit of each record, with these numbers of the decision, or untuned."""
        limit = -numbers["background"] if numbers else 0.0  # ties are the background's, as it is the first class
        sizes = (len(self.config.tagged(record)[0]) for record in records)
        return [
            self._tags(size, [word for word in words if word[-1] < limit])
            for size, words in zip(sizes, by_record, strict=True)
        ]

    def _decided(self, records: Sequence[TaggedRecord], rows: Sequence[Row], decoded: Decoded) -> list[list[_Word]]:
        """The words of each record that its rows decide."""
        by_record: list[list[_Word]] = [[] for _ in records]
        for row, words, of_row in zip(rows, whole_numbers(rows, "words"), decoded, strict=True):
            tags = [self.classes[int(class_)] for class_ in of_row[: len(words)]]
            by_record[row["record"]] += zip(words, tags, of_row[len(words) :], strict=True)
        return by_record

    def _tags(self, size: int, words: Iterable[_Word]) -> list[str | None]:
        """The tags of a record of this size, with these words and others of the background."""
        tags = [self.config.background] * size
        for word, tag, _ in words:
            tags[word] = tag
        return tags

    def _spans(self, size: int, words: Iterable[_Word]) -> set[Span]:
        return self.config.spans(self._tags(size, words))

    def _counts(self, gold: Sequence[str], predicted: Sequence[str | None]) -> dict[str, Counts]:
        return span_counts(self.config.spans(gold), self.config.spans(predicted))
