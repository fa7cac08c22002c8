"""The encoder families of the contract suite: tiny random encoders with tokenizers of their kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

NUM_PIECES = 600
NUM_POSITIONS = 512
WIDTH = 16
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": NUM_POSITIONS,
}
BERTS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def save(family: str, folder: Path, texts: Sequence[str]) -> Path:
    """Write a random encoder of a family, and its tokenizer trained on the texts, in the published format."""
    from transformers import AutoModel

    tokenizer, config = FAMILIES[family](texts)
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _bert(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import BertConfig

    tokenizer = _wordpiece(texts)
    return tokenizer, BertConfig(vocab_size=len(tokenizer), **SIZES)


def _electra(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import ElectraConfig

    tokenizer = _wordpiece(texts)
    return tokenizer, ElectraConfig(vocab_size=len(tokenizer), embedding_size=8, **SIZES)


def _roberta(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import RobertaConfig, RobertaTokenizer

    tokenizer = RobertaTokenizer(**_byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]))
    sizes = SIZES | {"max_position_embeddings": NUM_POSITIONS + 2}
    return tokenizer, RobertaConfig(vocab_size=len(tokenizer), type_vocab_size=1, pad_token_id=1, **sizes)


def _deberta(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import DebertaConfig, DebertaTokenizer

    tokenizer = DebertaTokenizer(**_byte_level(texts, list(BERTS.values())))
    relative: dict[str, Any] = {
        "relative_attention": True,
        "position_biased_input": False,
        "pos_att_type": ["c2p", "p2c"],
    }
    return tokenizer, DebertaConfig(vocab_size=len(tokenizer), type_vocab_size=0, **relative, **SIZES)


def _deberta_v3(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import DebertaV2Config, DebertaV2Tokenizer

    tokenizer = DebertaV2Tokenizer(_unigram(texts, ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], "[UNK]"))
    relative: dict[str, Any] = {
        "relative_attention": True,
        "position_buckets": 32,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    }
    return tokenizer, DebertaV2Config(vocab_size=len(tokenizer), type_vocab_size=0, **relative, **SIZES)


def _modernbert(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import ModernBertConfig, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(**_byte_level(texts, list(BERTS.values()))))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    places = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=places
    )
    names = ["input_ids", "attention_mask"]
    ids: dict[str, Any] = {
        f"{name}_token_id": tokenizer.token_to_id(f"[{name.upper()}]") for name in ("pad", "cls", "sep")
    }
    config = ModernBertConfig(
        vocab_size=tokenizer.get_vocab_size(), bos_token_id=None, eos_token_id=None, **ids, **SIZES
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=names, **BERTS), config


def _xlm_roberta(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import XLMRobertaConfig, XLMRobertaTokenizer

    tokenizer = XLMRobertaTokenizer(_unigram(texts, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<unk>"))
    sizes = SIZES | {"max_position_embeddings": NUM_POSITIONS + 2}
    return tokenizer, XLMRobertaConfig(vocab_size=len(tokenizer), type_vocab_size=1, pad_token_id=1, **sizes)


def _qwen3(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    """A decoder, whose tokenizer adds no special tokens, and pads on the left."""
    from transformers import Qwen2Tokenizer, Qwen3Config

    tokenizer = Qwen2Tokenizer(**_byte_level(texts, ["<|endoftext|>"]), padding_side="left")
    sizes = SIZES | {"num_key_value_heads": 1, "head_dim": 8}
    ids: dict[str, Any] = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return tokenizer, Qwen3Config(vocab_size=len(tokenizer), **ids, **sizes)


def _llama(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    """A decoder whose tokenizer has no padding token, and puts a token before each text."""
    from transformers import LlamaConfig, LlamaTokenizer

    special = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=NUM_PIECES, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in trained["merges"]]
    llama = LlamaTokenizer(trained["vocab"], merges, add_bos_token=True, padding_side="right")
    return llama, LlamaConfig(vocab_size=len(llama), **SIZES)


def _xlnet(texts: Sequence[str]) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    from transformers import XLNetConfig, XLNetTokenizer

    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    tokenizer = XLNetTokenizer(_unigram(texts, special, "<unk>"))
    return tokenizer, XLNetConfig(vocab_size=len(tokenizer), d_model=WIDTH, n_layer=2, n_head=2, d_inner=32)


FAMILIES: dict[str, Callable[[Sequence[str]], tuple[PreTrainedTokenizerBase, PretrainedConfig]]] = {
    "bert": _bert,
    "electra": _electra,
    "roberta": _roberta,
    "xlm_roberta": _xlm_roberta,
    "deberta": _deberta,
    "deberta_v3": _deberta_v3,
    "modernbert": _modernbert,
    "xlnet": _xlnet,
    "qwen3": _qwen3,
    "llama": _llama,
}


def _wordpiece(texts: Sequence[str]) -> PreTrainedTokenizerBase:
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=NUM_PIECES, special_tokens=list(BERTS.values()), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return BertTokenizer(tokenizer.get_vocab())


def _byte_level(texts: Sequence[str], special: list[str]) -> dict[str, Any]:
    """A vocabulary and merges trained on running text, in which most words follow a space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=NUM_PIECES,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    return {"vocab": trained["vocab"], "merges": [tuple(pair) for pair in trained["merges"]]}


def _unigram(texts: Sequence[str], special: list[str], unknown: str) -> list[tuple[str, float]]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=NUM_PIECES, special_tokens=special, unk_token=unknown, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
