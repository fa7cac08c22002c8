"""The environment of a run as tags: git commit of the working directory, package versions, hardware, user."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

from dice_ray.tracking import schema
from dice_ray.tracking.store import store_uri

PACKAGES: Final = ("dice-ray", "torch", "transformers", "ray", "optuna", "mlflow")
SECONDS: Final = 10
"""Timeout of git; a repository that is too large for it gets no git tags."""


def tags() -> dict[str, str]:
    """All tags, for this process and its working directory."""
    user = {}
    with suppress(KeyError, OSError, ImportError):  # the user of a container may have no name
        user = {schema.USER: getpass.getuser()}
    return _git(Path.cwd()) | _versions() | hardware() | user | {schema.SOURCE: "dice-ray"}


def active_run() -> dict[str, str]:
    """The tag that nests a run below the one that this process has started by `mlflow.start_run()` in our store."""
    if "mlflow" not in sys.modules:
        return {}
    import mlflow

    run = mlflow.active_run()
    if run is None or store_uri(mlflow.get_tracking_uri()) != store_uri():
        return {}
    return {schema.PARENT: run.info.run_id}


@lru_cache(maxsize=1)
def hardware() -> dict[str, str]:
    """The processor, its cores, and the GPU of this machine."""
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    # The name of the processor's model: Linux's, else Python's, else the architecture.
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    counted = [f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus)]
    return {schema.CPU: cpu, schema.CORES: str(os.cpu_count()), schema.GPU: ", ".join(counted) or "none"}


def _git(folder: Path) -> dict[str, str]:
    """The commit, and whether tracked files differ from it; empty outside of a repository or without git."""
    commit = _git_output(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _git_output(folder, "status", "--porcelain", "--untracked-files=no")
    dirty = {} if changes is None else {schema.GIT_DIRTY: "true" if changes else "false"}
    return {schema.GIT_COMMIT: commit, **dirty}


def _git_output(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, is not installed or takes too long."""
    # Without the option, `git status` may rewrite the index of a repository that somebody else is working in.
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    versions = {package.replace("-", "_"): metadata.version(package) for package in PACKAGES}
    versions["python"] = platform.python_version()
    return {f"{schema.VERSION}.{name}": version for name, version in versions.items()}
