"""The training loop on one screen: built parts in, one evaluation after the other out."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dice_ray.errors import LossInputError, NonFiniteError
from dice_ray.losses.base import Loss
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Task
from dice_ray.training import batches, workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.optim import build_optimizer, build_schedule
from dice_ray.training.precision import Numerics
from dice_ray.training.settings import TrainingConfig
from dice_ray.training.step import Gradient, random_state, set_random_state

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Parts:
    """What is trained, on what, by which losses, and the metric that says which checkpoint is best."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    losses: Mapping[str, Loss]
    train: EncodedSplit
    dev: EncodedSplit
    objective: str
    numerics: Numerics


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


def fit(parts: Parts, config: TrainingConfig, checkpoints: Checkpoints) -> Generator[Evaluation, None, None]:
    """Train, yielding at each evaluation of dev; whoever stops asking stops the run.

    A run that was interrupted first tells its history again, then goes on from its last checkpoint.
    """
    num_rows = len(parts.train.rows)
    num_steps = batches.num_steps(num_rows, config.epochs, config.batch_size)
    num_evaluations = min(num_steps, config.evaluations or math.ceil(config.epochs))
    stops = {round(num_steps * (index + 1) / num_evaluations) for index in range(num_evaluations)}

    optimizer = build_optimizer(parts.model, config)
    schedule = build_schedule(optimizer, config, num_steps)
    lengths = [len(row["input_ids"]) for row in parts.train.rows]
    steps = batches.Steps(lengths, config.batch_size, config.seed)
    gradient = Gradient(
        parts.task,
        parts.tokenizer,
        parts.model,
        parts.losses,
        parts.train.rows,
        lengths,
        parts.numerics,
        config.tokens,
    )
    device = parts.numerics.device
    torch.manual_seed(config.seed * 1000 + workers.rank())
    first, history = 0, list[Evaluation]()
    if state := checkpoints.last():
        parts.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        if workers.rank() < len(state["rng"]):  # a worker that was not there before keeps its seed
            set_random_state(state["rng"][workers.rank()], device)
        first, history = state["step"], [Evaluation(**told) for told in state["history"]]
    yield from history

    losses = []
    for step in range(first, num_steps):
        parts.model.train()
        rows = steps.rows(step)
        loss = gradient.of(rows)
        norm = nn.utils.clip_grad_norm_(parts.model.parameters(), config.clip)
        if not (loss.isfinite() and norm.isfinite()):
            lr = float(schedule.get_last_lr()[0])
            raise _not_finite(loss.item(), norm.item(), step, lr, rows, gradient.bad_input(rows))
        losses.append(loss.item())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step + 1 not in stops:
            continue

        metrics, decisions = _dev_scores(parts, config.batch_size)
        metrics = {"train/loss": sum(losses) / len(losses), **metrics}
        losses.clear()
        evaluation = Evaluation(step + 1, (step + 1) * config.batch_size / num_rows, metrics, step + 1 == num_steps)
        is_best = all(metrics[parts.objective] > earlier.metrics[parts.objective] for earlier in history)
        history.append(evaluation)
        rng = workers.gathered(random_state(device))
        if workers.rank() == 0:
            weights = parts.model.state_dict()
            if is_best:
                checkpoints.save_best({"model": weights, "decisions": decisions, "step": step + 1})
            told = {"step": step + 1, "history": [asdict(past) for past in history], "rng": rng}
            moving = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
            checkpoints.save_last({"model": weights, **moving, **told})
        yield evaluation


def _dev_scores(parts: Parts, batch_size: int) -> tuple[dict[str, float], dict[str, float]]:
    dev = parts.dev
    items = decoded(parts.task, parts.model, dev, parts.tokenizer, batch_size)
    decisions = parts.task.decide(dev.records, dev.rows, items)
    scores = parts.task.score(dev.records, dev.rows, items, decisions)
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)}
    return {f"dev/{name}": value for name, value in metrics.items()}, decisions


def _not_finite(
    loss: float, norm: float, step: int, lr: float, rows: list[int], why: LossInputError | None
) -> NonFiniteError:
    return NonFiniteError(
        f"the loss and the gradient must be finite, got loss {loss} and gradient norm {norm} at step {step + 1}, "
        f"learning rate {lr:.3g}, rows {rows[:8]}{'...' if len(rows) > 8 else ''}. {why or ''}"
    )
