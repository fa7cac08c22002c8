"""Exports a trained model as a Hugging Face folder: a stock class with equal logits, or the encoder and its heads."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.models.heads import TextHead, TokenHead
from dice_ray.models.pretrained import quiet
from dice_ray.models.stock import has_equal_logits, probe, stock_model
from dice_ray.models.text_classifier import stock_classifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HEADS = "heads.safetensors"
TOKENS, QUESTIONS, ENCODER = "AutoModelForTokenClassification", "AutoModelForQuestionAnswering", "AutoModel"
TEXTS = "AutoModelForSequenceClassification"


def export(
    model: EncoderWithHeads,
    tokenizer: PreTrainedTokenizerBase,
    classes: Sequence[str],
    folder: Path,
    *,
    is_multi_label: bool = False,
    is_position: bool = False,
) -> str:
    """Write the folder and return the name of the auto class that loads it.

    Heads over tokens and texts become those of the stock class of the encoder's family if it gives the same logits,
    which is checked on an example. Otherwise the folder is for `AutoModel`, with the heads in a separate file, as for
    starts and ends that are classified by token: users of the class for questions take a softmax over positions, by
    which another span may be the best.
    """
    from safetensors.torch import save_file

    # The stock class that it is compared with lies on the CPU; the caller goes on with its own, perhaps on a GPU.
    model = copy.deepcopy(model).cpu().eval()
    tokenizer.save_pretrained(folder)
    name, heads = ENCODER, list(model.heads.values())
    if all(type(head) is TokenHead for head in heads):
        name = TOKENS if len(heads) == 1 else QUESTIONS if is_position else ENCODER
    stock = None if name == ENCODER else _stock(name, model, tokenizer, classes)
    if len(heads) == 1 and type(heads[0]) is TextHead:
        name, stock = TEXTS, stock_classifier(model, tokenizer, classes, is_multi_label=is_multi_label)
    with quiet():
        (model.encoder if stock is None else stock).save_pretrained(folder)
    if stock is not None:
        return name
    save_file(model.heads.state_dict(), folder / HEADS)
    return ENCODER


def _stock(
    name: str, model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str]
) -> PreTrainedModel | None:
    """The family's model of this auto class with our weights; None if there is none or its logits differ."""
    outputs = [head.get_submodule("output").state_dict() for head in model.heads.values()]
    weights = {kind: torch.cat([output[kind] for output in outputs]) for kind in ("weight", "bias")}
    config = copy.deepcopy(model.encoder.config)
    config.num_labels = len(weights["bias"])
    if name == TOKENS:
        config.id2label = dict(enumerate(classes))
        config.label2id = {label: index for index, label in enumerate(classes)}
    stock = stock_model(name, config, model)
    output = None if stock is None else _output_layer(stock)
    if (
        stock is None
        or output is None
        or {kind: tuple(value.shape) for kind, value in output.state_dict().items()}
        != {kind: tuple(value.shape) for kind, value in weights.items()}
    ):
        return None
    output.load_state_dict(weights)
    return stock if has_equal_logits(stock, model, probe(tokenizer)) else None


def _output_layer(stock: PreTrainedModel) -> nn.Linear | None:
    """The only module with weights outside the stock model's encoder; None if there are others or it is not linear."""
    encoder_parameters = {id(parameter) for parameter in stock.base_model.parameters()}
    others = [
        module
        for module in stock.modules()
        if any(id(parameter) not in encoder_parameters for parameter in module.parameters(recurse=False))
    ]
    return others[0] if len(others) == 1 and isinstance(others[0], nn.Linear) else None
