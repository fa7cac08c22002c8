"""The tiny encoder and its tokenizer; the initialisation of heads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from dice_ray.models.encoder import (
    EncoderWithHeads,
    ModelConfig,
    TextHead,
    TokenHead,
    load_encoder,
    load_tokenizer,
    start_heads,
)
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
    alone = model(dict(tokenizer([TEXTS[0]], return_tensors="pt")), {"cls": torch.zeros(1, dtype=torch.long)})
    both = dict(tokenizer([TEXTS[0], " ".join(TEXTS)], return_tensors="pt", padding=True))
    padded = model(both, {"cls": torch.zeros(2, dtype=torch.long)})
    torch.testing.assert_close(padded["label"][:1], alone["label"])


def test_a_text_head_reads_the_position_of_the_classification_token() -> None:
    head = TextHead(4, 2, dropout=0.0)
    hidden_BLH = torch.randn(3, 5, 4)
    logits_BC = head(hidden_BLH, {}, {"cls": torch.tensor([0, 4, 2])})
    torch.testing.assert_close(
        logits_BC, head.output(torch.stack([hidden_BLH[0, 0], hidden_BLH[1, 4], hidden_BLH[2, 2]]))
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_text_head_pools_the_tokens_that_are_no_padding(side: str) -> None:
    hidden_BLH = torch.randn(3, 5, 4)
    mask_BL = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]])
    mask_BL = mask_BL.flip(1) if side == "left" else mask_BL
    tokens = [hidden_LH[mask_L.bool()] for hidden_LH, mask_L in zip(hidden_BLH, mask_BL, strict=True)]
    wanted = {
        "first": torch.stack([each[0] for each in tokens]),
        "last": torch.stack([each[-1] for each in tokens]),
        "mean": torch.stack([each.mean(0) for each in tokens]),
    }
    for pooling, pooled_BH in wanted.items():
        head = TextHead(4, 2, dropout=0.0, pooling=pooling)  # type: ignore[arg-type]
        logits_BC = head(hidden_BLH, {"attention_mask": mask_BL}, {"cls": torch.tensor([3, 3, 3])})
        torch.testing.assert_close(logits_BC, head.output(pooled_BH))


def test_a_head_drops_hidden_states_in_training_alone() -> None:
    head = TokenHead(1000, 1, dropout=0.25)
    nn.init.ones_(head.output.weight)
    nn.init.zeros_(head.output.bias)
    hidden_BLH = torch.ones(1, 50, 1000)
    assert len(head(hidden_BLH, {}, {}).unique()) > 10, "each token keeps another number"
    assert head.eval()(hidden_BLH, {}, {}).unique().tolist() == [1000]


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
