"""Files torn at every tenth of their length, and with flipped bits: what is before is read, or one error names it."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from dice_ray.config.load import values_layer
from dice_ray.errors import RunError
from dice_ray.settings import Flat
from dice_ray.tracking.entries import End, Open, RunEntry, Text
from dice_ray.tracking.spool import Spool, unsent_spools
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.sweep import SweepPlan
from tests.faults.tries import Rows, Try

TENTHS: Final = 11
"""Cuts from nothing to one byte less than all."""


@dataclass(frozen=True)
class Stored:
    """A file as it was written, and its reader.

    Attributes:
        read: Returns what is read, as a list of which a beginning may be left: nothing of it may differ.
        whole: What is read before the file is damaged.
        num_heads: Lines before the first one that holds an entry of the list; None where the file is no list of lines.
    """

    file: Path
    read: Callable[[], list[Any]]
    whole: list[Any]
    num_heads: int | None = None

    def least(self, before: bytes) -> int:
        """How many entries lie before the damage."""
        return len(self.whole) if self.num_heads is None else max(0, before.count(b"\n") - self.num_heads)


def torn(write: Callable[[Path], Stored], folder: Path, tries: int) -> Iterator[Try]:
    """Cut at each tenth, then flip one bit for each further try."""
    stored = write(folder)
    content = stored.file.read_bytes()
    for number in range(tries):
        if number < TENTHS:
            size = min(len(content) * number // (TENTHS - 1), len(content) - 1)
            moment, damaged = f"cut to {size} of {len(content)} bytes", content[:size]
            byte = size
        else:
            byte, bit = random.randrange(len(content)), random.randrange(8)
            moment = f"bit {bit} of byte {byte} of {len(content)} flipped"
            damaged = content[:byte] + bytes([content[byte] ^ 1 << bit]) + content[byte + 1 :]
        stored.file.write_bytes(damaged)
        faults = tuple(_faults(stored, stored.least(content[:byte])))
        yield Try(moment, lost=int(bool(faults)), faults=faults)


def _faults(stored: Stored, least: int) -> Iterator[str]:
    try:
        with warnings.catch_warnings(action="ignore"):
            found = stored.read()
    except RunError as error:
        if stored.file.name not in str(error):
            yield f"the error does not name the file: {error}"
    except Exception as error:  # noqa: BLE001  any other error would reach the user as a traceback
        yield f"{type(error).__name__}: {error}"
    else:
        if len(found) < least or not _is_same(found, stored.whole[: len(found)]):
            yield f"it is read as {str(found)[:200]}"


def _is_same(mine: Any, other: Any) -> bool:
    if isinstance(mine, list):
        return len(mine) == len(other) and all(_is_same(*pair) for pair in zip(mine, other, strict=True))
    if isinstance(mine, torch.Tensor):
        return torch.equal(mine, other)
    if isinstance(mine, dict):
        return mine.keys() == other.keys() and all(_is_same(mine[key], other[key]) for key in mine)
    return bool(mine == other)


def last_checkpoint(folder: Path) -> Stored:
    """`last.pt` alone; where there is an earlier one, that is read in its place."""
    checkpoints = Checkpoints(folder)
    model = {"weight": torch.randn(20, 30)}
    state: dict[str, Any] = {"model": model, "optimizer": {"state": torch.randn(20, 30)}, "step": 2}
    state |= {"scaler": {}, "tally": {}, "history": [[2, {"dev/f1": 0.5}]], "rng": [torch.get_rng_state()]}
    checkpoints.save_last(state, finished=False)
    return Stored(folder / "last.pt", lambda: [checkpoints.last(model)], [state])


def best_checkpoint(folder: Path) -> Stored:
    checkpoints = Checkpoints(folder)
    state = {"model": {"weight": torch.randn(20, 30)}, "decisions": {"threshold": 0.5}, "step": 1}
    checkpoints.save_best(state)
    return Stored(folder / "best.pt", lambda: [checkpoints.best()], [state])


def ledger(folder: Path) -> Stored:
    written = Ledger(folder / "ledger.jsonl")
    events: list[TrialSpec | TrialOutcome] = []
    for number in range(1, 9):
        id_ = f"{number:04d}"
        params: Flat = {"loss": "focal", "loss.focal.gamma": random.uniform(0, 5), "training.lr": 1e-3 * number}
        curve = tuple((step, random.random()) for step in (10, 20, 30))
        metrics = tuple({"dev/f1": score, "train/loss": 1 - score} for _, score in curve)
        events += [
            TrialSpec(id=id_, params=params, seed=number),
            TrialOutcome(id=id_, state="done", curve=curve, metrics=metrics),
        ]
    for event in events:
        written.append(event)

    def read() -> list[Any]:
        found = Ledger(written.path)
        by_kind: dict[str, Any] = {"begin": found.specs, "end": found.outcomes}
        return [by_kind[event.event][event.id] for event in events if event.id in by_kind[event.event]]

    return Stored(written.path, read, events, num_heads=0)


def plan(folder: Path) -> Stored:
    settings = {"task": "sentence_pair", "data.source": "synthetic", "training.epochs": 2, "training.lr": 2e-4}
    layers = (values_layer("preset", settings),)
    written = SweepPlan(name="sweep", layers=layers, space="spaces.py:rate", trials=64, seeds=3, digest="77aa")
    plan_file.store(written, folder)
    return Stored(folder / "plan.yaml", lambda: [plan_file.read(folder)], [written])


def spool(folder: Path) -> Stored:
    written = Spool(folder, "sweep", "sqlite:////store.db")
    entries: list[RunEntry] = []
    for number in range(8):
        opened = Open(f"{number}", f"run {number}", {"lr": "0.001"}, {"kind": "trial"}, None, 1000 + number)
        entries += [opened, Text(f"{number}", "notes.txt", "größer\n" * 5), End(f"{number}", "FINISHED", 2000)]
    for entry in entries:
        written.add(entry)
    written.close(is_sent=False)
    content = written.path.read_bytes()

    def read() -> list[Any]:
        list(unsent_spools(folder))
        found = Spool(folder, "sweep", "sqlite:////store.db")
        found.close(is_sent=False)
        # Runs that the tear left open are ended.
        return [entry for entry in found.unsent if not (isinstance(entry, End) and entry.status == "KILLED")]

    assert content == written.path.read_bytes()
    return Stored(written.path, read, entries, num_heads=1)


ROWS: Final[Rows] = {
    f"{name} torn, or with a flipped bit": partial(torn, write)
    for name, write in {
        "last.pt": last_checkpoint,
        "best.pt": best_checkpoint,
        "ledger.jsonl": ledger,
        "plan.yaml": plan,
        "the spool": spool,
    }.items()
}
