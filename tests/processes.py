"""Processes below a process by their titles: Ray sets a worker's to what it does."""

from __future__ import annotations

import os
from typing import Final

import psutil

TRIAL: Final = ("ray::ResourceTrainable", "ray::Trial")
"""Of a trial's process: at work, and between two steps."""
WORKER: Final = "RayTrainWorker"


def titled(*titles: str, below: int | None = None) -> list[psutil.Process]:
    """Those that have one of these in their title, below a process: this one where none is given."""
    family = psutil.Process(below or os.getpid()).children(recursive=True)
    return [process for process in family if any(each in title(process) for each in titles)]


def title(process: psutil.Process) -> str:
    """Empty where the process has ended."""
    try:
        return " ".join(process.cmdline()).strip()
    except psutil.Error:
        return ""
