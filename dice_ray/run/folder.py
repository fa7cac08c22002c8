"""The folder of a run, sweep or study: every file name in it, and the check of what it holds.

A folder outlives its process: how files are written and locked such that it stays usable, `dice_ray.files` explains.
What a folder holds is compared with what is asked for before anything is written (`check_config`, `check_digest`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from dice_ray.config.load import as_yaml, read_layer, resolve
from dice_ray.config.schema import NEUTRAL_SECTIONS, RunConfig
from dice_ray.errors import RefusedError, RunError, reason_of
from dice_ray.files import write_atomically
from dice_ray.settings import differing_paths
from dice_ray.terms import TermFacts
from dice_ray.tracking import schema
from dice_ray.training.checkpoint import BEST, LAST

CONFIG: Final = schema.CONFIG_FILE
TASK: Final = "task.json"
"""Classes and term facts of a run, and the digest of its data."""
ENCODER: Final = "encoder"
"""The encoder's configuration and the tokenizer, without weights."""
LOG: Final = "log.txt"
"""Output of Ray, Optuna, MLflow and transformers."""
MODEL: Final = "model"
"""A model packed for MLflow, until it is stored there."""
GIVEN_UP: Final = "given_up"
"""The reason for which a trial that was killed must not be tried again: it exceeded its time limit or the memory."""

PLAN: Final = schema.PLAN_FILE
LEDGER: Final = "ledger.jsonl"
COMPARISON: Final = "comparison.parquet"
"""Runs that other programs made, as they were compared."""
PREDICTIONS: Final = "predicted"
"""Counts of the items of predictions that other programs made, beside such a comparison."""
WARM_START: Final = "warm_start.jsonl"
"""A copy of the ledger of the sweep that a sweep starts from: it does not depend on the other folder any more."""
TRIALS: Final = "trials"
"""Folder of the runs of a sweep or study."""

SUBMITTED: Final = "submitted"
"""The files that a job on a cluster was submitted with, and its working directory."""

RAY_TRAIN: Final = "ray_train"
"""Ray Train's own files."""
STOPPED: Final = "stopped"
"""Marks a run on Ray Train whose driver has gone: workers that Ray starts anew end at once."""
PLACEMENT_GROUP: Final = "placement_group"
"""Id of the placement group of a run's workers, which stays allocated when the run's process is killed."""


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a single run, trained or begun."""
    return any((folder / name).exists() for name in (CONFIG, LAST, BEST))


def holds_plan(folder: Path) -> bool:
    """Whether a folder holds a sweep or study."""
    return (folder / PLAN).exists()


def check_no_comparison(folder: Path) -> None:
    """Raises a RefusedError where a comparison has the folder: it would hide the results of a run, sweep or study."""
    if (folder / COMPARISON).exists():
        raise RefusedError(f"{folder} holds a comparison: choose another --name")


def can_be_resumed(folder: Path) -> bool:
    """Whether a folder holds anything that `resume` continues."""
    return holds_plan(folder) or (folder / CONFIG).exists()


def stored_config(folder: Path) -> RunConfig | None:
    """The configuration of the run in a folder; none before it is stored."""
    file = folder / CONFIG
    return resolve([read_layer(file)]) if file.exists() else None


def store_config(config: RunConfig, folder: Path) -> None:
    """Write `config.yaml`."""
    write_atomically(folder / CONFIG, as_yaml(config))


def check_config(config: RunConfig, folder: Path) -> None:
    """Raise a RefusedError where a folder holds a sweep or study, or a run with other settings, but for its launch."""
    check_no_comparison(folder)
    if holds_plan(folder):
        raise RefusedError(f"{folder} holds a sweep or study: choose another --name")
    if stored := stored_config(folder):
        paths = differing_paths(stored, config)
        if other := [path for path in paths if path.partition(".")[0] not in NEUTRAL_SECTIONS]:
            raise RefusedError(f"{folder} holds a run with other settings ({', '.join(other)}): choose another --name")


def with_stored_precision(config: RunConfig, folder: Path) -> RunConfig:
    """Replace the precision `auto` by that of the run in the folder: on this machine `auto` may mean another one."""
    stored = stored_config(folder) if config.training.precision == "auto" else None
    return config if stored is None else config.with_precision(stored.training.precision)


def stored_task(folder: Path) -> dict[str, Any]:
    """What `task.json` holds: classes, facts of the terms, and digest of the data; a RunError where it is damaged."""
    file = folder / TASK
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return {
            "classes": TypeAdapter(tuple[str, ...]).validate_python(values["classes"]),
            "facts": TypeAdapter(tuple[TermFacts, ...]).validate_python(values["facts"]),
            "data": TypeAdapter(str).validate_python(values["data"]),
        }
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise RunError(f"{file} must be as dice_ray wrote it, but is damaged: {reason_of(error)}") from error


def stored_digest(folder: Path) -> str | None:
    """The digest of the data of the run in a folder; none before it is stored. Raises what `stored_task` raises."""
    return stored_task(folder)["data"] if (folder / TASK).exists() else None


def check_digest(stored: str, current: str, subject: str, instead: str) -> None:
    """Raise a RefusedError for data that were changed: a new dev split may hold rows that the run was trained on.

    Args:
        stored: Digest of the data at the run's start.
        current: Digest of the data now.
        subject: What needs the data, as the message begins.
        instead: What else can be done than to restore the old data.
    """
    if stored != current:
        raise RefusedError(
            f"{subject} must have the data that it was started on, and they were changed (digest {stored} then, "
            f"{current} now): restore the old data, or {instead}"
        )
