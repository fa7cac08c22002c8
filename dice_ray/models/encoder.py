"""A pretrained (or tiny) encoder with a task's heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor, nn

from dice_ray.models.pretrained import (
    freeze_unused_parameters,
    load_pretrained_encoder,
    load_pretrained_tokenizer,
    taken,
    with_dropout,
)
from dice_ray.settings import Settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from dice_ray.terms import TermFacts

TINY = "tiny"
TINY_VOCABULARY = 4000
SPECIAL_TOKENS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}

Inputs: TypeAlias = dict[str, Tensor]
"""What an encoder takes, by the tokenizer's names: `input_ids`, `attention_mask`, ..."""


class ModelConfig(Settings):
    """The encoder and how its heads start, which are always fresh.

    `minilm` is all-MiniLM-L6-v2: 6 layers, 384 wide, uncased English. It was itself trained on the question pairs of
    QQP, on question and answer pairs of SQuAD 2.0 and on NLI: its scores there are no scores on unseen data.

    Attributes:
        encoder: `tiny` (small, random, its tokenizer trained on the data), `minilm`, a folder, or a hub id.
        head_bias: `prior` starts the heads at the log prior of the classes, a control for imbalance.
        dropout: In the encoder and before each head.
    """

    encoder: str = TINY
    head_bias: Literal["zero", "prior"] = "zero"
    dropout: float = Field(0.1, ge=0, lt=1)

    @property
    def fresh(self) -> str:
        """What starts at random, and how."""
        parts = "encoder and heads" if self.encoder == TINY else "heads"
        return f"{parts}, bias {self.head_bias}"


def load_tokenizer(config: ModelConfig, texts: Iterable[str]) -> PreTrainedTokenizerBase:
    """The encoder's tokenizer; the tiny one is trained on the texts."""
    if config.encoder == TINY:
        return tiny_tokenizer(_trained(texts))
    return load_pretrained_tokenizer(config.encoder)


def tokenizer_json(tokenizer: PreTrainedTokenizerBase) -> str:
    """All that a tokenizer does to a text, as its own library writes it."""
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_truncation()  # how the last texts were cut is no part of it, and each call sets it anew
    backend.no_padding()
    return backend.to_str()


def tiny_tokenizer(written: str) -> PreTrainedTokenizerBase:
    """The tiny encoder's tokenizer, as it was written."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    names = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(written), model_input_names=names, **SPECIAL_TOKENS
    )


def load_encoder(
    config: ModelConfig, tokenizer: PreTrainedTokenizerBase, attention: Literal["eager", "sdpa"] = "sdpa"
) -> PreTrainedModel:
    """The encoder with its weights; a tiny one starts from torch's random state.

    Args:
        config: Which one.
        tokenizer: Its tokenizer.
        attention: How it attends, unless it can do so in another way only.
    """
    from transformers import BertConfig, BertModel

    encoder: PreTrainedModel
    if config.encoder == TINY:
        tiny = BertConfig(
            vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128
        )
        tiny._attn_implementation = attention
        encoder = BertModel(with_dropout(tiny, config.dropout))
    else:
        encoder = load_pretrained_encoder(config.encoder, config.dropout, tokenizer, attention)
    freeze_unused_parameters(encoder, tokenizer)
    return encoder


class TokenHead(nn.Module):
    """One row of logits a token, from its hidden state."""

    def __init__(self, width: int, num_logits: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, num_logits)

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        logits_BLC: Tensor = self.output(self.dropout(hidden_BLH))
        return logits_BLC


class TextHead(TokenHead):
    """One row of logits a text, from the hidden state of its classification token, at `targets["cls"]`."""

    def forward(self, hidden_BLH: Tensor, inputs: Inputs, targets: Mapping[str, Tensor]) -> Tensor:
        cls_B = targets["cls"]
        hidden_BH = hidden_BLH[torch.arange(len(cls_B), device=cls_B.device), cls_B]
        return super().forward(hidden_BH, inputs, targets)


class EncoderWithHeads(nn.Module):
    """An encoder and a head for each term."""

    def __init__(self, encoder: PreTrainedModel, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.taken = taken(encoder)
        self.heads = nn.ModuleDict(heads)

    def forward(self, inputs: Inputs, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The logits of each term; a head may read from the targets where to look, never what the answer is."""
        hidden_BLH = self.encoder(**{name: inputs[name] for name in inputs if name in self.taken}).last_hidden_state
        return {name: head(hidden_BLH, inputs, targets) for name, head in self.heads.items()}

    @torch.no_grad()
    def blank_logits(self, inputs: Inputs, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Logits of the same shapes without running the encoder: what counts is known before what it says."""
        width = self.encoder.config.hidden_size
        weight = next(self.heads.parameters())
        hidden_BLH = weight.new_zeros(()).expand(*inputs["input_ids"].shape, width)
        was_training = self.heads.training
        self.heads.eval()
        logits = {name: head(hidden_BLH, inputs, targets) for name, head in self.heads.items()}
        self.heads.train(was_training)
        return logits


@torch.no_grad()
def start_heads(heads: Mapping[str, nn.Module], facts: Sequence[TermFacts], bias: Literal["zero", "prior"]) -> None:
    """Start each fresh head with small weights, and its bias at zero or at the log prior of its term."""
    for term in facts:
        output = heads[term.name].get_submodule("output")
        assert isinstance(output, nn.Linear)
        nn.init.normal_(output.weight, std=0.02)
        nn.init.zeros_(output.bias)
        if bias == "prior" and term.link == "softmax":
            output.bias.copy_(torch.tensor(term.log_prior))
        elif bias == "prior" and term.link == "sigmoid":
            output.bias.fill_(term.log_prior[1] - term.log_prior[0])


def _trained(texts: Iterable[str]) -> str:
    """WordPiece over frequent words and all characters: trained merges would differ from process to process."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = sorted({character for word in counts for character in word})
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*SPECIAL_TOKENS.values(), *characters, *(f"##{character}" for character in characters), *frequent]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces[:TINY_VOCABULARY]))}

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer.to_str()
