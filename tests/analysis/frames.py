"""Findings of made-up studies and sweeps, with frames as the reader returns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.columns import parent_tag, scores
from analysis.findings import Findings

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
    """The findings with the ranking that the caller of a report gives.

    Trials with more scored reruns come first, then by the mean of these, else by their own score; of equals the first.
    """
    frame = findings.frame
    if not (frame["kind"] == "trial").any():
        return findings
    scored = frame.assign(score=scores(frame, parent_tag(frame, "metric"))).dropna(subset="score")
    rerun_scores: dict[str, tuple[float, ...]] = {}
    for run in scored[scored["kind"] == "rerun"].to_dict("records"):
        trial = str(run["tags.rerun_of"])
        rerun_scores[trial] = (*rerun_scores.get(trial, ()), run["score"])
    own = {str(run["id"]): run["score"] for run in scored[scored["kind"] == "trial"].to_dict("records")}

    def rank(id_: str) -> tuple[float, ...]:
        reruns = rerun_scores.get(id_, ())
        return -len(reruns), -float(np.mean(reruns or own[id_])), -own[id_]

    return replace(findings, ranked=tuple(sorted(own, key=rank)), rerun_scores=rerun_scores)


def points(*rows: tuple[str, int, str, float]) -> pd.DataFrame:
    """Curves: id, step, metric and value of each point."""
    return pd.DataFrame(list(rows), columns=["id", "step", "metric", "value"])


def _findings(rows: list[dict[str, Any]], curves: pd.DataFrame | None) -> Findings:
    shared = {"arm": None, "seed": None, "state": None, "parent": None, "status": "FINISHED", "start": BEGIN}
    frame = pd.DataFrame([shared | {"name": row["id"], "end": BEGIN + pd.Timedelta(minutes=30)} | row for row in rows])
    stored = points() if curves is None else curves
    return Findings(frame.astype({"seed": "Int64"}), read_curves=lambda: stored)
