"""A trained model as a plain Hugging Face folder: a stock class that says the same, or the encoder and its heads."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import EncoderWithHeads, TokenHead
from dice_ray.models.pretrained import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HEADS = "heads.safetensors"
TOKENS, QUESTIONS, ENCODER = "AutoModelForTokenClassification", "AutoModelForQuestionAnswering", "AutoModel"


def export(model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str], folder: Path) -> str:
    """Write the folder; returns the name of the auto class that loads it.

    Heads on each token are those of the stock class of the encoder's family, where that gives the same logits, which is
    tried. Else the folder is for `AutoModel`, with the heads in a file of their own.
    """
    from safetensors.torch import save_file

    model.eval()
    tokenizer.save_pretrained(folder)
    name, heads = ENCODER, list(model.heads.values())
    if all(type(head) is TokenHead for head in heads):
        name = TOKENS if len(heads) == 1 else QUESTIONS if list(model.heads) == ["start", "end"] else ENCODER
    stock = None if name == ENCODER else _stock(name, model, tokenizer, classes)
    with quiet():
        (model.encoder if stock is None else stock).save_pretrained(folder)
    if stock is not None:
        return name
    save_file(model.heads.state_dict(), folder / HEADS)
    return ENCODER


def _stock(
    name: str, model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str]
) -> PreTrainedModel | None:
    """The family's model of this auto class with our weights, if there is one and it says what ours says."""
    import transformers

    outputs = [head.get_submodule("output").state_dict() for head in model.heads.values()]
    weights = {kind: torch.cat([output[kind] for output in outputs]) for kind in ("weight", "bias")}
    config = copy.deepcopy(model.encoder.config)
    config.num_labels = len(weights["bias"])
    if name == TOKENS:
        config.id2label = dict(enumerate(classes))
        config.label2id = {label: index for index, label in enumerate(classes)}
    try:
        stock: PreTrainedModel = getattr(transformers, name).from_config(config)
    except ValueError:  # the family has none
        return None
    own = _output(stock)
    if own is None or {kind: value.shape for kind, value in own.state_dict().items()} != {
        kind: value.shape for kind, value in weights.items()
    }:
        return None
    own.load_state_dict(weights)
    stock.base_model.load_state_dict(model.encoder.state_dict())
    probe = dict(tokenizer([" ".join(classes)], return_tensors="pt"))
    return stock if _says_the_same(stock.eval(), model, probe) else None


def _output(stock: PreTrainedModel) -> nn.Linear | None:
    """The one module with weights that a stock model has beside its encoder, if that is a linear layer."""
    inside = {id(parameter) for parameter in stock.base_model.parameters()}
    others = [
        module
        for module in stock.modules()
        if any(id(parameter) not in inside for parameter in module.parameters(recurse=False))
    ]
    return others[0] if len(others) == 1 and isinstance(others[0], nn.Linear) else None


@torch.no_grad()
def _says_the_same(stock: nn.Module, model: EncoderWithHeads, probe: dict[str, Tensor]) -> bool:
    ours_BLC = torch.cat(list(model(probe, {}).values()), -1)
    said = stock(**probe)
    theirs_BLC = said.logits if "logits" in said else torch.stack([said.start_logits, said.end_logits], -1)
    return torch.allclose(theirs_BLC, ours_BLC, rtol=1e-5, atol=1e-5)
