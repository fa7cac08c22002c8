"""Tagging: units, classes, spans as conlleval counts them, dropped words. The generated names are learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dice_ray.config.load import Layer, resolve
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import DataError
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.run import single
from dice_ray.tasks.base import NO_TARGET, Scores
from dice_ray.tasks.tagging import Tagging, TaggingConfig

NAMES = (
    TaggedRecord("1", ("anna", "berg", "called"), ("B-PER", "I-PER", "O")),
    TaggedRecord("2", ("from", "oslo", "again"), ("O", "B-LOC", "O")),
)
CHINESE = (TaggedRecord("1", ("看似", "簡單"), ("VERB", "ADJ")), TaggedRecord("2", ("是", "二"), ("VERB", "NUM")))


def built(records: tuple[TaggedRecord, ...] = NAMES, **settings: Any) -> Tagging:
    config = TaggingConfig.model_validate(settings)
    return config.build(config.classes(records))


def scored(task: Tagging, records: tuple[TaggedRecord, ...], *predicted: list[str]) -> Scores:
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    decoded = [[task.classes.index(tag) for tag in tags] for tags in predicted]
    return task.score(records, rows, decoded, None)


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
        person, outside = task.classes.index("B-PER"), task.classes.index("O")
        text = task.predict(records, rows, [[person, outside]], None).text()
        assert text == f"anna\tB-PER\n\u200b\t{lost}\ncalled\tO\n\n"


def test_by_character_a_line_of_predictions_is_a_character() -> None:
    task = built(CHINESE, tags="plain", unit="character")
    records = (TaggedRecord("1", ("看似", "二"), ()),)
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    classes = [task.classes.index(tag) for tag in ("B-VERB", "I-VERB", "B-NUM")]
    assert task.predict(records, rows, [classes], None).text() == "看\tB-VERB\n似\tI-VERB\n二\tB-NUM\n\n"


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
