"""The checkpoints of a run, last and best, written whole or not at all, and refused where they are not the run's."""

from __future__ import annotations

import os
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dice_ray.errors import RunError

LAST, _BEFORE, BEST = "last.pt", "before.pt", "best.pt"
GOING_ON = (LAST, _BEFORE)
"""What only a run that goes on needs."""
_KEYS = {"model", "optimizer", "scaler", "step", "history", "rng", "tally"}


def sync(file: Path) -> None:
    """Return once a file's content is on the disk: what is renamed before that may be empty after a power cut."""
    with file.open("rb") as content:
        os.fsync(content.fileno())


class Checkpoints:
    """The checkpoints in a run's folder: `last.pt` to go on from, `before.pt` should that one be torn, `best.pt`.

    Raises:
        RunError: The folder is a URL.
    """

    def __init__(self, folder: Path) -> None:
        if re.match(r"^[A-Za-z][\w+.-]+:/", str(folder)):
            raise RunError(
                f"checkpoints must be in a folder that every worker sees, got the URL {folder}: they are renamed once "
                "they are whole, which a store of objects cannot do. Mount it, or copy the folder when the run ends"
            )
        self.folder = folder

    def last(self, like: Mapping[str, torch.Tensor]) -> dict[str, Any] | None:
        """The state to go on from, if the run has begun; the one before the last where that one cannot be used.

        Args:
            like: The weights of the run's model: those of a checkpoint must have the same names and shapes.
        """
        for left in self.folder.glob("*.tmp"):  # by a process that was killed
            left.unlink(missing_ok=True)
        refused = []
        for name in (LAST, _BEFORE):
            if not (self.folder / name).exists():
                continue
            try:
                state = self._load(name, _KEYS)
                self._check_model(name, state["model"], like)
            except RunError as error:
                refused.append(error)
            else:
                for reason in refused:
                    warnings.warn(f"{reason}; the run goes on from {name}", stacklevel=2)
                return state
        if refused:
            raise refused[0]
        return None

    def best(self) -> dict[str, Any]:
        """The state with the best score on dev."""
        if not (self.folder / BEST).exists():
            raise RunError(f"{self.folder} must hold a trained run's {BEST}: it has none")
        return self._load(BEST, {"model", "decisions", "step"})

    def save_last(self, state: dict[str, Any], *, finished: bool) -> None:
        """Keep a state, and the one before it until the run is finished."""
        unfinished = self._written(LAST, state)
        if (self.folder / LAST).exists():
            (self.folder / LAST).replace(self.folder / _BEFORE)
        unfinished.replace(self.folder / LAST)
        if finished:
            self.finish()

    def finish(self) -> None:
        """Of a finished run the last state is enough."""
        (self.folder / _BEFORE).unlink(missing_ok=True)

    def save_best(self, state: dict[str, Any]) -> None:
        self._written(BEST, state).replace(self.folder / BEST)

    def _written(self, name: str, state: dict[str, Any]) -> Path:
        """The state on the disk, under a name that no one reads."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{name}.{os.getpid()}.tmp"
        with unfinished.open("wb") as file:  # given a path, torch writes its name into the file
            torch.save(state, file)
        sync(unfinished)
        return unfinished

    def _load(self, name: str, keys: set[str]) -> dict[str, Any]:
        path = self.folder / name
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError, LookupError, OSError) as error:
            raise RunError(f"{path} must be a checkpoint of dice_ray: {' '.join(str(error).split())[:200]}") from error
        if not isinstance(state, dict) or (missing := sorted(keys - state.keys())):
            lacks = (
                f"it lacks {', '.join(missing)}" if isinstance(state, dict) else f"it holds a {type(state).__name__}"
            )
            raise RunError(f"{path} must be a checkpoint of dice_ray: {lacks}")
        return state

    def _check_model(self, name: str, found: Mapping[str, torch.Tensor], like: Mapping[str, torch.Tensor]) -> None:
        wrong = [
            key
            for key in {**like, **found}
            if key not in like or key not in found or like[key].shape != found[key].shape
        ]
        if wrong:
            raise RunError(f"{self.folder / name} must be of this run's model, and {wrong[0]} is of another one")
