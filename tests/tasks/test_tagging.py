"""Tagging: units, classes, spans as conlleval counts them, dropped words. The generated names are learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dice_ray.config.load import Layer, resolve
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.reading import gather
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import DataError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.metrics.spans import span_counts
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.run import single
from dice_ray.tasks.base import NO_TARGET, Scores
from dice_ray.tasks.tagging import TaggingConfig, _Tagging
from tests.contracts.tasks import Built

NAMES = (
    TaggedRecord("1", ("anna", "berg", "called"), ("B-PER", "I-PER", "O")),
    TaggedRecord("2", ("from", "oslo", "again"), ("O", "B-LOC", "O")),
)
CHINESE = (TaggedRecord("1", ("看似", "簡單"), ("VERB", "ADJ")), TaggedRecord("2", ("是", "二"), ("VERB", "NUM")))


def built(records: tuple[TaggedRecord, ...] = NAMES, **settings: Any) -> _Tagging:
    config = TaggingConfig.model_validate(settings)
    return config.build(config.classes(records))


def scored(task: _Tagging, records: tuple[TaggedRecord, ...], *predicted: list[str]) -> Scores:
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    return task.score(records, rows, [decoded(task, tags) for tags in predicted], None)


def decoded(task: _Tagging, tags: list[str]) -> list[float]:
    """What is decoded of a row with these tags: the background has a margin of 1 where it is predicted, else of -1."""
    classes = [float(task.classes.index(tag)) for tag in tags]
    return [*classes, *(1.0 if tag == task.config.background else -1.0 for tag in tags)]


def test_the_background_comes_first() -> None:
    assert built().classes == ("O", "B-LOC", "B-PER", "I-PER")
    assert built(CHINESE, tags="plain").classes == ("ADJ", "NUM", "VERB")
    rows = built().encode(NAMES, load_tokenizer(ModelConfig(), []))
    (facts,) = built().facts(rows)
    assert (facts.counts, facts.background) == ((3, 1, 1, 1), 0)


def test_two_tags_have_a_background_whether_it_is_named_or_not() -> None:
    task = built((TaggedRecord("1", ("a", "b"), ("X", "Y")),), tags="plain")
    assert task.facts([{"tags": [0, 1, 1]}])[0].background == 0


def test_spans_of_one_type_need_no_name() -> None:
    assert built((TaggedRecord("1", ("a", "b", "c"), ("B", "I", "O")),)).classes == ("O", "B", "I")


def test_words_of_the_background_are_no_spans() -> None:
    for settings in (
        {},
        {"tags": "plain", "background": "O"},
        {"tags": "plain", "background": "O", "unit": "character"},
    ):
        config = TaggingConfig.model_validate(settings)
        assert config.spans(["O", "B-LOC", None]) in ({("LOC", 1, 2)}, {("B-LOC", 1, 2)})


def test_by_character_plain_tags_become_segmentation_and_tagging_at_once() -> None:
    config = TaggingConfig.model_validate({"tags": "plain", "unit": "character"})
    characters, tags = config.tagged(CHINESE[0])
    assert list(zip(characters, tags, strict=True)) == [
        ("看", "B-VERB"),
        ("似", "I-VERB"),
        ("簡", "B-ADJ"),
        ("單", "I-ADJ"),
    ]
    assert config.spans(tags) == {("VERB", 0, 2), ("ADJ", 2, 4)}


def test_by_character_spans_go_on_within_a_word() -> None:
    config = TaggingConfig.model_validate({"unit": "character"})
    characters, tags = config.tagged(TaggedRecord("1", ("ab", "c", "de"), ("B-X", "I-X", "O")))
    assert "".join(characters) == "abcde"
    assert list(tags) == ["B-X", "I-X", "I-X", "O", "O"]


def test_spans_are_scored_and_items_counted() -> None:
    scores = scored(built(), NAMES, ["B-PER", "O", "O"], ["O", "B-LOC", "O"])
    assert scores.metrics["f1"] == pytest.approx(0.5)
    assert (scores.metrics["f1_LOC"], scores.metrics["f1_PER"]) == (1, 0)
    assert scores.metrics["accuracy"] == pytest.approx(5 / 6)
    # LOC for each word: one of six is right, and one of two found.
    assert scores.metrics["constant_f1"] == pytest.approx(0.25)
    assert scores.metrics["constant_accuracy"] == pytest.approx(0.5)
    assert [(item.tp, item.fp, item.fn) for item in scores.items] == [(0, 1, 1), (1, 0, 0)]


def test_an_inside_tag_that_follows_no_span_of_its_type_begins_one() -> None:
    assert scored(built(), NAMES, ["I-PER", "I-PER", "O"], ["O", "B-LOC", "O"]).metrics["f1"] == 1


def test_a_plain_tag_is_a_span_of_its_own() -> None:
    scores = scored(built(CHINESE, tags="plain"), CHINESE, ["VERB", "VERB"], ["VERB", "NUM"])
    assert scores.metrics["f1"] == scores.metrics["accuracy"] == 0.75
    assert scores.metrics["constant_f1"] == 0.5


def test_the_constant_predictor_does_not_predict_the_background() -> None:
    """Its F1 was 0 wherever the background was the most frequent tag, so every arm was above it."""
    records = (TaggedRecord("1", tuple("abcdefghij"), ("O",) * 6 + ("TOXIC",) * 4),)
    task = built(records, tags="plain", background="O")
    assert scored(task, records, ["O"] * 10).metrics["constant_f1"] == pytest.approx(2 * 4 / (10 + 4))


def test_one_predicted_class_is_collapsed() -> None:
    assert scored(built(), NAMES, ["O"] * 3, ["O"] * 3).collapsed
    assert not scored(built(), NAMES, ["O"] * 3, ["O", "B-LOC", "O"]).collapsed


def test_a_dropped_word_is_missed_and_counted() -> None:
    records = (TaggedRecord("1", ("a", "\u200b", "b"), ("O", "B-PER", "O")), TaggedRecord("2", ("\ufffd",), ("O",)))
    scores = scored(built(records), records, ["O", "O"], [])
    assert scores.metrics["words_dropped"] == 2
    assert scores.metrics["accuracy"] == 0.75
    assert (scores.items[0].fn, scores.items[1].fn) == (1, 0)


def test_words_are_predicted_in_columns_dropped_ones_too() -> None:
    records = (TaggedRecord("1", ("anna", "\u200b", "called"), ()),)
    for background, lost in (("O", "O"), (None, "_")):
        task = built(background=background)
        rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
        text = task.predict(records, rows, [decoded(task, ["B-PER", "O"])], None).text()
        assert text == f"anna\tB-PER\n\u200b\t{lost}\ncalled\tO\n\n"


def test_by_character_a_line_of_predictions_is_a_character() -> None:
    task = built(CHINESE, tags="plain", unit="character")
    records = (TaggedRecord("1", ("看似", "二"), ()),)
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    tags = decoded(task, ["B-VERB", "I-VERB", "B-NUM"])
    assert task.predict(records, rows, [tags], None).text() == "看\tB-VERB\n似\tI-VERB\n二\tB-NUM\n\n"


def random_rows(built: Built) -> tuple[list[list[str]], list[Any]]:
    """The tag of the largest logit of each word of each row, and what is decoded; random integers have many ties."""
    torch.manual_seed(0)
    largest, rows = [], []
    for batch in built.batches():
        logits_BLC = (torch.randn(*batch.inputs["input_ids"].shape, len(built.task.classes)) * 2).round()
        rows += built.task.decode({"tag": logits_BLC}, batch)
        best_BL = logits_BLC.argmax(-1)
        for best_L, items_L in zip(best_BL, batch.targets["item"], strict=True):
            largest.append([built.task.classes[best] for best in best_L[items_L]])
    return largest, rows


def predicted(built: Built, rows: Sequence[Any], decision: FittedDecision | None) -> list[list[str]]:
    """The predicted tags of each record."""
    sentences = built.task.predict(built.records, built.rows, rows, decision).plain()
    return [[tag for _, tag in sentence] for sentence in sentences]


def shifted(bias: float, *, is_used: bool = True) -> FittedDecision:
    return FittedDecision("f1", {"background": bias}, {"background": 0.0}, is_used, 9, 0.5)


@pytest.mark.parametrize("background", ["O", None])
def test_untuned_predictions_are_the_largest_logits(background: str | None) -> None:
    """Finds ties that are not the first class's, and a bias that is applied where it is not used."""
    records = tuple(replace(each, id=str(number)) for number, each in enumerate(NAMES * 100))
    tags = Built(TaggingConfig(tags="plain", background=background), records)
    largest, rows = random_rows(tags)
    assert predicted(tags, rows, None) == largest
    if background:
        assert predicted(tags, rows, shifted(3.0, is_used=False)) == largest
        assert predicted(tags, rows, shifted(3.0)) != largest
        assert predicted(tags, rows, shifted(99.0)) == [["O"] * 3] * 200
        assert "O" not in {tag for sentence in predicted(tags, rows, shifted(-99.0)) for tag in sentence}
    else:
        assert tags.task.decide(records, tags.rows, rows) is None
        assert "f1_tuned" not in tags.task.score(records, tags.rows, rows, None).metrics


