"""Frames as the reader gives them, of made-up studies and sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.found import Found

BEGIN = pd.Timestamp("2024-05-01 12:00", tz="UTC")


def study(
    cells: Iterable[Mapping[str, Any]],
    *,
    metric: str = "test/f1",
    baseline: str = "plain",
    curves: pd.DataFrame | None = None,
) -> Found:
    """A study of these cells: arm, seed, and whatever columns a test needs."""
    parent = {"id": "study", "name": "study", "kind": "study", "tags.metric": metric, "tags.baseline": baseline}
    rows = [
        {"id": f"{cell['arm']}-{cell['seed']}-{number}", "kind": "cell", "parent": "study", "state": "done"}
        | dict(cell)
        for number, cell in enumerate(cells)
    ]
    return _found([parent, *rows], curves)


def sweep(trials: Iterable[Mapping[str, Any]], *, metric: str = "dev/f1", curves: pd.DataFrame | None = None) -> Found:
    """A sweep of these trials, in the order of their start."""
    parent = {"id": "sweep", "name": "sweep", "kind": "sweep", "tags.metric": metric}
    rows = [
        {"id": f"{number:04d}", "kind": "trial", "parent": "sweep", "state": "done", "seed": 0} | dict(trial)
        for number, trial in enumerate(trials, start=1)
    ]
    return _found([parent, *rows], curves)


def points(*told: tuple[str, int, str, float]) -> pd.DataFrame:
    return pd.DataFrame(list(told), columns=["id", "step", "metric", "value"])


def _found(rows: list[dict[str, Any]], curves: pd.DataFrame | None) -> Found:
    plain = {"arm": None, "seed": None, "state": None, "parent": None, "status": "FINISHED", "start": BEGIN}
    frame = pd.DataFrame([plain | {"name": row["id"], "end": BEGIN + pd.Timedelta(minutes=30)} | row for row in rows])
    told = points() if curves is None else curves
    return Found(frame.astype({"seed": "Int64"}), read_curves=lambda: told)
