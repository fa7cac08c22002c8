"""Heads over words and spans: logits at the places that a batch names."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import Inputs, TokenHead

RANK = 64
"""How many numbers stand for a word as the first or the last of a span."""


class PlaceHead(TokenHead):
    """One row of logits for each place that the batch names in `targets[places]`."""

    def __init__(self, width: int, num_logits: int, dropout: float, places: str) -> None:
        super().__init__(width, num_logits, dropout)
        self.places = places

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        return super().forward(_at(hidden_BLH, targets[self.places]), inputs, targets)


class SpanHead(nn.Module):
    """One logit a span, of 1 to S words from each of W words: a bilinear form of its first word, and last and length.

    Each word is projected once as a first and once as a last one, and the logits of one length are sums of products
    over all words at once. So no vector of a span is ever kept, and of the pairs of words only those up to S apart are
    scored: memory grows by W x S numbers.

    Args:
        width: Of the hidden states.
        dropout: Before the projections.
        max_span: The largest S, in words.
        places: Names the target `places_BW` of the words.
        spans: Names a target `..._BWS`, of which only S is read.
    """

    def __init__(self, width: int, dropout: float, max_span: int, places: str, spans: str) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.first = nn.Linear(width, RANK)
        self.last = nn.Linear(width, RANK)
        self.length = nn.Embedding(max_span, RANK)
        self.output = nn.Linear(RANK, 1)
        self.places, self.spans = places, spans

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        num_words, num_lengths = targets[self.spans].shape[1:]
        words_BWH = self.dropout(_at(hidden_BLH, targets[self.places]))
        first_BWR = self.first(words_BWH) * self.output.weight[0]
        last_BWR = nn.functional.pad(self.last(words_BWH), (0, 0, 0, num_lengths - 1))
        of_lengths = [
            (first_BWR * (last_BWR[:, further : further + num_words] + self.length.weight[further])).sum(-1)
            for further in range(num_lengths)
        ]
        return torch.stack(of_lengths, dim=-1) + self.output.bias


def _at(hidden_BLH: Tensor, places_BW: Tensor) -> Tensor:
    return hidden_BLH.gather(1, places_BW[..., None].expand(-1, -1, hidden_BLH.shape[-1]))
