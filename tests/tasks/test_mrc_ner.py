"""NER as reading comprehension: rows, terms, decoding flat and nested, scores, memory. Generated names are learnt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from dice_ray.config.load import Layer, resolve
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.formats.questions import MrcNerReaderConfig as MrcNerReader
from dice_ray.data.reading import gather
from dice_ray.data.records import NestedRecord, PairRecord, QueryRecord, TaggedRecord, WordSpan
from dice_ray.errors import ConfigError, DataError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.run import single
from dice_ray.tasks.base import Batch, Scores
from dice_ray.tasks.mrc_ner import MrcNerConfig
from dice_ray.tasks.queries import QUERIES
from tests.contracts.tasks import Built

NAMES = (
    TaggedRecord("1", ("anna", "berg", "met", "anna"), ("B-PER", "I-PER", "O", "B-PER")),
    TaggedRecord("2", ("from", "oslo", "again"), ("O", "B-LOC", "O")),
)
LONG = TaggedRecord(
    "3", tuple(f"word{number}" for number in range(60)), ("B-PER", "I-PER", "O", "B-LOC", "O", "O") * 10
)
NESTED = [
    {
        "context": "the bank of oslo called anna",
        "query": query,
        "entity_label": type_,
        "qas_id": f"0.{number}",
        "start_position": [first for first, _ in spans],
        "end_position": [last for _, last in spans],
    }
    for number, (type_, query, spans) in enumerate(
        [("ORG", "organizations", [(1, 3), (0, 3)]), ("LOC", "places", [(3, 3)]), ("PER", "people", [])]
    )
]


def built(records: Sequence[Any] = NAMES, **settings: Any) -> Built:
    return Built(MrcNerConfig.model_validate(settings), records)


def scored(task: Built, *said: dict[tuple[int, int], float]) -> Scores:
    return task.task.score(task.records, task.rows, list(map(_decoded, said)), None)


def _decoded(spans: dict[tuple[int, int], float]) -> list[float]:
    """What is decoded of a row with these predicted spans: the first word, how many follow; the probability."""
    return [number for place, probability in spans.items() for number in (*place, 1, 1, 0, probability)]


def predicted(of_row: list[float]) -> dict[tuple[int, int], float]:
    """The spans of a decoded row that are predicted without tuning."""
    spans = [of_row[place : place + 6] for place in range(0, len(of_row), 6)]
    return {
        (int(word), int(further)): whole
        for word, further, start, end, nearer, whole in spans
        if start > 0.5 and nearer <= 0.5 < end
    }


def text_of(task: Built, row: int) -> str:
    """What the encoder reads."""
    return str(task.tokenizer.decode(task.rows[row]["input_ids"]))


@pytest.fixture
def nested(tmp_path: Path) -> tuple[QueryRecord, ...]:
    """A file in which organizations nest in each other, and a place in both."""
    file = tmp_path / "nested.json"
    file.write_text(json.dumps(NESTED))
    records, _ = gather(file, lambda: MrcNerReader().read(file))
    assert all(isinstance(record, QueryRecord) for record in records)
    return tuple(record for record in records if isinstance(record, QueryRecord))


def test_each_type_has_its_query_before_the_sentence() -> None:
    task = built(queries={"PER": "which people", "LOC": "which places"})
    assert [text_of(task, row) for row in range(2)] == [
        "[CLS] which places [SEP] anna berg met anna [SEP]",
        "[CLS] which people [SEP] anna berg met anna [SEP]",
    ]
    assert [(row["record"], row["question"]) for row in task.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    people = task.rows[1]
    assert (people["words"], people["places"]) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert (people["starts"], people["ends"], people["gold"], people["answerable"]) == ([0, 3], [1, 3], [0, 1, 3, 0], 1)
    assert (task.rows[0]["starts"], task.rows[0]["gold"], task.rows[0]["answerable"]) == ([], [], 0)


def test_items_are_words_spans_and_rows_never_the_query() -> None:
    facts = {facts.name: facts for facts in built(max_span=2).facts}
    assert {name: (term.counts, term.background) for name, term in facts.items()} == {
        "start": ((11, 3), 0),
        "end": ((11, 3), 0),
        "match": ((5, 3), 0),  # beside the people 0-1 and 3: 0, 1, 2-3; beside the place 1: 0-1, 1-2
        "answerable": ((2, 2), 0),
    }


def test_a_row_counts_spans_of_its_own_type_only() -> None:
    scores = scored(built(), {(1, 0): 0.8}, {(0, 1): 0.9}, {(1, 1): 0.9}, {(1, 0): 0.7})
    found = [scores.metrics[name] for name in ("precision", "recall", "f1_PER", "f1_LOC")]
    assert found == pytest.approx([1 / 2, 1 / 3, 2 / 3, 0])
    assert [(item.id, item.tp, item.fp, item.fn) for item in scores.items] == [("1", 1, 0, 1), ("2", 0, 1, 1)]
    assert not scores.collapsed
    assert scored(built(), {}, {}, {}, {}).collapsed


def test_a_nested_file_comes_back_whole_where_spans_may_nest(nested: tuple[QueryRecord, ...]) -> None:
    task = built(nested, spans="nested")
    assert [text_of(task, row) for row in range(3)] == [
        f"[CLS] {query} [SEP] the bank of oslo called anna [SEP]" for query in ("organizations", "places", "people")
    ]
    scores = task.gold_scores()
    assert [(item.tp, item.fp, item.fn) for item in scores.items] == [(3, 0, 0)]
    assert scores.items[0].id.startswith("0.")
    partly = scored(task, {(0, 3): 0.6, (1, 2): 0.9}, {(3, 0): 0.8}, {(3, 0): 0.7})
    assert [(item.tp, item.fp, item.fn) for item in partly.items] == [(3, 1, 0)]
    assert partly.metrics["f1"] == pytest.approx(6 / 7)


def test_flat_spans_of_a_nested_file_are_the_most_probable_ones_of_all_types(nested: tuple[QueryRecord, ...]) -> None:
    task = built(nested, spans="flat")
    said = [{(0, 3): 0.6, (1, 2): 0.9}, {(3, 0): 0.8}, {(5, 0): 0.7}]
    scores = scored(task, *said)
    assert [(item.tp, item.fp, item.fn) for item in scores.items] == [(1, 1, 2)]
    said[1] = {(3, 0): 0.95}
    scores = scored(task, *said)
    assert (scores.metrics["f1_LOC"], scores.metrics["f1_ORG"]) == (1, 0)


def test_sentences_whose_ids_begin_alike_are_scored_one_by_one(tmp_path: Path) -> None:
    """As in `doc.0`, `doc.1`: what stands after the last dot need not be the number of a query."""
    texts = ["anna sat", "bob ran", "carl ate", "dora met"]
    query = {"query": "people", "entity_label": "PER", "start_position": [0], "end_position": [0]}
    (tmp_path / "doc.json").write_text(
        json.dumps([query | {"context": text, "qas_id": f"doc.{number}"} for number, text in enumerate(texts)])
    )
    records, _ = gather(tmp_path / "doc.json", lambda: MrcNerReader().read(tmp_path / "doc.json"))
    scores = scored(built(records), {(0, 0): 0.9}, {}, {}, {})
    assert len(scores.items) == 4
    assert (scores.metrics["precision"], scores.metrics["recall"]) == (1, 0.25)


def contrary(task: Built, batch: Batch, *places: tuple[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Logits that predict the targets, but the contrary at these places of terms."""
    logits = task.gold(batch)
    for name, place in places:
        logits[name][place] *= -1
    return logits


