"""Heads over tokens, texts, words and spans, and their initial weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts

Pooling: TypeAlias = Literal["auto", "first", "last", "mean"]
Inputs: TypeAlias = dict[str, Tensor]
"""Inputs of an encoder, by the tokenizer's names: `input_ids`, `attention_mask`, ..."""
_RANK = 64
"""Width of the vectors that represent a word as the first or last of a span."""


class TokenHead(nn.Module):
    """One row of logits per token, from its hidden state."""

    def __init__(self, width: int, num_logits: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, num_logits)

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        logits_BLC: Tensor = self.output(self.dropout(hidden_BLH))
        return logits_BLC


class TextHead(TokenHead):
    """One row of logits per text, from hidden states of its tokens; the classification token is at `targets["cls"]`."""

    def __init__(self, width: int, num_logits: int, dropout: float, pooling: Pooling = "auto") -> None:
        super().__init__(width, num_logits, dropout)
        self.pooling = pooling

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        return super().forward(self._pooled(hidden_BLH, inputs, targets), inputs, targets)

    def _pooled(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        if self.pooling == "auto":
            place_B = targets["cls"]
        else:
            mask_BL = inputs["attention_mask"]
            if self.pooling == "mean":
                weight_BL1 = (mask_BL / mask_BL.sum(1, keepdim=True)).to(hidden_BLH.dtype)[..., None]
                return (hidden_BLH * weight_BL1).sum(1)
            is_first = self.pooling == "first"  # argmax is the first of equal ones; padding may be on either side
            place_B = mask_BL.argmax(1) if is_first else mask_BL.shape[1] - 1 - mask_BL.flip(1).argmax(1)
        return hidden_BLH[torch.arange(len(place_B), device=place_B.device), place_B]


class PlaceHead(TokenHead):
    """One row of logits per token position listed in `targets[places]`."""

    def __init__(self, width: int, num_logits: int, dropout: float, places: str) -> None:
        super().__init__(width, num_logits, dropout)
        self.places = places

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        hidden_BWH = hidden_BLH.take_along_dim(targets[self.places][..., None], 1)
        return super().forward(hidden_BWH, inputs, targets)


class SpanHead(nn.Module):
    """One logit per span of 1 to S words from each of W words: bilinear in its first word and its last with the length.

    Each word is projected once as a first and once as a last word, and the logits of one length are computed for all
    words at once. No vector per span is stored, and only pairs of words up to S apart are scored: memory is O(W x S).

    Args:
        max_span: The largest S, in words.
        places: Key of the target `places_BW`, the token positions of the words.
        spans: Key of a target `..._BWS`, of which only the sizes are read.
    """

    def __init__(self, width: int, dropout: float, max_span: int, places: str, spans: str) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.first = nn.Linear(width, _RANK)
        self.last = nn.Linear(width, _RANK)
        self.length = nn.Embedding(max_span, _RANK)
        self.output = nn.Linear(_RANK, 1)
        self.places, self.spans = places, spans

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        num_words, num_lengths = targets[self.spans].shape[1:]
        words_BWH = self.dropout(hidden_BLH.take_along_dim(targets[self.places][..., None], 1))
        first_BWR = self.first(words_BWH) * self.output.weight[0]
        last_BWR = nn.functional.pad(self.last(words_BWH), (0, 0, 0, num_lengths - 1))
        logits_per_length = [
            (first_BWR * (last_BWR[:, offset : offset + num_words] + self.length.weight[offset])).sum(-1)
            for offset in range(num_lengths)
        ]
        return torch.stack(logits_per_length, dim=-1) + self.output.bias


@torch.no_grad()
def start_heads(
    heads: Mapping[str, nn.Module], facts: Sequence[TermFacts], bias: Literal["zero", "prior"], shift: float = 0.0
) -> None:
    """Initialise each head: small random weights, and the bias zero or the log prior of its term, or of each label.

    The logit of a positive class begins `shift` lower.
    """
    for term in facts:
        output = heads[term.name].get_submodule("output")
        assert isinstance(output, nn.Linear)
        nn.init.normal_(output.weight, std=0.02)
        nn.init.zeros_(output.bias)
        if bias == "prior" and term.link == "softmax":
            output.bias.copy_(torch.tensor(term.log_prior))
        elif bias == "prior" and term.link == "sigmoid":
            priors = [each.log_prior for each in term.by_label or (term,)]
            output.bias.copy_(torch.tensor([present - absent for absent, present in priors]))
        output.bias[-1] -= shift
