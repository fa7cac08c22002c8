"""The screen of a run, sweep or study in a notebook: one display that is updated in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from dice_ray.run.driver import Event, RunningTrial


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which has imported IPython."""
    # Another thread may be in the middle of its import, as MLflow's is in the thread of an earlier run's writer.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return shell is not None and hasattr(shell(), "kernel")


class NotebookScreen:
    """Shows texts as lines, a bar with the latest progress, and the trials that run now."""

    def __init__(self, terminal: TextIO) -> None:
        self._texts: list[str] = []
        self._done, self._total, self._progress, self._evaluation = 0, 0, "", ""
        self._trials: Sequence[RunningTrial] = ()
        self._display: Any = None
        self._updated = 0.0

    def __enter__(self) -> Self:
        from IPython.display import display

        self._display = display(self, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._display.update(self)

    def show(self, event: Event) -> None:
        """Show one event; events within half a second of the last update are shown with the next one, or at the end."""
        from dice_ray.training.loop import Evaluation, StepProgress

        if isinstance(event, str):
            self._texts.append(event)
        elif isinstance(event, Evaluation):
            self._evaluation = str(event)
            if event.finished:
                self._done = self._total = event.step
                self._progress = f"{event.step} steps"
        elif isinstance(event, StepProgress):
            self._done, self._total = event.step, event.num_steps
            self._progress = f"epoch {event.epoch:.2f}, step {event.step} of {event.num_steps}: loss {event.loss:.4f}"
        else:
            self._done, self._total = event.num_ended, event.total
            left = f", about {timedelta(seconds=round(event.seconds_left))} left" if event.seconds_left else ""
            self._progress, self._trials = f"{event}{left}", event.trials
        # Each update is a message to the browser, and a run has many steps a second.
        if (now := time.monotonic()) - self._updated >= 0.5:
            self._updated = now
            self._display.update(self)

    def __repr__(self) -> str:
        """The latest lines, for a front end that shows no HTML."""
        return "\n".join(line for line in (*self._texts, self._progress, self._evaluation) if line)

    def _repr_html_(self) -> str:
        texts = "".join(f'<pre style="white-space: pre-wrap">{escape(text)}</pre>' for text in self._texts)
        bar = f'<progress value="{self._done}" max="{self._total}"></progress> ' if self._total else ""
        lines = "".join(
            f"<div>{line}</div>" for line in (bar + escape(self._progress), escape(self._evaluation)) if line
        )
        return texts + lines + _table(self._trials)


def _table(trials: Sequence[RunningTrial]) -> str:
    """The trials that run now, at their last evaluation."""
    if not trials:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("running", "step", "train/loss", "score"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in trial.cells)}</tr>" for trial in trials)
    return f"<table><tr>{head}</tr>{body}</table>"
