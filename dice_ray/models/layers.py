"""Layers of an encoder by the names of its parameters, and which of them are not trained."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import PlainValidator
from torch import nn

_LAYER = re.compile(r"(?:^|\.)(?:layers?|blocks?|h|attentions|ffns|layer_norm[12])\.(\d+)\.")
_EMBEDDINGS = re.compile("embed|wte|wpe")


def _named_or_number(written: object) -> str | int:
    if written in ("none", "embeddings", "encoder"):
        return str(written)
    try:
        number = int(str(written))
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError("must be none, embeddings, encoder, or a number of layers")
    return number


Freeze: TypeAlias = Annotated[Literal["none", "embeddings", "encoder"] | int, PlainValidator(_named_or_number)]
"""What of an encoder is not trained; a number is that of the lowest layers, with the embeddings."""


def depth(name: str) -> int | None:
    """0 for a parameter of the embeddings, layers from 1 on, `None` for parameters above all layers."""
    if layer := _LAYER.search(name):
        return int(layer[1]) + 1
    return 0 if _EMBEDDINGS.search(name) else None


def num_layers(encoder: nn.Module) -> int:
    """The number of layers whose parameters have a layer's name; 0 where layers share one set of parameters."""
    return max((depth(name) or 0 for name, _ in encoder.named_parameters()), default=0)


def freeze(encoder: nn.Module, what: Freeze) -> None:
    """Exclude parameters from training: all of the encoder, or those up to a layer."""
    highest = {"none": -1, "embeddings": 0}.get(str(what), what)
    for name, parameter in encoder.named_parameters():
        at = depth(name)
        if highest == "encoder" or (at is not None and at <= int(highest)):
            parameter.requires_grad_(False)
