"""Exported folders: the Hugging Face classes that load them give the logits of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, load_tokenizer
from dice_ray.models.export import HEADS, _has_equal_logits, export
from dice_ray.models.heads import TextHead, TokenHead
from dice_ray.models.pretrained import freeze_unused_parameters

TEXTS = ["the router is broken", "it is lovely, thanks a lot"]
TINY: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48}
QWEN3 = TINY | {"num_key_value_heads": 2, "head_dim": 16}
CLASSES = ("O", "B-PER", "I-PER")


def built(family: str, head: nn.Module, **settings: Any) -> tuple[EncoderWithHeads, Any]:
    """A model of random weights, and a tokenizer."""
    torch.manual_seed(0)
    tokenizer = load_tokenizer(ModelConfig(), TEXTS)
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), pad_token_id=0, **settings)
    nn.init.normal_(head.get_submodule("output").bias)  # type: ignore[arg-type]
    encoder = AutoModel.from_config(config)
    freeze_unused_parameters(encoder, tokenizer)
    return EncoderWithHeads(encoder, {"tag": head}).eval(), tokenizer


@torch.no_grad()
def logits(model: EncoderWithHeads, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    first = {"cls": torch.zeros(len(batch["input_ids"]), dtype=torch.long)}
    logits_BLC: torch.Tensor = model(batch, first)["tag"]
    return logits_BLC


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bert", TINY),
        ("roberta", TINY),
        ("xlm-roberta", TINY),
        ("electra", TINY | {"embedding_size": 16}),
        ("deberta-v2", TINY),
        ("distilbert", DISTILBERT),
        ("qwen3", QWEN3),
        ("big_bird", TINY | {"attention_type": "original_full"}),
    ],
)
@torch.no_grad()
def test_a_tagger_is_the_stock_class_of_its_family(
    tmp_path: Path, family: str, settings: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """Finds a family whose stock class has more weights than our encoder: BigBird's has its pooler."""
    model, tokenizer = built(family, TokenHead(32, 3, 0.1), **settings)
    assert export(model, tokenizer, CLASSES, tmp_path) == "AutoModelForTokenClassification"
    assert capfd.readouterr() == ("", "")
    stock = AutoModelForTokenClassification.from_pretrained(tmp_path)
    batch = dict(AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt"))
    ours = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    assert stock.config.id2label == dict(enumerate(CLASSES))
    torch.testing.assert_close(stock(**batch).logits, logits(model, ours), rtol=1e-5, atol=1e-5)
    assert not (tmp_path / HEADS).exists()


def test_a_tagger_with_more_tags_than_a_row_holds_is_exported(tmp_path: Path) -> None:
    """The tags were the example on which logits are compared: the encoder has 512 positions."""
    model, tokenizer = built("bert", TokenHead(32, 600, 0.1), **TINY)
    tags = [f"tag{number}" for number in range(600)]
    assert export(model, tokenizer, tags, tmp_path) == "AutoModelForTokenClassification"


@torch.no_grad()
def test_heads_of_start_and_end_are_those_of_question_answering(tmp_path: Path) -> None:
    model, tokenizer = built("bert", TokenHead(32, 1, 0.1), **TINY)
    end = TokenHead(32, 1, 0.1)
    both = EncoderWithHeads(model.encoder, {"start": model.heads["tag"], "end": end}).eval()
    assert export(both, tokenizer, ("none", "answer"), tmp_path, is_position=True) == "AutoModelForQuestionAnswering"
    stock = AutoModelForQuestionAnswering.from_pretrained(tmp_path)
    batch = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    theirs, ours = stock(**batch), both(batch, {})
    torch.testing.assert_close(theirs.start_logits, ours["start"][..., 0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(theirs.end_logits, ours["end"][..., 0], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(theirs.start_logits, theirs.end_logits, atol=1e-3)


@pytest.mark.parametrize("num_logits", [1, 2])
@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bert", TINY),
        ("roberta", TINY),
        ("xlm-roberta", TINY),
        ("electra", TINY | {"embedding_size": 16}),
        ("deberta-v2", TINY),
        ("distilbert", DISTILBERT),
    ],
)
@torch.no_grad()
def test_a_text_classifier_is_the_stock_class_of_its_family(
    tmp_path: Path, family: str, settings: dict[str, Any], num_logits: int
) -> None:
    model, tokenizer = built(family, TextHead(32, num_logits, 0.1), **settings)
    embeddings = model.encoder.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)
    nn.init.normal_(embeddings.weight, std=3.0)  # hidden states far from zero
    assert export(model, tokenizer, ("other", "urgent"), tmp_path) == "AutoModelForSequenceClassification"
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    batch = dict(AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt"))
    assert stock.config.id2label == {0: "other", 1: "urgent"}
    ours = logits(model, batch)
    wanted = ours.softmax(-1)[:, 1] if num_logits == 2 else ours[:, 0].sigmoid()
    torch.testing.assert_close(stock(**batch).logits.softmax(-1)[:, 1], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("modernbert", TextHead(32, 3, 0.1)),
        ("modernbert", TokenHead(32, 3, 0.1)),
        ("qwen3", TextHead(32, 3, 0.1, "last")),
        ("bert", TextHead(32, 3, 0.1, "mean")),
    ],
    ids=[
        "the stock class of texts has a norm",
        "the stock class of tokens has another layer",
        "the stock class of texts has no bias",
        "the stock class of texts pools the first token",
    ],
)
@torch.no_grad()
def test_other_heads_lie_beside_the_encoder(tmp_path: Path, family: str, head: nn.Module) -> None:
    model, tokenizer = built(family, head, **(QWEN3 if family == "qwen3" else TINY))
    assert export(model, tokenizer, CLASSES, tmp_path) == "AutoModel"
    modes = {file.name: file.stat().st_mode for file in tmp_path.iterdir()}
    assert modes.keys() >= {"model.safetensors", HEADS}
    assert set(modes.values()) == {modes["config.json"]}, "who reads the settings reads the weights"
    encoder = AutoModel.from_pretrained(tmp_path)
    weights = load_file(tmp_path / HEADS)
    batch = dict(AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt"))
    hidden_BLH = encoder(**batch).last_hidden_state
    if isinstance(head, TextHead):
        kept_BL1 = batch["attention_mask"][..., None]
        last_B = batch["attention_mask"].sum(1) - 1
        pooled = {
            "auto": hidden_BLH[:, 0],
            "last": hidden_BLH[range(len(last_B)), last_B],
            "mean": (hidden_BLH * kept_BL1).sum(1) / kept_BL1.sum(1),
        }
        hidden_BLH = pooled[head.pooling]
    theirs = hidden_BLH @ weights["tag.output.weight"].T + weights["tag.output.bias"]
    torch.testing.assert_close(theirs, logits(model, batch), rtol=1e-5, atol=1e-5)


def test_a_stock_class_with_other_logits_is_not_used() -> None:
    model, tokenizer = built("bert", TokenHead(32, 3, 0.1), **TINY)
    probe = dict(tokenizer(TEXTS[:1], return_tensors="pt"))
    stock = AutoModelForTokenClassification.from_config(AutoConfig.for_model("bert", num_labels=3, **TINY)).eval()
    assert not _has_equal_logits(stock, model, probe)
