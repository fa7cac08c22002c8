"""The training loop.

Resuming. A checkpoint holds everything that a step depends on: weights, optimizer and scaler, the step's number, the
tally, each worker's random state, and the evaluations so far. The rows and the learning rate of a step are functions of
its number. So a run that was killed anywhere and resumed yields the same evaluations as one that was not (with
`train/seconds` and `train/tokens_per_second` apart): bit for bit on a CPU; a GPU adds some numbers up in an order that
varies, and rounds differently. A checkpoint is written before its evaluation is yielded: an evaluation that was yielded
survives a crash. A resumed run yields its stored evaluations again first.

Stopping. A run that is asked to stop writes a checkpoint after the step it is in. In an evaluation it stops between two
micro-batches: the checkpoint is that of the step before, and the resumed run begins with the evaluation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer

from dice_ray.errors import NonFiniteError, RunError, reason_of
from dice_ray.losses.base import Loss
from dice_ray.metrics.catalogue import best_evaluation, gain
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Task
from dice_ray.training import batches, workers
from dice_ray.training.checkpoint import LAST, Checkpoints
from dice_ray.training.evaluate import EncodedSplit, Stopped, decoded, never
from dice_ray.training.memory import release_free_memory
from dice_ray.training.optim import set_rate
from dice_ray.training.precision import Numerics, random_state, set_random_state
from dice_ray.training.settings import TrainingConfig
from dice_ray.training.step import Gradient, TrainingTally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_RELEASE_SECONDS = 10.0
"""Free memory is returned to the operating system so often: it takes at most 1 % of the time, .1 s with 2 GB."""


@dataclass(frozen=True)
class Parts:
    """What a run is built from; the metric `objective` decides which checkpoint is best."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    losses: Mapping[str, Loss]
    optimizer: Optimizer
    train: EncodedSplit
    dev: EncodedSplit
    objective: str
    numerics: Numerics
    sampling: batches.Sampling


@dataclass(frozen=True)
class Evaluation:
    """A run's metrics at an evaluation of dev.

    Attributes:
        step: Optimizer steps completed.
        epoch: Passes over the training rows completed.
        metrics: Of training since the last evaluation as `train/...`, and of dev as `dev/...`.
        finished: Whether it is the run's last.
        is_past: Whether it was made before the run was resumed.
    """

    step: int
    epoch: float
    metrics: dict[str, float]
    finished: bool
    is_past: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """One line: the loss, and the first metrics of dev."""
        dev = [name for name in self.metrics if name.startswith("dev/")][:3]
        shown = [f"{name} {self.metrics[name]:.4f}" for name in ("train/loss", *dev) if name in self.metrics]
        return f"epoch {self.epoch:.2f}, step {self.step}: {', '.join(shown)}"


@dataclass(frozen=True)
class StepProgress:
    """A run's progress after a step without an evaluation.

    Attributes:
        step: Optimizer steps completed, of `num_steps`.
        lr: The highest of all layers.
        num_tokens: Trained on since this process started, without padding.
        padding: The share of padding in all tokens since the last evaluation.
        tokens_per_second: Since the last evaluation, without padding.
    """

    step: int
    num_steps: int
    epoch: float
    loss: float
    lr: float
    num_tokens: int
    padding: float
    tokens_per_second: float


