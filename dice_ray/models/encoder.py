"""A pretrained or tiny encoder with the heads of a task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dice_ray.models import adapter
from dice_ray.models.adapter import AdapterConfig, NoAdapterConfig
from dice_ray.models.heads import Inputs, Pooling
from dice_ray.models.layers import Freeze, freeze
from dice_ray.models.pretrained import (
    accepted_inputs,
    drop_pooler,
    freeze_unused_parameters,
    load_pretrained_encoder,
    pretrained_settings,
    with_dropout,
)
from dice_ray.models.pretrained_tokenizer import load_pretrained_tokenizer
from dice_ray.models.tiny import TINY, tiny_settings, tiny_tokenizer, wordpiece
from dice_ray.settings import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class ModelConfig(Settings):
    """The encoder, and the initialisation of its heads, which are never pretrained.

    `minilm` is all-MiniLM-L6-v2: 6 layers, width 384, uncased English. It was trained on question pairs of QQP, on
    question-answer pairs of SQuAD 2.0 and on NLI data: its scores on these are not scores on unseen data.

    Attributes:
        encoder: `tiny` (small, randomly initialised, with a tokenizer built from the data), `minilm`, a folder, or a
            hub id.
        head_bias: `prior` initialises the bias of the heads with the log prior of the classes, a control for imbalance.
            Answers as positions have no classes: their heads begin at zero.
        dropout: Dropout rate in the encoder and before each head.
        pooling: The hidden states that a text is classified by: of its first or last token, or the mean over all of
            them; padding is left out. `auto` is the classification token of the encoder's tokenizer: the first token,
            or the last one of XLNet and of decoders.
        freeze: What of the encoder is not trained: `embeddings`, a number of the lowest layers with the embeddings, or
            the whole `encoder`, so that the heads alone are trained.
        adapter: `lora` trains a small adapter in place of the encoder's weights.
    """

    encoder: str = TINY
    head_bias: Literal["zero", "prior"] = "zero"
    dropout: float = Field(0.1, ge=0, lt=1)
    pooling: Pooling = "auto"
    freeze: Freeze = "none"
    adapter: AdapterConfig = NoAdapterConfig()

    @property
    def keeps_weights(self) -> bool:
        """Whether weights of a published encoder stay as they are, and need not be stored in checkpoints.

        Those of the tiny encoder are random, and would exist nowhere else.
        """
        return self.encoder != TINY and (self.freeze != "none" or self.adapter.name != "none")

    def as_merged(self) -> ModelConfig:
        """The settings of a model whose adapter was merged."""
        return self.model_copy(update={"adapter": NoAdapterConfig(), "freeze": "none"})

    @property
    def fresh(self) -> str:
        """The parts that are randomly initialised, and the initial bias of the heads."""
        parts = "encoder and heads" if self.encoder == TINY else "heads"
        return f"{parts}, bias {self.head_bias}"


def load_tokenizer(config: ModelConfig, texts: Iterable[str]) -> PreTrainedTokenizerBase:
    """The encoder's tokenizer; that of the tiny encoder is built from the texts."""
    if config.encoder == TINY:
        return tiny_tokenizer(wordpiece(texts))
    return load_pretrained_tokenizer(config.encoder)


def load_encoder(
    config: ModelConfig, tokenizer: PreTrainedTokenizerBase, attention: Literal["eager", "sdpa"] = "sdpa"
) -> PreTrainedModel:
    """The encoder with its weights; the tiny one is initialised from torch's random state.

    Raises:
        RunError: The encoder does not exist or cannot be used.
    """
    from transformers import BertModel

    encoder: PreTrainedModel
    if config.encoder == TINY:
        tiny = tiny_settings(tokenizer)
        tiny._attn_implementation = attention
        encoder = BertModel(with_dropout(tiny, config.dropout))
    else:
        encoder = load_pretrained_encoder(config.encoder, config.dropout, tokenizer, attention)
    freeze_unused_parameters(encoder, tokenizer)
    return encoder


