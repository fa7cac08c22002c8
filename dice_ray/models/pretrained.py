"""Loads and checks pretrained encoders, and tells what their use needs: positions, inputs, direction.

One that does not exist or cannot be used is a RunError that names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from dice_ray import output
from dice_ray.errors import RefusedError, RunError, first_line
from dice_ray.models.sources import resolve_source

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_SettingsT = TypeVar("_SettingsT", bound="PretrainedConfig")
_POSITION_TABLES = ("position_embeddings", "wpe", "embed_positions", "positions_embed")
"""Names of the embedding table of positions: of BERT and its kin, of GPT-2, of OPT, and of the first GPT."""


def load_pretrained_encoder(
    name: str, dropout: float, tokenizer: PreTrainedTokenizerBase, attention: Literal["eager", "sdpa"]
) -> PreTrainedModel:
    """The encoder with its weights in fp32, all of which must be pretrained and fit the tokenizer."""
    from transformers import AutoConfig, AutoModel

    source = resolve_source(name)
    # By default the library uses sdpa if the encoder supports it.
    implementation = {"attn_implementation": "eager"} if attention == "eager" else {}
    encoder: PreTrainedModel
    # Loading must not consume random numbers, or the initial heads would depend on the library's way of loading.
    with explained(name), torch.random.fork_rng(devices=[]):
        settings = with_dropout(AutoConfig.from_pretrained(source, trust_remote_code=False), dropout)
        settings.use_cache = False  # decoders would store keys and values for the generation of further tokens
        if settings.is_encoder_decoder:
            raise RefusedError(f"model.encoder must be an encoder without a decoder, got {name!r}, which has one")
        encoder, loading_info = AutoModel.from_pretrained(
            source,
            config=settings,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **implementation,
        )
    if missing := sorted(key for key in loading_info["missing_keys"] if not key.startswith("pooler.")):
        shown = ", ".join(missing[:5])
        raise RefusedError(
            f"model.encoder {name!r} must have all weights of its {type(encoder).__name__}, but lacks {len(missing)}, "
            f"which would be random: {shown}{', ...' if len(missing) > 5 else ''}"
        )
    table = encoder.get_input_embeddings()
    highest = max(tokenizer.get_vocab().values())
    if isinstance(table, nn.Embedding) and highest >= table.num_embeddings:
        raise RefusedError(
            f"the tokenizer of model.encoder {name!r} must give ids below {table.num_embeddings}, the rows of the "
            f"encoder's embedding table: its highest is {highest}"
        )
    return encoder


def pretrained_settings(name: str) -> PretrainedConfig:
    """The settings of an encoder, without its weights."""
    from transformers import AutoConfig

    with explained(name):
        settings: PretrainedConfig = AutoConfig.from_pretrained(resolve_source(name), trust_remote_code=False)
    return settings


def hub_commit(name: str) -> str:
    """The commit of an encoder on the hub, to which this machine must have access."""
    from huggingface_hub import hf_hub_download

    with explained(name):
        return Path(hf_hub_download(name, "config.json")).parent.name


def num_positions(encoder: PreTrainedModel) -> int | None:
    """The number of positions that an encoder has embeddings for, counted from the first token; None without such."""
    for name, module in encoder.named_modules():
        if name.endswith(_POSITION_TABLES) and isinstance(module, nn.Embedding):
            # In the RoBERTa family, positions start after the index of the padding token, and the setting counts all
            # rows. OPT's start at 2, and its setting counts the positions.
            rows = module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
            return min(rows, getattr(encoder.config, "max_position_embeddings", rows))
    return None


def max_sequence_length(encoder: PreTrainedModel) -> int | None:
    """The largest number of tokens that an encoder was made for; None if its positions are relative only."""
    if longest := num_positions(encoder):
        return longest
    if getattr(encoder.config, "rope_parameters", None):
        return int(encoder.config.max_position_embeddings)
    return None


def drop_pooler(encoder: PreTrainedModel) -> None:
    """Remove the layer behind the hidden states, which no head uses."""
    if getattr(encoder, "pooler", None) is not None:
        encoder.register_module("pooler", nn.Identity())  # not None: SqueezeBERT and LayoutLM always call it


def freeze_unused_parameters(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Drop the pooler and freeze the parameters that the hidden states do not depend on.

    DDP would wait for their gradients. An example is the mask of XLNet, which only permutation training uses. They are
    found by a forward pass: parameters that its autograd graph does not reach are frozen. Its hidden states must be as
    wide as the configuration says, or no head fits them: those of OPT-350m are not.
    """
    drop_pooler(encoder)
    accepted, was_training = accepted_inputs(encoder), encoder.training
    encoder.eval()
    example = {name: values for name, values in tokenizer("", return_tensors="pt").items() if name in accepted}
    hidden = encoder(**example).last_hidden_state
    if (width := hidden.shape[-1]) != encoder.config.hidden_size:
        raise RefusedError(
            f"an encoder's hidden states must be as wide as its configuration says, {encoder.config.hidden_size}, and "
            f"those of {encoder.config.model_type} are {width} wide: choose another model.encoder"
        )
    reached = set(_leaves(hidden))
    encoder.train(was_training)
    for parameter in encoder.parameters():
        parameter.requires_grad_(parameter in reached)


@torch.no_grad()
def is_causal(encoder: PreTrainedModel) -> bool:
    """Whether the hidden state of a token does not depend on the tokens behind it, as in decoders."""
    was_training = encoder.training
    first, other = encoder.eval()(input_ids=torch.tensor([[1, 2, 3], [1, 2, 4]])).last_hidden_state[:, 0]
    encoder.train(was_training)
    return torch.allclose(first, other)


def accepted_inputs(encoder: nn.Module) -> frozenset[str]:
    """The names of the inputs that an encoder accepts; some refuse the segment ids that their tokenizer returns."""
    return frozenset(inspect.signature(encoder.forward).parameters)


def with_dropout(settings: _SettingsT, dropout: float) -> _SettingsT:
    """The settings with all dropout rates set; those for classifiers belong to heads that are not used."""
    # Each encoder family has its own names for its dropout rates.
    for name, value in settings.to_dict().items():
        is_rate = "dropout" in name or name.endswith("pdrop")  # resid_pdrop, embd_pdrop and attn_pdrop of GPT-2
        if is_rate and "classifier" not in name and type(value) in (int, float):
            setattr(settings, name, dropout)
    return settings


def _leaves(output: torch.Tensor) -> Iterator[torch.Tensor]:
    """The parameters that the autograd graph of a tensor reaches."""
    seen: set[Any] = set()
    pending = [output.grad_fn]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        pending += [function for function, _ in node.next_functions]


def quiet() -> AbstractContextManager[None]:
    """Suppress the progress bar and the loading report of transformers; what the report contains is checked here."""
    from transformers.utils import logging

    has_bars = logging.is_progress_bar_enabled()
    bars = (logging.disable_progress_bar, logging.enable_progress_bar) if has_bars else None
    return output.quiet("transformers", bars=bars)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Keep transformers quiet, and turn its errors for an unavailable or invalid encoder into a RunError."""
    from safetensors import SafetensorError

    try:
        with quiet():
            yield
    except RunError:
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        raise RefusedError(
            "model.encoder must be `tiny`, `minilm`, a folder with safetensors weights, or a hub id that this machine "
            f"can reach, got {name!r}: {first_line(error)}"
        ) from error