def test_a_span_needs_every_term_to_be_positive() -> None:
    task = built()
    (batch,) = task.batches()
    gold = task.task.decode(task.gold(batch), batch)
    assert [list(predicted(found)) for found in gold] == [[], [(0, 1), (3, 0)], [(1, 0)], []]
    places = [("start", (1, 0, 0)), ("end", (1, 1, 0)), ("match", (1, 0, 1)), ("answerable", (1, 0, 0))]
    for name, place in places:
        found = predicted(task.task.decode(contrary(task, batch, (name, place)), batch)[1])
        assert (0, 1) not in found, name
        assert ((3, 0) in found) == (name != "answerable")


def test_the_probability_of_a_span_is_that_of_start_end_and_match_together() -> None:
    task = built()
    (batch,) = task.batches()
    logits = task.gold(batch)
    logits["start"][1, 0], logits["end"][1, 1], logits["match"][1, 0, 1] = 1.0, 2.0, 3.0
    expected = float(torch.tensor([1.0, 2.0, 3.0]).double().sigmoid().prod())
    assert predicted(task.task.decode(logits, batch)[1])[0, 1] == pytest.approx(expected)


def test_without_the_match_term_a_start_takes_the_nearest_end() -> None:
    task = built(weights={"match": 0})
    assert [facts.name for facts in task.facts] == ["start", "end", "answerable"]
    (batch,) = task.batches()
    assert list(predicted(task.task.decode(task.gold(batch), batch)[1])) == [(0, 1), (3, 0)]
    logits = contrary(task, batch, ("start", (1, 2, 0)), ("end", (1, 1, 0)))
    assert list(predicted(task.task.decode(logits, batch)[1])) == [(0, 3), (2, 1), (3, 0)]
    with pytest.raises(ValidationError, match=r"nested spans need the match term .* got weights\.match 0"):
        MrcNerConfig.model_validate({"spans": "nested", "weights": {"match": 0}})


