"""The stock class of sequence classification with the logits of our head, which is linear in the classification token.

Stock classes put a dense layer with an activation between that token and the output. Here the dense layer is the
identity, scaled or shifted to where the activation is linear, and the output undoes it: tanh is linear near zero, GELU
and ReLU are far above it. In float32 the logits are equal; half precision is too coarse for both.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.models.stock import has_equal_logits, probe, stock_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LINEAR = ((1e-4, 0.0), (1.0, 32.0))
"""Scale and shift of the dense layer: for tanh, and for GELU and ReLU."""


def stock_classifier(
    model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str], *, is_multi_label: bool
) -> PreTrainedModel | None:
    """The family's stock class with our weights; None if there is none, or it cannot have our logits."""
    config = copy.deepcopy(model.encoder.config)
    config.num_labels = len(classes)
    config.id2label = dict(enumerate(classes))
    config.label2id = {label: index for index, label in enumerate(classes)}
    config.problem_type = "multi_label_classification" if is_multi_label else "single_label_classification"
    stock = stock_model("AutoModelForSequenceClassification", config, model)
    if stock is None:
        return None
    example = probe(tokenizer)
    weight_CH, bias_C = _output_of(model, len(classes))
    shapes = [weight_CH.shape, (weight_CH.shape[1],) * 2]
    output, dense = [*reversed(_linear_layers(stock, example)), None, None][:2]
    if output is None or dense is None or [output.weight.shape, dense.weight.shape] != shapes:
        return None
    if not all("bias" in layer.state_dict() for layer in (output, dense)):
        return None
    for scale, shift in LINEAR:
        output.load_state_dict({"weight": weight_CH / scale, "bias": bias_C - shift * weight_CH.sum(1)})
        dense.load_state_dict(
            {"weight": scale * torch.eye(len(dense.bias)), "bias": torch.full_like(dense.bias, shift)}
        )
        if has_equal_logits(stock, model, example):
            return stock
    return None


def _output_of(model: EncoderWithHeads, num_classes: int) -> tuple[Tensor, Tensor]:
    """Weight and bias of our head, with a logit for each class: of two classes the head may have only the second's."""
    (head,) = model.heads.values()
    output = head.get_submodule("output").state_dict()
    weight_CH, bias_C = output["weight"], output["bias"]
    if len(bias_C) == 1 and num_classes == 2:
        return torch.cat([torch.zeros_like(weight_CH), weight_CH]), torch.cat([torch.zeros_like(bias_C), bias_C])
    return weight_CH, bias_C


@torch.no_grad()
def _linear_layers(stock: PreTrainedModel, example: dict[str, Tensor]) -> list[nn.Linear]:
    """The linear layers in the order in which they run."""
    ran: list[nn.Linear] = []

    def note(module: nn.Module, *_: Any) -> None:
        assert isinstance(module, nn.Linear)
        ran.append(module)

    handles = [module.register_forward_hook(note) for module in stock.modules() if isinstance(module, nn.Linear)]
    stock(**example)
    for handle in handles:
        handle.remove()
    return ran
