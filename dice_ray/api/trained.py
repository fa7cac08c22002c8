"""Uses of a trained run: predict a file, score a split or a file, export the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import places, tracking
from dice_ray.errors import InputError

if TYPE_CHECKING:
    from dice_ray.tasks.base import Scores
    from dice_ray.tasks.predictions import Predictions


def predict(run: str, file: str | Path) -> Predictions:
    """The predictions of a run's best checkpoint for a file, in the format of the run's data; labels are not read.

    Args:
        run: The name of a run, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, or the path of a run's folder.
        file: Records to predict.
    """
    from dice_ray.run import trained

    return trained.load(places.place(run).folder).predict(Path(file))


def export(run: str, folder: str | Path) -> str:
    """Write a run's best checkpoint as a plain Hugging Face folder; returns the auto class that loads it.

    Args:
        run: As in `predict`.
        folder: A new or empty one.
    """
    from dice_ray.run import trained

    folder = Path(folder)
    best = trained.load(places.place(run).folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"the folder of an export must be new or empty, got {folder}")
    return best.export(folder)


@dataclass(frozen=True)
class Scored:
    """The scores of a run's best checkpoint.

    Attributes:
        data: A split's name, or a file.
        scores: Its metrics, at threshold 0.5 and at the one tuned on dev, and the counts of each record.
        not_stored: Why MLflow does not hold the scores, if it does not, and where they wait.
    """

    run: str
    data: str
    scores: Scores
    not_stored: str | None


def evaluate(run: str, data: str = "test", *, items: Path | None = None) -> Scored:
    """Score a run's best checkpoint; the counts of each record and class become artifacts of the run.

    While MLflow is away, they wait in the run's folder: the next command that reads MLflow sends them.

    Args:
        run: As in `predict`.
        data: `dev`, `test`, or a file with labels.
        items: A CSV file for the counts of each record.
    """
    from dice_ray.run import trained

    of_run = places.place(run)
    best = trained.load(of_run.folder)
    scores = best.score(best.labelled(data))
    if items is not None:
        items.write_text(trained.items_csv(scores), encoding="utf-8")
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)} if data == "test" else {}
    on_test = {f"test/{name}": value for name, value in metrics.items()}
    files = trained.count_files(data, scores)
    return Scored(run, data, scores, tracking.store_scores(of_run, files, on_test, best.step))
