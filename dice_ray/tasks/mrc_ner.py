"""Named entity recognition as reading comprehension (MRC-NER): a query for each type of span, then the sentence.

A sentence gives a row for each type, or several overlapping ones if it is long. Up to four two-class terms are trained:
- `start` and `end`: is the word the first or last one of a span? Their items are words, by their first piece, each in
  exactly one window.
- `match`: do the start and the end belong together? Its items are the candidate spans that begin where a gold span
  begins or end where one ends.
- `answerable`: does the row hold a span of the type? Its item is the row, by its classification token.

A span is predicted where all terms are positive, and those of start and end above thresholds that are fitted on dev
where that is better. Special, query and padding tokens are no items of any term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, StringConstraints, field_validator, model_validator
from torch import Tensor, nn

from dice_ray.data.records import NestedRecord, QueryRecord, TaggedRecord, groups_of
from dice_ray.errors import DataError, meant
from dice_ray.metrics.classification import Counts
from dice_ray.metrics.decisions import UNTUNED_THRESHOLD, FittedDecision, Numbers
from dice_ray.metrics.spans import Span, counts_of_choices, span_counts, spans_of
from dice_ray.models.heads import PlaceHead, SpanHead
from dice_ray.settings import Settings
from dice_ray.tasks.answers import Answers, LabelNames
from dice_ray.tasks.base import Batch, Decoded, Row, Scores, Task, TaskBranch
from dice_ray.tasks.found_spans import FoundSpan, distinct, found_spans, gold_spans, num_candidates, predicted_spans
from dice_ray.tasks.predictions import Conll, Json
from dice_ray.tasks.queries import (
    QUERIES,
    SpanQuery,
    SpanRecord,
    asked_once,
    gold_of,
    mrc_json,
    queries_of,
    query_answer,
    query_id,
    sentence_of,
    tagged_words,
    types_of,
)
from dice_ray.tasks.rows import Window, classification_place, padded, paddings_before, whole_numbers, windows
from dice_ray.tasks.span_candidates import beside, candidates
from dice_ray.tasks.span_scoring import constant_f1, span_answers, split_scores
from dice_ray.tasks.start_end import END_K1, LOWEST_THRESHOLD, START_K1, UNTUNED, fitted, kept
from dice_ray.terms import Link, Term, TermFacts

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import ModelConfig


class _TermWeights(Settings):
    """The weight of each term in the loss; a term with weight 0 is neither trained nor used in decoding.

    Attributes:
        start: Whether a word is the first one of a span.
        end: Whether a word is the last one of a span.
        match: Whether a start and an end make a span.
        answerable: Whether the row holds a span of the type.
    """

    start: float = Field(1.0, gt=0)
    end: float = Field(1.0, gt=0)
    match: float = Field(1.0, ge=0)
    answerable: float = Field(1.0, ge=0)


class MrcNerConfig(TaskBranch):
    """Find the spans of each type with a query for it, in tagged sentences, nested spans or a file of queries.

    Attributes:
        queries: The name of shipped queries, or a query for each type. By default the queries of the file, and where it
            has none the names of the types.
        spans: Whether spans may share words. `flat` keeps the most probable of those that do, whatever their types.
        weights: The weight of each term. Without `match`, a start is paired with the nearest end.
        max_span: The longest span that is predicted, in words; longer gold spans are missed.
        max_length: The longest row, in tokens; a longer sentence becomes several overlapping rows.
        stride: The overlap of those rows, in tokens. A span that lies in none of them whole is missed.
    """

    name = "mrc_ner"
    records = (TaggedRecord, NestedRecord, QueryRecord)

    queries: str | dict[str, Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]] | None = None
    spans: Literal["flat", "nested"] = "flat"
    weights: _TermWeights = _TermWeights()
    max_span: int = Field(16, ge=1)
    max_length: int = Field(192, ge=8)

    @field_validator("queries")
    @classmethod
    def _are_known(cls, queries: str | dict[str, str] | None) -> str | dict[str, str] | None:
        if isinstance(queries, str) and queries not in QUERIES:
            shipped = f"{', '.join(QUERIES)}{meant(queries, QUERIES)}"
            raise ValueError(f"must be a query for each type, or the name of shipped ones: {shipped}")
        return queries

    @model_validator(mode="after")
    def _fits(self) -> MrcNerConfig:
        if self.spans == "nested" and self.weights.match == 0:
            raise ValueError("nested spans need the match term to pair starts with ends, got weights.match 0")
        return self

    def links(self) -> frozenset[Link]:
        return frozenset({"sigmoid"})

    def classes(self, records: Sequence[SpanRecord]) -> tuple[str, ...]:
        """The types of the training split."""
        types = set[str]().union(*map(types_of, records))
        if not types:
            raise DataError("mrc_ner needs at least one span, or one query, in the training split: it has none")
        return tuple(sorted(types))

    def build(self, classes: tuple[str, ...]) -> _MrcNer:
        for type_ in classes:
            self.query_text(SpanQuery(type_, None, frozenset()))
        return _MrcNer(self, classes)

    def query_text(self, query: SpanQuery) -> str:
        """The text of a query; an error where the configured queries lack its type."""
        if self.queries is None:
            return query.text or query.type
        known = QUERIES[self.queries] if isinstance(self.queries, str) else self.queries
        if query.type not in known:
            written = f"task.mrc_ner.queries, {self.queries if isinstance(self.queries, str) else 'given by type'}"
            raise DataError(
                f"mrc_ner: the queries ({written}) must hold one for each type of the data, but lack "
                f"{query.type!r}. Known: {', '.join(known)}."
            )
        return known[query.type]

    def span_types(self, classes: Iterable[str], records: Sequence[SpanRecord]) -> set[str]:
        return set(classes).union(*map(types_of, records))

    def negatives_and_positives(self, records: Sequence[SpanRecord]) -> tuple[int, int]:
        """Words outside of all spans, and words inside: each word of a sentence once, however many queries it has."""
        covered = ([place for _, *ends in spans for place in range(*ends)] for spans in gold_spans(records).values())
        num_inside = sum(len(set(places)) for places in covered)
        return _num_words(records) - num_inside, num_inside

    def label_counts(self, records: Sequence[SpanRecord]) -> Counter[str]:
        """How many spans there are of each type."""
        return Counter(type_ for record in records for type_, _, _ in gold_of(record))


class _MrcNer(Task[SpanRecord]):
    """Sentences behind queries, with the terms whose weight is not 0."""

    config: MrcNerConfig

    def __init__(self, config: MrcNerConfig, classes: tuple[str, ...]) -> None:
        super().__init__(config, classes)
        self.weights: dict[str, float] = {name: weight for name, weight in config.weights if weight > 0}

    def texts(self, records: Sequence[SpanRecord]) -> list[str]:
        queries = [self.config.query_text(query) for _, _, query in self._queries(records)]
        return [*(" ".join(record.words) for record in records), *queries]

    def encode(self, records: Sequence[SpanRecord], tokenizer: PreTrainedTokenizerBase) -> list[Row]:
        queries = self._queries(records)
        sentences = [records[number].words for number, _, _ in queries]
        texts = [self.config.query_text(query).split() for _, _, query in queries]
        encoded = windows(tokenizer, sentences, self.config.max_length, self.config.stride, texts)
        rows = []
        for (number, index, query), of_query in zip(queries, encoded, strict=True):
            for row in self._rows(of_query, query, tokenizer):
                rows.append({**row, "record": number, "question": index})
        return rows

    def _queries(self, records: Sequence[SpanRecord]) -> list[tuple[int, int, SpanQuery]]:
        """The queries to these records: the index of the record, which one of its queries it is, and the query."""
        return [
            (number, index, query)
            for number, record in enumerate(records)
            for index, query in enumerate(queries_of(record, self.classes))
        ]

    def _rows(self, of_query: list[Window], query: SpanQuery, tokenizer: PreTrainedTokenizerBase) -> Iterator[Row]:
        """The windows of a query with their words, their candidates, and which of these are gold."""
        by_window = candidates([window.words for window in of_query], self.config.stride, self.config.max_span)
        for window, of_window in zip(of_query, by_window, strict=True):
            index = {word: number for number, word in enumerate(of_window.words)} if query.spans else {}
            held = [
                (index[first], index[end - 1]) for first, end in sorted(query.spans) if {first, end - 1} <= index.keys()
            ]
            gold = []
            for first, last in held:
                if of_window.above[first] <= last - first < of_window.upto[first]:
                    gold += [first, last - first]  # two numbers in a row, as rows hold flat lists only
            yield {
                **window.row,
                **of_window._asdict(),
                "starts": sorted({index[first] for first, _ in query.spans if first in index}),
                "ends": sorted({index[end - 1] for _, end in query.spans if end - 1 in index}),
                "gold": gold,
                "answerable": int(bool(held)),
                "classification": classification_place(window.row, tokenizer),
            }

    def collate(self, rows: Sequence[Row], indices: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> Batch:
        """The rows with W words and spans of up to S words: `place_BW`, `match_BWS`, ..."""
        chosen = [rows[index] for index in indices]
        inputs = padded(chosen, tokenizer)
        num_words = max([1, *(len(row["words"]) for row in chosen)])
        num_lengths = max([1, *(int(upto) for row in chosen for upto in row["upto"])])
        place_BW, above_BW, upto_BW, start_BW, end_BW = torch.zeros((5, len(chosen), num_words), dtype=torch.long)
        match_BWS = torch.zeros((len(chosen), num_words, num_lengths), dtype=torch.long)
        classification_B1 = torch.zeros((len(chosen), 1), dtype=torch.long)
        for number, (row, padding) in enumerate(zip(chosen, paddings_before(chosen, tokenizer), strict=True)):
            size = len(row["words"])
            classification_B1[number] = row["classification"] + padding
            place_BW[number, :size] = torch.tensor(row["places"], dtype=torch.long) + padding
            above_BW[number, :size] = torch.tensor(row["above"], dtype=torch.long)
            upto_BW[number, :size] = torch.tensor(row["upto"], dtype=torch.long)
            start_BW[number, torch.tensor(row["starts"], dtype=torch.long)] = 1
            end_BW[number, torch.tensor(row["ends"], dtype=torch.long)] = 1
            gold = torch.tensor(row["gold"], dtype=torch.long)
            match_BWS[number, gold[::2], gold[1::2]] = 1
        lengths_S = torch.arange(num_lengths)
        candidate_BWS = (lengths_S >= above_BW[..., None]) & (lengths_S < upto_BW[..., None])
        begins_BW1, ends_BWS = start_BW[..., None] == 1, _of_lasts(end_BW == 1, num_lengths)
        targets = {
            "place": place_BW,
            "start": start_BW,
            "end": end_BW,
            "item": (above_BW == 0) & (upto_BW > 0),
            "match": match_BWS,
            "candidate": candidate_BWS,
            "beside": candidate_BWS & (begins_BW1 | ends_BWS),
            "answerable": torch.tensor([[row["answerable"]] for row in chosen]),
            "classification": classification_B1,
        }
        return Batch(inputs, targets, tuple(indices))

    def facts(self, rows: Sequence[Row]) -> tuple[TermFacts, ...]:
        items, yes = Counter[str](answerable=len(rows)), Counter[str]()
        yes["match"] = sum(len(row["gold"]) // 2 for row in rows)
        yes["answerable"] = sum(int(row["answerable"]) for row in rows)
        columns = (whole_numbers(rows, name) for name in ("above", "upto", "starts", "ends"))
        for above, upto, starts, ends in zip(*columns, strict=True):
            decided = [low == 0 < high for low, high in zip(above, upto, strict=True)]
            for name, places in (("start", starts), ("end", ends)):
                items[name] += sum(decided)
                yes[name] += sum(decided[place] for place in places)
            items["match"] += len(beside(above, upto, starts, ends))
        return tuple(
            TermFacts(name, "sigmoid", (f"no {name}", name), (items[name] - yes[name], yes[name]), background=0)
            for name in self.weights
        )

    def heads(self, width: int, model: ModelConfig) -> dict[str, nn.Module]:
        heads = {
            "start": PlaceHead(width, 1, model.dropout, places="place"),
            "end": PlaceHead(width, 1, model.dropout, places="place"),
            "match": SpanHead(width, model.dropout, self.config.max_span, places="place", spans="candidate"),
            "answerable": PlaceHead(width, 1, model.dropout, places="classification"),
        }
        return {name: heads[name] for name in self.weights}

    def terms(self, logits: Mapping[str, Tensor], batch: Batch) -> dict[str, Term]:
        targets = batch.targets
        masks = {"start": targets["item"], "end": targets["item"], "match": targets["beside"], "answerable": None}
        return {
            name: Term(logits[name].reshape(targets[name].shape), targets[name], masks[name], weight)
            for name, weight in self.weights.items()
        }

    def decode(self, logits: Mapping[str, Tensor], batch: Batch) -> list[list[float]]:
        """The candidates for which match and answerable are positive, and start and end above the lowest thresholds.

        Six numbers each: the index of the first word in the row, how many follow, and those of `FoundSpan`.
        """
        candidate_BWS = batch.targets["candidate"]
        p = {name: logits[name].double().sigmoid() for name in self.weights}
        start_BWS = p["start"].expand(candidate_BWS.shape)
        end_BWS = _of_lasts(p["end"][..., 0], candidate_BWS.shape[-1])
        whole_BWS, nearer_BWS = start_BWS * end_BWS, torch.zeros_like(end_BWS)
        if "match" in p:
            whole_BWS = whole_BWS * p["match"]
            candidate_BWS = candidate_BWS & (p["match"] > UNTUNED_THRESHOLD)
        else:
            nearer_BWS[..., 1:] = end_BWS.cummax(-1).values[..., :-1]
        if "answerable" in p:
            candidate_BWS = candidate_BWS & (p["answerable"] > UNTUNED_THRESHOLD)
        both_BWS = torch.minimum(start_BWS, end_BWS)
        likely_BWS = candidate_BWS & (both_BWS > LOWEST_THRESHOLD) & (nearer_BWS < end_BWS)
        untuned_BWS = likely_BWS & (both_BWS > UNTUNED_THRESHOLD) & (nearer_BWS <= UNTUNED_THRESHOLD)
        kept_BWS = kept(*(each.flatten(1) for each in (likely_BWS, untuned_BWS, whole_BWS))).view_as(candidate_BWS)
        values = torch.stack([each[kept_BWS] for each in (start_BWS, end_BWS, nearer_BWS, whole_BWS)], 1).tolist()
        by_row: list[list[float]] = [[] for _ in batch.rows]
        for (number, word, further), of_span in zip(kept_BWS.nonzero().tolist(), values, strict=True):
            by_row[number] += [word, further, *of_span]
        return by_row

    def decide(self, records: Sequence[SpanRecord], rows: Sequence[Row], decoded: Decoded) -> FittedDecision:
        """The thresholds of starts and of ends."""
        gold, found = gold_spans(records), found_spans(records, rows, decoded, self.classes)
        counts = []
        for sentence, spans in found.items():
            start_M, end_M, nearer_M, _ = np.array([each[1:] for each in spans]).reshape(-1, 4).T
            is_above_KM = (start_M > START_K1) & (end_M > END_K1) & (nearer_M <= END_K1)
            counts.append(counts_of_choices(spans, is_above_KM, self._chosen, gold[sentence]))
        once = {sentence_of(record): record for record in records}
        return fitted(counts, groups_of(list(once.values())))

    def score(
        self, records: Sequence[SpanRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Scores:
        """Scores over the spans of all types of a sentence; a gold span that is no candidate of any row is missed."""
        gold, found = gold_spans(records), found_spans(records, rows, decoded, self.classes)
        num_predicted = sum(len(predicted_spans(spans)) for spans in found.values())
        once = asked_once(records, rows, self.classes)
        num_gold, num_reached = sum(map(len, gold.values())), sum(len(row["gold"]) // 2 for row in once)
        if self.config.spans == "flat":
            constant = constant_f1(gold.values(), _num_words(records))
        else:  # of predicting every candidate
            constant = Counts(num_reached, num_candidates(once) - num_reached, num_gold - num_reached).f1
        return split_scores(
            gold.keys(),
            self._counts(gold, found),
            {"constant_f1": constant, "spans_out_of_reach": float(num_gold - num_reached)},
            collapsed=num_predicted in (0, num_candidates(rows)),
            decision=decision,
            tuned=[] if decision is None else self._counts(gold, found, decision.tuned),
        )

    def predict(
        self, records: Sequence[SpanRecord], rows: Sequence[Row], decoded: Decoded, decision: FittedDecision | None
    ) -> Conll | Json:
        """The tags of words for flat spans of tagged sentences; MRC-NER JSON for queries and nested spans."""
        numbers = UNTUNED if decision is None else decision.used
        found = found_spans(records, rows, decoded, self.classes)
        predicted = {sentence: self._chosen(predicted_spans(spans, numbers)) for sentence, spans in found.items()}
        tagged = [record for record in records if not isinstance(record, QueryRecord)]
        if self.config.spans == "flat" and len(tagged) == len(records):
            return Conll([tagged_words(record.words, predicted[record.id]) for record in tagged])
        document = []
        for number, index, query in self._queries(records):
            record, text = records[number], self.config.query_text(query)
            document.append(mrc_json(record, index, query.type, text, predicted[sentence_of(record)]))
        return Json(document)

    def answer_ids(self, records: Sequence[Any], file: Path) -> list[str]:
        """The queries of a JSON file, or the sentences of another one."""
        if file.suffix.lower() != ".json":
            return super().answer_ids(records, file)
        return [query_id(records[number], index) for number, index, _ in self._queries(records)]

    def score_answers(
        self, records: Sequence[SpanRecord], answers: Answers, dev: tuple[Sequence[SpanRecord], Answers] | None
    ) -> tuple[Scores, str]:
        """By `start_position` and `end_position` of each query, or by the tags of sentences."""
        gold, found = gold_spans(records), dict[str, set[Span]]()
        names = LabelNames(["O", *(f"{part}-{name}" for name in self.classes for part in "BI")])
        for record in records:
            spans = found.setdefault(sentence_of(record), set())
            if record.id in answers.by_id and not isinstance(record, QueryRecord):
                spans |= spans_of([tag or "O" for tag in answers.tags(record.id, record.words, names)])
                continue
            for number, query in enumerate(queries_of(record, self.classes)):
                held = query_answer(query_id(record, number), len(record.words), answers)
                spans |= {(query.type, first, end) for first, end in held}
        counts = {sentence: span_counts(spans, found[sentence]) for sentence, spans in gold.items()}
        return span_answers(counts, answers, dev), "without spans"

    def _chosen(self, spans: Iterable[FoundSpan]) -> set[Span]:
        """The predicted spans of a sentence."""
        return distinct(spans, are_flat=self.config.spans == "flat")

    def _counts(
        self, gold: Mapping[str, set[Span]], found: Mapping[str, Sequence[FoundSpan]], numbers: Numbers = UNTUNED
    ) -> list[dict[str, Counts]]:
        """The counts of each sentence, with these numbers of the decision, or untuned."""
        return [
            span_counts(spans, self._chosen(predicted_spans(found[sentence], numbers)))
            for sentence, spans in gold.items()
        ]


def _num_words(records: Sequence[SpanRecord]) -> int:
    """The number of words of all sentences, each counted once, however many queries it has."""
    return sum({sentence_of(record): len(record.words) for record in records}.values())


def _of_lasts(values_BW: Tensor, num_lengths: int) -> Tensor:
    """The values of each span's last word, `values_BWS`: a view that copies nothing."""
    return nn.functional.pad(values_BW, (0, num_lengths - 1)).unfold(1, num_lengths, 1)
