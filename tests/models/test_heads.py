"""Heads over positions and spans, against a loop over every pair of words."""

from __future__ import annotations

import torch

from dice_ray.models.heads import PlaceHead, SpanHead

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
