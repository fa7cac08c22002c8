"""What a run, sweep or study left behind: its folder, its rows in MLflow, and the report of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import shipped
from dice_ray.folders import RUNS

if TYPE_CHECKING:
    import pandas as pd

    from analysis.found import Found
    from analysis.report import Report
    from dice_ray.tuning.estimate import Estimate


@dataclass(frozen=True)
class Result:
    """What a run, sweep or study left behind: its folder, and in MLflow its runs.

    Attributes:
        name: Of its folder.
        experiment: In MLflow.
        is_finished: False where it was interrupted; the same call, or `resume`, goes on.
        best: The metric that decides, and its best value: of a run on dev, of a sweep's or study's trials.
        estimate: Of a dry run: what it would take; it has left nothing behind.
    """

    name: str
    experiment: str
    is_finished: bool = True
    best: tuple[str, float] | None = None
    estimate: Estimate | None = None

    @property
    def folder(self) -> Path:
        return RUNS / self.name

    @property
    def log(self) -> Path:
        """What Ray, Optuna, MLflow and transformers said."""
        return self.folder / "log.txt"

    @property
    def waiting(self) -> Path | None:
        """What MLflow could not be told yet, if it was away; the next command that asks it sends that."""
        return next(self.folder.glob("unsent-*.jsonl"), None)

    @property
    def frame(self) -> pd.DataFrame:
        """One row a run of its experiment: parameters, tags, last metrics."""
        from dice_ray.tracking.reader import read

        return read(self.experiment)

    def report(self) -> Report:
        """The tables of its experiment."""
        return report(self.experiment)


def report(name: str) -> Report:
    """The tables of a sweep, a study, or the runs trained alone, from what MLflow holds of it."""
    shipped.folder_of("analysis")
    from analysis import report as reports

    return reports.report(found(name))


def found(name: str) -> Found:
    """What MLflow holds of an experiment: its runs now, their files and curves when asked for."""
    shipped.folder_of("analysis")
    from analysis.found import Found
    from dice_ray.tracking import reader

    return Found(reader.read(name), reader.texts, lambda: reader.curves(name))


def export_preset(sweep: str) -> str:
    """The best configuration of a sweep as a commented preset, which `train` runs.

    Args:
        sweep: Its name; `SWEEP/TRIAL` for the configuration of one of its trials.
    """
    from dice_ray.tuning.export import preset

    name, _, trial = sweep.partition("/")
    return preset(RUNS / name, trial or None)


def report_folder(name: str) -> Path:
    """Where a report is written unless told otherwise."""
    return RUNS / name / "report"
