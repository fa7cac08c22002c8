"""Where a run computes and with which numbers: what pays here is found by timing one product of matrices."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from dice_ray.errors import RunError
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Batch

Precision: TypeAlias = Literal["fp32", "bf16", "fp16"]
Logits: TypeAlias = dict[str, Tensor]

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ONLY_FP32 = frozenset({"deberta"})
"""DeBERTa's first version masks scores with the least number of fp32, which half of the bits cannot hold."""
_PAYS = 1.3
"""How much faster the product of matrices must be: the rest of a step gains nothing, and weights are converted."""


@dataclass(frozen=True)
class Numerics:
    """The device of a run, and its numbers in the encoder; weights, losses and the optimizer are fp32.

    Attributes:
        device: A GPU where there is one.
        precision: Of products of matrices.
    """

    device: torch.device
    precision: Precision

    @property
    def attention(self) -> Literal["eager", "sdpa"]:
        """The faster attention: on a CPU the fused one loses with half of the bits."""
        return "eager" if self.device.type == "cpu" and self.precision != "fp32" else "sdpa"


def resolve(written: Literal["auto"] | Precision) -> Numerics:
    """What is written, or what pays here: bf16 where it is faster, fp16 on GPUs that are older, and else fp32."""
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if has_gpu else torch.device("cpu")
    return Numerics(device, _what_pays(device, torch.get_num_threads()) if written == "auto" else written)


def kept_by(device: torch.device) -> tuple[Precision, ...]:
    """The precisions that a device computes with."""
    if device.type == "cpu":
        return ("fp32", "bf16")
    return ("fp32", "bf16", "fp16") if torch.cuda.is_bf16_supported(including_emulation=False) else ("fp32", "fp16")


def check(numerics: Numerics) -> None:
    """Whether this machine keeps the precision of a run: with another one it would be another run.

    Raises:
        RunError: It does not.
    """
    if numerics.precision not in (known := kept_by(numerics.device)):
        raise RunError(
            f"training.precision must be {' or '.join(known)} on this machine, whose device is {numerics.device.type}, "
            f"got {numerics.precision}: go on where the run was begun, or train another one"
        )


def check_family(numerics: Numerics, encoder: str, family: str) -> None:
    """Whether an encoder computes with the precision of a run.

    Raises:
        RunError: Its family does so in fp32 alone.
    """
    if numerics.precision != "fp32" and family in ONLY_FP32:
        raise RunError(
            f"training.precision must be fp32, or auto, for model.encoder {encoder} of the family {family}, got "
            f"{numerics.precision}"
        )


def fitted(numerics: Numerics, family: str) -> Numerics:
    """The same, or fp32 where machine or family cannot compute so: a model that is trained predicts anywhere."""
    is_kept = numerics.precision in kept_by(numerics.device) and family not in ONLY_FP32
    return numerics if is_kept else replace(numerics, precision="fp32")


@lru_cache
def _what_pays(device: torch.device, threads: int) -> Precision:
    base = _seconds("fp32", device)
    if base > _PAYS * _seconds("bf16", device):
        return "bf16"
    return "fp16" if device.type == "cuda" and base > _PAYS * _seconds("fp16", device) else "fp32"


def _seconds(precision: Precision, device: torch.device) -> float:
    """The shortest time of a product of matrices as a layer of an encoder has it."""
    left, right = (torch.ones(512, 768, dtype=_TYPES[precision], device=device) for _ in "ab")
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        product = left @ right.T
        float(product[0, 0])  # waits for the device
        times.append(time.perf_counter() - begin)
    return min(times)


def forward(model: EncoderWithHeads, batch: Batch, numerics: Numerics) -> Logits:
    """The logits of a batch, in fp32 whatever the encoder computes with."""
    with torch.autocast(numerics.device.type, _TYPES[numerics.precision], enabled=numerics.precision != "fp32"):
        logits: Logits = model(batch.inputs, batch.targets)
    return {name: each.to(torch.promote_types(each.dtype, torch.float32)) for name, each in logits.items()}


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The batch where the model is."""
    if device.type == "cpu":
        return batch

    def moved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in tensors.items()}

    return replace(batch, inputs=moved(batch.inputs), targets=moved(batch.targets))


def random_state(device: torch.device) -> list[Tensor]:
    """The states of torch's random numbers: of the CPU, and of the GPU where one is used."""
    of_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *of_gpu]


def set_random_state(states: Sequence[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda" and len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)
