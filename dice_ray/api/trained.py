"""What a trained run is for: predict a file, score a split or a file, export the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import folders
from dice_ray.api import tracking
from dice_ray.errors import InputError

if TYPE_CHECKING:
    from dice_ray.tasks.base import Scores
    from dice_ray.tasks.predictions import Predictions


def predict(run: str, file: str | Path) -> Predictions:
    """What a run's best checkpoint predicts for a file, read as the run's data are; labels are not looked at.

    Args:
        run: The name of a run, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, or the path of a run's folder.
        file: What is predicted.
    """
    from dice_ray import trained

    return trained.load(folders.place(run).folder).predict(Path(file))


def export(run: str, folder: str | Path) -> str:
    """Write a run's best checkpoint as a plain Hugging Face folder; returns the auto class that loads it.

    Args:
        run: As in `predict`.
        folder: A new or empty one.
    """
    from dice_ray import trained

    folder = Path(folder)
    best = trained.load(folders.place(run).folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"the folder of an export must be new or empty, got {folder}")
    return best.export(folder)


@dataclass(frozen=True)
class Scored:
    """What a run's best checkpoint is worth on some data.

    Attributes:
        data: A split's name, or a file.
        scores: Its metrics, at a half and at the threshold that dev decided, and the counts of each record.
        untold: Why MLflow has not been told, if it has not: it holds no such run, or it is away, and where that waits.
    """

    run: str
    data: str
    scores: Scores
    untold: str | None


def evaluate(run: str, data: str = "test", *, items: Path | None = None) -> Scored:
    """Score a run's best checkpoint; the counts of each record and class become artifacts of the run.

    Where MLflow is away, that waits as what a run says does: the next command sends it.

    Args:
        run: As in `predict`.
        data: `dev`, `test`, or a file with labels.
        items: Where the counts are written too, as CSV.
    """
    from dice_ray import trained

    place = folders.place(run)
    best = trained.load(place.folder)
    scores = best.score(best.labelled(data))
    if items is not None:
        items.write_text(trained.items_csv(scores), encoding="utf-8")
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)} if data == "test" else {}
    told = {f"test/{name}": value for name, value in metrics.items()}
    return Scored(run, data, scores, tracking.tell(place, trained.count_files(data, scores), told, best.step))
