"""Where a run computes and with which numbers: what pays on this machine, found by timing one product of matrices."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import torch

Precision: TypeAlias = Literal["fp32", "bf16", "fp16"]

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
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

    def autocast(self) -> AbstractContextManager[None]:
        """The context of a forward pass."""
        return torch.autocast(self.device.type, _TYPES[self.precision], enabled=self.precision != "fp32")


def resolve(written: Literal["auto"] | Precision) -> Numerics:
    """What is written, or what pays here: bf16 where it is faster, fp16 on GPUs that are older, and else fp32."""
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if has_gpu else torch.device("cpu")
    return Numerics(device, _what_pays(device, torch.get_num_threads()) if written == "auto" else written)


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