def fit(
    parts: Parts, config: TrainingConfig, checkpoints: Checkpoints, is_stopped: Callable[[], bool] = never
) -> Generator[Evaluation | StepProgress]:
    """Train, yielding an evaluation or the progress after each step; closing the generator stops the training.

    An interrupted run resumes from its last checkpoint. A finished one only yields its evaluations again. Once
    `is_stopped()` on any worker, the run writes a checkpoint and ends without being finished.

    Raises:
        NonFiniteError: A loss or gradient is not finite; the weights of that step are not changed.
        RunError: A single row does not fit into memory, or no checkpoint of the run can be used.
    """
    rows, device, num_rows = parts.train.rows, parts.numerics.device, parts.sampling.num_rows
    num_steps = batches.num_steps(num_rows, config.epochs, config.batch_size)
    num_evaluations = batches.num_evaluations(num_steps, config.epochs, config.evaluations)
    evaluated = {round(num_steps * (index + 1) / num_evaluations) for index in range(num_evaluations)}

    gradient = Gradient(
        parts.task, parts.tokenizer, parts.model, parts.losses, rows, parts.numerics, TrainingTally(config.tokens)
    )
    steps = parts.sampling.steps(gradient.lengths, config.batch_size, config.seed)
    optimizer = parts.optimizer
    scaler = torch.amp.GradScaler(device.type, enabled=parts.numerics.precision == "fp16")
    stateful: dict[str, Any] = {"optimizer": optimizer, "scaler": scaler}
    # Workers draw different dropout masks; the factor keeps the seeds of one run apart from those of the next.
    torch.manual_seed(config.seed * 1000 + workers.rank())
    first, history = 0, list[Evaluation]()
    if state := checkpoints.last(parts.model.stored(), parts.model.kept_digest):
        parts.model.load_stored(state["model"])
        first, gradient.tally, history = _restore(state, stateful, device)
    yield from (replace(past, is_past=True) for past in history)
    if history and history[-1].finished:
        checkpoints.finish()  # in case it was killed between its last checkpoint and the deletion of the previous one
        return

    tally, num_tokens = gradient.tally, 0
    saved = released = time.monotonic()
    # The run was stopped in the evaluation after its last step.
    is_pending = first in evaluated and (not history or history[-1].step < first)
    for step in range(first - is_pending, num_steps):
        in_step, epoch = steps.rows(step), (step + 1) * config.batch_size / num_rows
        lr = set_rate(optimizer, config, step, num_steps)
        if step >= first:
            for loss in parts.losses.values():
                loss.begin_step(step / num_steps)
            _take_step(step, in_step, gradient, optimizer, scaler, config.clip)
            num_tokens += sum(gradient.lengths[row] for row in in_step)
        is_evaluated, stops = step + 1 in evaluated, False
        if is_evaluated or time.monotonic() - released > _RELEASE_SECONDS:
            release_free_memory()
            released = time.monotonic()
        if is_evaluated:
            try:
                metrics, decision = _dev_scores(parts, tally, is_stopped)
            except Stopped:
                is_evaluated, stops = False, True
        if is_evaluated:
            metrics = tally.take_metrics() | {"train/lr": lr} | metrics
            history.append(Evaluation(step + 1, epoch, metrics, step + 1 == num_steps))
            num_worse = _num_worse(history, parts.objective)
            if num_worse == config.patience:
                history[-1] = replace(history[-1], finished=True)
            if num_worse == 0 and workers.rank() == 0:
                stored = decision.stored() if decision else {}
                checkpoints.save_best({**_weights(parts.model), "decisions": stored, "step": step + 1})
        is_due = time.monotonic() - saved >= 60 * config.checkpoint_minutes
        # Clocks differ between workers, and signals reach them at different times, but all of them must gather: what
        # one of them decides holds for all. Rank 0 decides whether a checkpoint is due.
        is_due, is_asked = workers.any_of((is_due and workers.rank() == 0, is_stopped()), device)
        stops, finished = stops or is_asked, is_evaluated and history[-1].finished
        if is_evaluated or is_due or stops:
            saved = time.monotonic()
            state = _weights(parts.model) | _state(step + 1, tally, history, stateful, device)
            if workers.rank() == 0:
                checkpoints.save_last(state, finished=finished)
        if is_evaluated:
            yield history[-1]
        elif not stops:
            speed = tally.padding, tally.tokens_per_second
            yield StepProgress(step + 1, num_steps, epoch, tally.losses[-1], lr, num_tokens, *speed)
        if finished or stops:
            return