def untuned(logits: dict[str, Tensor], batch: Batch) -> list[dict[tuple[int, int], float]]:
    """The candidates for which all terms are positive, one by one."""
    p = {name: each.double().sigmoid() for name, each in logits.items()}
    found: list[dict[tuple[int, int], float]] = [{} for _ in batch.rows]
    for row, word, further in batch.targets["candidate"].nonzero().tolist():
        start, ends = p["start"][row, word, 0], p["end"][row, word : word + further + 1, 0]
        match = p["match"][row, word, further] if "match" in p else torch.tensor(1.0).double()
        answerable = p["answerable"][row, 0, 0] if "answerable" in p else 1.0
        is_nearest = "match" in p or not bool((ends[:-1] > 0.5).any())
        if is_nearest and all(each > 0.5 for each in (start, ends[-1], match, answerable)):
            found[row][word, further] = float(start * ends[-1] * match)
    return found


FORMS: tuple[dict[str, Any], ...] = ({}, {"match": 0}, {"answerable": 0}, {"match": 0, "answerable": 0})


@pytest.mark.parametrize("weights", FORMS)
@pytest.mark.parametrize("level", [-1.0, 0.0, 1.0])
def test_untuned_predictions_are_those_of_positive_terms(weights: dict[str, Any], level: float) -> None:
    """Finds a doubtful span that displaces a predicted one, and an end that is not the nearest."""
    _compare(built(weights=weights, records=(NAMES[0], LONG), max_span=64, max_length=40), level)


@pytest.mark.real_data
def test_untuned_predictions_of_real_sentences_are_those_of_positive_terms(data_folder: Path) -> None:
    file = data_folder / "wnut17" / "emerging.dev.conll"
    records, _ = gather(file, lambda: ConllConfig().read(file))
    for weights in FORMS[:2]:
        _compare(built(records[:60], weights=weights, max_length=40), 0.5)


