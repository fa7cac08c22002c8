"""Every registered task with every encoder family: gold decodes to a perfect score, padding is ignored, runs learn."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from dice_ray.config.load import Layer, resolve
from dice_ray.data.synthetic import KINDS
from dice_ray.models import stored
from dice_ray.models.adapter import LoraConfig, merged
from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, load_encoder, load_tokenizer, with_heads
from dice_ray.models.heads import start_heads
from dice_ray.models.layers import num_layers
from dice_ray.models.pretrained import is_causal, max_sequence_length, num_positions
from dice_ray.run import build, single
from dice_ray.settings import branches_of
from dice_ray.tasks import TaskConfig
from dice_ray.tasks.base import TaskBranch
from dice_ray.tasks.found_spans import found_spans, predicted_spans
from dice_ray.tasks.mrc_ner import MrcNerConfig
from dice_ray.tasks.rows import _encodings
from dice_ray.training.precision import Numerics, with_fallback
from tests.contracts.encoders import FAMILIES, NUM_POSITIONS, WIDTH, save
from tests.contracts.tasks import Built, configs, longer, name_of, records_of

EVERY = pytest.mark.parametrize("config", configs(), ids=name_of)
cached_records = cache(records_of)


@cache
def texts() -> tuple[str, ...]:
    """The texts of every task: the tokenizers are trained on them."""
    return tuple(
        text
        for config in configs()
        for records in [cached_records(config)]
        for text in config.build(config.classes(records)).texts(records)
    )


SIMILAR = ("xlm_roberta", "llama")
"""Families whose encoders differ little from others', and that take as long."""
PARAMS = [pytest.param(family, marks=pytest.mark.slow if family in SIMILAR else ()) for family in FAMILIES]


