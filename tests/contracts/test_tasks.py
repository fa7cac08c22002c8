"""The contract of a task, for every registered task: nothing is lost between a record and its score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from dice_ray.losses.cross_entropy import CrossEntropyConfig
from dice_ray.losses.items import bad_input, valid_items
from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, load_encoder
from dice_ray.settings import branches_of
from dice_ray.tasks import TaskConfig
from dice_ray.tasks.answers import Answers
from dice_ray.tasks.base import TaskBranch
from tests.contracts.tasks import (
    CUT,
    FORMS,
    LEAST_STRIDE,
    WIDTH,
    Built,
    configs,
    ids_of,
    longer,
    name_of,
    records_of,
    stripped,
    xlnet_like,
)

EVERY = pytest.mark.parametrize("config", configs(), ids=name_of)


def test_every_registered_task_is_tested() -> None:
    assert {config.name for config in configs()} == set(branches_of(TaskConfig))
    assert set(FORMS) <= set(branches_of(TaskConfig))


@EVERY
def test_gold_logits_get_a_perfect_score(config: TaskBranch) -> None:
    built = Built(config, records_of(config))
    scores = built.gold_scores()
    assert scores.metrics[config.objective()] == 1
    assert not scores.collapsed
    assert [item.id for item in scores.items] == ids_of(built.records)
    assert all(item.fp == item.fn == 0 for item in scores.items)
    assert sum(item.tp for item in scores.items) > 0
    assert all(counts.fp == counts.fn == 0 for counts in scores.classes.values())
    has_threshold = f"{config.objective()}_tuned" in scores.metrics
    assert scores.tuned_items == (scores.items if has_threshold else ())


@EVERY
def test_the_constant_predictor_is_scored_by_the_same_metric(config: TaskBranch) -> None:
    metrics = Built(config, records_of(config)).gold_scores().metrics
    assert 0 <= metrics[f"constant_{config.objective()}"] < 1


@EVERY
def test_terms_have_the_shapes_that_losses_take(config: TaskBranch) -> None:
    built = Built(config, records_of(config))
    facts = {facts.name: facts for facts in built.facts}
    assert {term.link for term in facts.values()} <= config.links()
    num_items = dict.fromkeys(facts, 0)
    for batch in built.batches():
        terms = built.task.terms(built.logits(batch), batch)
        assert set(terms) == set(facts)
        for name, term in terms.items():
            link, shape = facts[name].link, term.logits.shape
            if link == "softmax":
                assert term.logits.shape[-1] == len(facts[name].classes)
            assert term.targets.shape == (shape if link == "sigmoid" else shape[:-1])
            of_mask = shape[:-1] if link == "softmax" else shape
            assert term.mask is None or (term.mask.shape == of_mask and term.mask.dtype == torch.bool)
            assert bad_input(link, term.logits, term.targets, term.mask) is None
            valid_N = valid_items(facts[name].link, term.targets, term.mask)
            num_items[name] += term.targets.numel() if valid_N is None else int(valid_N.sum())
    assert num_items == {name: term.num_items for name, term in facts.items()}


@EVERY
def test_a_record_is_predicted_the_same_without_its_label(config: TaskBranch) -> None:
    built = Built(config, records_of(config))
    bare = [stripped(record) for record in built.records]
    assert bare != list(built.records)
    rows = built.task.encode(bare, built.tokenizer)
    for keys in (("input_ids", "record"), ("words", "places")):
        assert [[row.get(key) for key in keys] for row in rows] == [
            [row.get(key) for key in keys] for row in built.rows
        ]
    batch = built.task.collate(rows, range(len(rows)), built.tokenizer)
    whole = built.task.collate(built.rows, range(len(rows)), built.tokenizer)
    logits = built.logits(whole)
    found, wanted = built.task.decode(logits, batch), built.task.decode(logits, whole)
    decisions = built.task.decide(built.records, built.rows, wanted)
    text = built.task.predict(bare, rows, found, decisions).text()
    assert text == built.task.predict(built.records, built.rows, wanted, decisions).text()
    gold = [item for batch in built.batches() for item in built.task.decode(built.gold(batch), batch)]
    assert text != built.task.predict(built.records, built.rows, gold, decisions).text()


# Not EVERY: a task of a user's own need not take predictions of other programs.
@pytest.mark.parametrize("shipped", configs(), ids=name_of)
def test_what_predict_writes_is_scored_as_the_predictions_themselves(shipped: TaskBranch, tmp_path: Path) -> None:
    """A format that is read in another way than it is written gives an arm of predictions a wrong score."""
    built = Built(shipped, records_of(shipped))
    gold, others = (
        [item for batch in built.batches() for item in built.task.decode(logits(batch), batch)]
        for logits in (built.gold, built.logits)
    )
    decoded = [gold[number] if row["record"] % 2 else others[number] for number, row in enumerate(built.rows)]
    predicted = built.task.predict(built.records, built.rows, decoded, None)
    file = tmp_path / f"predicted{predicted.suffix}"
    file.write_text(predicted.text())
    answers = Answers.read(file, built.task.answer_ids(built.records, file))
    found, counts_as = built.task.score_answers(built.records, answers, None)
    wanted = built.task.score(built.records, built.rows, decoded, None)
    metric = shipped.objective()
    assert found.metrics[metric] == pytest.approx(wanted.metrics[metric])
    assert 0 < found.metrics[metric] < 1
    assert found.items == wanted.items
    assert found.classes == wanted.classes
    assert answers.sentence(counts_as) == ""


@EVERY
def test_padding_changes_nothing(config: TaskBranch) -> None:
    first, *others = records_of(config, 20)
    built = Built(config, [longer(first, 3), *others])
    torch.manual_seed(0)
    encoder = load_encoder(ModelConfig(), built.tokenizer)
    heads = built.task.heads(encoder.config.hidden_size, ModelConfig(dropout=0.0))
    model = EncoderWithHeads(encoder, heads).eval()

    def decoded(batch_size: int) -> list[Any]:
        return [
            item
            for batch in built.batches(batch_size)
            for item in built.task.decode(model(batch.inputs, batch.targets), batch)
        ]

    alone, together = decoded(1), decoded(len(built.rows))
    assert len(alone) == len(together) == len(built.rows)
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


@EVERY
def test_padding_and_the_classification_token_may_be_on_either_side(config: TaskBranch) -> None:
    """With hidden states that depend on the token alone, losses and predictions depend on neither."""
    first, *others = records_of(config, 20)
    built = Built(config, [longer(first, 2), *others])
    table_VH = torch.randn((len(built.tokenizer), WIDTH), generator=torch.Generator().manual_seed(0))
    losses = {facts.name: CrossEntropyConfig().build(facts) for facts in built.facts}
    found = []
    for tokenizer in (built.tokenizer, xlnet_like(built.tokenizer)):
        built.rows = built.task.encode(built.records, tokenizer)
        for side in ("right", "left"):
            tokenizer.padding_side = side
            batch = built.task.collate(built.rows, range(len(built.rows)), tokenizer)
            hidden_BLH = table_VH[batch.inputs["input_ids"]]
            logits = {name: head(hidden_BLH, batch.inputs, batch.targets) for name, head in built.heads.items()}
            terms = built.task.terms(logits, batch).items()
            values = [losses[name](term.logits, term.targets, term.mask).item() for name, term in terms]
            found.append([values, *built.task.decode(logits, batch)])
    for decoded in found[1:]:
        for one, other in zip(found[0], decoded, strict=True):
            assert one == pytest.approx(other, abs=1e-5)


@EVERY
@pytest.mark.parametrize("stride", [0, 3, 8])
def test_a_long_record_loses_nothing_whatever_the_stride(config: TaskBranch, stride: int) -> None:
    records = [longer(record, 1 + number % 4) for number, record in enumerate(records_of(config, 24))]
    whole = Built(config.model_copy(update={"max_length": 500}), records)
    short = Built(
        config.model_copy(update={"max_length": 16} | ({"stride": stride} if hasattr(config, "stride") else {})),
        records,
    )
    assert all(len(row["input_ids"]) <= 16 for row in short.rows)
    if config.name in CUT:
        assert {row["record"] for row in short.rows if row["cut"]} == {
            row["record"] for row in whole.rows if len(row["input_ids"]) > 16
        }
        return
    assert len(short.rows) > len(whole.rows) >= len(records)
    assert not any(row["cut"] for row in short.rows)
    if stride >= LEAST_STRIDE.get(config.name, 0):
        assert short.gold_scores().items == whole.gold_scores().items
    assert _read(short) == _read(whole)


def _read(built: Built) -> list[set[int]]:
    """The tokens that the encoder sees of each record."""
    read = [set[int]() for _ in built.records]
    for row in built.rows:
        read[row["record"]].update(row["input_ids"])
    return read


@pytest.mark.parametrize(
    "name", [name for name, task in branches_of(TaskConfig).items() if "stride" in task.model_fields]
)
def test_the_stride_must_be_at_most_half_a_window(name: str) -> None:
    with pytest.raises(ValidationError, match="at most half of max_length 16"):
        branches_of(TaskConfig)[name].model_validate({"max_length": 16, "stride": 9})


@EVERY
def test_counts_are_additive_over_records(config: TaskBranch) -> None:
    records = records_of(config)
    negatives, positives = config.negatives_and_positives(records)
    groups = [getattr(record, "group", record.id) for record in records]
    half = next(number for number in range(20, len(records)) if groups[number] != groups[number - 1])
    halves = [config.negatives_and_positives(part) for part in (records[:half], records[half:])]
    assert negatives > 0
    assert positives > 0
    assert negatives + positives >= sum(map(sum, halves))
    assert config.label_counts(records) == config.label_counts(records[:half]) + config.label_counts(records[half:])
    assert config.negatives_and_positives(()) == (0, 0)
    assert type(config).negatives_and_positives.__doc__
