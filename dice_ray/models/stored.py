"""An encoder's settings and its tokenizer in a folder, and both back from it: the weights come from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray.models.pretrained import freeze_unused_parameters

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def store(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write what `load` needs."""
    encoder.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load(folder: Path, attention: Literal["eager", "sdpa"] = "sdpa") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The encoder with fresh weights, and its tokenizer."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    asked = {"attn_implementation": "eager"} if attention == "eager" else {}  # a family may know no other
    encoder = AutoModel.from_config(AutoConfig.from_pretrained(folder), **asked)
    freeze_unused_parameters(encoder, tokenizer)
    return encoder, tokenizer
