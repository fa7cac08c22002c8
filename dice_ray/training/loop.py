"""The training loop on one screen: built parts in, one evaluation after the other out."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dice_ray.errors import NonFiniteError
from dice_ray.losses.base import Loss
from dice_ray.losses.items import bad_input
from dice_ray.losses.reduction import num_workers, step_loss
from dice_ray.tasks.base import Task
from dice_ray.terms import Term
from dice_ray.training import batches, workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.optim import build_optimizer, build_schedule
from dice_ray.training.settings import TrainingConfig

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Parts:
    """What is trained, on what, by which losses, and the metric that says which checkpoint is best."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: nn.Module
    losses: Mapping[str, Loss]
    train: EncodedSplit
    dev: EncodedSplit
    objective: str


@dataclass(frozen=True)
class Evaluation:
    """What a run says each time that dev is scored.

    Attributes:
        step: Optimizer steps done.
        epoch: Passes over the training rows done.
        metrics: `train/loss`, and dev's metrics as `dev/...`.
        finished: Whether it is the run's last.
    """

    step: int
    epoch: float
    metrics: dict[str, float]
    finished: bool


@dataclass(frozen=True)
class Progress:
    """What a run says after a step without an evaluation.

    Attributes:
        step: Optimizer steps done, of `num_steps`.
        epoch: Passes over the training rows done.
        loss: Of the step.
        num_tokens: Trained on since this process began, padding left out.
    """

    step: int
    num_steps: int
    epoch: float
    loss: float
    num_tokens: int


def fit(parts: Parts, config: TrainingConfig, checkpoints: Checkpoints) -> Generator[Evaluation | Progress, None, None]:
    """Train, yielding after each step: an evaluation of dev, or how far it is. Whoever stops asking stops the run.

    A run that was interrupted first tells its history again, then goes on from its last checkpoint.
    """
    num_rows = len(parts.train.rows)
    num_steps = batches.num_steps(num_rows, config.epochs, config.batch_size)
    num_evaluations = min(num_steps, config.evaluations or math.ceil(config.epochs))
    stops = {round(num_steps * (index + 1) / num_evaluations) for index in range(num_evaluations)}

    optimizer = build_optimizer(parts.model, config)
    schedule = build_schedule(optimizer, config, num_steps)
    torch.manual_seed(config.seed * 1000 + workers.rank())
    first, history = 0, list[Evaluation]()
    if state := checkpoints.last():
        parts.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        if workers.rank() < len(state["rng"]):  # a worker that was not there before keeps its seed
            torch.set_rng_state(state["rng"][workers.rank()])
        first, history = state["step"], [Evaluation(**told) for told in state["history"]]
    yield from history

    model = DistributedDataParallel(parts.model, forward_sync_buffers=False) if num_workers() > 1 else parts.model
    losses, num_tokens = [], 0
    for step in range(first, num_steps):
        model.train()
        rows = batches.step_rows(step, num_rows, config.batch_size, config.seed)
        loss, terms = _backward(parts, model, workers.share(rows))
        norm = nn.utils.clip_grad_norm_(parts.model.parameters(), config.clip)
        if not (loss.isfinite() and norm.isfinite()):
            raise _not_finite(loss, norm, step, float(schedule.get_last_lr()[0]), rows, parts, terms)
        losses.append(loss.item())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        num_tokens += sum(len(parts.train.rows[row]["input_ids"]) for row in rows)
        epoch = (step + 1) * config.batch_size / num_rows
        if step + 1 not in stops:
            yield Progress(step + 1, num_steps, epoch, losses[-1], num_tokens)
            continue

        metrics, decisions = _dev_scores(parts, config.batch_size)
        metrics = {"train/loss": sum(losses) / len(losses), **metrics}
        losses.clear()
        evaluation = Evaluation(step + 1, epoch, metrics, step + 1 == num_steps)
        is_best = all(metrics[parts.objective] > earlier.metrics[parts.objective] for earlier in history)
        history.append(evaluation)
        rng = workers.gathered(torch.get_rng_state())
        if workers.rank() == 0:
            weights = parts.model.state_dict()
            if is_best:
                checkpoints.save_best({"model": weights, "decisions": decisions, "step": step + 1})
            told = {"step": step + 1, "history": [asdict(past) for past in history], "rng": rng}
            moving = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
            checkpoints.save_last({"model": weights, **moving, **told})
        yield evaluation


def _backward(parts: Parts, model: nn.Module, rows: list[int]) -> tuple[Tensor, Mapping[str, Term]]:
    """Adds the gradient of the step's loss, over the items of all workers; returns the loss and this worker's terms."""
    batch = parts.task.collate(parts.train.rows, rows, parts.tokenizer)
    terms = parts.task.terms(model(batch.inputs, batch.targets), batch)
    weighted = [
        term.weight * step_loss(loss, loss.statistics(term.logits, term.targets, term.mask))
        for name, term in terms.items()
        for loss in [parts.losses[name]]
    ]
    total = torch.stack(weighted).sum()
    # Data-parallel workers average their gradients; the step's loss is a sum over them.
    (total * num_workers()).backward()
    return total.detach(), terms


def _dev_scores(parts: Parts, batch_size: int) -> tuple[dict[str, float], dict[str, float]]:
    dev = parts.dev
    items = decoded(parts.task, parts.model, dev, parts.tokenizer, batch_size)
    decisions = parts.task.decide(dev.records, dev.rows, items)
    scores = parts.task.score(dev.records, dev.rows, items, decisions)
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)}
    return {f"dev/{name}": value for name, value in metrics.items()}, decisions


def _not_finite(
    loss: Tensor, norm: Tensor, step: int, lr: float, rows: list[int], parts: Parts, terms: Mapping[str, Term]
) -> NonFiniteError:
    found = [bad_input(parts.losses[name].link, term.logits, term.targets, term.mask) for name, term in terms.items()]
    return NonFiniteError(
        f"the loss and the gradient must be finite, got loss {loss.item()} and gradient norm {norm.item()} at step "
        f"{step + 1}, learning rate {lr:.3g}, rows {rows[:8]}{'...' if len(rows) > 8 else ''}. "
        + " ".join(str(problem) for problem in found if problem)
    )
