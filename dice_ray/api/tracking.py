"""What MLflow holds: its runs compared, its pages, registered models, and records that still wait to be sent."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from dice_ray.errors import BusyError, InputError, RefusedError, RunError, UnknownNameError, shown
from dice_ray.files import runs_folder
from dice_ray.run.names import by_name

if TYPE_CHECKING:
    from dice_ray.tuning.overview import ComparedRun, Experiment
    from dice_ray.tuning.places import Place


_LONGEST_TAG: Final = 250
"""The most characters of a tag's name in MLflow; that of a registered model is part of one."""


def check_register(name: str | None) -> None:
    """Raises an InputError where a model cannot be registered under this name; None registers none."""
    from dice_ray.tracking import schema

    if name is None:
        return
    if len(name) > (longest := _LONGEST_TAG - len(f"{schema.REGISTERED}.")):
        raise InputError(f"the name of a registered model must have at most {longest} characters, got {len(name)}")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise InputError(
            "the name of a registered model must be letters, digits, '_', '-' and '.', and not begin with '-' or '.', "
            f"got {name!r}"
        )


def own_tags(note: str | None, tags: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    """The user's note and tags, which may be written KEY=VALUE, as tags of a run.

    Raises:
        InputError: MLflow or dice_ray has tags of such a name, or MLflow does not accept it; or one is no text.
    """
    from dice_ray.tracking import schema

    own = by_name("tags", "KEY=VALUE", tags or {})
    for name, value in own.items():
        if not _can_be_tag(name) or name.startswith(("mlflow.", schema.PREFIX)):
            raise InputError(
                "the name of a tag must be letters, digits, '_', '-', '.', '/' and spaces, be a path without '.', '..' "
                f"and empty parts, and not begin with `mlflow.` or `{schema.PREFIX}`, got {name!r}"
            )
        _check_text(f"the tag {name!r}", value)
    _check_text("the note", note or "")
    return own | ({schema.OWN_NOTE: note, schema.NOTE: note} if note else {})


def _can_be_tag(name: object) -> bool:
    # MLflow may store tags as files, and refuses a name that is not the shortest one of its path.
    return (
        isinstance(name, str)
        and len(name) <= _LONGEST_TAG
        and re.fullmatch(r"\w[\w/. -]*", name) is not None
        and posixpath.normpath(name) == name
    )


def _check_text(what: str, value: object) -> None:
    # An argument of the command line that is not UTF-8 has half of a surrogate pair, which no store takes.
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"{what} must be text in UTF-8, got {shown(value)}")


def keep_best(best: Place, split: Literal["dev", "test"], *, store_text: bool, register: str | None) -> None:
    """Store the predictions and texts of the best run, where texts may be stored, and register its model under a name.

    While MLflow is away, both wait in the run's folder.

    Args:
        best: The run.
        split: To predict.
        store_text: Whether its predictions are stored.
        register: The name of the model.
    """
    from dice_ray.output import redirected
    from dice_ray.run import packaging
    from dice_ray.run.folder import LOG, MODEL
    from dice_ray.tracking.writer import Writer

    if not (store_text or register):
        return
    assert best.experiment is not None, "the run is in the runs folder"
    with redirected(best.driven_folder / LOG), Writer(best.experiment, folder=best.driven_folder) as writer:
        for file, content in (packaging.predictions(best.folder, split) if store_text else {}).items():
            writer.text(best.id, file, content)
        if register:
            writer.model(best.id, packaging.pack(best.folder, best.folder / MODEL), register)


def store_scores(place: Place, files: Mapping[str, str], metrics: Mapping[str, float], step: int) -> str | None:
    """Store text files and metrics with a run that was trained before; returns why they are not stored, if so.

    While MLflow is away they wait in the run's folder, unless its driver is at work or the folder cannot be written.
    """
    from dice_ray.tracking.record import without_constants
    from dice_ray.tracking.writer import Writer

    values, constants = without_constants(metrics)
    try:
        if place.experiment is None or not _is_tracked(place, place.experiment):
            return "MLflow holds no such run here: the counts of each record are not stored with it"
        try:  # with the folder, what MLflow cannot take now waits there; it may be locked or read-only
            writer = Writer(place.experiment, folder=place.driven_folder)
        except (BusyError, OSError):
            writer = Writer(place.experiment)
        with writer:
            for file, content in files.items():
                writer.text(place.id, file, content)
            writer.metrics(place.id, step, values)
            if constants:
                writer.tags(place.id, constants)
    except RunError as error:
        return f"not stored in MLflow: {error}"
    if writer.failure is None:
        return None
    return f"MLflow is away ({writer.failure}): the scores wait in {place.driven_folder}, `dice-ray runs` sends them"


