"""What MLflow holds: its runs compared, its pages, the best model registered, and what still waits to be sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from dice_ray.errors import BusyError, InputError, RunError
from dice_ray.folders import Place, runs_folder

if TYPE_CHECKING:
    from dice_ray.tracking.compared import Compared, Experiment


REGISTERED_NAME = r"\w[\w.-]*"


def check_register(name: str | None) -> None:
    """Whether a model can be registered under this name; none is well."""
    if name is not None and not re.fullmatch(REGISTERED_NAME, name):
        raise InputError(
            "the name of a registered model must be letters, digits, '_', '-' and '.', and begin with a letter or "
            f"digit, got {name!r}"
        )


def keep_best(best: Place, split: Literal["dev", "test"], *, text: bool, register: str | None) -> None:
    """Store what only the best run has: predictions, where texts may be stored, and its model under a name.

    What MLflow cannot take now waits behind what the run's driver has said.

    Args:
        best: The run.
        split: What is predicted.
        text: Whether its predictions are stored.
        register: The name of the model.
    """
    from dice_ray import cluster, served
    from dice_ray.tracking.writer import Writer

    if not (text or register):
        return
    assert best.experiment is not None, "a run of ours"
    with cluster.quiet(best.driven / "log.txt"), Writer(best.experiment, folder=best.driven) as writer:
        if text:
            writer.text(best.id, *served.predictions(best.folder, split))
        if register:
            writer.model(best.id, served.pack(best.folder, best.folder / "model"), register)


def tell(place: Place, files: Mapping[str, str], metrics: Mapping[str, float], step: int) -> str | None:
    """Store text files and metrics with a run that was trained before; why not, where they are not stored now.

    Where MLflow is away they wait behind what the run's driver has said; not while that one is at work, nor where the
    folder is not ours to write.
    """
    from dice_ray.tracking.writer import Writer

    try:
        if place.experiment is None or not _is_tracked(place, place.experiment):
            return "MLflow holds no such run here: the counts of each record are not stored with it"
        try:
            writer = Writer(place.experiment, folder=place.driven)
        except (BusyError, OSError):
            writer = Writer(place.experiment)
        with writer:
            for file, content in files.items():
                writer.text(place.id, file, content)
            writer.metrics(place.id, step, metrics)
    except RunError as error:
        return f"MLflow was not told: {error}"
    if writer.failure is None:
        return None
    return f"MLflow is away ({writer.failure}): what it lacks waits in {place.driven}, `dice-ray runs` sends it"


def _is_tracked(place: Place, experiment: str) -> bool:
    """Whether MLflow knows the run, or may once it is back."""
    from dice_ray.tracking.reader import may_hold
    from dice_ray.tracking.spool import unsent_spools

    return any(left.is_of_this_store for left in unsent_spools(place.driven)) or may_hold(experiment, place.id)


@dataclass(frozen=True)
class Waiting:
    """What MLflow lacks, and why: the file is sent by the next command that asks for it."""

    file: Path
    why: str


def send_waiting() -> list[Waiting]:
    """Send what earlier commands could not, and end the runs of killed ones; returns what waits on."""
    from dice_ray.tracking.spool import unsent_spools
    from dice_ray.tracking.writer import Writer

    waiting = []
    for left in unsent_spools(runs_folder()) if runs_folder().is_dir() else ():
        if not left.is_of_this_store:
            waiting.append(Waiting(left.file, f"it is for {left.store}: set MLFLOW_TRACKING_URI to that"))
            continue
        try:
            writer = Writer(left.experiment, folder=left.file.parent)
            writer.close()
        except BusyError:  # its driver sends it
            continue
        except RunError as error:
            waiting.append(Waiting(left.file, str(error)))
        else:
            if writer.failure:
                waiting.append(Waiting(left.file, writer.failure))
    return waiting


def runs(experiment: str) -> list[Compared]:
    """The runs of an experiment, best first, with what differs between them.

    Raises:
        UnknownNameError: There is no such experiment.
    """
    from dice_ray.tracking.compared import compared
    from dice_ray.tracking.reader import read

    return compared(experiment, read(experiment))


def experiments() -> list[Experiment]:
    """The experiments of the store, the one used last first."""
    from dice_ray.tracking import reader
    from dice_ray.tracking.compared import overview

    return overview(reader.experiments())


def ui(port: int) -> NoReturn:
    """Serve MLflow's pages on 127.0.0.1 until it is interrupted; this process becomes the server."""
    from dice_ray.tracking.server import serve

    serve(port)
