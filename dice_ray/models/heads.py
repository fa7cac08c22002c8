"""Heads over words and spans, at the token positions that a batch lists."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import Inputs, TokenHead

RANK = 64
"""Width of the vectors that represent a word as the first or last of a span."""


class PlaceHead(TokenHead):
    """One row of logits per token position listed in `targets[places]`."""

    def __init__(self, width: int, num_logits: int, dropout: float, places: str) -> None:
        super().__init__(width, num_logits, dropout)
        self.places = places

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        return super().forward(_gather(hidden_BLH, targets[self.places]), inputs, targets)


class SpanHead(nn.Module):
    """One logit per span of 1 to S words from each of W words: bilinear in its first word and its last with the length.

    Each word is projected once as a first and once as a last word, and the logits of one length are computed for all
    words at once. No vector per span is stored, and only pairs of words up to S apart are scored: memory is O(W x S).

    Args:
        width: Width of the hidden states.
        dropout: Dropout rate before the projections.
        max_span: The largest S, in words.
        places: Key of the target `places_BW`, the token positions of the words.
        spans: Key of a target `..._BWS`, of which only the sizes are read.
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
        words_BWH = self.dropout(_gather(hidden_BLH, targets[self.places]))
        first_BWR = self.first(words_BWH) * self.output.weight[0]
        last_BWR = nn.functional.pad(self.last(words_BWH), (0, 0, 0, num_lengths - 1))
        logits_per_length = [
            (first_BWR * (last_BWR[:, offset : offset + num_words] + self.length.weight[offset])).sum(-1)
            for offset in range(num_lengths)
        ]
        return torch.stack(logits_per_length, dim=-1) + self.output.bias


def _gather(hidden_BLH: Tensor, places_BW: Tensor) -> Tensor:
    return hidden_BLH.gather(1, places_BW[..., None].expand(-1, -1, hidden_BLH.shape[-1]))
