"""A stock class of transformers with our encoder's weights, and the check that it gives the logits of our heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dice_ray.models.encoder import EncoderWithHeads

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

NUM_PROBED = 60
"""Tokens of the example on which logits are compared."""


def stock_model(auto_class: str, config: PretrainedConfig, model: EncoderWithHeads) -> PreTrainedModel | None:
    """The family's class with our encoder's weights and random ones in other layers; None if the family has no class.

    Some classes have a pooler that their logits do not depend on, as BigBird's for tokens. A weight that is missing for
    another reason makes the logits differ, which `has_equal_logits` finds.
    """
    import transformers

    try:
        stock: PreTrainedModel = getattr(transformers, auto_class).from_config(config).eval()
    except ValueError:
        return None
    stock.base_model.load_state_dict(model.encoder.state_dict(), strict=False)
    return stock


def probe(tokenizer: PreTrainedTokenizerBase) -> dict[str, Tensor]:
    """An example with many words of the vocabulary, on which the logits are compared."""
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha())
    text = " ".join(words[:: max(1, len(words) // NUM_PROBED)])
    return dict(tokenizer([text], truncation=True, max_length=NUM_PROBED, return_tensors="pt"))


@torch.no_grad()
def has_equal_logits(stock: PreTrainedModel, model: EncoderWithHeads, example: dict[str, Tensor]) -> bool:
    """Whether both give the same logits; a head with a logit for the second of two classes has 0 for the first."""
    # A classification token at the end, as XLNet's, makes the logits of texts differ.
    ours = torch.cat(list(model(example, {"cls": torch.tensor([0])}).values()), -1)
    output = stock(**example)
    theirs = output.logits if "logits" in output else torch.stack([output.start_logits, output.end_logits], -1)
    if ours.shape != theirs.shape:
        ours = torch.cat([torch.zeros_like(ours), ours], -1)
    return torch.allclose(theirs, ours, rtol=1e-5, atol=1e-5)
