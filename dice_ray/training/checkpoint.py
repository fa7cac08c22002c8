"""The two checkpoints of a run, last and best, written whole or not at all."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from dice_ray.errors import RunError


class Checkpoints:
    """The checkpoints in a run's folder: `last.pt` to go on from, `best.pt` to score."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def last(self) -> dict[str, Any] | None:
        """The state to go on from, if the run has begun."""
        return self._load("last.pt") if (self.folder / "last.pt").exists() else None

    def best(self) -> dict[str, Any]:
        """The state with the best score on dev."""
        if not (self.folder / "best.pt").exists():
            raise RunError(f"{self.folder} must hold a trained run's best.pt: it has none")
        return self._load("best.pt")

    def save_last(self, state: dict[str, Any]) -> None:
        self._save("last.pt", state)

    def save_best(self, state: dict[str, Any]) -> None:
        self._save("best.pt", state)

    def _save(self, name: str, state: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{name}.{os.getpid()}.tmp"
        with unfinished.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.folder / name)

    def _load(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise RunError(f"{path} must be a checkpoint of dice_ray: {str(error).splitlines()[0]}") from error
        return state
