"""Heads over tokens, texts, positions and spans, against a loop over every pair of words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dice_ray.models.heads import PlaceHead, SpanHead, TextHead, TokenHead, start_heads
from dice_ray.terms import TermFacts

HIDDEN_BLH = torch.randn((2, 7, 8), generator=torch.Generator().manual_seed(0))
PLACES_BW = torch.tensor([[1, 2, 4, 6], [3, 4, 0, 0]])


def test_a_place_head_reads_the_positions_of_the_batch() -> None:
    head = PlaceHead(8, 3, 0.0, places="word")
    logits_BWC = head(HIDDEN_BLH, {}, {"word": PLACES_BW})
    assert logits_BWC.shape == (2, 4, 3)
    torch.testing.assert_close(logits_BWC[0, 2], head.output(HIDDEN_BLH[0, 4]))
    torch.testing.assert_close(logits_BWC[1, 0], head.output(HIDDEN_BLH[1, 3]))


def test_a_span_is_scored_by_its_first_word_its_last_and_its_length() -> None:
    head = SpanHead(8, 0.0, max_span=3, places="word", spans="candidate")
    logits_BWS = head(HIDDEN_BLH, {}, {"word": PLACES_BW, "candidate": torch.ones(2, 4, 3)})
    assert logits_BWS.shape == (2, 4, 3)
    for number in range(2):
        for word in range(4):
            for offset in range(min(3, 4 - word)):
                first_H = HIDDEN_BLH[number, PLACES_BW[number, word]]
                last_H = HIDDEN_BLH[number, PLACES_BW[number, word + offset]]
                both_R = head.first(first_H) * (head.last(last_H) + head.length.weight[offset])
                torch.testing.assert_close(logits_BWS[number, word, offset], head.output(both_R)[0])
    shorter_BWS = head(HIDDEN_BLH, {}, {"word": PLACES_BW, "candidate": torch.ones(2, 4, 2)})
    torch.testing.assert_close(shorter_BWS, logits_BWS[..., :2])


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


def test_each_of_several_labels_starts_at_its_own_prior() -> None:
    """Finds a rare and a frequent label that both start at their mean."""
    facts = TermFacts("label", "sigmoid", ("without", "with"), (105, 95), 0, ("frequent", "rare"), (90, 5))
    head = TextHead(4, 2, dropout=0.1)
    start_heads({"label": head}, [facts], "prior")
    assert head.output.bias.sigmoid().tolist() == pytest.approx([0.9, 0.05])