def stored_scores(place: Place) -> dict[str, float]:
    """The best score of a run on dev and its metrics on test, as far as MLflow holds them and answers."""
    from dice_ray.tracking import schema
    from dice_ray.tracking.reader import read

    if place.experiment is None:
        return {}
    try:
        frame = read(place.experiment)
    except (RunError, UnknownNameError):
        return {}
    # MLflow may hold several, as where a deleted one was restored.
    *_, row = [{}, *frame[frame["id"] == place.id].to_dict("records")]
    prefix = schema.metric_column("")
    metrics = {str(name).removeprefix(prefix): value for name, value in row.items() if str(name).startswith(prefix)}
    return {
        name: value for name, value in metrics.items() if name.startswith(("dev/best_", "test/")) and value == value
    }


def _is_tracked(place: Place, experiment: str) -> bool:
    """Whether MLflow holds the run, or may hold it when it is back."""
    from dice_ray.tracking.reader import holds
    from dice_ray.tracking.spool import unsent_spools

    is_unsent = any(left.is_of_this_store for left in unsent_spools(place.driven_folder))
    return is_unsent or holds(experiment, place.id) is not False


def send_waiting() -> dict[Path, str]:
    """Send the records that earlier commands could not, and end the runs of killed ones.

    Returns:
        The files of records that MLflow still lacks, and why.
    """
    from dice_ray.tracking.spool import spool_files

    files = spool_files(runs_folder()) if runs_folder().is_dir() else []
    return {file: why for file in files if (why := _sent(file)) is not None}


def _sent(file: Path) -> str | None:
    """Send a file of records, unless it is its driver that sends them; returns why they still wait, if so."""
    from dice_ray.tracking.spool import unsent_spool
    from dice_ray.tracking.writer import Writer

    try:
        left = unsent_spool(file)
        if left is None:
            return None
        if not left.is_of_this_store:
            return f"it is for {left.store}: set MLFLOW_TRACKING_URI to that"
        writer = Writer(left.experiment, folder=file.parent)
        writer.close()
    except BusyError:  # its driver sends it
        return None
    except (RunError, OSError) as error:  # one that is damaged or read-only does not keep the others from being sent
        return str(error)
    return writer.failure


def runs(experiment: str) -> list[ComparedRun]:
    """The runs of an experiment, best first, with what differs between them.

    Raises:
        UnknownNameError: There is no such experiment.
    """
    from dice_ray.api.results import Result
    from dice_ray.tuning.overview import compared

    return compared(experiment, Result(experiment, experiment).frame)


def experiments() -> list[Experiment]:
    """The experiments of the store, the most recently used first, and the comparisons of runs of other programs."""
    from dice_ray.api.reports import stored_comparisons
    from dice_ray.tracking import reader
    from dice_ray.tuning.overview import overview

    compared = stored_comparisons()
    try:
        tracked = reader.experiments()
    except RefusedError:  # there is no store yet
        if not compared:
            raise
        tracked = []
    return overview(tracked, comparisons=compared)


def ui_page(port: int, host: str = "127.0.0.1", *, allow_remote: bool = False) -> str:
    """The address of the page of experiments that `ui` serves.

    Raises:
        InputError: Others could use the pages, and `allow_remote` is not given; or the port is not free.
        RunError: The store has pages of its own, or does not exist yet.
    """
    from dice_ray.tracking.server import PAGE, command

    command(port, host, allow_remote=allow_remote)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{PAGE}"


def ui(port: int, host: str = "127.0.0.1", *, allow_remote: bool = False) -> NoReturn:
    """Serve MLflow's pages until interrupted; this process becomes the server. Raises what `ui_page` raises."""
    from dice_ray.tracking.server import serve

    serve(port, host, allow_remote=allow_remote)
