"""Trials that have ended, for the ledgers of tests; and a screen that tests see them run on."""

from __future__ import annotations

from typing import Any, Self, TextIO

from dice_ray.run.driver import Event
from dice_ray.tracking.schema import State
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec


def note(ledger: Ledger, trial: TrialSpec | str, score: float | None = 0.5, state: State = "done", **spec: Any) -> str:
    """Note that a trial has ended, after one evaluation or, without a score, before any; returns its id."""
    if isinstance(trial, str):
        trial = TrialSpec(**{"id": trial, "params": {}, "seed": 0} | spec)
    if not ledger.is_running(trial.id):
        ledger.append(trial)
    curve = () if score is None else ((5, score),)
    failure = "lost" if state == "failed" else None
    ledger.append(TrialOutcome(id=trial.id, state=state, curve=curve, metrics=({},) * len(curve), failure=failure))
    return trial.id


class Screen:
    """A screen on any terminal, for `Driver.show`."""

    terminal: TextIO

    def on(self, terminal: TextIO) -> Self:
        self.terminal = terminal
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def show(self, state: Event) -> None: ...
