"""Tokenizers of pretrained encoders and decoders, adapted and checked for use by every task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dice_ray.errors import RefusedError
from dice_ray.models.pretrained import explained
from dice_ray.models.sources import resolve_source

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase


def load_pretrained_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder; a RunError if it does not exist, or lacks what tasks need."""
    from transformers import AutoTokenizer, XLNetTokenizer

    source = resolve_source(name)
    with explained(name):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    if tokenizer.is_fast and tokenizer.cls_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer = _with_end_tokens(tokenizer)
    if requirement := _unmet_requirement(tokenizer):
        raise RefusedError(
            f"the tokenizer of model.encoder {name!r} must {requirement}: got a {type(tokenizer).__name__}"
        )
    _add_prefix_space(tokenizer)
    if isinstance(tokenizer, XLNetTokenizer):
        # XLNet was pretrained with segment ids, and marks its classification token by one.
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
        tokenizer.init_kwargs["model_input_names"] = tokenizer.model_input_names  # only these names are saved
    return tokenizer


def _add_prefix_space(tokenizer: PreTrainedTokenizerBase) -> None:
    """Make a byte-level tokenizer read every word as if it followed a space.

    By default it reads the first word of a text, and every word of a list of words, as the continuation of a word.
    """
    from tokenizers import normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Sequence
    from tokenizers.processors import ByteLevel as Trimming
    from tokenizers.processors import RobertaProcessing

    backend: Tokenizer = tokenizer.backend_tokenizer
    splitter, trimming = backend.pre_tokenizer, backend.post_processor
    if isinstance(splitter, ByteLevel):
        splitter.add_prefix_space = True
        # The class of RoBERTa ignores the splitter of a saved tokenizer, and makes one by this attribute.
        tokenizer.add_prefix_space = True
        if isinstance(trimming, RobertaProcessing | Trimming):
            trimming.add_prefix_space = True  # otherwise it trims the offset of the first letter as that space
    elif isinstance(splitter, Sequence) and "ByteLevel" in str(splitter):
        # Decoders split by a pattern first, and each of the parts would get a space.
        space, own = normalizers.Prepend(" "), backend.normalizer
        if str(space) not in str(own):  # else it was adapted before: that of a run or of an exported model
            backend.normalizer = normalizers.Sequence([space] if own is None else [space, own])


def _with_end_tokens(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """The tokenizer of a decoder, with its end token behind each text, also as classification token.

    The hidden state of that token depends on the whole text, and it separates the texts of a pair. The class of a
    family would set its own special tokens again when it is loaded; this class loads what was stored.
    """
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    end, before = tokenizer.eos_token, tokenizer.convert_ids_to_tokens(tokenizer("")["input_ids"])
    begin = "".join(f"{token} " for token in before if token != end)
    tokens = [(token, tokenizer.convert_tokens_to_ids(token)) for token in dict.fromkeys([*before, end])]
    backend: Tokenizer = tokenizer.backend_tokenizer
    template = processors.TemplateProcessing(
        single=f"{begin}$A {end}", pair=f"{begin}$A {end} $B:1 {end}:1", special_tokens=tokens
    )
    is_byte_level = "ByteLevel" in str(backend.post_processor)
    backend.post_processor = (
        processors.Sequence([processors.ByteLevel(trim_offsets=True), template]) if is_byte_level else template
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "attention_mask"],
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        pad_token=tokenizer.pad_token or end,
        unk_token=tokenizer.unk_token,
        bos_token=tokenizer.bos_token,
        eos_token=end,
        cls_token=end,
    )


def _unmet_requirement(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The first requirement of the tasks that a tokenizer does not meet, worded to follow "must"."""
    if not tokenizer.is_fast:
        return "be a fast one (tokenizer.json), which returns the character offsets of tokens"
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        return "have a vocabulary"
    if tokenizer.pad_token_id is None:
        return "have a padding token"
    ids = tokenizer("")["input_ids"]
    if tokenizer.cls_token_id is None or not ids or tokenizer.cls_token_id not in (ids[0], ids[-1]):
        return "put a classification token first or last in a text"
    return None
