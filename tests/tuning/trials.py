"""Trials that have ended, for the ledgers of tests; files that they read; and a screen that tests see them run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, TextIO

from dice_ray.config.load import Layer, values_layer
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


def pairs_in(folder: Path, *splits: str, first: str = "a {}") -> tuple[Layer, ...]:
    """Write files of 40 pairs each into a folder; returns a preset that reads them."""
    folder.mkdir(exist_ok=True)
    for split in splits:
        rows = (f"{split} {first.format(number)}\tx {number}\t{number % 2}\n" for number in range(40))
        (folder / f"{split}.tsv").write_text("a\tb\tlabel\n" + "".join(rows))
    columns = {"pair": {"first": "a", "second": "b", "label": "label"}}
    files: dict[str, Any] = {split: f"{split}.tsv" for split in splits}
    files |= {"folder": str(folder), "reader": {"tables": {"quoting": False, "columns": columns}}}
    values = {"task": "sentence_pair", "data.source.files": files, "training.batch_size": 8}
    return (values_layer("preset", values),)


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
