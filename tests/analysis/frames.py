"""Findings of made-up studies and sweeps, with frames as the reader returns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.frames import Findings
from dice_ray.tuning.ranking import ranked_in_frame

BEGIN = pd.Timestamp("2024-05-01 12:00", tz="UTC")


def study(
    cells: Iterable[Mapping[str, Any]],
    *,
    metric: str = "test/f1",
    baseline: str = "plain",
    curves: pd.DataFrame | None = None,
) -> Findings:
    """A study of these cells: arm, seed, and whatever columns a test needs."""
    parent = {"id": "study", "name": "study", "kind": "study", "tags.metric": metric, "tags.baseline": baseline}
    parent["tags.threshold"] = "untuned"
    rows = [
        {"id": f"{cell['arm']}-{cell['seed']}-{number}", "kind": "cell", "parent": "study", "state": "done"}
        | dict(cell)
        for number, cell in enumerate(cells)
    ]
    return _findings([parent, *rows], curves)


def sweep(
    trials: Iterable[Mapping[str, Any]], *, metric: str = "dev/f1", curves: pd.DataFrame | None = None
) -> Findings:
    """A sweep of these trials, in the order of their start."""
    parent = {"id": "sweep", "name": "sweep", "kind": "sweep", "tags.metric": metric}
    rows = [
        {"id": f"{number:04d}", "kind": "trial", "parent": "sweep", "state": "done", "seed": 0} | dict(trial)
        for number, trial in enumerate(trials, start=1)
    ]
    return ranked(_findings([parent, *rows], curves))


def ranked(findings: Findings) -> Findings:
    """The findings with the ranking that the caller of a report gives."""
    trials = ranked_in_frame(findings.frame)
    reruns = {trial.id: trial.rerun_scores for trial in trials if trial.rerun_scores}
    return replace(findings, ranked=tuple(trial.id for trial in trials), rerun_scores=reruns)


def points(*rows: tuple[str, int, str, float]) -> pd.DataFrame:
    """Curves: id, step, metric and value of each point."""
    return pd.DataFrame(list(rows), columns=["id", "step", "metric", "value"])


def _findings(rows: list[dict[str, Any]], curves: pd.DataFrame | None) -> Findings:
    shared = {"arm": None, "seed": None, "state": None, "parent": None, "status": "FINISHED", "start": BEGIN}
    frame = pd.DataFrame([shared | {"name": row["id"], "end": BEGIN + pd.Timedelta(minutes=30)} | row for row in rows])
    stored = points() if curves is None else curves
    return Findings(frame.astype({"seed": "Int64"}), read_curves=lambda: stored)
