"""What the terminal shows while a run, sweep or study goes on: a live table, or plain lines in a pipe."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from dice_ray.training.loop import Evaluation, StepProgress
    from dice_ray.tuning.progress import Progress

SHOWN_METRICS = (
    *("train/loss", "dev/f1", "dev/precision", "dev/recall", "dev/f1_tuned", "dev/constant_f1"),
    *("dev/accuracy", "dev/macro_f1", "dev/constant_accuracy", "dev/constant_macro_f1"),
)
SECONDS_IN_A_PIPE = 10.0


def evaluation_line(evaluation: Evaluation) -> str:
    """One evaluation of a run as a line."""
    metrics = [f"{name} {evaluation.metrics[name]:.4f}" for name in SHOWN_METRICS if name in evaluation.metrics]
    collapsed = "  (predicts one class only)" if evaluation.metrics.get("dev/collapsed") else ""
    return f"epoch {evaluation.epoch:.2f}  step {evaluation.step}  {'  '.join(metrics)}{collapsed}"


def step_line(state: StepProgress, score: str, tokens_a_second: float, left: float) -> str:
    """How far a run is, as a line."""
    minutes, seconds = divmod(round(left), 60)
    parts = [f"epoch {state.epoch:.2f}", f"step {state.step}/{state.num_steps}", f"loss {state.loss:.4f}", score]
    speed = [f"{tokens_a_second:.0f} tokens/s", f"{minutes}:{seconds:02} left"]
    return "  ".join(part for part in [*parts, *(speed if left else [])] if part)


class _LiveScreen:
    """What is redrawn on a terminal while it is open; nothing is in a pipe."""

    _live: Live | None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()


class TrainScreen(_LiveScreen):
    """A line an evaluation, and how far the run is: a last line that is redrawn; in a pipe, one every ten seconds."""

    def __init__(self, terminal: TextIO) -> None:
        self._console = Console(file=terminal)
        live = Live(
            console=self._console, transient=True, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False
        )
        self._live = live if self._console.is_terminal else None
        self._first: tuple[float, StepProgress] | None = None
        self._told = math.inf
        self._score = ""

    def update(self, state: StepProgress) -> None:
        """Show how far the run is."""
        now = time.monotonic()
        if self._first is None:
            self._first, self._told = (now, state), now
        since, first = self._first
        steps, seconds = state.step - first.step, now - since
        speed = (state.num_tokens - first.num_tokens) / seconds if seconds else 0.0
        left = (state.num_steps - state.step) * seconds / steps if steps > 0 else 0.0
        line = step_line(state, self._score, speed, left)
        if self._live:
            self._live.update(Text(line))
        elif now - self._told >= SECONDS_IN_A_PIPE:
            self._told = now
            self._print(line)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show an evaluation, which stays."""
        shown = [name for name in SHOWN_METRICS if name in evaluation.metrics and name.startswith("dev/")]
        self._score = f"{shown[0]} {evaluation.metrics[shown[0]]:.4f}" if shown else ""
        self._print(evaluation_line(evaluation))

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)


def progress_line(state: Progress) -> str:
    """A sweep's or study's progress as a line."""
    counts = f"{state.done} done, {state.pruned} stopped early, {state.failed} failed, {state.running} running"
    best = "" if state.best_score is None else f"; best {100 * state.best_score:.2f} {_settings(state)}"
    return f"{state.elapsed:5.0f} s  {counts} of {state.total}{best}"


class ProgressScreen(_LiveScreen):
    """A table that is redrawn on a terminal; in a pipe, a line whenever a trial has ended."""

    def __init__(self, terminal: TextIO) -> None:
        self._console = Console(file=terminal)
        # What others say belongs to the log: rich would bring it to the terminal.
        live = Live(console=self._console, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False)
        self._live = live if self._console.is_terminal else None
        self._ended = -1

    def update(self, state: Progress) -> None:
        """Show how far the trials are."""
        ended = state.done + state.pruned + state.failed
        if self._live:
            self._live.update(_table(state))
        elif ended != self._ended:
            self._console.print(progress_line(state), highlight=False, soft_wrap=True, markup=False)
        self._ended = ended


def _table(state: Progress) -> Table:
    table = Table("done", "stopped early", "failed", "running", "of", "seconds", "best", "its settings")
    best = "" if state.best_score is None else f"{100 * state.best_score:.2f}"
    counts = (state.done, state.pruned, state.failed, state.running, state.total)
    table.add_row(*map(str, counts), f"{state.elapsed:.0f}", best, Text(_settings(state)))
    return table


def _settings(state: Progress) -> str:
    return " ".join(
        f"{path}={value:.3g}" if isinstance(value, float) else f"{path}={value}"
        for path, value in state.best_params.items()
    )
