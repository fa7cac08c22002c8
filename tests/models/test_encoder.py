"""An encoder with its heads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import EncoderWithHeads, ModelConfig, load_encoder, load_tokenizer
from dice_ray.models.heads import TextHead, TokenHead

TEXTS = ["the router is broken", "we sent a new one", "the phone feels slow"]


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


def test_padding_changes_no_logit() -> None:
    tokenizer = load_tokenizer(ModelConfig(), TEXTS)
    model = EncoderWithHeads(load_encoder(ModelConfig(), tokenizer), {"label": TextHead(64, 2, dropout=0.1)}).eval()
    alone = model(dict(tokenizer([TEXTS[0]], return_tensors="pt")), {"cls": torch.zeros(1, dtype=torch.long)})
    both = dict(tokenizer([TEXTS[0], " ".join(TEXTS)], return_tensors="pt", padding=True))
    padded = model(both, {"cls": torch.zeros(2, dtype=torch.long)})
    torch.testing.assert_close(padded["label"][:1], alone["label"])


class WithoutSegments(nn.Module):
    """An encoder that does not accept segment ids, though its tokenizer returns them."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=(input_ids * attention_mask)[..., None].float())


def test_inputs_that_an_encoder_does_not_accept_are_dropped() -> None:
    heads = {"tag": TokenHead(1, 2, dropout=0.0)}
    model = EncoderWithHeads(WithoutSegments(), heads)
    inputs = dict(load_tokenizer(ModelConfig(), TEXTS)(TEXTS[:2], padding=True, return_tensors="pt"))
    assert "token_type_ids" in inputs
    assert model(inputs, {})["tag"].shape == (*inputs["input_ids"].shape, 2)


def test_fresh_names_the_random_parts() -> None:
    assert ModelConfig().fresh == "encoder and heads, bias zero"
    assert ModelConfig(encoder="minilm", head_bias="prior").fresh == "heads, bias prior"
