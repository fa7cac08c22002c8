"""The tiny encoder: a small BERT with random weights, and a tokenizer that is built from the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

TINY = "tiny"
_TINY_VOCABULARY = 4000
_MAX_CHARACTERS = 1500
"""Each takes two places, so that a quarter of the vocabulary is left for words, such as those of one character."""
_SPECIAL_TOKENS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def tiny_settings(tokenizer: PreTrainedTokenizerBase) -> PretrainedConfig:
    """The settings of the encoder, for a tokenizer's vocabulary."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128
    )


def wordpiece(texts: Iterable[str]) -> str:
    """A WordPiece tokenizer with the most frequent characters, usually all, and the most frequent words, serialised.

    The trainers of the tokenizers library are not used: their vocabulary differs from process to process.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    of_characters: Counter[str] = Counter()
    for word, count in counts.items():
        of_characters.update(dict.fromkeys(word, count))
    by_count = sorted(of_characters, key=lambda character: (-of_characters[character], character))
    characters = sorted(by_count[:_MAX_CHARACTERS])
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*_SPECIAL_TOKENS.values(), *characters, *(f"##{character}" for character in characters), *frequent]
    vocabulary = {piece: index for index, piece in enumerate([*dict.fromkeys(pieces)][:_TINY_VOCABULARY])}

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer.to_str()


def tokenizer_json(tokenizer: PreTrainedTokenizerBase) -> str:
    """A tokenizer serialised as JSON, without the truncation and padding that its last call set."""
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_truncation()  # each call sets both again
    backend.no_padding()
    return backend.to_str()


def tiny_tokenizer(serialised: str) -> PreTrainedTokenizerBase:
    """The tiny encoder's tokenizer, from the JSON that `tokenizer_json` returned."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    names = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(serialised), model_input_names=names, **_SPECIAL_TOKENS
    )
