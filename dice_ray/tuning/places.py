"""The folder and the MLflow experiment of a run, by the name that commands take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dice_ray.errors import InputError, RefusedError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run import object_store
from dice_ray.run.folder import TASK, TRIALS, holds_plan, holds_run
from dice_ray.run.names import TRAIN_EXPERIMENT
from dice_ray.training.checkpoint import BEST
from dice_ray.tuning.ledger import ledger_in
from dice_ray.tuning.ranking import best_in


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
            raise RefusedError(
                f"the checkpoint of {parent}/{trial} was deleted before its reruns made it the best trial: train it "
                f"again, `dice-ray export-preset {parent} FILE.yaml` writes its settings"
            )
        raise RefusedError(
            f"{parent}/{trial} has no checkpoint any more: a sweep keeps those of its best trials only; the best is "
            f"{best}"
        )
    return Place(folder, parent, ids[trial])