@pytest.mark.real_data
def test_untuned_predictions_of_real_sentences_are_the_largest_logits(data_folder: Path) -> None:
    file = data_folder / "wnut17" / "emerging.dev.conll"
    records, _ = gather(file, lambda: ConllConfig().read(file))
    tags = Built(TaggingConfig(max_length=500), records)
    largest, rows = random_rows(tags)
    assert len(tags.rows) == len(records) == 1009
    found = zip(predicted(tags, rows, None), tags.rows, strict=True)
    assert [[sentence[word] for word in row["words"]] for sentence, row in found] == largest


@pytest.mark.parametrize("seed", range(12))
def test_no_bias_of_the_background_beats_the_one_that_is_fitted(seed: int) -> None:
    """Finds a record whose changed tags are not counted again, and a bias that is applied otherwise than counted."""
    draw = np.random.default_rng(seed)
    kinds = (("B-X", "I-X", "O", "O"), ("O", "O", "B-Y", "O"), ("O", "O", "O"))
    records = tuple(TaggedRecord(str(k), ("a", "b", "c", "d")[: len(tags)], tags) for k, tags in enumerate(kinds))
    config = TaggingConfig()
    tags = Built(config, records)
    rows = [[*draw.integers(1, 4, len(each.words)).tolist(), *draw.normal(0, 2, len(each.words))] for each in records]
    margins = sorted(margin for row in rows for margin in row[len(row) // 2 :])
    places = [-(low + high) / 2 for low, high in pairwise(margins)]

    def f1(bias: float) -> float:
        spans = [config.spans(found) for found in predicted(tags, rows, shifted(bias))]
        gold = [config.spans(each.tags) for each in records]
        counts = [count for pair in zip(gold, spans, strict=True) for count in span_counts(*pair).values()]
        return sum(counts[1:], counts[0]).f1

    decision = tags.task.decide(records, tags.rows, rows)
    assert decision is not None
    scores = tags.task.score(records, tags.rows, rows, decision)
    bias, best = decision.tuned["background"], max(map(f1, [0.0, *places]))
    assert scores.metrics["f1_tuned"] == pytest.approx(f1(bias)) == pytest.approx(best)
    assert scores.metrics["background"] == bias
    assert scores.metrics["f1"] == pytest.approx(f1(0.0))
    assert bias == 0 or f1(0.0) < best  # of equal ones the untuned one
    assert [item.tp for item in scores.tuned_items] == [
        len(config.spans(found) & config.spans(each.tags))
        for found, each in zip(predicted(tags, rows, shifted(bias)), records, strict=True)
    ]
    assert (decision.support, decision.is_used) == (2, False)


def test_a_bias_of_the_background_is_used_where_dev_shows_that_it_is_better() -> None:
    """Of names that are ranked well and all missed at a bias of 0."""
    records = tuple(TaggedRecord(str(k), ("a", "b"), ("B-X", "O")) for k in range(40))
    tags = Built(TaggingConfig(), records)
    rows: list[list[float]] = [[1, 1, 1 + k / 100, 3 + k / 100] for k in range(40)]
    decision = tags.task.decide(records, tags.rows, rows)
    assert decision is not None
    assert decision.is_used
    assert -3 < decision.tuned["background"] < -1.38
    assert predicted(tags, rows, decision) == [["B-X", "O"]] * 40
    scores = tags.task.score(records, tags.rows, rows, decision)
    assert (scores.metrics["f1"], scores.metrics["f1_tuned"], scores.metrics["recall_tuned"]) == (0, 1, 1)
    assert scores.collapsed


def test_dev_without_spans_has_no_bias() -> None:
    records = (TaggedRecord("1", ("a", "b"), ("O", "O")),)
    tags = Built(TaggingConfig(), (*records, *NAMES))
    decision = tags.task.decide(records, tags.rows[:1], [[1, 1, -2.0, 3.0]])
    assert decision is not None
    assert (decision.tuned, decision.is_used) == ({"background": 0.0}, False)


def test_a_tag_that_training_does_not_have_is_no_target_and_missed() -> None:
    task = built()
    records = (TaggedRecord("1", ("acme", "oslo"), ("B-ORG", "B-LOC")),)
    tokenizer = load_tokenizer(ModelConfig(), task.texts(records))
    rows = task.encode(records, tokenizer)
    assert rows[0]["tags"] == [NO_TARGET, 1]
    batch = task.collate(rows, [0], tokenizer)
    term = task.terms({"tag": torch.zeros(*batch.inputs["input_ids"].shape, 4)}, batch)["tag"]
    assert term.mask is not None
    assert term.mask.sum() == 1
    assert batch.targets["item"].sum() == 2
    assert scored(task, records, ["O", "B-LOC"]).items[0].fn == 1


@pytest.mark.parametrize(
    ("settings", "tags", "message"),
    [
        ({}, ("B-X", "I-X"), "the background 'O'"),
        ({"tags": "plain"}, ("X", "X"), "at least two tags"),
        # CCONJ and SCONJ were spans of one type, `ONJ`.
        ({"background": "PUNCT"}, ("CCONJ", "PUNCT"), "must be PUNCT, B-TYPE and I-TYPE, got 'CCONJ' .*tags=plain"),
    ],
)
def test_tags_that_do_not_fit_are_an_error(settings: dict[str, Any], tags: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        built((TaggedRecord("1", ("a", "b"), tags),), **settings)


def test_a_tiny_encoder_learns_the_generated_names(tmp_path: Path) -> None:
    """By 60 points over the constant predictor: a perfect model reaches 67, or 73 if it predicts doubtful spans."""
    preset = {
        "task": "tagging",
        "data": {"source": {"synthetic": {"kind": "tagging", "size": 400}}},
        "training": {"epochs": 3, "batch_size": 16, "lr": 2e-3},
    }
    config = resolve([Layer("preset", preset)])
    best = max(evaluation.metrics["dev/f1"] for evaluation in single.evaluations(config, tmp_path))
    test = single.score(config, tmp_path, "test")
    assert best > 0.6
    assert test["test/f1"] > test["test/constant_f1"] + 0.6
    assert test["test/f1_LOC"] == 1