def _compare(task: Built, level: float) -> None:
    torch.manual_seed(0)
    num_doubtful = 0
    for batch in task.batches():
        logits = {name: torch.randn(each.shape) * 2 + level for name, each in task.logits(batch).items()}
        rows = task.task.decode(logits, batch)
        assert [predicted(of_row) for of_row in rows] == untuned(logits, batch)
        doubtful = [len(of_row) // 6 - len(predicted(of_row)) for of_row in rows]
        assert max(doubtful) <= 16
        num_doubtful += sum(doubtful)
    assert num_doubtful > 0


@pytest.mark.parametrize("form", [{}, {"spans": "nested"}, {"weights": {"match": 0}}])
@pytest.mark.parametrize("seed", range(4))
def test_no_thresholds_of_starts_and_ends_beat_those_that_are_fitted(form: dict[str, Any], seed: int) -> None:
    """Finds a sentence whose counts are those of other thresholds, and thresholds that are applied otherwise."""
    task = built((*NAMES, LONG), **form)
    torch.manual_seed(seed)
    rows: list[list[float]] = []
    for batch in task.batches():
        gold = task.gold(batch)
        rows += task.task.decode({name: torch.randn(each.shape) + each / 50 for name, each in gold.items()}, batch)

    def scores(start: float, end: float) -> Scores:
        numbers = {"start": start, "end": end}
        decision = FittedDecision("f1", numbers, {"start": 0.5, "end": 0.5}, True, 9, 0.5)
        return task.task.score(task.records, task.rows, rows, decision)

    grid = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
    values = {(start, end): scores(start, end).metrics["f1_tuned"] for start in grid for end in grid}
    decision = task.task.decide(task.records, task.rows, rows)
    assert decision is not None
    fitted = decision.tuned["start"], decision.tuned["end"]
    assert values[fitted] == max(values.values())
    assert values[0.5, 0.5] == scores(0.5, 0.5).metrics["f1"]
    assert fitted == (0.5, 0.5) or values[fitted] > values[0.5, 0.5]
    assert len(set(values.values())) > 1
    used = replace(decision, tuned={"start": 0.03, "end": 0.2})
    texts = [
        task.task.predict(task.records, task.rows, rows, each).text()
        for each in (None, replace(used, is_used=False), replace(used, is_used=True))
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_lower_threshold_of_ends_moves_the_nearest_end() -> None:
    """Without the match term: a start takes the first end above the threshold, whatever is above another one."""
    task = built(weights={"match": 0})
    (batch,) = task.batches()
    logits = contrary(task, batch, ("end", (1, 1, 0)))
    logits["end"][1, 1, 0], logits["end"][1, 3, 0] = -1.0, 2.0
    rows = task.task.decode(logits, batch)
    found = {
        end: task.task.predict(
            task.records,
            task.rows,
            rows,
            FittedDecision("f1", {"start": 0.5, "end": end}, {}, True, 9, 0.5),
        ).plain()
        for end in (0.2, 0.5)
    }
    assert (
        found[0.2]
        == task.task.predict(task.records, task.rows, task.task.decode(task.gold(batch), batch), None).plain()
    )
    assert found[0.2] != found[0.5]


def test_a_weight_is_the_share_of_its_term_and_0_leaves_it_out() -> None:
    task = built(weights={"start": 0.5, "match": 0.1, "answerable": 0})
    (batch,) = task.batches()
    terms = task.task.terms(task.logits(batch), batch)
    assert {name: term.weight for name, term in terms.items()} == {"start": 0.5, "end": 1, "match": 0.1}
    assert set(task.heads) == set(terms)


def test_a_span_in_no_window_is_missed_and_one_in_two_is_found_once() -> None:
    tags = ("B-X", *["I-X"] * 8, "O", "B-X", "I-X")
    task = built((TaggedRecord("1", tuple("abcdefghijkl"), tags),), max_length=12, stride=3)
    assert len(task.rows) == 2
    scores = task.gold_scores()
    assert [(item.tp, item.fp, item.fn) for item in scores.items] == [(1, 0, 1)]
    assert scores.metrics["spans_out_of_reach"] == 1
    found = [item for batch in task.batches() for item in task.task.decode(task.gold(batch), batch)]
    assert sum(len(predicted(of_row)) for of_row in found) == 1


def test_two_queries_for_one_type_count_a_span_once() -> None:
    """Spans out of reach were -1, and the constant predictor was better than the one that calls everything a span."""
    records = tuple(
        QueryRecord(f"0.{number}", ("anna", "met", "berg"), query, type_, ((first, first + 1),), "0")
        for number, (type_, query, first) in enumerate(
            [("PER", "people", 0), ("PER", "who is named?", 0), ("LOC", "places", 2)]
        )
    )
    task = built(records, spans="nested", max_span=1)
    every = [{(word, 0): 0.9 for word in range(3)} for _ in task.rows]
    scores = scored(task, *every)
    assert scores.metrics["spans_out_of_reach"] == 0
    assert scores.metrics["constant_f1"] == scores.metrics["f1"] == pytest.approx(2 / (2 + 4 / 2))
    assert scores.collapsed


def test_a_span_that_is_too_long_or_of_an_unknown_type_is_missed() -> None:
    assert built(max_span=1).gold_scores().metrics["spans_out_of_reach"] == 1
    task = built()
    task.records = (*NAMES[:1], TaggedRecord("3", ("acme", "called"), ("B-ORG", "O")))
    task.rows = task.task.encode(task.records, task.tokenizer)
    assert len(task.rows) == 4
    assert [item.fn for item in task.gold_scores().items] == [0, 1]


def test_a_dropped_word_is_no_item() -> None:
    task = built((TaggedRecord("1", ("anna", "\u200b", "berg"), ("B-PER", "I-PER", "I-PER")),))
    assert task.rows[0]["words"] == [0, 2]
    assert task.gold_scores().metrics["f1"] == 1


@pytest.mark.parametrize("spans", ["flat", "nested"])
def test_the_constant_predictor_calls_everything_a_span(spans: str) -> None:
    records = (TaggedRecord("1", ("a", "b", "c"), ("B-X", "B-X", "I-X")), TaggedRecord("2", ("d",), ("B-Y",)))
    task = built(records, spans=spans)
    every = [
        {(word, further): 0.9 for word in range(len(row["words"])) for further in range(row["upto"][word])}
        for row in task.rows
    ]
    if spans == "flat":  # of equal ones the type with more single words
        every = [said if row["question"] == 0 else {} for row, said in zip(task.rows, every, strict=True)]
    scores = scored(task, *every)
    assert scores.metrics["constant_f1"] == pytest.approx(scores.metrics["f1"])
    assert scores.collapsed == (spans == "nested")


def test_words_are_counted_once_and_spans_by_type(nested: tuple[QueryRecord, ...]) -> None:
    config = MrcNerConfig()
    assert config.negatives_and_positives(NAMES) == (3, 4)
    assert config.label_counts(NAMES) == {"PER": 2, "LOC": 1}
    assert config.negatives_and_positives(nested) == (2, 4)
    assert config.label_counts(nested) == {"ORG": 2, "LOC": 1}


def test_queries_are_given_shipped_the_file_s_own_or_the_names_of_types(nested: tuple[QueryRecord, ...]) -> None:
    assert text_of(built(), 1).startswith("[CLS] per [SEP]")
    given = {"ORG": "firms", "LOC": "sites", "PER": "folk"}
    assert text_of(built(nested, queries=given), 1).startswith("[CLS] sites [SEP]")
    assert text_of(built(queries="conll03"), 1).startswith("[CLS] which people are named")
    assert all(query.strip() for queries in QUERIES.values() for query in queries.values())


def test_a_type_without_a_query_is_named() -> None:
    with pytest.raises(DataError, match=r"given by type\) must hold one for each type .* but lack 'LOC'. Known: PER"):
        built(queries={"PER": "which people"})
    with pytest.raises(DataError, match=r"queries, wnut17\) must hold one .* but lack 'LOC'. Known: person, "):
        built(queries="wnut17")
    with pytest.raises(ValidationError, match=r"or the name of shipped ones: conll03, .*; did you mean 'conll03'\?"):
        MrcNerConfig.model_validate({"queries": "conl03"})
    with pytest.raises(ValidationError, match="at least 1 character"):
        MrcNerConfig.model_validate({"queries": {"PER": " "}})


def test_nested_spans_of_a_sentence_are_those_of_its_queries(nested: tuple[QueryRecord, ...]) -> None:
    """A sentence with all of its spans has the rows, the targets and the score of a file with a query for each type."""
    spans = tuple(WordSpan(record.type, first, end) for record in nested for first, end in record.spans)
    sentence = (NestedRecord("0", nested[0].words, spans),)
    queries = {record.type: record.query for record in nested}
    ours, theirs = built(sentence, spans="nested", queries={**queries, "PER": "people"}), built(nested, spans="nested")
    keys = ("words", "starts", "ends", "gold", "answerable")
    by_type = {theirs.records[row["record"]].type: row for row in theirs.rows}
    types = [type_ for type_ in ours.task.classes for row in ours.rows if ours.task.classes[row["question"]] == type_]
    assert types == ["LOC", "ORG"], "there is no query for a type without spans in the training split"
    for type_, row in zip(types, ours.rows, strict=True):
        assert [row[key] for key in keys] == [by_type[type_][key] for key in keys]
    gold = [dict.fromkeys(zip(row["gold"][::2], row["gold"][1::2], strict=True), 0.9) for row in ours.rows]
    assert scored(ours, *gold).metrics["f1"] == 1
    predicted = ours.task.predict(ours.records, ours.rows, list(map(_decoded, gold)), None)
    assert [item["end_position"] for item in json.loads(predicted.text())] == [[3], [3, 3]]


def test_records_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(DataError, match="sentence 1 has 'NOUN'; use the task tagging for plain tags"):
        built((TaggedRecord("1", ("a",), ("NOUN",)),))
    with pytest.raises(DataError, match="at least one span, or one query, in the training split"):
        built((TaggedRecord("1", ("a",), ("O",)),))
    synthetic = {"task": "mrc_ner", "data": {"source": {"synthetic": {"kind": "pairs"}}}}
    with pytest.raises(ConfigError, match=f"TaggedRecord or NestedRecord or QueryRecord, got {PairRecord.__name__}"):
        resolve([Layer("preset", synthetic)])
    with pytest.raises(DataError, match=r"after the longest question, of 13 tokens: .* question 'a very long query a"):
        built(queries={"PER": "a very long query " * 3 + "indeed", "LOC": "x"}, max_length=16)


MEASURED = """
import torch
from pathlib import Path
from dice_ray.data.records import TaggedRecord
from dice_ray.losses.dice import DiceConfig
from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, load_encoder, load_tokenizer
from dice_ray.tasks.mrc_ner import MrcNerConfig

torch.set_num_threads(1)
types = [f"T{number}" for number in range(30)]
words = tuple(f"word{number % 50}" for number in range(500))
tags = tuple(f"B-{types[number % 30]}" for number in range(500))
config = MrcNerConfig(max_length=384, max_span=64, spans="nested")
records = [TaggedRecord("1", words, tags)]
task = config.build(config.classes(records))
tokenizer = load_tokenizer(ModelConfig(), task.texts(records))
rows = task.encode(records, tokenizer)
facts = task.facts(rows)
encoder = load_encoder(ModelConfig(), tokenizer)
model = EncoderWithHeads(encoder, task.heads(encoder.config.hidden_size, ModelConfig()))
losses = {term.name: DiceConfig().build(term) for term in facts}
batch = task.collate(rows, range(8), tokenizer)
assert batch.inputs["input_ids"].shape == (8, 384), batch.inputs["input_ids"].shape
logits = model(batch.inputs, batch.targets)
terms = task.terms(logits, batch)
sum(losses[name](term.logits, term.targets, term.mask) for name, term in terms.items()).backward()
task.decode(logits, batch)
# Of this process alone: what getrusage tells begins with the memory of the process that started it.
(peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(len(task.classes), int(peak.split()[1]) / 2**20)
"""


def test_windows_of_384_tokens_with_30_types_fit_in_2_gib() -> None:
    """A step of eight rows, forward and backward, with spans of up to 64 words: a vector a span would take more."""
    done = subprocess.run([sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True)
    num_types, gib = done.stdout.split()
    assert int(num_types) == 30
    assert float(gib) < 1


def test_a_tiny_encoder_learns_the_generated_queries(tmp_path: Path) -> None:
    """By 50 points over the constant predictor: a perfect model reaches 73, or 76 if it predicts doubtful spans."""
    preset = {
        "task": {"mrc_ner": {"spans": "nested"}},
        "data": {"source": {"synthetic": {"kind": "queries", "size": 2400}}},
        "loss": "dice",
        "training": {"epochs": 2, "batch_size": 32, "lr": 2e-3},
    }
    config = resolve([Layer("preset", preset)])
    best = max(evaluation.metrics["dev/f1"] for evaluation in single.evaluations(config, tmp_path))
    test = single.score(config, tmp_path, "test")
    assert best > 0.6
    assert test["test/f1"] > test["test/constant_f1"] + 0.5
    assert test["test/f1_LOC"] > 0.9


def test_gold_predictions_of_queries_and_of_sentences_are_read_back_as_they_were(
    nested: tuple[QueryRecord, ...], tmp_path: Path
) -> None:
    for task, reader, file in (
        (built(nested, spans="nested"), MrcNerReader(), "found.json"),
        (built(), ConllConfig(), "found.txt"),
    ):
        decoded = [item for batch in task.batches() for item in task.task.decode(task.gold(batch), batch)]
        (tmp_path / file).write_text(task.task.predict(task.records, task.rows, decoded, None).text())
        found, _ = gather(tmp_path / file, partial(reader.read, tmp_path / file))
        what = [(set(each.spans), each.type) if isinstance(each, QueryRecord) else each.tags for each in found]  # type: ignore[union-attr]
        wanted = [(set(each.spans), each.type) if isinstance(each, QueryRecord) else each.tags for each in task.records]
        assert what == wanted
        assert [record.content for record in found] == [record.content for record in task.records]
