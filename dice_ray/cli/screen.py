"""What the terminal shows while a run, sweep or study goes on: a live table, or plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from dice_ray.training.loop import Evaluation
    from dice_ray.tuning.callback import Progress

SHOWN_METRICS = (
    *("train/loss", "dev/f1", "dev/precision", "dev/recall", "dev/f1_tuned", "dev/constant_f1"),
    *("dev/accuracy", "dev/macro_f1", "dev/constant_accuracy", "dev/constant_macro_f1"),
)


def evaluation_line(evaluation: Evaluation) -> str:
    """One evaluation of a run as a line."""
    metrics = [f"{name} {evaluation.metrics[name]:.4f}" for name in SHOWN_METRICS if name in evaluation.metrics]
    collapsed = "  (predicts one class only)" if evaluation.metrics.get("dev/collapsed") else ""
    return f"epoch {evaluation.epoch:.2f}  step {evaluation.step}  {'  '.join(metrics)}{collapsed}"


def evaluation_screen(terminal: TextIO) -> Callable[[Evaluation], None]:
    """Shows a run's evaluations, a line each."""
    return lambda evaluation: print(evaluation_line(evaluation), file=terminal, flush=True)


def progress_line(state: Progress) -> str:
    """A sweep's or study's progress as a line."""
    counts = f"{state.done} done, {state.pruned} stopped early, {state.failed} failed, {state.running} running"
    best = "" if state.best_score is None else f"; best {100 * state.best_score:.2f} {_settings(state)}"
    return f"{state.elapsed:5.0f} s  {counts} of {state.total}{best}"


class ProgressScreen:
    """A table that is redrawn on a terminal; in a pipe, a line whenever a trial has ended."""

    def __init__(self, terminal: TextIO) -> None:
        self._console = Console(file=terminal)
        # What others say belongs to the log: rich would bring it to the terminal.
        live = Live(console=self._console, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False)
        self._live = live if self._console.is_terminal else None
        self._ended = -1

    def __enter__(self) -> ProgressScreen:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def update(self, state: Progress) -> None:
        """Show how far the trials are."""
        ended = state.done + state.pruned + state.failed
        if self._live:
            self._live.update(_table(state))
        elif ended != self._ended:
            self._console.print(progress_line(state), highlight=False, soft_wrap=True)
        self._ended = ended


def _table(state: Progress) -> Table:
    table = Table("done", "stopped early", "failed", "running", "of", "seconds", "best", "its settings")
    best = "" if state.best_score is None else f"{100 * state.best_score:.2f}"
    counts = (state.done, state.pruned, state.failed, state.running, state.total)
    table.add_row(*map(str, counts), f"{state.elapsed:.0f}", best, _settings(state))
    return table


def _settings(state: Progress) -> str:
    return " ".join(
        f"{path}={value:.3g}" if isinstance(value, float) else f"{path}={value}"
        for path, value in state.best_params.items()
    )
