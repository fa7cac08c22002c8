"""Tagging: named entities as _IOB2 spans and parts of speech, by word or by character."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from dice_ray.data.records import TaggedRecord, documents
from dice_ray.errors import DataError
from dice_ray.metrics.classification import Counts, ItemCounts, ratio
from dice_ray.metrics.decisions import FittedDecision, Numbers, fit_spans
from dice_ray.metrics.spans import Span, span_counts, span_item, span_scores, spans_of, sum_counts, tuned_scores
from dice_ray.models.heads import TokenHead
from dice_ray.tasks.base import NO_TARGET, Batch, Row, Scores, Task, WindowedBranch, others_and_rarest
from dice_ray.tasks.predictions import Conll
from dice_ray.tasks.rows import decided, padded, padding_before, whole_numbers, windows
from dice_ray.terms import Link, Term, TermFacts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig

_IOB2: Final = re.compile(r"O|[BI](-.*)?")
_NUM_BIASES: Final = 41
"""Biases of the background that are tried on dev."""


class TaggingConfig(WindowedBranch):
    """Tag the words of a sentence; the score is the micro F1 of spans.

    Attributes:
        tags: `spans` for _IOB2 tags; `plain` for one tag a word, each word being a span of its own.
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
        tags = sorted({tag for record in records for tag in self.tagged(record)[1]})
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

    def build(self, classes: tuple[str, ...]) -> Tagging:
        return Tagging(self, classes)

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


