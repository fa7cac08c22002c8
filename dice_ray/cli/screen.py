"""The screen of a run, sweep or study: a display that is redrawn on a terminal, plain lines in a pipe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dice_ray.cli.layout import WIDTH, clock, folded, joined, table
from dice_ray.errors import counted, shortened
from dice_ray.training.loop import Evaluation, StepProgress

if TYPE_CHECKING:
    from dice_ray.run.driver import Event, RunningTrial, TrialCounts

_SHOWN_METRICS = (
    *("dev/f1", "dev/precision", "dev/recall", "dev/f1_tuned", "dev/constant_f1"),
    *("dev/accuracy", "dev/macro_f1", "dev/constant_accuracy", "dev/constant_macro_f1"),
)
"""Metrics that are shown behind the objective."""


class TerminalScreen:
    """Shows the events of a run, sweep or study on a terminal, or in a pipe.

    - An evaluation of a run is a line that stays.
    - A step of a run redraws the last line, which is cleared at the end; in a pipe it prints a line every ten seconds.
    - The counts of a sweep or study redraw a line and a table of the trials that run, which stay at the end; in a pipe
      they print the line whenever a trial has ended, and every minute.
    - A text, as that Ray starts, is a line that stays.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._console = Console(file=terminal, emoji=False)  # or ":100:" of a variant "1:100" becomes a picture
        self._console.width = min(self._console.width, WIDTH)
        # Meanwhile stdout and stderr of the process are the log: rich must not redirect them to the terminal.
        live = Live(
            console=self._console, transient=True, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False
        )
        self._live = live if self._console.is_terminal else None
        self._first_step: tuple[float, StepProgress] | None = None
        self._last_line = 0.0
        self._score = ""
        self._is_first = True
        self._num_ended = -1

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Show one event; most redraw the display, which costs next to nothing."""
        if isinstance(event, str):
            self._print(folded(event))
        elif isinstance(event, Evaluation):
            self._show_evaluation(event)
        elif isinstance(event, StepProgress):
            self._show_step(event)
        else:
            self._show_counts(event)

    def _show_evaluation(self, evaluation: Evaluation) -> None:
        values = evaluation.metrics
        objective = [name for name in values if name.startswith("dev/")][:1]  # may be a metric that no list has
        constant = [f"dev/constant_{name.removeprefix('dev/').removesuffix('_tuned')}" for name in objective]
        names = dict.fromkeys(("train/loss", *objective, *_SHOWN_METRICS, *constant))
        # No evaluation changes the constant predictor's.
        shown = [name for name in names if name in values and (self._is_first or "/constant_" not in name)]
        self._is_first = False
        metrics = [f"{name} {values[name]:.4f}" for name in shown]
        self._score = next((metric for metric in metrics if metric.startswith("dev/")), "")
        at = "untuned, " if objective and objective[0].endswith("_tuned") else ""
        marks = [f"({at}predicts one class only)"] if values.get("dev/collapsed") else []
        used = values.get("dev/threshold_used")  # only tasks with a threshold have it
        if used is not None and used != values["dev/threshold"]:
            tuned = next((name.removeprefix("dev/") for name in objective if name.endswith("_tuned")), "f1_tuned")
            marks.append(
                f"({tuned}: threshold of {values['dev/threshold_support']:.0f} positives, predictions use {used:g})"
            )
        self._print(joined([f"epoch {evaluation.epoch:.2f}", f"step {evaluation.step}", *metrics, *marks]))

    def _show_step(self, step: StepProgress) -> None:
        now = time.monotonic()
        if self._first_step is None:
            self._first_step, self._last_line = (now, step), now
        since, first = self._first_step
        num_steps, seconds = step.step - first.step, now - since
        speed = (step.num_tokens - first.num_tokens) / seconds if seconds else 0.0
        left = (step.num_steps - step.step) * seconds / num_steps if num_steps > 0 else 0.0
        line = _step_line(step, self._score, speed, left)
        if self._live:
            self._live.update(Text(line))
        elif now - self._last_line >= 10:
            self._last_line = now
            self._print(line)

    def _show_counts(self, counts: TrialCounts) -> None:
        if self._live:
            lines = [folded(_counts_line(counts)), *([_running_table(counts.trials)] if counts.trials else [])]
            self._live.transient = False
            self._live.update(Text("\n".join(lines)))  # a `Text`, as rich would take a value in brackets for markup
            return
        now, num_ended = time.monotonic(), counts.num_ended
        if num_ended != self._num_ended or now - self._last_line >= 60:
            self._num_ended, self._last_line = num_ended, now
            self._print(folded(_counts_line(counts)))

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)


def _counts_line(counts: TrialCounts) -> str:
    """The progress of a sweep or study as a line: how many trials are in which state, the time left, the best."""
    settings = " ".join(f"{path}={shortened(value)}" for path, value in counts.best_params.items())
    line = f"{counts.elapsed:5.0f} s  {counts.done} finished, {counts.pruned} stopped early, {counts.failed} failed, "
    line += f"{counts.running} running of {counts.total}"
    if counts.seconds_left:
        line += f", about {clock(counts.seconds_left)} left"
    if counts.best_score is None:
        return line
    of_arm = f"{counts.best_arm}, mean of {counted(counts.num_seeds, 'seed')}" if counts.best_arm else settings
    return f"{line}; best {counts.best_score:.4f} {of_arm}"


def _running_table(trials: Sequence[RunningTrial]) -> str:
    """The trials that run, at their last evaluation."""
    rows = [(*trial.cells, clock(trial.seconds)) for trial in trials]
    return table(("running", "step", "train/loss", "score", "time"), rows, (False, True, True, True, True))


def _step_line(step: StepProgress, score: str, tokens_per_second: float, seconds_left: float) -> str:
    """The progress of a run as a line; without an estimate of the time left (0), no speed is shown either."""
    parts = [f"epoch {step.epoch:.2f}", f"step {step.step}/{step.num_steps}", f"loss {step.loss:.4f}", score]
    speed = [f"{tokens_per_second:.0f} tokens/s", f"{clock(seconds_left)} left"]
    return joined([part for part in [*parts, *(speed if seconds_left else [])] if part])
