"""The gradient of a step: equal for any number of workers and micro-batches, and after running out of memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import start_processes

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import RunError
from dice_ray.losses import CrossEntropyConfig, LossConfig
from dice_ray.losses.reduction import num_workers
from dice_ray.run import build
from dice_ray.settings import branches_of
from dice_ray.terms import Term, TermFacts
from dice_ray.training import batches
from dice_ray.training.loop import Parts
from dice_ray.training.optim import build_optimizer
from dice_ray.training.step import Gradient, TrainingTally, _joined

STEPS = 3
"""A wrong gradient changes the loss of the second step, a wrong moment of the optimizer that of the third."""
BATCH_SIZE = 16
WHOLE, CUT = 10_000, 130
"""Tokens of a micro-batch: enough for a whole step, and so few that every worker's share is cut."""

PAIRS = {"task": "sentence_pair", "data": {"source": {"synthetic": {"size": 120, "positive_share": 0.3}}}}
TAGS = {"task": "tagging", "data": {"source": {"synthetic": {"kind": "tagging", "size": 120}}}}
PLAIN = {"custom": {"target": "tests.contracts.losses:brier", "parameters": {"factor": 2.0}}}
QUERIES = {"task": "mrc_ner", "data": {"source": {"synthetic": {"kind": "queries", "size": 60}}}}
BINARY = ("asymmetric", "distribution_balanced", "listwise")
"""Losses that the softmax of several classes does not take."""
SCOPED = ("dice", "self_adjusting_dice", "tversky")


def _cases() -> dict[str, dict[str, Any]]:
    """Each loss, scope and mining, on tags of several classes, pairs with one logit and queries with several terms."""
    cases: dict[str, dict[str, Any]] = {}
    losses: dict[str, Any] = {name: PLAIN.get(name, {}) for name in branches_of(LossConfig) if name not in BINARY}
    losses |= {f"{name} example": {"scope": "example", "gamma": 1} for name in SCOPED}
    for name, settings in losses.items():
        loss = {name.split()[0]: settings}
        cases[f"tags {name}"] = {**TAGS, "loss": loss}
    for name in ("cross_entropy", "dice", *BINARY):
        cases[f"pairs {name}"] = {**PAIRS, "task": {"sentence_pair": {"link": "sigmoid"}}, "loss": name}
    for name in ("cross_entropy", "dice", "asymmetric"):
        cases[f"pairs {name} mined"] = {**cases[f"pairs {name}"], "mining": {"ratio": 0.5}}
    for name in ("cross_entropy", "dice"):
        cases[f"queries {name}"] = {**QUERIES, "loss": name}
    for name in SCOPED:
        cases[f"tags {name} mined"] = {**TAGS, "loss": name, "mining": {"ratio": 2}}
    return cases


CASES = _cases()


def parts_of(case: str, **values: Any) -> Parts:
    layers = [
        Layer("case", CASES[case]),
        values_layer("test", {"model.dropout": 0.0, "training.precision": "fp32", **values}),
    ]
    return build.build(resolve(layers))


def gradient_of(parts: Parts, max_tokens: int) -> Gradient:
    of_train = parts.train.rows, parts.numerics, TrainingTally(max_tokens)
    return Gradient(parts.task, parts.tokenizer, parts.model, parts.losses, *of_train)


def trajectory(case: str, max_tokens: int) -> Tensor:
    """The loss of each step."""
    parts = parts_of(case)
    optimizer = build_optimizer(parts.model, resolve([Layer("case", CASES[case])]).training)
    for group in optimizer.param_groups:
        group["lr"] = 1e-3
    gradient = gradient_of(parts, max_tokens)
    steps = batches.Steps(gradient.lengths, BATCH_SIZE, seed=1)
    losses = []
    parts.model.train()
    for step in range(STEPS):
        shares = batches.micro_batches(steps.rows(step), gradient.lengths, max_tokens, num_workers())
        assert all((len(share) > 1) == (max_tokens == CUT) for share in shares)
        losses.append(gradient.accumulate(steps.rows(step)).item())
        optimizer.step()
        optimizer.zero_grad()
    return torch.tensor(losses)


def _worker(rank: int, size: int, folder: Path, compute: Callable[[int], object]) -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=size)
    torch.save(compute(rank), folder / f"{rank}.pt")
    dist.barrier()  # a worker that exits early closes the connection of the others
    dist.destroy_process_group()


def on_workers(size: int, folder: Path, compute: Callable[[int], object]) -> list[Any]:
    """The result of a function of the rank on each worker."""
    run_workers(_worker, (size, folder, compute), size)
    return [torch.load(folder / f"{rank}.pt") for rank in range(size)]


