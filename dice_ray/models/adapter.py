"""Adapters: few new weights that are trained in place of the encoder's own, and merged into them for an export."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field
from torch import nn

from dice_ray.errors import RunError
from dice_ray.settings import Branch, Choice

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class _AdapterBranch(Branch, ABC):
    @abstractmethod
    def add(self, encoder: PreTrainedModel) -> None:
        """Add the adapter's weights to the encoder, in place, and freeze all others."""


class NoAdapterConfig(_AdapterBranch):
    """The encoder's own weights are trained, except those that `model.freeze` names."""

    name = "none"

    def add(self, encoder: PreTrainedModel) -> None:
        pass


class LoraConfig(_AdapterBranch):
    """LoRA (Hu et al. 2022) in every linear layer of the encoder: W + alpha / rank x B A, of which A and B are trained.

    It needs the library peft, and a higher learning rate than the training of all weights, such as 1e-3. At the start
    B is 0, so the encoder gives what it gives without an adapter.

    Attributes:
        rank: Rows of A and columns of B.
        alpha: Scale of the adapter.
        dropout: Dropout rate before A.
    """

    name = "lora"

    rank: int = Field(8, ge=1, le=1024)
    alpha: float = Field(16.0, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)

    def add(self, encoder: PreTrainedModel) -> None:
        try:
            import peft
        except ModuleNotFoundError as error:
            raise RunError(
                "model.adapter=lora needs the library peft, which is not installed: `pip install peft`"
            ) from error
        # All linear layers, not peft's choice for each family, which knows neither ModernBERT nor DistilBERT.
        config = peft.LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,  # type: ignore[arg-type]  # a float works as well
            lora_dropout=self.dropout,
            target_modules="all-linear",
        )
        peft.inject_adapter_in_model(config, encoder)


AdapterConfig: TypeAlias = Annotated[NoAdapterConfig | LoraConfig, Choice()]


def merged(encoder: PreTrainedModel) -> PreTrainedModel:
    """A copy of the encoder with the adapter's weights merged into its own; the encoder itself if it has no adapter."""
    if not any(name.endswith(".base_layer.weight") for name, _ in encoder.named_parameters()):
        return encoder
    from peft.tuners.tuners_utils import BaseTunerLayer

    plain = copy.deepcopy(encoder)
    for name, module in list(plain.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            base = module.get_base_layer()
            assert isinstance(base, nn.Module)
            plain.set_submodule(name, base)
    return plain
