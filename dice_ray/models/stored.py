"""Saves and loads an encoder's settings and tokenizer; the weights that were trained are stored in the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray.errors import RunError, reason_of
from dice_ray.models.encoder import ModelConfig, load_encoder
from dice_ray.models.pretrained import freeze_unused_parameters
from dice_ray.models.pretrained_tokenizer import load_pretrained_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def store(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the settings and the tokenizer to the folder."""
    encoder.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load(
    folder: Path, attention: Literal["eager", "sdpa"] = "sdpa", kept: ModelConfig | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The encoder and its tokenizer; a RunError if the files of the folder are damaged.

    Weights are random, or those of the encoder of `kept`, whose weights were not all trained.
    """
    from transformers import AutoConfig, AutoModel

    try:
        # Adapts it again: older versions saved RoBERTa's and XLNet's such that transformers loads them unadapted.
        tokenizer = load_pretrained_tokenizer(str(folder))
        settings = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # transformers expects valid files
        reason = reason_of(error.__cause__ or error)
        raise RunError(f"{folder} must be as dice_ray has written it, and cannot be read: {reason}") from error
    if kept is not None:
        return load_encoder(kept, tokenizer, attention), tokenizer
    # sdpa is the default of the library wherever a family supports it; requesting it explicitly fails elsewhere.
    implementation = {"attn_implementation": "eager"} if attention == "eager" else {}
    encoder = AutoModel.from_config(settings, **implementation)
    freeze_unused_parameters(encoder, tokenizer)
    return encoder, tokenizer
