"""The training loop on one screen: built parts in, one evaluation after the other out."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer

from dice_ray.errors import LossInputError, NonFiniteError
from dice_ray.losses.base import Loss
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Task
from dice_ray.training import batches, workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.memory import give_back
from dice_ray.training.optim import build_optimizer, set_rate
from dice_ray.training.precision import Numerics, random_state, set_random_state
from dice_ray.training.settings import TrainingConfig
from dice_ray.training.step import Gradient, Tally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Parts:
    """What is trained, on what, by which losses, with which numbers, and the metric by which a checkpoint is best.

    Attributes:
        weights: How often each training row is drawn, all alike where not given.
    """

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    losses: Mapping[str, Loss]
    train: EncodedSplit
    dev: EncodedSplit
    objective: str
    numerics: Numerics
    weights: Sequence[float] | None = None


@dataclass(frozen=True)
class Evaluation:
    """What a run says each time that dev is scored.

    Attributes:
        step: Optimizer steps done.
        epoch: Passes over the training rows done.
        metrics: Of training since the last time as `train/...`, and dev's as `dev/...`.
        finished: Whether it is the run's last.
    """

    step: int
    epoch: float
    metrics: dict[str, float]
    finished: bool


@dataclass(frozen=True)
class StepProgress:
    """What a run says after a step without an evaluation.

    Attributes:
        step: Optimizer steps done, of `num_steps`.
        epoch: Passes over the training rows done.
        loss: Of the step.
        lr: Of the step, the highest of all layers.
        num_tokens: Trained on since this process began, padding left out.
        padding: Its share of all tokens since dev was scored last.
        tokens_per_second: Since then, padding left out.
    """

    step: int
    num_steps: int
    epoch: float
    loss: float
    lr: float
    num_tokens: int
    padding: float
    tokens_per_second: float


def fit(parts: Parts, config: TrainingConfig, checkpoints: Checkpoints) -> Generator[Evaluation | StepProgress]:
    """Train, yielding after each step: an evaluation of dev, or how far it is. Whoever stops asking stops the run.

    A run that was interrupted first tells its history again, then goes on from its last checkpoint.
    """
    rows, device = parts.train.rows, parts.numerics.device
    num_steps = batches.num_steps(len(rows), config.epochs, config.batch_size)
    num_evaluations = min(num_steps, config.evaluations or math.ceil(config.epochs))
    stops = {round(num_steps * (index + 1) / num_evaluations) for index in range(num_evaluations)}

    gradient = Gradient(
        parts.task, parts.tokenizer, parts.model, parts.losses, rows, parts.numerics, Tally(config.tokens)
    )
    steps = batches.Steps(gradient.lengths, config.batch_size, config.seed, parts.weights)
    optimizer = build_optimizer(parts.model, config)
    scaler = torch.amp.GradScaler(device.type, enabled=parts.numerics.precision == "fp16")
    moving: dict[str, Any] = {"model": parts.model, "optimizer": optimizer, "scaler": scaler}
    torch.manual_seed(config.seed * 1000 + workers.rank())
    first, history = 0, list[Evaluation]()
    if state := checkpoints.last(parts.model.state_dict()):
        for name, each in moving.items():
            each.load_state_dict(state[name])
        if workers.rank() < len(state["rng"]):  # a worker that was not there before keeps its seed
            set_random_state(state["rng"][workers.rank()], device)
        first, gradient.tally = state["step"], Tally(**state["tally"])
        history = [Evaluation(**told) for told in state["history"]]
    yield from history
    if history and history[-1].finished:
        checkpoints.finish()  # it may have been killed before it came to that
        return

    tally, saved, num_tokens = gradient.tally, time.monotonic(), 0
    for step in range(first, num_steps):
        in_step, epoch = steps.rows(step), (step + 1) * config.batch_size / len(rows)
        lr = set_rate(optimizer, config, step, num_steps)
        _take_step(step, in_step, gradient, optimizer, scaler, config.clip)
        num_tokens += sum(gradient.lengths[row] for row in in_step)
        is_evaluated = step + 1 in stops
        if is_evaluated:
            give_back()
            metrics, decisions = _dev_scores(parts, tally)
            metrics = tally.told() | {"train/lr": lr} | metrics
            history.append(Evaluation(step + 1, epoch, metrics, step + 1 == num_steps))
            num_worse = _num_worse(history, parts.objective)
            if num_worse == config.patience:
                history[-1] = replace(history[-1], finished=True)
            if num_worse == 0 and workers.rank() == 0:
                checkpoints.save_best({"model": parts.model.state_dict(), "decisions": decisions, "step": step + 1})
        is_due = time.monotonic() - saved >= 60 * config.checkpoint_minutes
        if is_evaluated or workers.any_of(is_due and workers.rank() == 0, device):
            saved = time.monotonic()
            state = {"step": step + 1, "history": [asdict(past) for past in history], "tally": asdict(tally)}
            state |= {"rng": workers.gathered(random_state(device))}
            state |= {name: each.state_dict() for name, each in moving.items()}
            if workers.rank() == 0:
                checkpoints.save_last(state, finished=is_evaluated and history[-1].finished)
        if is_evaluated:
            yield history[-1]
            if history[-1].finished:
                return
        else:
            speed = tally.padding, tally.tokens_per_second
            yield StepProgress(step + 1, num_steps, epoch, tally.losses[-1], lr, num_tokens, *speed)


def _take_step(
    step: int, rows: list[int], gradient: Gradient, optimizer: Optimizer, scaler: torch.amp.GradScaler, clip: float
) -> None:
    begin = time.perf_counter()
    gradient.model.train()
    loss = gradient.of(rows, scaler.scale)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(gradient.model.parameters(), clip)
    told_loss, told_norm = torch.stack((loss, norm)).tolist()
    # A gradient that is only scaled too much for fp16: the scaler leaves out the step, and scales the next one less.
    overflows = not math.isfinite(told_norm) and scaler.get_scale() > 1
    if not (math.isfinite(told_loss) and (math.isfinite(told_norm) or overflows)):
        lr = max(group["lr"] for group in optimizer.param_groups)
        raise _not_finite(told_loss, told_norm, step, lr, rows, gradient.bad_input(rows))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    gradient.tally.losses.append(told_loss)
    gradient.tally.seconds += time.perf_counter() - begin


def _dev_scores(parts: Parts, tally: Tally) -> tuple[dict[str, float], dict[str, float]]:
    dev = parts.dev
    items = decoded(parts.task, parts.model, dev, parts.tokenizer, parts.numerics, tally)
    decisions = parts.task.decide(dev.records, dev.rows, items)
    scores = parts.task.score(dev.records, dev.rows, items, decisions)
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)}
    return {f"dev/{name}": value for name, value in metrics.items()}, decisions


def _num_worse(history: list[Evaluation], objective: str) -> int:
    """How many evaluations came since the best one; of equals the first is best."""
    scores = [told.metrics[objective] for told in history]
    return len(scores) - 1 - scores.index(max(scores))


def _not_finite(
    loss: float, norm: float, step: int, lr: float, rows: list[int], why: LossInputError | None
) -> NonFiniteError:
    return NonFiniteError(
        f"the loss and the gradient must be finite, got loss {loss} and gradient norm {norm} at step {step + 1}, "
        f"learning rate {lr:.3g}, rows {rows[:8]}{'...' if len(rows) > 8 else ''}. {why or ''}"
    )
