"""Exports a trained model as a Hugging Face folder: a stock class with equal logits, or the encoder and its heads."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.models.heads import TextHead, TokenHead
from dice_ray.models.pretrained import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HEADS = "heads.safetensors"
TOKENS, TEXTS, ENCODER = "AutoModelForTokenClassification", "AutoModelForSequenceClassification", "AutoModel"
_QUESTIONS = "AutoModelForQuestionAnswering"


def export(
    model: EncoderWithHeads,
    tokenizer: PreTrainedTokenizerBase,
    classes: Sequence[str],
    folder: Path,
    *,
    is_multi_label: bool = False,
    is_position: bool = False,
    temperature: float = 1.0,
    background_bias: float = 0.0,
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
    heads = list(model.heads.values())
    for parameter in (each for head in heads for each in head.get_submodule("output").parameters()):
        parameter.data.div_(temperature)
    if background_bias:  # of a tagger, whose first class is the background
        heads[0].get_parameter("output.bias").data[0] += background_bias
    tokenizer.save_pretrained(folder)
    name, stock = ENCODER, None
    if [type(head) for head in heads] == [TextHead]:
        name, stock = TEXTS, _stock_classifier(model, tokenizer, classes, is_multi_label=is_multi_label)
    elif all(type(head) is TokenHead for head in heads) and (len(heads) == 1 or is_position):
        name = TOKENS if len(heads) == 1 else _QUESTIONS
        stock = _stock(name, model, tokenizer, classes)
    with quiet():
        (model.encoder if stock is None else stock).save_pretrained(folder)
    if stock is None:
        save_file(model.heads.state_dict(), folder / HEADS)
    for weights in folder.glob("*.safetensors"):  # version 0.8 writes them for their owner alone
        shutil.copymode(folder / "config.json", weights)
    return ENCODER if stock is None else name


def _stock(
    name: str, model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str]
) -> PreTrainedModel | None:
    """The family's model of this auto class with our weights; None if there is none or its logits differ."""
    outputs = [head.get_submodule("output").state_dict() for head in model.heads.values()]
    weights = {kind: torch.cat([output[kind] for output in outputs]) for kind in ("weight", "bias")}
    stock = _stock_model(name, model, classes, num_labels=len(weights["bias"]))
    output = None if stock is None else _output_layer(stock)
    if stock is None or output is None or not _has_shapes(output, weights):
        return None
    output.load_state_dict(weights)
    return stock if _has_equal_logits(stock, model, _probe(tokenizer)) else None


def _output_layer(stock: PreTrainedModel) -> nn.Linear | None:
    """The only module with weights outside the stock model's encoder; None if there are others or it is not linear."""
    encoder_parameters = {id(parameter) for parameter in stock.base_model.parameters()}
    others = [
        module
        for module in stock.modules()
        if any(id(parameter) not in encoder_parameters for parameter in module.parameters(recurse=False))
    ]
    return others[0] if len(others) == 1 and isinstance(others[0], nn.Linear) else None


def _stock_classifier(
    model: EncoderWithHeads, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str], *, is_multi_label: bool
) -> PreTrainedModel | None:
    """The family's stock class of sequence classification; None if there is none, or it cannot have our logits.

    Our head is linear in the classification token. Stock classes put a dense layer with an activation between that
    token and the output. Here the dense layer is the identity, scaled or shifted to where the activation is linear, and
    the output undoes it: tanh is linear near zero, GELU and ReLU are far above it. In float32 the logits are equal;
    half precision is too coarse for both.
    """
    stock = _stock_model(TEXTS, model, classes, num_labels=len(classes))
    if stock is None:
        return None
    stock.config.problem_type = "multi_label_classification" if is_multi_label else "single_label_classification"
    example = _probe(tokenizer)
    weight_CH, bias_C = _output_of(model, len(classes))
    width = weight_CH.shape[1]
    output, dense = [*reversed(_linear_layers(stock, example)), None, None][:2]
    # Scale and shift of the dense layer: for tanh, and for GELU and ReLU.
    for scale, shift in ((1e-4, 0.0), (1.0, 32.0)):
        of_output = {"weight": weight_CH / scale, "bias": bias_C - shift * weight_CH.sum(1)}
        of_dense = {"weight": scale * torch.eye(width), "bias": torch.full((width,), shift)}
        if output is None or dense is None or not (_has_shapes(output, of_output) and _has_shapes(dense, of_dense)):
            return None
        output.load_state_dict(of_output)
        dense.load_state_dict(of_dense)
        if _has_equal_logits(stock, model, example):
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


def _has_shapes(layer: nn.Linear, weights: dict[str, Tensor]) -> bool:
    """Whether the layer has these weights, in these shapes."""
    own = layer.state_dict()
    return own.keys() == weights.keys() and all(own[name].shape == weights[name].shape for name in own)


def _stock_model(
    auto_class: str, model: EncoderWithHeads, classes: Sequence[str], num_labels: int
) -> PreTrainedModel | None:
    """The family's class with our encoder's weights and random ones in other layers; None if the family has no class.

    Some classes have a pooler that their logits do not depend on, as BigBird's for tokens. A weight that is missing for
    another reason makes the logits differ, which `_has_equal_logits` finds.
    """
    import transformers

    config = copy.deepcopy(model.encoder.config)
    config.num_labels = num_labels
    if auto_class != _QUESTIONS:
        config.id2label = dict(enumerate(classes))
        config.label2id = {label: index for index, label in enumerate(classes)}
    try:
        stock: PreTrainedModel = getattr(transformers, auto_class).from_config(config).eval()
    except ValueError:
        return None
    stock.base_model.load_state_dict(model.encoder.state_dict(), strict=False)
    return stock


def _probe(tokenizer: PreTrainedTokenizerBase) -> dict[str, Tensor]:
    """An example with many words of the vocabulary, on which the logits are compared."""
    num_words, words = 60, sorted(word for word in tokenizer.get_vocab() if word.isalpha())
    text = " ".join(words[:: max(1, len(words) // num_words)])
    return dict(tokenizer([text], truncation=True, max_length=num_words, return_tensors="pt"))


@torch.no_grad()
def _has_equal_logits(stock: PreTrainedModel, model: EncoderWithHeads, example: dict[str, Tensor]) -> bool:
    """Whether both give the same logits; a head with a logit for the second of two classes has 0 for the first."""
    # A classification token at the end, as XLNet's, makes the logits of texts differ.
    ours = torch.cat(list(model(example, {"cls": torch.tensor([0])}).values()), -1)
    output = stock(**example)
    theirs = output.logits if "logits" in output else torch.stack([output.start_logits, output.end_logits], -1)
    if ours.shape != theirs.shape:
        ours = torch.cat([torch.zeros_like(ours), ours], -1)
    return torch.allclose(theirs, ours, rtol=1e-5, atol=1e-5)
