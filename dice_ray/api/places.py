"""Names of runs, and the folder and the MLflow experiment of each."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.files import runs_folder as runs_folder

TRAIN_EXPERIMENT = "train"
"""The MLflow experiment of runs that are trained alone; each sweep or study has one of its own name."""

RESERVED = (TRAIN_EXPERIMENT, "Default")
"""Names of experiments that no sweep or study can have: `Default` is MLflow's own, which is not read."""

LONGEST = 200
"""Bytes of a name: file systems take 255, and some names of files are longer by an ending."""


@dataclass(frozen=True)
class Place:
    """Where a single run is.

    Attributes:
        experiment: Of MLflow; None for a folder outside of the runs folder, whose run this MLflow does not know.
        id: In the experiment.
    """

    folder: Path
    experiment: str | None
    id: str

    @property
    def driven_folder(self) -> Path:
        """The folder that one driver locks: the run's own, or that of its sweep or study."""
        return self.folder if self.experiment in (None, TRAIN_EXPERIMENT) else self.folder.resolve().parents[1]


def given_folder() -> Path:
    """The folder of tables and losses that were given in Python, for its owner alone; no run can have its name."""
    folder = runs_folder() / ".given"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def check_name(name: str) -> str:
    """Returns the name, which must be usable as a folder and as an experiment."""
    if not re.fullmatch(r"\w[\w.-]*", name) or name in RESERVED or len(name.encode()) > LONGEST:
        raise InputError(
            f"a name must be letters, digits, '_', '-' and '.', not begin with '-' or '.', have at most {LONGEST} "
            f"bytes, and not be {' or '.join(map(repr, RESERVED))}, got {name!r}"
        )
    return name


def check_lists(**names: Sequence[str | Path]) -> None:
    """Raise an InputError if one of these arguments is a single text, which Python takes for a list of letters."""
    for argument, given in names.items():
        if isinstance(given, str):
            raise InputError(f"{argument} must be a list, as [{given!r}], got {given!r}")


def valid_name(stem: str) -> str:
    """The name nearest to the stem of a file that `check_name` accepts.

    >>> valid_name("my tickets (1)")
    'my_tickets_1'
    """
    name = re.sub(r"[^\w.-]+", "_", stem).lstrip("_.-").encode()[: LONGEST - 10].decode(errors="ignore").rstrip("_")
    name = name or "run"
    return f"{name}_data" if name in RESERVED else name


def new_name(stem: str) -> str:
    """A name that begins with a stem and is not used yet."""
    while True:
        name = f"{valid_name(stem)}-{''.join(secrets.choice('abcdefghjkmnpqrstuvwxyz23456789') for _ in range(4))}"
        if not (runs_folder() / name).exists():
            return name


def place(run: str | Path) -> Place:
    """The place of a run.

    Args:
        run: The name of a run trained alone, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, `STUDY/VARIANT/ARM/SEED` where the study
            has variants, or the path of a run's folder.

    Raises:
        UnknownNameError: There is no such run.
        InputError: It is a whole sweep or study.
        RunError: The run's checkpoint was deleted.
    """
    from dice_ray.run.folder import TRIALS, holds_plan, holds_run

    run = str(run)
    parent, *rest = run.split("/")
    if not run.isprintable() or any(len(part.encode()) > 255 for part in (parent, *rest)):
        raise UnknownNameError("run", run, [])  # file systems would refuse it, each with an error of its own
    if holds_plan(runs_folder() / parent):
        return _place_of_trial(parent, "/".join(rest))
    folder = next((folder for folder in (runs_folder() / run, Path(run)) if holds_run(folder)), None)
    if folder is None:
        known = [folder.name for folder in runs_folder().glob("*") if holds_plan(folder) or holds_run(folder)]
        raise UnknownNameError("run", run, known)
    above, runs = folder.resolve().parent, runs_folder().resolve()
    is_trial = above.name == TRIALS and above.parent.parent == runs and holds_plan(above.parent)
    experiment = above.parent.name if is_trial else TRAIN_EXPERIMENT if above == runs else None
    return Place(folder, experiment, folder.resolve().name)


def _place_of_trial(parent: str, trial: str) -> Place:
    """A trial of a sweep by its id, or a cell of a study by its variant, arm and seed or by its id."""
    from dice_ray.run import object_store
    from dice_ray.run.folder import TASK, TRIALS
    from dice_ray.training.checkpoint import BEST
    from dice_ray.tuning.ledger import ledger_in
    from dice_ray.tuning.ranking import best_in

    ledger = ledger_in(runs_folder() / parent)
    ids = {spec.name: id_ for id_, spec in ledger.specs.items()}
    best_id = best_in(ledger)
    best = None if best_id is None else f"{parent}/{ledger.specs[best_id].name}"
    if not trial:
        which = f": name one of its runs, {best} is the best on dev" if best else ", and none of its runs has a score"
        raise InputError(f"a run must be a single one, and {parent} is a sweep or study{which}")
    if trial in ledger.specs:
        ids[trial] = trial
    if trial not in ids:
        raise UnknownNameError(f"run of {parent}", trial, ids)
    folder = runs_folder() / parent / TRIALS / ids[trial]
    object_store.fetch(folder)
    if (folder / TASK).exists() and not (folder / BEST).exists():
        if ids[trial] == best_id:
            raise RunError(
                f"the checkpoint of {parent}/{trial} was deleted before its reruns made it the best trial: train it "
                f"again, `dice-ray export-preset {parent} FILE.yaml` writes its settings"
            )
        raise RunError(
            f"{parent}/{trial} has no checkpoint any more: a sweep keeps those of its best trials only; the best is "
            f"{best}"
        )
    return Place(folder, parent, ids[trial])
