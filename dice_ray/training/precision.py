"""The device and the precision of a run; `auto` times a matrix product and chooses the fastest precision.

The encoder runs under autocast; weights, heads, losses and the optimizer are fp32 in any case.
"""

from __future__ import annotations

import os
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
"""DeBERTa's first version masks attention scores with the lowest fp32 number, which overflows in half precision."""
_CAPACITIES = {"LRU_CACHE_CAPACITY": "1", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128"}
"""How many kernels torch's two caches keep, each for a shape of its operands; it reads the variables on first use.

By default each keeps 1,024: on a CPU in bf16 they grew by 8 MB with each batch of another length. After 500 steps with
rows of 256 tokens they held 2 GB, and the process 9 GB, since they also fragment the heap.
"""


@dataclass(frozen=True)
class Numerics:
    """The device and the precision of a run."""

    device: torch.device
    precision: Precision

    @property
    def attention(self) -> Literal["eager", "sdpa"]:
        """The faster implementation of attention: on a CPU in half precision the fused one is slower for usual rows.

        Without dropout it was 1.6 times as fast at 480 tokens, and slower at 128; with dropout it was no faster.
        """
        return "eager" if self.device.type == "cpu" and self.precision != "fp32" else "sdpa"


def resolve(written: Literal["auto"] | Precision, *, on_gpu: bool = True) -> Numerics:
    """The device, a GPU if there is one and the run may use it, and the precision.

    `auto` is bf16, or fp16 on GPUs without bf16, where that is clearly faster than fp32, and else fp32. Limits torch's
    caches of kernels, as long as this process has not used them.
    """
    for name, capacity in _CAPACITIES.items():
        os.environ.setdefault(name, capacity)
    on_gpu = on_gpu and torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    return Numerics(device, _fastest(device, torch.get_num_threads()) if written == "auto" else written)


def supported_by(device: torch.device) -> tuple[Precision, ...]:
    if device.type == "cpu":
        return ("fp32", "bf16")
    return ("fp32", "bf16", "fp16") if torch.cuda.is_bf16_supported(including_emulation=False) else ("fp32", "fp16")


def check(numerics: Numerics) -> None:
    """Raise RunError for a precision that this machine does not support: another one would give other results."""
    if numerics.precision not in (supported := supported_by(numerics.device)):
        raise RunError(
            f"training.precision must be {' or '.join(supported)} on this machine, whose device is "
            f"{numerics.device.type}, got {numerics.precision}; a run that was started with {numerics.precision} is "
            "resumed on a machine that supports it"
        )


def check_family(numerics: Numerics, encoder: str, family: str) -> None:
    """Raise RunError for a precision that the encoder's family does not support."""
    if numerics.precision != "fp32" and family in ONLY_FP32:
        raise RunError(
            f"training.precision must be fp32, or auto, for model.encoder {encoder} of the family {family}, got "
            f"{numerics.precision}"
        )


def with_fallback(numerics: Numerics, family: str) -> Numerics:
    """The same, or fp32 if this machine or the encoder's family does not support it: predictions work anywhere."""
    is_supported = numerics.precision in supported_by(numerics.device) and family not in ONLY_FP32
    return numerics if is_supported else replace(numerics, precision="fp32")


@lru_cache
def _fastest(device: torch.device, threads: int) -> Precision:
    """`threads` is part of the cache key: the times depend on it."""
    fp32, *halves = supported_by(device)
    # The rest of a step is not faster in half precision, and weights must be converted.
    base, min_speedup = _seconds(fp32, device), 1.3
    return next((half for half in halves if base > min_speedup * _seconds(half, device)), fp32)


def _seconds(precision: Precision, device: torch.device) -> float:
    """The shortest time of a matrix product of the size of an encoder layer's."""
    # A GPU would compute the product of a CPU's size in less time than it takes to start it.
    num_tokens = 512 if device.type == "cpu" else 8192
    left, right = (torch.ones(rows, 768, dtype=_TYPES[precision], device=device) for rows in (num_tokens, 512))
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        product = left @ right.T
        float(product[0, 0])  # waits for the device
        times.append(time.perf_counter() - begin)
    return min(times)


def forward(model: EncoderWithHeads, batch: Batch, numerics: Numerics) -> Logits:
    """The logits of a batch, at least fp32 whatever the encoder's precision."""
    with torch.autocast(numerics.device.type, _TYPES[numerics.precision], enabled=numerics.precision != "fp32"):
        logits: Logits = model(batch.inputs, batch.targets)
    return logits


def on_device(batch: Batch, device: torch.device) -> Batch:
    if device.type == "cpu":
        return batch

    def moved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in tensors.items()}

    return replace(batch, inputs=moved(batch.inputs), targets=moved(batch.targets))


def random_state(device: torch.device) -> list[Tensor]:
    """The states of torch's random number generators: the CPU's, and the GPU's if one is used."""
    of_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *of_gpu]


def set_random_state(states: Sequence[Tensor], device: torch.device) -> None:
    """Restore them; a GPU keeps its own where the states come from a run on a CPU."""
    torch.set_rng_state(states[0])
    if device.type == "cuda" and len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)
