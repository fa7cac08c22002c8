"""The tiny encoder and its tokenizer; heads that start as they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dice_ray.errors import RunError
from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, TextHead, load_encoder, load_tokenizer, start_heads
from dice_ray.terms import TermFacts

TEXTS = ["the router is broken", "we sent a new one", "the phone feels slow"]


def test_a_tiny_tokenizer_is_trained_on_the_texts() -> None:
    tokenizer = load_tokenizer(ModelConfig(), TEXTS)
    pair = tokenizer("the router", "a new one")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == [
        "[CLS]",
        "the",
        "router",
        "[SEP]",
        "a",
        "new",
        "one",
        "[SEP]",
    ]
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1]
    again = load_tokenizer(ModelConfig(), TEXTS)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert tokenizer.tokenize("rooter") == ["r", "##o", "##o", "##t", "##e", "##r"]


def test_an_encoder_from_a_folder_is_the_one_saved(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(ModelConfig(), TEXTS)
    tiny = load_encoder(ModelConfig(), tokenizer)
    tiny.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = ModelConfig(encoder=str(tmp_path))
    loaded = load_encoder(config, load_tokenizer(config, []))
    inputs = tokenizer(["the router"], return_tensors="pt")
    tiny.eval(), loaded.eval()
    torch.testing.assert_close(loaded(**inputs).last_hidden_state, tiny(**inputs).last_hidden_state)


def test_an_encoder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"model\.encoder must be `tiny`, a folder with safetensors weights"):
        load_tokenizer(ModelConfig(encoder=str(tmp_path / "nothing")), [])


@pytest.mark.parametrize(("link", "num_logits"), [("softmax", 2), ("sigmoid", 1)])
def test_a_prior_bias_starts_at_the_log_prior(link: str, num_logits: int) -> None:
    facts = TermFacts("label", link, ("no", "yes"), (90, 10), background=0)  # type: ignore[arg-type]
    head = TextHead(4, num_logits, dropout=0.1)
    start_heads({"label": head}, [facts], "prior")
    logits = head.output.bias.detach()
    positive = logits.softmax(-1)[1] if link == "softmax" else logits.sigmoid()[0]
    assert float(positive) == pytest.approx(0.1)
    start_heads({"label": head}, [facts], "zero")
    assert head.output.bias.tolist() == [0.0] * num_logits


def test_padding_changes_no_logit() -> None:
    tokenizer = load_tokenizer(ModelConfig(), TEXTS)
    model = EncoderWithHeads(load_encoder(ModelConfig(), tokenizer), {"label": TextHead(64, 2, dropout=0.1)}).eval()
    alone = model(dict(tokenizer([TEXTS[0]], return_tensors="pt")), {})
    padded = model(dict(tokenizer([TEXTS[0], " ".join(TEXTS)], return_tensors="pt", padding=True)), {})
    torch.testing.assert_close(padded["label"][:1], alone["label"])


def test_an_encoder_without_a_fast_tokenizer_is_refused(tmp_path: Path) -> None:
    from transformers import CanineConfig, CanineTokenizer

    CanineTokenizer().save_pretrained(tmp_path)
    CanineConfig().save_pretrained(tmp_path)
    with pytest.raises(RunError, match=r"model\.encoder must have a fast tokenizer.* CanineTokenizer alone"):
        load_tokenizer(ModelConfig(encoder=str(tmp_path)), [])