def _weights(model: EncoderWithHeads) -> dict[str, Any]:
    """The entries of a checkpoint for the model: `kept` identifies the weights that it leaves out, if there are any."""
    return {"model": model.stored(), "kept": model.kept_digest}


def _state(
    step: int, tally: TrainingTally, history: list[Evaluation], stateful: Mapping[str, Any], device: torch.device
) -> dict[str, Any]:
    """The entries of `last.pt` that `_restore` loads; every worker must call this, as random states are gathered."""
    rng, past = workers.gathered(random_state(device)), [asdict(evaluation) for evaluation in history]
    states = {name: each.state_dict() for name, each in stateful.items()}
    return {"step": step, "tally": asdict(tally), "history": past, "rng": rng, **states}


def _restore(
    state: Mapping[str, Any], stateful: Mapping[str, Any], device: torch.device
) -> tuple[int, TrainingTally, list[Evaluation]]:
    """Load a checkpoint's state; the next step, the tally and the evaluations so far.

    Raises:
        RunError: Another version of dice_ray or of torch has stored another state.
    """
    try:
        for name, each in stateful.items():
            each.load_state_dict(state[name])
        if workers.rank() < len(state["rng"]):  # a worker that the interrupted run did not have keeps its seed
            set_random_state(state["rng"][workers.rank()], device)
        history = [Evaluation(**evaluation) for evaluation in state["history"]]
        return state["step"], TrainingTally(**state["tally"]), history
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(
            f"{LAST} must hold a state as this version stores it, and {reason_of(error)}: resume the run with the "
            "version that began it, or train a new one"
        ) from error


def _take_step(
    step: int, rows: list[int], gradient: Gradient, optimizer: Optimizer, scaler: torch.amp.GradScaler, clip: float
) -> None:
    begin = time.perf_counter()
    gradient.model.train()
    step_loss = gradient.accumulate(rows, scaler.scale)
    scaler.unscale_(optimizer)
    gradient_norm = nn.utils.clip_grad_norm_(gradient.model.parameters(), clip)
    loss, norm = torch.stack((step_loss, gradient_norm)).tolist()  # waits for the device once
    # fp16 gradients overflow while the scale is too large: the scaler then skips the step and lowers its scale.
    overflows = not math.isfinite(norm) and scaler.get_scale() > 1
    if not (math.isfinite(loss) and (math.isfinite(norm) or overflows)):
        lr = max(group["lr"] for group in optimizer.param_groups)
        raise NonFiniteError(
            f"the loss and the gradient must be finite, got loss {loss} and gradient norm {norm} at step {step + 1}, "
            f"learning rate {lr:.3g}, rows {rows[:8]}{'...' if len(rows) > 8 else ''}. {gradient.bad_input(rows) or ''}"
        )
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    gradient.tally.losses.append(loss)
    gradient.tally.seconds += time.perf_counter() - begin


def _dev_scores(
    parts: Parts, tally: TrainingTally, is_stopped: Callable[[], bool]
) -> tuple[dict[str, float], FittedDecision | None]:
    """The metrics of dev, and the decision that is fitted on it."""
    dev = parts.dev
    items = decoded(parts.task, parts.model, dev, parts.tokenizer, parts.numerics, tally, is_stopped)
    decision = parts.task.decide(dev.records, dev.rows, items)
    of_dev = parts.task.score(dev.records, dev.rows, items, decision).on_dev(decision).named("dev")
    # The objective first: a line of the first metrics shows it.
    return {parts.objective: of_dev[parts.objective]} | of_dev, decision


def _num_worse(history: list[Evaluation], objective: str) -> int:
    """The number of evaluations since the best one."""
    metrics = [evaluation.metrics for evaluation in history]
    return len(history) - 1 - best_evaluation([gain(objective, each[objective]) for each in metrics], metrics)