class Tagging(Task[TaggedRecord]):
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
        for record, group in groupby(encoded, key=lambda window: window.row["record"]):
            of_record = list(group)
            for window, items in zip(of_record, decided([window.words for window in of_record]), strict=True):
                gold = units[record][1]
                tags = [indices.get(gold[word], NO_TARGET) if gold else NO_TARGET for word in items]
                rows.append({**window.row, "words": list(items), "places": list(items.values()), "tags": tags})
        return rows

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        chosen = [rows[index] for index in indices]
        inputs = padded(chosen, tokenizer)
        length = inputs["input_ids"].shape[1]
        tags_BL = torch.full((len(chosen), length), NO_TARGET)
        items_BL = torch.zeros((len(chosen), length), dtype=torch.bool)
        for number, row in enumerate(chosen):
            padding = padding_before(row, length, tokenizer)
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

    def decide(
        self, records: Sequence[TaggedRecord], rows: Sequence[Row], decoded: Sequence[list[float]]
    ) -> FittedDecision | None:
        """A bias of the background's logit, for the F1 of spans."""
        if not self._has_background:
            return None
        gold = [self.config.tagged(record)[1] for record in records]
        # From a quarter of the words that are in spans to four times as many are tagged: biases beside each other
        # differ by the same share of them, also where the model is sure that most words are background.
        limits = np.sort([-margin for row in decoded for margin in _halves(row)[1]])[::-1]
        num_inside = sum(tag != self.config.background for tags in gold for tag in tags)
        places = np.unique(np.geomspace(0.25, 4, _NUM_BIASES) * num_inside).round().astype(int)
        places = places[(places > 0) & (places < len(limits))]
        biases = sorted({0.0, *((limits[places - 1] + limits[places]) / 2).tolist()}, key=abs)
        of_record = documents(records)
        groups = [of_record[record.id] for record in records] if of_record else None
        counts_KN3 = self._counts_by_bias(gold, rows, decoded, biases)
        return fit_spans([{"background": bias} for bias in biases], counts_KN3, 0, groups)

    def _counts_by_bias(
        self, gold: Sequence[Sequence[str]], rows: Sequence[Row], decoded: Sequence[list[float]], biases: list[float]
    ) -> NDArray[np.int64]:
        """`counts_KN3`: of each record with each bias, as `fit_spans` takes them.

        From the highest bias down words leave the background; only their records are counted again.
        """
        lowest = min(biases)
        words = [
            (-margin, row["record"], word, self.classes[int(class_)])
            for row, places, of_row in zip(rows, whole_numbers(rows, "words"), decoded, strict=True)
            for word, class_, margin in zip(places, *_halves(of_row), strict=True)
            if -margin > lowest
        ]
        words.sort(key=itemgetter(0))
        spans = [self.config.spans(tags) for tags in gold]
        predicted = [[self.config.background] * len(tags) for tags in gold]
        counts_KN3 = np.zeros((len(biases), len(gold), 3), dtype=np.int64)
        counts_N3 = np.array([(0, 0, len(of_record)) for of_record in spans])
        for place in np.argsort(biases)[::-1]:
            changed = set()
            while words and words[-1][0] > biases[place]:
                _, record, word, tag = words.pop()
                predicted[record][word] = tag
                changed.add(record)
            for record in changed:
                found = self.config.spans(predicted[record])
                num_right = len(found & spans[record])
                counts_N3[record] = num_right, len(found) - num_right, len(spans[record]) - num_right
            counts_KN3[place] = counts_N3
        return counts_KN3

    def score(
        self,
        records: Sequence[TaggedRecord],
        rows: Sequence[Row],
        decoded: Sequence[list[float]],
        decision: FittedDecision | None,
    ) -> Scores:
        """Scores over spans as conlleval forms them, also from invalid tag sequences; accuracy over tags.

        A word that the tokenizer drops is predicted as the background, or as no tag if there is none.
        """
        gold = [list(self.config.tagged(record)[1]) for record in records]
        predicted = self._predicted(records, rows, decoded)
        counts = [self._counts(*pair) for pair in zip(gold, predicted, strict=True)]
        total, num_words = sum_counts(counts), sum(map(len, gold))
        frequencies = Counter(tag for tags in gold for tag in tags)
        spans = [span for tags in gold for span in self.config.spans(tags)]
        # A type that is predicted for each word is right where a span of it has one word.
        singles = Counter(type_ for type_, first, end in spans if end - first == 1)
        num_constant = max(singles.values(), default=0)
        num_right = sum(
            tag == guess for pair in zip(gold, predicted, strict=True) for tag, guess in zip(*pair, strict=True)
        )
        metrics = {
            **span_scores(total),
            "accuracy": ratio(num_right, num_words),
            "constant_f1": Counts(num_constant, num_words - num_constant, len(spans) - num_constant).f1,
            "constant_accuracy": ratio(max(frequencies.values()), num_words),
            "words_dropped": float(num_words - sum(len(row["words"]) for row in rows)),
        }
        ids, tuned_items = [record.id for record in records], tuple[ItemCounts, ...]()
        if decision is not None:
            tuned = self._predicted(records, rows, decoded, decision.tuned)
            tuned_counts = [self._counts(*pair) for pair in zip(gold, tuned, strict=True)]
            tuned_items = tuple(map(span_item, ids, tuned_counts))
            metrics |= tuned_scores(tuned_items) | decision.metrics
        one_class = len({tag for row in decoded for tag in self._tags(row, 0.0)}) == 1
        items = tuple(map(span_item, ids, counts))
        return Scores(metrics, collapsed=one_class, items=items, tuned_items=tuned_items, classes=total)

    def predict(
        self,
        records: Sequence[TaggedRecord],
        rows: Sequence[Row],
        decoded: Sequence[list[float]],
        decision: FittedDecision | None,
    ) -> Conll:
        """The predicted tag of each word or character; `_` for one without, that the tokenizer drops."""
        predicted = self._predicted(records, rows, decoded, None if decision is None else decision.used)
        units = [self.config.tagged(record)[0] for record in records]
        return Conll(
            [
                [(unit, tag or "_") for unit, tag in zip(*sentence, strict=True)]
                for sentence in zip(units, predicted, strict=True)
            ]
        )

    def _predicted(
        self,
        records: Sequence[TaggedRecord],
        rows: Sequence[Row],
        decoded: Sequence[list[float]],
        numbers: Numbers | None = None,
    ) -> list[list[str | None]]:
        """The predicted tag of each unit of each record, with these numbers of the decision, or untuned."""
        bias = numbers["background"] if numbers else 0.0
        predicted = [[self.config.background] * len(self.config.tagged(record)[0]) for record in records]
        for row, words, of_row in zip(rows, whole_numbers(rows, "words"), decoded, strict=True):
            for word, tag in zip(words, self._tags(of_row, bias), strict=True):
                predicted[row["record"]][word] = tag
        return predicted

    def _tags(self, of_row: list[float], bias: float) -> list[str]:
        """The tags of the words of a decoded row; ties are the background's, as it is the first class."""
        pairs = zip(*_halves(of_row), strict=True)
        return [self.classes[0 if margin >= -bias else int(class_)] for class_, margin in pairs]

    def _counts(self, gold: Sequence[str], predicted: Sequence[str | None]) -> dict[str, Counts]:
        return span_counts(self.config.spans(gold), self.config.spans(predicted))


def _halves(of_row: list[float]) -> tuple[list[float], list[float]]:
    """The classes and the margins of a decoded row."""
    return of_row[: len(of_row) // 2], of_row[len(of_row) // 2 :]
