"""Forward and backward of every loss: time over torch's cross entropy, peak memory, share of a training step."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.losses import (
    CrossEntropyConfig,
    DiceCEConfig,
    DiceConfig,
    FocalConfig,
    LogitAdjustedConfig,
    SelfAdjustingDiceConfig,
    TverskyConfig,
    WeightedCrossEntropyConfig,
)
from dice_ray.losses.base import LossBranch
from dice_ray.losses.mining import MiningConfig
from dice_ray.terms import TermFacts
from tests.benchmarks.training import SIZES

SHAPES = ((16384, 2), (16384, 9), (16384, 20), (4096, 60))
ROWS, TOKENS, NUM_TAGS = 16, 128, 9
"""A training step of a tagger, of whose time each loss takes a share."""
LOSSES: Mapping[str, LossBranch] = {
    "cross_entropy": CrossEntropyConfig(),
    "weighted_cross_entropy": WeightedCrossEntropyConfig(),
    "focal": FocalConfig(),
    "focal .5": FocalConfig(gamma=0.5),
    "logit_adjusted": LogitAdjustedConfig(),
    "dice": DiceConfig(),
    "dice example": DiceConfig(scope="example"),
    "dice all": DiceConfig(classes="all"),
    "self_adjusting_dice": SelfAdjustingDiceConfig(),
    "self_adjusting_dice stopped": SelfAdjustingDiceConfig(decay_gradient="stopped"),
    "self_adjusting_dice example": SelfAdjustingDiceConfig(scope="example", decay=1, denominator="linear"),
    "tversky": TverskyConfig(),
    "tversky example": TverskyConfig(scope="example"),
    "dice_ce": DiceCEConfig(),
}
MINED = "mined self_adjusting_dice"
AUTHORS = "authors' form"

Results: TypeAlias = dict[tuple[int, int], dict[str, tuple[float, float]]]
"""By shape and name: time over torch's, and peak memory."""


def naive(logits_NC: Tensor, targets_N: Tensor) -> Tensor:
    """The self-adjusting dice as published code writes it: a one-hot, and one class after the other."""
    y_NC = F.one_hot(targets_N, logits_NC.shape[1]).float()
    p_NC = logits_NC.softmax(-1)
    losses = []
    for p_N, y_N in zip(p_NC.unbind(1), y_NC.unbind(1), strict=True):
        p_N1, y_N1 = p_N[:, None], y_N[:, None]
        u_N1 = (1 - p_N1) ** 0.01 * p_N1
        uy_N = (u_N1 * y_N1).sum(-1)
        losses.append(1 - (2 * uy_N + 1) / (u_N1.square().sum(-1) + y_N1.square().sum(-1) + 1))
    return torch.stack(losses).sum(0).mean()


