"""The only way out of MLflow: the runs of an experiment as one tidy frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tracking import schema
from dice_ray.tracking.sources import Source, Stored, opened, text_artifact
from dice_ray.tracking.store import sqlite_file, store_uri

COLUMNS: Final = ("id", "parent", "name", "kind", "arm", "seed", "state", "status", "start", "end", "artifacts")
"""The columns of every run; those of parameters, metrics and other tags follow."""
CURVE_COLUMNS: Final = ("id", "step", "metric", "value")

_TAG_OF: Final = {
    "id": schema.ID,
    "kind": schema.KIND,
    "arm": schema.ARM,
    "seed": schema.SEED,
    "state": schema.STATE,
}


def read(experiment: str, uri: str | None = None) -> pd.DataFrame:
    """One row a run, in the order of their start, parents first.

    The columns are `COLUMNS`, then `params.<path>`, `metrics.<name>` (the last value) and `tags.<name>`.

    Raises:
        UnknownNameError: There is no such experiment.
        RunError: There is no store, or it does not answer.
    """
    with opened(uri) as source:
        runs = source.runs(_known(source, experiment))
    return as_frame(runs)


def curves(experiment: str, uri: str | None = None) -> pd.DataFrame:
    """Every metric at every step, a row each: `CURVE_COLUMNS`; raises what `read` raises."""
    with opened(uri) as source:
        known = _known(source, experiment)
        ids = {uuid: run.tags[schema.ID] for uuid, run in source.runs(known).items() if schema.ID in run.tags}
        rows = [(ids[uuid], *values) for uuid, *values in source.points(known) if uuid in ids]
    frame = pd.DataFrame(rows, columns=list(CURVE_COLUMNS))
    return frame.sort_values(["id", "metric", "step"], ignore_index=True)


def texts(runs: pd.DataFrame, file: str, uri: str | None = None) -> dict[str, str]:
    """A text file among the artifacts of these rows of `read`, by the id of the run; those without it are left out.

    Artifacts in a local folder are read there, others through MLflow.

    Raises:
        RunError: A store of artifacts does not answer.
    """
    read_texts = {id_: text_artifact(root, file, uri) for id_, root in zip(runs["id"], runs["artifacts"], strict=True)}
    return {id_: text for id_, text in read_texts.items() if text is not None}


def experiments(uri: str | None = None) -> list[str]:
    """The names of the experiments, MLflow's own Default left out; raises RunError as `read` does."""
    with opened(uri) as source:
        return sorted(source.experiments())


def may_hold(experiment: str, id_: str, uri: str | None = None) -> bool:
    """Whether there is a store that holds this run; one that is away may."""
    file = sqlite_file(store_uri(uri))
    if file is not None and not file.is_file():
        return False
    try:
        return id_ in set(read(experiment, uri)["id"])
    except UnknownNameError:
        return False
    except RunError:
        return True


def _known(source: Source, experiment: str) -> str:
    known = source.experiments()
    if experiment not in known:
        raise UnknownNameError("experiment", experiment, known)
    return known[experiment]


def as_frame(runs: Mapping[str, Stored]) -> pd.DataFrame:
    """The tidy frame of our runs; what others stored in the experiment is left out."""
    ours = [run for run in runs.values() if schema.ID in run.tags]
    ours.sort(key=lambda run: (run.start, schema.PARENT in run.tags, run.tags[schema.ID]))
    rows = [_row(run, runs) for run in ours]
    rest = sorted({name for row in rows for name in row} - set(COLUMNS))
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *rest])
    for column in COLUMNS:
        if column in ("start", "end"):
            frame[column] = pd.to_datetime(frame[column], unit="ms", utc=True)
        else:
            frame[column] = frame[column].astype("Int64" if column == "seed" else "str")
    for name in rest:
        if name.startswith("params."):
            frame[name] = _numbers_or_texts(frame[name])
    return frame


def _row(run: Stored, runs: Mapping[str, Stored]) -> dict[str, Any]:
    own = {column: run.tags.get(tag) for column, tag in _TAG_OF.items()}
    above = runs.get(run.tags.get(schema.PARENT, ""))
    others = {
        name.removeprefix(schema.PREFIX): value
        for name, value in run.tags.items()
        if name not in _TAG_OF.values() and not name.startswith("mlflow.")
    }
    return {
        **own,
        "parent": above.tags.get(schema.ID) if above else None,
        "name": run.name,
        "status": run.status,
        "start": run.start,
        "end": run.end or None,
        "artifacts": run.artifacts,
        **{f"params.{name}": value for name, value in run.params.items()},
        **{f"metrics.{name}": value for name, value in run.metrics.items()},
        **{f"tags.{name}": value for name, value in others.items()},
    }


def _numbers_or_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """`null` is a missing value; a column of numbers alone becomes one."""
    values = column.mask(column == "null")
    numbers = pd.to_numeric(values, errors="coerce")
    return numbers if bool((numbers.notna() == values.notna()).all()) else values
