"""The only way out of MLflow: the runs of an experiment as one tidy frame.

Every function opens the store once, so what one call returns is one moment of the store, also beside a writer (see
`sources.py`, which explains how it is read).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from dice_ray.errors import RefusedError, RunError, UnknownNameError, shown
from dice_ray.tracking import schema
from dice_ray.tracking.sources import Source, StoredRun, open_store, text_artifact

PARENTS: Final = ("sweep", "study", schema.COMPARISON)
"""Kinds of runs that stand for others."""
_COLUMNS: Final = ("id", "parent", "name", "kind", "arm", "seed", "state", "status", "start", "end", "artifacts")
"""The columns of every run; those of parameters, metrics and other tags follow."""
_CURVE_COLUMNS: Final = ("id", "step", "metric", "value")

_Checked = TypeVar("_Checked")
_RUNS: Final = TypeAdapter(dict[str, StoredRun])
_POINTS: Final = TypeAdapter(list[tuple[str, int, str, float]])
_TAG_OF: Final = {"id": schema.ID, "kind": schema.KIND, "arm": schema.ARM, "seed": schema.SEED, "state": schema.STATE}
_OUR_TAGS: Final = {
    tag.removeprefix(schema.PREFIX)
    for tag in vars(schema).values()
    if isinstance(tag, str) and tag.startswith(schema.PREFIX) and tag not in _TAG_OF.values()
}
_OUR_FAMILIES: Final = tuple(f"{tag.removeprefix(schema.PREFIX)}." for tag in (schema.REGISTERED, schema.VERSION))


def read(experiment: str, uri: str | None = None) -> pd.DataFrame:
    """One row per run, in the order of their start, parents first.

    The columns are `_COLUMNS`, then `params.<path>`, `metrics.<name>` (the last value) and `tags.<name>`. An experiment
    without runs has the columns `_COLUMNS` and no rows. Runs that another program stored are left out, and so are tags
    of the user whose column would be the one of a tag of ours.

    Raises:
        UnknownNameError: The store has no such experiment.
        RunError: The store does not exist or does not answer.
    """
    with open_store(uri) as source:
        return _as_frame(_ours(source, _experiment_id(source, experiment)))


def of_others(experiment: str) -> tuple[str, pd.DataFrame]:
    """The name of an experiment, given by name or id, and one row per run of any program in the order of their start.

    The columns are `id` (MLflow's), `name`, `status`, then `params.<name>`, `metrics.<name>` (the last value) and
    `tags.<name>` under their whole names, without those of MLflow. Parents of ours, which have no scores, are left out.
    Raises what `read` raises.
    """
    with open_store() as source:
        known = {"Default": "0"} | source.experiments()  # which holds the runs that name none
        name = next((name for name, id_ in known.items() if experiment in (name, id_)), None)
        if name is None:
            raise UnknownNameError("experiment", experiment, known)
        runs = _checked(_RUNS, source.runs(known[name]))
    rows = [
        {
            "id": id_,
            "name": run.name,
            "status": run.status,
            **{schema.param_column(key): value for key, value in run.params.items()},
            **{schema.metric_column(key): value for key, value in run.metrics.items()},
            **{f"tags.{key}": value for key, value in run.tags.items() if not key.startswith("mlflow.")},
        }
        for id_, run in sorted(runs.items(), key=lambda item: (item[1].start, item[0]))
        if run.tags.get(schema.KIND) not in PARENTS
    ]
    return name, pd.DataFrame(rows)


def ended(experiment: str, uri: str | None = None) -> set[str]:
    """The ids of the runs that have ended by themselves, without a frame of all; raises what `read` raises."""
    with open_store(uri) as source:
        runs = _ours(source, _experiment_id(source, experiment)).values()
    return {run.tags[schema.ID] for run in runs if run.status in ("FINISHED", "FAILED")}


def curves(experiment: str, uri: str | None = None) -> pd.DataFrame:
    """Every metric at every step, one row each, with `_CURVE_COLUMNS`; raises what `read` raises."""
    with open_store(uri) as source:
        experiment_id = _experiment_id(source, experiment)
        ids = {uuid: run.tags[schema.ID] for uuid, run in _ours(source, experiment_id).items()}
        points = [(ids[uuid], *values) for uuid, *values in source.points(experiment_id) if uuid in ids]
    rows = _checked(_POINTS, points)
    frame = pd.DataFrame(rows, columns=list(_CURVE_COLUMNS))
    return frame.sort_values(["id", "metric", "step"], ignore_index=True)


def texts(runs: pd.DataFrame, file: str, uri: str | None = None) -> dict[str, str]:
    """The content of an artifact, a text file, by run id, for the rows of `read` whose run has it.

    Artifacts in a local folder are read from there, others through MLflow.

    Raises:
        RunError: The artifact store does not answer.
    """
    contents = {id_: text_artifact(root, file, uri) for id_, root in zip(runs["id"], runs["artifacts"], strict=True)}
    return {id_: content for id_, content in contents.items() if content is not None}


def experiments(uri: str | None = None) -> list[str]:
    """The names of the active experiments, without MLflow's own "Default"; raises RunError as `read` does."""
    with open_store(uri) as source:
        return sorted(source.experiments())


def holds(experiment: str, id_: str) -> bool | None:
    """Whether the store holds a run; None where it does not answer now."""
    try:
        with open_store() as source:
            runs = _ours(source, _experiment_id(source, experiment)).values()
        return id_ in {run.tags[schema.ID] for run in runs}
    except (RefusedError, UnknownNameError):  # an SQLite file that does not exist holds nothing
        return False
    except RunError:
        return None


def _ours(source: Source, experiment_id: str) -> dict[str, StoredRun]:
    """The runs that have our id, by MLflow's; those of other programs are left out."""
    runs = {uuid: run for uuid, run in source.runs(experiment_id).items() if schema.ID in run.tags}
    return _checked(_RUNS, runs)


def _checked(kind: TypeAdapter[_Checked], stored: object) -> _Checked:
    """What a store holds, if it has the types that MLflow gives it: SQLite keeps any value in any column."""
    try:
        return kind.validate_python(stored, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = [str(part) for part in first["loc"][1:] if isinstance(part, str)]
        raise RunError(
            f"the store of runs must hold them as MLflow writes them, but {'.'.join(where) or 'a point of a curve'} of "
            f"a run is {shown(first['input'])}: {first['msg']}"
        ) from error


def _experiment_id(source: Source, experiment: str) -> str:
    ids = source.experiments()
    if experiment not in ids:
        raise UnknownNameError("experiment", experiment, ids)
    return ids[experiment]


def _as_frame(runs: Mapping[str, StoredRun]) -> pd.DataFrame:
    """The tidy frame of runs that have our id."""
    # A sweep and its first trial can start in the same millisecond: hence the second part of the key.
    ordered = sorted(runs.values(), key=lambda run: (run.start, schema.PARENT in run.tags, run.tags[schema.ID]))
    rows = [_row(run, runs) for run in ordered]
    rest = sorted({name for row in rows for name in row} - set(_COLUMNS))
    frame = pd.DataFrame(rows, columns=[*_COLUMNS, *rest])
    for column in _COLUMNS:
        if column in ("start", "end"):
            frame[column] = pd.to_datetime(frame[column], unit="ms", utc=True)
        else:
            frame[column] = frame[column].astype("Int64" if column == "seed" else "str")
    # MLflow stores parameters as text: `null` becomes a missing value, and a column that holds only numbers numeric. A
    # text such as 01 is a label.
    for name in (name for name in rest if name.startswith(schema.param_column(""))):
        values = frame[name].mask(frame[name] == "null")
        numbers = pd.to_numeric(values, errors="coerce")
        is_label = values.astype("str").str.match(r"-?0\d").any()
        frame[name] = values if is_label or (numbers.notna() != values.notna()).any() else numbers
    return frame


def _number(run: StoredRun, tag: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(run.tags[tag])
    except ValueError:
        raise RunError(
            f"the tag {tag} of the run {run.tags[schema.ID]} must be a number, got {shown(run.tags[tag])}"
        ) from None


def _row(run: StoredRun, runs: Mapping[str, StoredRun]) -> dict[str, Any]:
    parent = runs.get(run.tags.get(schema.PARENT, ""))
    constants = {
        schema.metric_column(name.removeprefix(f"{schema.CONSTANT}.")): _number(run, name, float)
        for name in run.tags
        if name.startswith(f"{schema.CONSTANT}.")
    }
    # A tag without our prefix would be taken for one of ours, which decide what a report says. Also where the run lacks
    # ours: `failure` is absent from a run that has not failed.
    tags = {
        schema.tag_column(name): value
        for name, value in run.tags.items()
        if name not in _TAG_OF.values()
        and name not in _OUR_TAGS
        and not name.startswith(("mlflow.", f"{schema.CONSTANT}.", *_OUR_FAMILIES))
    }
    return {
        **{column: run.tags.get(tag) for column, tag in _TAG_OF.items()},
        "seed": _number(run, schema.SEED, int) if schema.SEED in run.tags else None,
        "parent": parent.tags.get(schema.ID) if parent else None,
        "name": run.name,
        "status": run.status,
        "start": run.start,
        "end": run.end or None,
        "artifacts": run.artifacts,
        **{schema.param_column(name): value for name, value in run.params.items()},
        **{schema.metric_column(name): value for name, value in run.metrics.items()},
        **constants,
        **tags,
    }
