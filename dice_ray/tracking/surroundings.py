"""What a run was made with, as tags: the commit of the user's folder, versions, hardware, user."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

from dice_ray.tracking import schema

PACKAGES: Final = {
    "dice_ray": "dice-ray",
    "torch": "torch",
    "transformers": "transformers",
    "ray": "ray",
    "optuna": "optuna",
    "mlflow": "mlflow",
}
SECONDS: Final = 10
"""How long git may take; a folder too large for that has no tags of git."""


def tags() -> dict[str, str]:
    """All of it, for this process and its working directory."""
    return _git(Path.cwd()) | _versions() | hardware() | _user() | {schema.SOURCE: "dice-ray"}


@lru_cache(maxsize=1)
def hardware() -> dict[str, str]:
    """The processor, its cores, and the GPU of this machine."""
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    shown = [f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus)]
    return {schema.CPU: _cpu(), schema.CORES: str(os.cpu_count()), schema.GPU: ", ".join(shown) or "none"}


def _git(folder: Path) -> dict[str, str]:
    """The commit and whether anything was changed since; nothing outside of a repository, or without git."""
    commit = _said(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _said(folder, "status", "--porcelain", "--untracked-files=no")
    dirty = {} if changes is None else {schema.GIT_DIRTY: "true" if changes else "false"}
    return {schema.GIT_COMMIT: commit, **dirty}


def _said(folder: Path, *words: str) -> str | None:
    command = ["git", "-C", str(folder), "--no-optional-locks", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {name: metadata.version(package) for name, package in PACKAGES.items()}
    return {f"{schema.VERSION}.{name}": text for name, text in (found | {"python": platform.python_version()}).items()}


def _cpu() -> str:
    """The model's name, as Linux tells it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8", errors="replace").splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _user() -> dict[str, str]:
    try:
        return {schema.USER: getpass.getuser()}
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return {}