def run_workers(function: Callable[..., None], arguments: tuple[Any, ...], size: int) -> None:
    """Run a function on several processes, forked because imports take most of the time."""
    start_processes(function, arguments, nprocs=size, start_method="fork")


def _trajectories(rank: int) -> dict[tuple[str, int], Tensor]:
    return {(case, tokens): trajectory(case, tokens) for case in CASES for tokens in (WHOLE, CUT)}


def test_losses_are_equal_for_any_number_of_workers_and_micro_batches(tmp_path: Path) -> None:
    first, second = on_workers(2, tmp_path, _trajectories)
    for case in CASES:
        want = trajectory(case, WHOLE)
        assert want[0] != want[-1]
        for tokens in (WHOLE, CUT):
            torch.testing.assert_close(first[case, tokens], want, rtol=1e-5, atol=1e-5, msg=f"{case}, 2 x {tokens}")
            torch.testing.assert_close(first[case, tokens], second[case, tokens], rtol=0, atol=0, msg=case)
        torch.testing.assert_close(trajectory(case, CUT), want, rtol=1e-5, atol=1e-5, msg=f"{case}, 1 x {CUT}")


ITEM_MEAN, SET_LEVEL = "tags cross_entropy", "tags dice"


def first_gradient(case: str, max_tokens: int, limit: int | None = None, stage: str = "forward") -> list[Tensor]:
    """The loss of the first step, its gradient, and the number of times that memory ran out."""
    parts = parts_of(case)
    gradient = gradient_of(parts, max_tokens)
    if limit is not None and stage in ("sums", "value"):
        fail_once(next(iter(parts.losses.values())), stage)
    elif limit is not None:
        limit_memory(parts.model.encoder, limit, stage)
    loss = gradient.accumulate(batches.Steps(gradient.lengths, BATCH_SIZE, seed=1).rows(0))
    gradients = [parameter.grad.flatten() for parameter in parts.model.parameters() if parameter.grad is not None]
    return [loss, torch.cat(gradients), torch.tensor(gradient.tally.num_halvings)]


def limit_memory(encoder: nn.Module, limit: int, stage: str) -> None:
    """Make the encoder run out of memory in a stage for batches of more tokens."""

    def forward(_: nn.Module, __: tuple[Any, ...], inputs: dict[str, Tensor]) -> None:
        if stage == "forward" and inputs["input_ids"].numel() > limit:
            raise torch.OutOfMemoryError(f"no memory for {inputs['input_ids'].numel()} tokens")

    def backward(_: nn.Module, gradients: Any, __: Any) -> None:
        if stage == "backward" and gradients[0].shape[:2].numel() > limit:
            raise torch.OutOfMemoryError("no memory for the backward pass")

    encoder.register_forward_pre_hook(forward, with_kwargs=True)
    encoder.get_submodule("encoder.layer.0.output.dense").register_full_backward_hook(backward)


def fail_once(loss: nn.Module, method: str) -> None:
    """Make a loss run out of memory when a method is called for the first time."""
    whole = getattr(loss, method)

    def failing(*_: Any) -> Tensor:
        setattr(loss, method, whole)
        raise torch.OutOfMemoryError("no memory for the loss")

    setattr(loss, method, failing)


def _group_of_one(rank: int) -> list[list[Tensor]]:
    return [first_gradient(case, tokens) for case in (ITEM_MEAN, SET_LEVEL) for tokens in (WHOLE, CUT)]


def test_a_group_of_one_worker_is_bit_for_bit_no_group(tmp_path: Path) -> None:
    (in_group,) = on_workers(1, tmp_path, _group_of_one)
    torch.testing.assert_close(in_group, _group_of_one(0), rtol=0, atol=0)


