"""One worker, several workers and micro-batches give the same loss and the same gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dice_ray.losses.base import Loss
from dice_ray.losses.mining import MiningConfig
from dice_ray.losses.reduction import num_workers, step_loss, sum_over_workers
from tests.contracts.losses import CASES, draw
from tests.training.test_step import run_workers

NUM_ITEMS = 64
RATIOS = (0.0, 0.5)
STEPS = {
    f"{name}, mining {ratio}": (config, facts, ratio)
    for name, (config, facts) in CASES.items()
    for ratio in RATIOS
    if name.endswith(("-two", "-one_logit", "-tags", "-labels")) and (not ratio or config.can_mine(facts))
}


def model_and_step(name: str) -> tuple[nn.Module, Loss, Tensor, Tensor]:
    """A linear model, the loss, and a step in which the workers hold unequal numbers of items that count."""
    config, facts, ratio = STEPS[name]
    logits, targets = draw(facts, NUM_ITEMS, scale=1)
    features = torch.cat((logits.reshape(NUM_ITEMS, -1), torch.ones(NUM_ITEMS, 1, dtype=torch.float64)), 1)
    targets[NUM_ITEMS // 2 : -5] = -100
    torch.manual_seed(0)
    linear = nn.Linear(features.shape[1], features.shape[1] - 1, dtype=torch.float64)
    model = nn.Sequential(linear, nn.Flatten(0)) if facts.link == "sigmoid" and not facts.labels else linear
    return model, MiningConfig(ratio=ratio).wrap(config.build(facts)), features, targets


def gradient(model: nn.Module) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def on_one_worker(name: str) -> tuple[Tensor, Tensor]:
    model, loss, features, targets = model_and_step(name)
    value = step_loss(loss, loss.statistics(model(features), targets))
    value.backward()
    return value.detach(), gradient(model)


def on_this_worker(name: str, rank: int, workers: int) -> tuple[Tensor, Tensor]:
    """A function of its own, so that no DistributedDataParallel is left when the process group is destroyed.

    If its reducer is the last to hold the group, it waits for gloo's thread without releasing Python's lock, and that
    thread may wait for the lock.
    """
    model, loss, features, targets = model_and_step(name)
    mine = slice(rank * NUM_ITEMS // workers, (rank + 1) * NUM_ITEMS // workers)
    parallel = DistributedDataParallel(model)
    value = step_loss(loss, loss.statistics(parallel(features[mine]), targets[mine]))
    (value * workers).backward()
    return value.detach(), gradient(model)


def worker(rank: int, workers: int, file: str, names: list[str]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=workers)
    assert num_workers() == workers
    for name in names:
        want_value, want_gradient = torch.load(f"{file}-{names.index(name)}")
        value, found_gradient = on_this_worker(name, rank, workers)
        torch.testing.assert_close(value, want_value, msg=name)
        torch.testing.assert_close(found_gradient, want_gradient, msg=name)
    dist.barrier()
    if rank == 0:
        Path(f"{file}-done").touch()
    dist.destroy_process_group()


def test_two_workers_are_exact(tmp_path: Path) -> None:
    names = sorted(STEPS)
    for index, name in enumerate(names):
        torch.save(on_one_worker(name), tmp_path / f"group-{index}")
    run_workers(worker, (2, str(tmp_path / "group"), names), 2)
    assert (tmp_path / "group-done").exists()


@pytest.mark.parametrize("name", sorted(name for name in STEPS if name.endswith("0.0")))
def test_micro_batches_are_exact(name: str) -> None:
    """A mean over items needs the number of items; other losses the gradient in the logits of the whole step."""
    want_value, want_gradient = on_one_worker(name)
    model, loss, features, targets = model_and_step(name)
    parts = list(zip(features.split(16), targets.split(16), strict=True))
    if loss.is_item_mean:
        num_items = sum_over_workers(torch.stack([loss.num_items(part) for _, part in parts]).sum())
        values = [step_loss(loss, loss.statistics(model(x), part), num_items=num_items) for x, part in parts]
        for value in values:
            value.backward()
        torch.testing.assert_close(torch.stack(values).sum().detach(), want_value)
    else:
        with torch.no_grad():
            logits = torch.cat([model(x) for x, _ in parts])
        value = step_loss(loss, loss.statistics(logits.requires_grad_(), targets))
        (grad,) = torch.autograd.grad(value, logits)
        for (x, _), part in zip(parts, grad.split(16), strict=True):
            model(x).backward(part)
        torch.testing.assert_close(value.detach(), want_value)
    torch.testing.assert_close(gradient(model), want_gradient)


def test_the_mean_over_shards_is_a_different_loss() -> None:
    """Averaging a batch-scope loss over shards, as is usual, gives another gradient: the reason for `reduction.py`."""
    _, want = on_one_worker("dice-0-two, mining 0.0")
    model, loss, features, targets = model_and_step("dice-0-two, mining 0.0")
    for x, part in zip(features.split(16), targets.split(16), strict=True):
        (loss(model(x), part) / 4).backward()
    assert (gradient(model) - want).norm() > 0.1 * want.norm()
