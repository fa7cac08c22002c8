"""Where runs lie: the names they may have, and the folder and the experiment of each."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.errors import InputError, RunError, UnknownNameError

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig

TRAIN_EXPERIMENT = "train"
"""The MLflow experiment of runs that are trained alone; a sweep or study has one of its own name."""
TRIALS = "trials"


@dataclass(frozen=True)
class Place:
    """A single run.

    Attributes:
        experiment: Of MLflow; none for a folder that lies elsewhere, whose runs MLflow here does not know.
        id: In the experiment.
    """

    folder: Path
    experiment: str | None
    id: str

    @property
    def driven(self) -> Path:
        """The folder that one process drives: the run's own, or that of its sweep or study."""
        return self.folder if self.experiment in (None, TRAIN_EXPERIMENT) else self.folder.resolve().parents[1]


def runs_folder() -> Path:
    """Where runs, sweeps and studies keep plans, ledgers and checkpoints: of the working directory where not told.

    Raises:
        InputError: `$DICE_RAY_RUNS` is a URL.
    """
    folder = os.environ.get("DICE_RAY_RUNS") or "dice_ray_runs"
    if "://" in folder:
        raise InputError(
            f"DICE_RAY_RUNS must be a folder that every machine sees under this path, got the URL {folder}: ledgers "
            "are appended to and checkpoints renamed, which only a file system does as a whole. Mount it"
        )
    return Path(folder).expanduser()


def named(name: str) -> str:
    """A name that can be a folder and an experiment of its own."""
    if not re.fullmatch(r"\w[\w.-]*", name) or name == TRAIN_EXPERIMENT:
        raise InputError(
            f"a name must be letters, digits, '_', '-' and '.', begin with a letter or digit, and not be "
            f"{TRAIN_EXPERIMENT!r}, got {name!r}"
        )
    return name


def new_name(stem: str) -> str:
    """A name that nothing here has yet."""
    stem = re.sub(r"[^\w.-]+", "_", stem).lstrip("_.-") or "run"
    while True:
        name = f"{stem}-{''.join(secrets.choice('abcdefghjkmnpqrstuvwxyz23456789') for _ in range(4))}"
        if not (runs_folder() / name).exists():
            return name


def as_begun(config: RunConfig, folder: Path) -> RunConfig:
    """The configuration with the precision of the run that a folder holds for `auto`, which may mean another here."""
    from dice_ray.config.load import read_layer, resolve

    if config.training.precision != "auto" or not (folder / "config.yaml").exists():
        return config
    stored = resolve([read_layer(folder / "config.yaml")]).training.precision
    return config.model_copy(update={"training": config.training.model_copy(update={"precision": stored})})


def store_config(config: RunConfig, folder: Path) -> None:
    """Write `config.yaml`, after `check_config`."""
    from dice_ray.config.load import as_yaml
    from dice_ray.trained import write_whole

    write_whole(folder / "config.yaml", as_yaml(config))


def check_config(config: RunConfig, folder: Path) -> None:
    """A run that goes on must be the one that was begun, wherever it is launched.

    Raises:
        RunError: The folder holds another run, or a sweep or study.
    """
    from dice_ray.config.load import read_layer, resolve
    from dice_ray.config.schema import NEUTRAL_SECTIONS
    from dice_ray.settings import differing

    file = folder / "config.yaml"
    if (folder / "plan.yaml").exists():
        raise RunError(f"{folder} holds a sweep or study: choose another --name")
    if file.exists():
        paths = differing(resolve([read_layer(file)]), config)
        if other := [path for path in paths if path.partition(".")[0] not in NEUTRAL_SECTIONS]:
            raise RunError(f"{folder} holds a run with other settings ({', '.join(other)}): choose another --name")


def place(run: str) -> Place:
    """The run of a name.

    Args:
        run: The name of a run trained alone, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, `STUDY/VARIANT/ARM/SEED` where the study
            has variants, or the path of a run's folder.

    Raises:
        UnknownNameError: There is no such run.
        InputError: The name is that of a sweep or study as a whole.
    """
    parent, *rest = run.split("/")
    if (runs_folder() / parent / "plan.yaml").exists():
        return _trial(parent, "/".join(rest))
    found = [folder for folder in (runs_folder() / run, Path(run)) if _holds_a_run(folder)]
    if not found:
        known = [
            folder.name for folder in runs_folder().glob("*") if (folder / "plan.yaml").exists() or _holds_a_run(folder)
        ]
        raise UnknownNameError("run", run, known)
    folder = found[0]
    above, runs = folder.resolve().parent, runs_folder().resolve()
    is_trial = above.name == TRIALS and above.parent.parent == runs and (above.parent / "plan.yaml").exists()
    experiment = above.parent.name if is_trial else TRAIN_EXPERIMENT if above == runs else None
    return Place(folder, experiment, folder.resolve().name)


def _trial(parent: str, trial: str) -> Place:
    """A trial of a sweep by its id, or a cell of a study by its variant, arm and seed or by its id."""
    from dice_ray.tuning import kept
    from dice_ray.tuning.ledger import Ledger

    ledger = Ledger(runs_folder() / parent / "ledger.jsonl")
    ids = {begun.called: id_ for id_, begun in ledger.begun.items()}
    winner = kept.best(ledger)
    best = None if winner is None else f"{parent}/{ledger.begun[winner].called}"
    if not trial:
        one = f": name one of its runs, {best} is the best on dev" if best else ", and none of its runs has ended"
        raise InputError(f"a run must be a single one, and {parent} is a sweep or study{one}")
    if trial in ledger.begun:
        ids[trial] = trial
    if trial not in ids:
        raise UnknownNameError(f"run of {parent}", trial, ids)
    folder = runs_folder() / parent / TRIALS / ids[trial]
    if (folder / "task.json").exists() and not (folder / "best.pt").exists():
        if ids[trial] == winner:
            raise RunError(
                f"the checkpoint of {parent}/{trial} was deleted before it was the best, which its reruns made it: "
                f"train it again, `dice-ray export-preset {parent} FILE.yaml` writes its settings"
            )
        raise RunError(
            f"of a sweep the checkpoints of the best trials alone are kept, {best} the first, got {parent}/{trial}"
        )
    return Place(folder, parent, ids[trial])


def _holds_a_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.yaml", "last.pt", "best.pt"))