def functions(num_classes: int) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Every loss on a term of so many classes with background 0, after torch's and the published form."""
    names = tuple(map(str, range(num_classes)))
    facts = TermFacts("label", "softmax", names, tuple(1000 // (index + 1) for index in range(num_classes)), 0)
    return {
        "torch": F.cross_entropy,
        AUTHORS: naive,
        **{name: config.build(facts) for name, config in LOSSES.items()},
        MINED: MiningConfig(ratio=1).wrap(SelfAdjustingDiceConfig().build(facts)),
    }


def once(function: Callable[[Tensor, Tensor], Tensor], logits_NC: Tensor, targets_N: Tensor) -> None:
    torch.autograd.grad(function(logits_NC, targets_N), logits_NC)


def now(device: torch.device) -> float:
    """Seconds: on a CPU of this process, so that others on the machine count little."""
    if device.type == "cpu":
        return time.process_time()
    torch.accelerator.synchronize()
    return time.perf_counter()


def seconds(function: Callable[[Tensor, Tensor], Tensor], logits_NC: Tensor, targets_N: Tensor) -> float:
    start = now(logits_NC.device)
    once(function, logits_NC, targets_N)
    return now(logits_NC.device) - start


def peak_buffers(function: Callable[[Tensor, Tensor], Tensor], logits_NC: Tensor, targets_N: Tensor) -> float:
    """The most memory held at once beside the logits and their gradient, in buffers of the size of the logits."""
    with torch.profiler.profile(profile_memory=True) as profiler:
        once(function, logits_NC, targets_N)
    held = peak = 0
    assert profiler.profiler is not None
    assert profiler.profiler.kineto_results is not None
    events = profiler.profiler.kineto_results.events()
    for event in sorted((event for event in events if event.name() == "[memory]"), key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / (logits_NC.numel() * logits_NC.element_size()) - 1


def drawn(shape: tuple[int, int], device: str) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(shape, device=device, requires_grad=True), torch.randint(shape[1], shape[:1], device=device)


def medians(shape: tuple[int, int], rounds: int, device: str) -> dict[str, float]:
    """By name: the median of the seconds over interleaved rounds."""
    logits_NC, targets_N = drawn(shape, device)
    timed = functions(shape[1])
    times: dict[str, list[float]] = {name: [] for name in timed}
    for round_ in range(rounds + 2):
        for name, function in timed.items():
            taken = seconds(function, logits_NC, targets_N)
            if round_ >= 2:  # the first rounds warm up
                times[name].append(taken)
    return {name: statistics.median(each) for name, each in times.items()}


def measure(shape: tuple[int, int], rounds: int, device: str) -> dict[str, tuple[float, float]]:
    """By name: the median time over torch's, and the peak of memory."""
    taken, (logits_NC, targets_N) = medians(shape, rounds, device), drawn(shape, device)
    return {
        name: (taken[name] / taken["torch"], peak_buffers(function, logits_NC, targets_N))
        for name, function in functions(shape[1]).items()
    }


def shares(rounds: int, device: str) -> dict[str, float]:
    """By name: the share that the loss takes of a training step of MiniLM with it."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    encoder = BertModel(BertConfig(**SIZES["MiniLM"])).to(device)
    head = torch.nn.Linear(encoder.config.hidden_size, NUM_TAGS).to(device)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()])
    ids = torch.randint(encoder.config.vocab_size, (ROWS, TOKENS), device=device)

    def rest() -> float:
        """Seconds of all but the loss, whose gradient is given."""
        start = now(ids.device)
        logits = head(encoder(ids).last_hidden_state)
        logits.backward(torch.ones_like(logits))
        optimizer.step()
        optimizer.zero_grad()
        return now(ids.device) - start

    others = statistics.median([rest() for _ in range(4)][1:])  # the first one warms up
    taken = medians((ROWS * TOKENS, NUM_TAGS), rounds, device)
    return {name: each / (each + others) for name, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: Results = {shape: measure(shape, arguments.rounds, arguments.device) for shape in SHAPES}
    print("time over torch's cross entropy, and peak buffers of N x C beside logits and gradient")
    print(f"{'':30}" + "".join(f"{shape!s:>16}" for shape in SHAPES))
    for name in results[SHAPES[0]]:
        print(
            f"{name:30}" + "".join(f"{ratio:9.2f} ({peak:3.1f})" for ratio, peak in (results[s][name] for s in SHAPES))
        )
    print(f"\nshare of a training step of MiniLM on {ROWS} x {TOKENS} tokens with {NUM_TAGS} tags")
    taken = shares(arguments.rounds, arguments.device)
    for name, share in taken.items():
        print(f"{name:30}{share:9.2%}")
    print(
        "worst_ratio, binary_ratio: the slowest of ours (mined apart) to torch, in all shapes and in two classes\n"
        "authors_worst_ratio: the least that ours is faster than the published form of that loss, from 20 classes on\n"
        "dsc_ratio, mined_ratio: the slowest self-adjusting dice, without and with mining, from 20 classes on\n"
        "worst_share: the largest share of ours, mined too, in percent"
    )
    worst_share = max(share for name, share in taken.items() if name in LOSSES or name == MINED)
    print(json.dumps(figures(results) | {"worst_share": round(100 * worst_share, 2)}))


def figures(results: Results) -> dict[str, float]:
    """The ratios that the goals speak of."""
    ours = {shape: max(rows[name][0] for name in LOSSES) for shape, rows in results.items()}
    faster = [rows[AUTHORS][0] / rows["self_adjusting_dice"][0] for shape, rows in results.items() if shape[1] >= 20]
    binary = max(ratio for shape, ratio in ours.items() if shape[1] == 2)
    many = [rows for shape, rows in results.items() if shape[1] >= 20]
    dsc = max(rows[name][0] for rows in many for name in LOSSES if name.startswith("self_adjusting_dice"))
    worst = {"worst_ratio": max(ours.values()), "binary_ratio": binary, "authors_worst_ratio": min(faster)}
    worst |= {"dsc_ratio": dsc, "mined_ratio": max(rows[MINED][0] for rows in many)}
    return {name: round(value, 2) for name, value in worst.items()}


if __name__ == "__main__":
    main()
