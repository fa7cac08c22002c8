"""The checkpoints of a run: last and best, replaced atomically and validated when loaded.

A process may be killed, and a machine may lose power, at any instruction. So a checkpoint is written under a temporary
name, synchronised to the disk, and only then renamed: a reader sees the old file or the new one, never a part. Without
the fsync a file system may store the rename before the content, which leaves an empty file after a power cut.

`last.pt` becomes `before.pt` before a new `last.pt` takes its place. Between the two renames there is only `before.pt`,
so a run resumes from either, and from `before.pt` where `last.pt` is damaged. A finished run keeps `last.pt` alone.
Only rank 0 writes; every worker reads. torch writes a zip archive with the checksums of its members but does not check
them (torch 2.13): a flipped bit would be another weight.
"""

from __future__ import annotations

import errno
import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dice_ray.errors import RunError, reason_of
from dice_ray.files import sync

LAST, _BEFORE, BEST = "last.pt", "before.pt", "best.pt"
RESUME_FILES = (LAST, _BEFORE)
"""Checkpoints that only resuming needs: predictions are made with the best one."""


def check_kept(state: Mapping[str, Any], kept: str, file: Path) -> None:
    """Raise RunError where the weights that a checkpoint leaves out are not those that it was trained with."""
    if (stored := state.get("kept", "")) != kept:
        raise RunError(
            f"{file} holds only the weights that were trained, and needs the same model.encoder as before: its weights "
            f"were changed (digest {stored} then, {kept} now); restore them, or train a new run"
        )


class Checkpoints:
    """The checkpoints in a run's folder: `last.pt` and its predecessor `before.pt` to resume from, and `best.pt`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def last(self, like: Mapping[str, torch.Tensor], kept: str = "") -> dict[str, Any] | None:
        """The newest usable state, `None` if there is no checkpoint; with a warning if `last.pt` cannot be used.

        Also deletes temporary files that a killed process left. The weights must have the names and shapes of `like`,
        and those that checkpoints leave out the digest `kept`.

        Raises:
            RunError: Checkpoints exist, but none can be used.
        """
        for unfinished in self.folder.glob("*.tmp"):
            unfinished.unlink(missing_ok=True)
        errors = []
        for name in RESUME_FILES:
            path = self.folder / name
            if not path.exists():
                continue
            try:
                state = _load(path, {"model", "optimizer", "scaler", "step", "history", "rng", "tally"})
                for key in {**like, **(stored := state["model"])}:
                    if key not in like or key not in stored or like[key].shape != stored[key].shape:
                        raise RunError(f"{path} must be a checkpoint of this run's model, but {key} differs")
                check_kept(state, kept, path)
            except RunError as error:
                errors.append(error)
            else:
                for refused in errors:
                    warnings.warn(f"{refused}; the run resumes from {name}", stacklevel=2)
                return state
        if errors:
            raise errors[0]
        return None

    def best(self) -> dict[str, Any]:
        """The state with the best score on dev."""
        if not (self.folder / BEST).exists():
            raise RunError(f"{self.folder} must hold a trained run's {BEST}, but has none")
        return _load(self.folder / BEST, {"model", "decisions", "step"})

    def save_last(self, state: dict[str, Any], *, finished: bool) -> None:
        """Store the newest state; its predecessor is kept until the run is finished."""
        unfinished = self._write(LAST, state)
        if (self.folder / LAST).exists():
            (self.folder / LAST).replace(self.folder / _BEFORE)
        unfinished.replace(self.folder / LAST)
        if finished:
            self.finish()

    def finish(self) -> None:
        """Delete the predecessor of a finished run's last state, and what killed processes left of small files."""
        for left in (self.folder / _BEFORE, *self.folder.glob("*.new")):
            left.unlink(missing_ok=True)

    def save_best(self, state: dict[str, Any]) -> None:
        self._write(BEST, state).replace(self.folder / BEST)

    def _write(self, name: str, state: dict[str, Any]) -> Path:
        """Write a state to a temporary file that is on the disk when this returns; OSError where it cannot be."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{name}.{os.getpid()}.tmp"
        try:
            with unfinished.open("wb") as file:  # given a path, torch writes that path's name into the file
                torch.save(state, file)
            sync(unfinished)
        except (OSError, RuntimeError) as error:
            unfinished.unlink(missing_ok=True)  # the disk may be full
            # For a failed write torch raises a RuntimeError about its own file, after the system's error (torch 2.13).
            cause = error if isinstance(error, OSError) else error.__context__
            if isinstance(cause, OSError):
                raise OSError(cause.errno, cause.strerror, str(self.folder / name)) from error
            raise
        return unfinished


def _load(path: Path, keys: set[str]) -> dict[str, Any]:
    try:
        _check_whole(path)
        # weights_only: unpickling arbitrary objects could run code from a file that somebody else wrote.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's message advises to load it without `weights_only`
        reason = "it is damaged, or holds objects, which are not loaded as they can run code"
        raise _no_checkpoint(path, reason) from error
    except Exception as error:  # torch raises of a damaged file whatever its reader meets, an AssertionError too
        # Without permission, or where the disk fails, nothing is known of the file. A damaged one may name an
        # impossible place in itself, which is EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise _no_checkpoint(path, reason_of(error)[:200]) from error
    if not isinstance(state, dict):
        raise _no_checkpoint(path, f"it holds a {type(state).__name__}")
    if missing := sorted(keys - state.keys()):
        raise _no_checkpoint(path, f"it lacks {', '.join(missing)}")
    if not isinstance(state["model"], dict) or not all(map(torch.is_tensor, state["model"].values())):
        raise _no_checkpoint(path, "its `model` must be weights by their names")
    return state


def _check_whole(path: Path) -> None:
    """Raises a ValueError where a member of the archive has another checksum than it was written with."""
    with zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():
            raise ValueError(f"its part {damaged} is damaged")


def _no_checkpoint(path: Path, reason: str) -> RunError:
    return RunError(
        f"{path} must be a whole checkpoint of dice_ray: {reason}. Restore it from a copy, or train again "
        "under another name"
    )