@pytest.mark.parametrize("stage", ["forward", "backward", "sums", "value"])
@pytest.mark.parametrize("case", [ITEM_MEAN, SET_LEVEL, "queries dice", "tags dice mined"])
def test_out_of_memory_halves_the_micro_batch_and_changes_no_gradient(case: str, stage: str) -> None:
    """Also finds an error of the loss of a step, between the two passes, that ends the run."""
    loss, gradient, _ = first_gradient(case, WHOLE)
    halved_loss, halved_gradient, num_halvings = first_gradient(case, WHOLE, CUT, stage)
    assert num_halvings >= 1
    torch.testing.assert_close(halved_loss, loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(halved_gradient, gradient, rtol=1e-4, atol=1e-6)


_AGREED = ITEM_MEAN, SET_LEVEL, "queries dice"


def _one_out_of_memory(rank: int) -> list[list[Tensor]]:
    """Only the second worker runs out of memory."""
    return [
        first_gradient(case, WHOLE, CUT if rank else None, stage)
        for case in _AGREED
        for stage in ("forward", "backward", "sums", "value")
    ]


def test_workers_agree_if_one_of_them_runs_out_of_memory(tmp_path: Path) -> None:
    first, second = on_workers(2, tmp_path, _one_out_of_memory)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    for (loss, gradient, num_halvings), case in zip(first, (case for case in _AGREED for _ in range(4)), strict=True):
        want_loss, want, _ = first_gradient(case, WHOLE)
        assert num_halvings >= 1
        torch.testing.assert_close(loss, want_loss, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(gradient, want, rtol=1e-4, atol=1e-6)


def test_a_row_that_does_not_fit_alone_is_an_error() -> None:
    with pytest.raises(RunError, match=r"a row of \d+ tokens must fit into memory"):
        first_gradient(SET_LEVEL, WHOLE, limit=3)


def _unequal(rank: int) -> tuple[list[Tensor], list[int]]:
    parts = parts_of(SET_LEVEL)
    gradient = gradient_of(parts, max_tokens=10**9)
    by_length = sorted(range(len(gradient.lengths)), key=lambda row: gradient.lengths[row])
    rows = [by_length[-1], *by_length[:6]]  # the first worker gets the long row, and one row more than the second
    gradient.tally.max_tokens = 3 * gradient.lengths[by_length[5]]
    shares = batches.micro_batches(rows, gradient.lengths, gradient.tally.max_tokens, num_workers())
    for _ in range(2):
        parts.model.zero_grad()
        loss = gradient.accumulate(rows)
    gradients = [parameter.grad.flatten() for parameter in parts.model.parameters() if parameter.grad is not None]
    return [loss, torch.cat(gradients)], [len(share) for share in shares]


def test_workers_with_unequal_numbers_of_micro_batches_agree(tmp_path: Path) -> None:
    (first, counts), (second, _) = on_workers(2, tmp_path, _unequal)
    assert counts == [2, 1]
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    torch.testing.assert_close(first, _unequal(0)[0], rtol=1e-4, atol=1e-6)


def test_dropout_is_drawn_once_for_both_passes() -> None:
    """The gradient is that of the returned loss: a small step along it lowers the loss by its squared norm."""
    parts = parts_of(SET_LEVEL, **{"model.dropout": 0.3})
    gradient = gradient_of(parts, CUT)
    rows = batches.Steps(gradient.lengths, BATCH_SIZE, seed=1).rows(0)
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        losses.append(gradient.accumulate(rows).double())
        gradients = [parameter.grad for parameter in parts.model.parameters() if parameter.grad is not None]
        square = torch.stack([each.double().square().sum() for each in gradients]).sum()
        with torch.no_grad():
            for parameter in parts.model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(1e-4 / square * parameter.grad)
        parts.model.zero_grad()
    assert float(losses[0] - losses[1]) == pytest.approx(1e-4, rel=0.05)


@pytest.mark.parametrize("with_mask", [True, False])
def test_positions_of_micro_batches_are_joined(with_mask: bool) -> None:
    """Two micro-batches of different lengths give the mean of the losses computed by hand."""
    logits_23, logits_15 = torch.randn(2, 3), torch.randn(1, 5)
    masks = [torch.tensor([[True, True, False], [True] * 3]), torch.tensor([[False] + [True] * 4])]
    terms = [
        Term(logits, targets, mask if with_mask else None, weight=0.5)
        for logits, targets, mask in zip(
            (logits_23, logits_15), (torch.tensor([1, 2]), torch.tensor([4])), masks, strict=True
        )
    ]
    term = _joined("position", terms)
    assert term.logits.shape == (3, 5)
    assert term.weight == 0.5
    assert term.mask is not None
    want = [
        -logits.masked_fill(~mask, -torch.inf).log_softmax(-1)[row, target]
        for logits, mask in zip((logits_23, logits_15), masks if with_mask else [m | True for m in masks], strict=True)
        for row, target in enumerate([1, 2] if logits is logits_23 else [4])
    ]
    loss = CrossEntropyConfig().build(TermFacts("start", "position", ("0", "1", "2"), (1, 1, 1)))
    assert loss(term.logits, term.targets, term.mask) == pytest.approx(float(torch.stack(want).mean()))


def test_masked_items_stay_masked_when_joined() -> None:
    terms = [
        Term(torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool)),
        Term(torch.randn(1, 2, 4), torch.ones(1, 2, dtype=torch.long)),
    ]
    term = _joined("softmax", terms)
    assert term.logits.shape == (8, 4)
    assert term.targets.tolist() == [0] * 6 + [1] * 2
    assert term.mask is not None
    assert term.mask.tolist() == [False] * 6 + [True] * 2