@pytest.fixture(scope="module", params=PARAMS)
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an encoder of one family."""
    return str(save(request.param, tmp_path_factory.mktemp(request.param), texts()))


@cache
def loaded(encoder: str) -> PreTrainedModel:
    """The encoder without dropout, loaded once for all tasks."""
    config = ModelConfig(encoder=encoder, dropout=0.0)
    return load_encoder(config, load_tokenizer(config, []))


@cache
def built_and_model(config: TaskBranch, encoder: str) -> tuple[Built, EncoderWithHeads]:
    """Twenty records, one of them longer than the others, and the encoder with fresh heads."""
    first, *others = cached_records(config, 20)
    built = Built(config, [longer(first, 3), *others], encoder)
    torch.manual_seed(0)
    heads = built.task.heads(WIDTH, ModelConfig(dropout=0.0))
    start_heads(heads, built.facts, "zero")
    return built, EncoderWithHeads(loaded(encoder), heads)


def test_a_stored_tokenizer_reads_as_it_did_in_training(encoder: str, tmp_path: Path) -> None:
    """Finds other tokens in a run, also of an older version, or in an export, read by transformers or as an encoder."""
    tokenizer = load_tokenizer(ModelConfig(encoder=encoder), [])
    texts = ["the router is  broken", " Anna can't", "\u6771\u4eac we", ""]
    words = [text.split() for text in texts[:3]]

    def read(by: PreTrainedTokenizerBase) -> list[Any]:
        encoded = [
            *_encodings(by, texts, 64),
            *_encodings(by, words, 64, split=True),
            *_encodings(by, list(zip(texts, reversed(texts), strict=True)), 64),
        ]
        names = [by.model_input_names, by.padding_side, by.truncation_side]
        return [names, *((one.ids, one.offsets, one.word_ids, one.type_ids) for one in encoded)]

    wanted, copied = read(tokenizer), tokenizer
    for folder in (tmp_path / "run", tmp_path / "copy"):
        stored.store(loaded(encoder), copied, folder)
        assert read(AutoTokenizer.from_pretrained(folder)) == wanted
        _, copied = stored.load(folder)
        assert read(copied) == wanted
    file = tmp_path / "run/tokenizer_config.json"
    written = json.loads(file.read_text())
    if isinstance(tokenizer.backend_tokenizer.pre_tokenizer, ByteLevel):  # what older versions stored
        written["add_prefix_space"] = False
    elif "xlnet" in encoder:
        del written["model_input_names"]
    file.write_text(json.dumps(written))
    assert read(stored.load(tmp_path / "run")[1]) == wanted


@EVERY
def test_gold_logits_get_a_perfect_score(config: TaskBranch, encoder: str) -> None:
    scores = Built(config, cached_records(config), encoder).gold_scores()
    assert scores.metrics[config.objective()] == 1
    assert all(item.fp == item.fn == 0 for item in scores.items)
    assert sum(item.tp for item in scores.items) > 0


@EVERY
def test_padding_changes_nothing(config: TaskBranch, encoder: str) -> None:
    built, model = built_and_model(config, encoder)
    model.eval()
    lengths = {len(row["input_ids"]) for row in built.rows}
    assert len(lengths) > 1

    @torch.no_grad()
    def decoded(batch_size: int) -> list[Any]:
        return [
            item
            for batch in built.batches(batch_size)
            for item in built.task.decode(model(batch.inputs, batch.targets), batch)
        ]

    alone, padded = decoded(1), decoded(len(built.rows))
    if not isinstance(config, MrcNerConfig):
        for one, other in zip(alone, padded, strict=True):
            assert one == pytest.approx(other, abs=1e-4)
        return

    def spans(of_rows: list[Any]) -> dict[Any, float]:
        """The predicted spans: of those that no row predicts it keeps the likeliest, which are nearly equal here."""
        found = found_spans(built.records, built.rows, of_rows, built.task.classes)
        return {(key, each.span): each.whole for key, of in found.items() for each in predicted_spans(of)}

    assert spans(alone) == pytest.approx(spans(padded), abs=1e-4)


def test_its_dropouts_are_those_of_the_model(encoder: str) -> None:
    config = ModelConfig(encoder=encoder, dropout=0.25)
    with_dropout = load_encoder(config, load_tokenizer(config, []))
    modules = {module.p for module in with_dropout.modules() if isinstance(module, torch.nn.Dropout)}
    settings = with_dropout.config.to_dict()
    named = {name: value for name, value in settings.items() if "attention" in name and "dropout" in name}
    assert modules == (set() if is_causal(loaded(encoder)) else {0.25})  # it has a rate, and no module
    assert set(named.values()) <= {0.25}
    assert modules or named


def test_the_longest_sequence_is_encoded_and_a_longer_one_is_not(encoder: str) -> None:
    model, tokenizer = loaded(encoder).eval(), load_tokenizer(ModelConfig(encoder=encoder), [])
    longest = max_sequence_length(model)
    assert (longest is None) == any(family in encoder for family in ("xlnet", "deberta"))

    @torch.no_grad()
    def hidden(length: int) -> torch.Tensor:
        ids_BL = torch.full((1, length), tokenizer("we")["input_ids"][1])
        hidden_BLH: torch.Tensor = model(input_ids=ids_BL, attention_mask=torch.ones_like(ids_BL)).last_hidden_state
        return hidden_BLH

    assert hidden(longest or 3 * NUM_POSITIONS).isfinite().all()
    if longest is not None and num_positions(model) is not None:
        with pytest.raises((IndexError, RuntimeError)):
            hidden(longest + 1)


@EVERY
def test_gradients_reach_every_weight_that_is_trained(config: TaskBranch, encoder: str) -> None:
    built, model = built_and_model(config, encoder)
    model.train().zero_grad()  # the encoder is shared by all tasks
    (batch, *_) = built.batches()
    sum(logits.square().sum() for logits in model(batch.inputs, batch.targets).values()).backward()
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    frozen = {name for name, _ in model.named_parameters()} - trained
    assert frozen == ({"encoder.mask_emb"} if "xlnet" in encoder else set())


def trained_part(encoder: str, **settings: Any) -> tuple[EncoderWithHeads, set[str]]:
    """The encoder with these settings of the model, and the weights of it that a backward pass reaches."""
    config = ModelConfig(encoder=encoder, dropout=0.0, **settings)
    tokenizer = load_tokenizer(config, [])
    model = with_heads(load_encoder(config, tokenizer), {}, config)
    for name, parameter in model.encoder.named_parameters():
        if "lora_B" in name:  # it starts at 0, where A has no gradient
            torch.nn.init.normal_(parameter, std=0.1)
    output = model.encoder(**tokenizer("the router", return_tensors="pt")).last_hidden_state.square().sum()
    if output.requires_grad:
        output.backward()
    reached = {name for name, parameter in model.encoder.named_parameters() if parameter.grad is not None}
    assert reached == {name for name, parameter in model.encoder.named_parameters() if parameter.requires_grad}
    assert reached == {name.removeprefix("encoder.") for name in model.stored()} & reached
    return model, reached


def test_layers_are_frozen_from_the_lowest_on(encoder: str) -> None:
    model, every = trained_part(encoder)
    _, above_embeddings = trained_part(encoder, freeze="embeddings")
    _, above_first = trained_part(encoder, freeze=1)
    _, none = trained_part(encoder, freeze=2)
    words = model.encoder.get_input_embeddings().weight
    (table,) = (name for name, parameter in model.encoder.named_parameters() if parameter is words)
    assert num_layers(model.encoder) == 2
    assert table in every - above_embeddings
    assert above_embeddings > above_first > none
    first, second = above_embeddings - above_first, above_first - none
    assert {name.replace(".0.", ".1.", 1) for name in first} <= second  # ModernBERT's first layer has a norm less
    assert not any(".0." in name or ".1." in name for name in none)


def test_an_adapter_is_trained_alone_and_merges_into_the_weights(encoder: str) -> None:
    model, reached = trained_part(encoder, adapter=LoraConfig(rank=2))
    assert {name.split(".")[-3] for name in reached} == {"lora_A", "lora_B"}
    assert set(model.stored()) == {f"encoder.{name}" for name in reached}
    plain = merged(model.encoder.eval())
    assert plain.state_dict().keys() == loaded(encoder).state_dict().keys()
    ids_BL = load_tokenizer(ModelConfig(encoder=encoder), [])(["the router is broken"], return_tensors="pt")
    with torch.no_grad():
        ours, theirs, before = (each(**ids_BL).last_hidden_state for each in (model.encoder, plain, loaded(encoder)))
    torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-5)
    assert (ours - before).abs().max() > 1e-3


@pytest.mark.parametrize("task", [name for name in branches_of(TaskConfig) if name != "sentence_pair"])
def test_a_run_learns(task: str, encoder: str, tmp_path: Path) -> None:
    accepted = {config.name: config.records for config in configs()}[task]
    *_, kind = (kind for kind, (record, _) in KINDS.items() if record in accepted)
    written = {
        "task": task,
        "data": {"source": {"synthetic": {"kind": kind, "size": 20}}},
        "model": {"encoder": encoder},
        "training": {"epochs": 2, "batch_size": 8, "lr": 1e-2},
    }
    config = resolve([Layer("test", written)])
    losses = [evaluation.metrics["train/loss"] for evaluation in single.evaluations(config, tmp_path)]
    assert losses[-1] < losses[0]
    assert build.objective(config, "test") in single.score(config, tmp_path, "test")


def test_a_family_that_trains_in_fp32_only_predicts_in_fp32() -> None:
    half = Numerics(torch.device("cpu"), "bf16")
    assert with_fallback(half, "deberta").precision == "fp32"
    assert with_fallback(half, "deberta-v2") == half
