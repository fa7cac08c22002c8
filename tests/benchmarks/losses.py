"""Forward and backward of every loss: time over torch's cross-entropy of the same items, and share of a step."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.losses import LossConfig
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts
from tests.contracts.losses import load

SHAPES = ((16384, 2), (16384, 9), (16384, 20), (4096, 60))
LABELS = (16384, 8)
"""Texts and labels, for losses that take one logit per label."""
ROWS, TOKENS, NUM_TAGS = 16, 128, 9
"""A training step of MiniLM as a tagger, of whose time each loss takes a share."""
FORMS: dict[str, list[dict[str, Any]]] = {
    "cross_entropy": [{}, {"label_smoothing": 0.1}],
    "dice": [{}, {"scope": "example"}],
    "self_adjusting_dice": [{}, {"scope": "example"}],
    "ldam": [{}, {"weighting": "inverse"}],
}
_Function: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def functions(shape: tuple[int, int], is_labels: bool) -> dict[str, _Function]:
    """Torch's cross-entropy, and every loss that takes such items."""
    num_columns = shape[1]
    counts = [1000 // (index + 1) for index in range(num_columns)]
    facts = TermFacts("tag", "softmax", tuple(map(str, range(num_columns))), tuple(counts), 0)
    found: dict[str, _Function] = {"torch": F.cross_entropy}
    if is_labels:
        classes = 2000 * num_columns - sum(counts), sum(counts)
        facts = TermFacts("topic", "sigmoid", ("no", "yes"), classes, 0, facts.classes, tuple(counts))
        found = {"torch": lambda logits, targets: F.binary_cross_entropy_with_logits(logits, targets.float())}
    for name in branches_of(LossConfig):
        for form in FORMS.get(name, [{}]) if name != "custom" else ():
            config = load({name: form})
            if facts.link in config.supported and not config.problems(facts, "loss"):
                found[" ".join([name, *map(str, form.values())])] = config.build(facts)
    return found


def quickest(shape: tuple[int, int], rounds: int, is_labels: bool) -> dict[str, float]:
    """By name: the least of the processor's seconds over interleaved rounds, since other work can only add to them."""
    torch.manual_seed(0)
    logits = torch.randn(shape, requires_grad=True)
    targets = torch.randint(2, shape) if is_labels else torch.randint(shape[1], shape[:1])
    timed = functions(shape, is_labels)
    times: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(rounds):
        for name, function in timed.items():
            start = time.process_time()
            torch.autograd.grad(function(logits, targets), logits)
            times[name].append(time.process_time() - start)
    return {name: min(each) for name, each in times.items()}


def step_seconds() -> float:
    """Those of a step of MiniLM without its loss, whose gradient is given."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    encoder = BertModel(BertConfig(**sizes))
    head = torch.nn.Linear(384, NUM_TAGS)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()])
    ids = torch.randint(encoder.config.vocab_size, (ROWS, TOKENS))
    seconds = []
    for _ in range(4):
        start = time.process_time()
        logits = head(encoder(ids).last_hidden_state)
        logits.backward(torch.ones_like(logits))
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    columns = {f"{shape}": quickest(shape, rounds, False) for shape in SHAPES}
    columns[f"{LABELS} labels"] = quickest(LABELS, rounds, True)
    step = step_seconds()
    shares = {name: each / (each + step) for name, each in quickest((ROWS * TOKENS, NUM_TAGS), rounds, False).items()}
    print(f"time over torch's; share of a step of MiniLM with {ROWS} x {TOKENS} tokens and {NUM_TAGS} tags")
    print(f"{'':30}" + "".join(f"{column:>18}" for column in columns) + f"{'share':>10}")
    for name in dict.fromkeys(name for times in columns.values() for name in times):
        ratios = (f"{times[name] / times['torch']:18.2f}" if name in times else " " * 18 for times in columns.values())
        print(f"{name:30}" + "".join(ratios) + (f"{shares[name]:10.2%}" if name in shares else ""))
    worst = {column: max(times.values()) / times["torch"] for column, times in columns.items()}
    print(json.dumps({column: round(ratio, 2) for column, ratio in worst.items()} | {"share": max(shares.values())}))


if __name__ == "__main__":
    main()
