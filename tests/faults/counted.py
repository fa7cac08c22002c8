"""Cross entropy that notes each step it trains, so that what is trained twice is seen; a file `hold` makes it wait.

A step is noted as the number of workers that share it, once by each of them, and who waits makes a file of that number.
A file `fault` makes the first process that sees it fail as the file says, once; so does `space fault` in the space.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from optuna import Trial
from torch import Tensor

from dice_ray.losses.cross_entropy import CrossEntropyLoss
from dice_ray.losses.items import Items
from dice_ray.losses.reduction import num_workers
from dice_ray.terms import TermFacts

CHUNK = 2**26
"""Numbers that a loss takes at once until its memory is over: 256 MiB."""


class Counted(CrossEntropyLoss):
    def __init__(self, facts: TermFacts, file: Path) -> None:
        super().__init__(facts.link)
        self._file = file

    def losses(self, items: Items) -> Tensor:
        while self._file.with_name("hold").exists():
            self._file.with_name(f"waits with {num_workers()}").touch()
            time.sleep(0.05)
        if torch.is_grad_enabled():
            with self._file.open("ab") as steps:
                steps.write(str(num_workers()).encode())
            fault = claimed(self._file.with_name("fault"))
            if fault == "NaN":
                return super().losses(items) * float("nan")
            failed(fault)
        return super().losses(items)


def counted(facts: TermFacts, file: str) -> Counted:
    return Counted(facts, Path(file))


def rate(trial: Trial) -> None:
    """A space whose user made a mistake."""
    fault = claimed(Path("space fault"))
    failed(fault)
    trial.suggest_float("training.lr", float("nan") if fault == "NaN" else 1e-4, 1e-2, log=True)


def claimed(file: Path) -> str:
    """What the file says, for the first process that asks."""
    try:
        own = file.rename(file.with_name(f"claimed by {os.getpid()}"))
    except FileNotFoundError:
        return ""
    fault = own.read_text()
    own.unlink()
    return fault


def failed(fault: str) -> None:
    match fault:
        case "exception":
            raise ValueError("a mistake\nand more words about it")
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(3600)
        case "fork":
            if not os.fork():
                time.sleep(30)
                os._exit(0)
        case "memory":
            taken = []
            while True:
                taken.append(torch.ones(CHUNK))
                time.sleep(0.1)