def weight_bytes(config: ModelConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Bytes of the encoder's weights in a checkpoint, in fp32, from its settings alone."""
    from transformers import AutoModel

    settings = tiny_settings(tokenizer) if config.encoder == TINY else pretrained_settings(config.encoder)
    with torch.device("meta"):  # no weights are loaded, and no memory is taken
        encoder: PreTrainedModel = AutoModel.from_config(settings)
        drop_pooler(encoder)
        freeze(encoder, config.freeze)
        config.adapter.add(encoder)
    named: Iterable[nn.Parameter] = encoder.parameters()
    return 4 * sum(each.numel() for each in named if each.requires_grad or not config.keeps_weights)


class EncoderWithHeads(nn.Module):
    """An encoder with one head per term.

    Args:
        heads: By the names of their terms.
        keeps_weights: Whether the frozen weights of the encoder are those of a published one (`ModelConfig`).
    """

    def __init__(
        self, encoder: PreTrainedModel, heads: Mapping[str, nn.Module] | nn.ModuleDict, *, keeps_weights: bool = False
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.accepted = accepted_inputs(encoder)
        self.heads = nn.ModuleDict(dict(heads.items()))
        named = self.encoder.named_parameters(prefix="encoder") if keeps_weights else ()
        frozen = {name: parameter for name, parameter in named if not parameter.requires_grad}
        self.kept = frozenset(frozen)
        self.kept_digest = _digest(frozen) if frozen else ""

    def stored(self) -> dict[str, Tensor]:
        """The weights that a checkpoint holds: all but those kept from a published encoder."""
        return {name: tensor for name, tensor in self.state_dict().items() if name not in self.kept}

    def load_stored(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights of a checkpoint, as `stored` gives them."""
        kept = {name: tensor for name, tensor in self.state_dict().items() if name in self.kept}
        self.load_state_dict({**kept, **weights})

    def forward(self, inputs: Inputs, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The logits of each term; heads read positions from the targets, never the labels.

        Under autocast the encoder alone computes in half precision: bf16 logits would be multiples of 1/64 to 1/16, and
        the scores of many items equal.
        """
        hidden_BLH = self.encoder(**{name: inputs[name] for name in inputs if name in self.accepted}).last_hidden_state
        with torch.autocast(hidden_BLH.device.type, enabled=False):
            hidden_BLH = hidden_BLH.to(torch.promote_types(hidden_BLH.dtype, torch.float32))
            return {name: head(hidden_BLH, inputs, targets) for name, head in self.heads.items()}

    @torch.no_grad()
    def blank_logits(self, inputs: Inputs, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Logits of the right shapes without running the encoder, for counting items before the forward pass."""
        width = self.encoder.config.hidden_size
        weight = next(self.heads.parameters())
        # A single number, expanded to the shape: B x L x H zeros are never stored.
        hidden_BLH = weight.new_zeros(()).expand(*inputs["input_ids"].shape, width)
        # Dropout would draw random numbers, and the masks of the actual forward pass would change.
        was_training = self.heads.training
        self.heads.eval()
        logits = {name: head(hidden_BLH, inputs, targets) for name, head in self.heads.items()}
        self.heads.train(was_training)
        return logits


def with_heads(encoder: PreTrainedModel, heads: Mapping[str, nn.Module], config: ModelConfig) -> EncoderWithHeads:
    """The model, of whose encoder only what the settings say is trained; an adapter is added to it."""
    freeze(encoder, config.freeze)
    config.adapter.add(encoder)
    return EncoderWithHeads(encoder, heads, keeps_weights=config.keeps_weights)


def merged(model: EncoderWithHeads) -> EncoderWithHeads:
    """A model with the weights of an adapter merged into the encoder's; the model itself if it has no adapter."""
    encoder = adapter.merged(model.encoder)
    return model if encoder is model.encoder else EncoderWithHeads(encoder, model.heads).eval()


def _digest(parameters: Mapping[str, nn.Parameter]) -> str:
    content = hashlib.sha256()
    for name in sorted(parameters):
        content.update(name.encode())
        content.update(parameters[name].detach().cpu().contiguous().numpy().data)
    return content.hexdigest()[:12]
