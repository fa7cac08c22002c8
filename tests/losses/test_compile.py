"""Each loss compiles as one graph, with the value and gradient of the loss itself."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor

from dice_ray.losses import LossConfig, SelfAdjustingDiceConfig
from dice_ray.losses.base import LossBranch
from dice_ray.losses.mining import MiningConfig
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts

TERMS = {
    "several classes": TermFacts("tag", "softmax", ("O", "A", "B"), (80, 15, 5), 0),
    "two classes": TermFacts("label", "softmax", ("no", "yes"), (80, 20), 0),
    "labels": TermFacts("topic", "sigmoid", ("no", "yes"), (80, 20), 0, ("A", "B"), (15, 5)),
    "positions": TermFacts("start", "position", ("none", "answer"), (40, 60), 0),
}
SIZES = {"several classes": (20, 3), "two classes": (20, 2), "labels": (10, 2), "positions": (6, 8)}


def configs() -> list[LossBranch]:
    found: list[LossBranch] = []
    for name, branch in branches_of(LossConfig).items():
        assert issubclass(branch, LossBranch)
        if name == "custom":  # the user's own code
            continue
        values: list[dict[str, str]] = [{}]
        values += [{"scope": "example"}] if "scope" in branch.model_fields else []
        values += [{"decay_gradient": "stopped"}] if "decay_gradient" in branch.model_fields else []
        found += [branch.model_validate(each) for each in values]
    return found


def example(term: str) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, targets and a mask; one target is ignored besides."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(SIZES[term], generator=generator)
    items = logits.shape if term == "labels" else logits.shape[:-1]
    targets = torch.randint(2, items, generator=generator)
    mask = torch.ones(logits.shape if term == "positions" else items, dtype=torch.bool)
    mask[-1] = False
    targets[0] = -100
    return logits, targets, mask


CASES = [
    pytest.param(config, term, mining, id=f"{config.name} {config} {term} mining={mining:g}")
    for config in configs()
    for term, facts in TERMS.items()
    if facts.link in config.supported and not config.problems(facts, "loss")
    for mining in ((0.0, 1.0) if config.can_mine(facts) and config.name in ("focal", "dice") else (0.0,))
]


@pytest.mark.slow
@pytest.mark.parametrize(("config", "term", "mining"), CASES)
def test_a_loss_is_traced_as_one_graph(config: LossBranch, term: str, mining: float) -> None:
    check(config, term, mining, "aot_eager")  # it traces forward and backward, and compiles neither: quick


@pytest.mark.slow
@pytest.mark.parametrize("term", ["several classes", "two classes"])
def test_the_compiled_code_of_a_loss_gives_its_value_and_gradient(term: str) -> None:
    check(SelfAdjustingDiceConfig(), term, 0.0, "inductor")


def check(config: LossBranch, term: str, mining: float, backend: str) -> None:
    loss = MiningConfig(ratio=mining).wrap(config.build(TERMS[term]))
    logits, targets, mask = example(term)
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler itself
        for each in (loss, compiled):
            leaf = logits.clone().requires_grad_()
            value = each(leaf, targets, mask)
            value.backward()
            assert leaf.grad is not None
            found.append((value.detach(), leaf.grad))
        (value, gradient), (compiled_value, compiled_gradient) = found
        torch.testing.assert_close(compiled_value, value, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(compiled_gradient, gradient, rtol=1e-4, atol=1e-6)
        assert gradient.any()
        wrong = targets.clone()
        wrong[1] = 100
        assert math.isnan(compiled(logits, wrong, mask))
