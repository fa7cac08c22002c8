"""Uses of a trained run: predict a file, score a split or a file, export the model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import places, tracking
from dice_ray.errors import InputError

if TYPE_CHECKING:
    from dice_ray.tasks.base import Scores
    from dice_ray.tasks.predictions import Predictions


def predict(
    run: str, file: str | Path | Sequence[str], *, threshold: float | str = "auto", out: Path | None = None
) -> Predictions:
    """The predictions of a run's best checkpoint for a file, in the format of the run's data; labels are not read.

    `Predictions.threshold` is the threshold they were made with. By default it is the one tuned on dev only where dev
    has enough positives to show, on held-out folds, that it is better than 0.5; else 0.5 (0 for the no-answer threshold
    of questions). The reason: a threshold tuned on a few positives can label every record positive.

    Args:
        run: The name of a run, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, or the path of a run's folder.
        file: Records to predict; or a list of lines, each a text, a pair separated by a tab, or words. Ids of tables
            are those of their column of ids (of `id` where the data have none), else the numbers of the lines.
        threshold: A number, `tuned` for the one tuned on dev, or `auto`.
        out: A file to write the predictions to; it is written whole or not at all.
    """
    from dice_ray.run import trained
    from dice_ray.run.folder import check_output, write_output

    if out is not None:
        check_output(out, [Path(file)] if isinstance(file, str | Path) else [])
    best = trained.load(places.place(run).folder)
    predictions = best.predict(Path(file) if isinstance(file, str | Path) else file, threshold)
    if out is not None:
        write_output(out, predictions.text())
    return predictions


def export(run: str, folder: str | Path) -> str:
    """Write a run's best checkpoint as a plain Hugging Face folder with a model card; returns the class that loads it.

    Args:
        run: As in `predict`.
        folder: A new or empty one; it is written whole or not at all.
    """
    from dice_ray.run import card, trained
    from dice_ray.run.folder import write_output

    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"the folder of an export must be new or empty, got {folder}")
    of_run = places.place(run)
    best = trained.load(of_run.folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as unfinished:
        auto_class = best.export(Path(unfinished) / "export")
        text = card.card(best, run, auto_class, tracking.stored_scores(of_run)).replace("FOLDER", folder.name)
        write_output(Path(unfinished) / "export" / card.FILE, text)
        (Path(unfinished) / "export").replace(folder)
    return auto_class


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
    from dice_ray.run.folder import check_output, write_output

    if items is not None:
        check_output(items, [Path(data)])
    of_run = places.place(run)
    best = trained.load(of_run.folder)
    scores = best.score(best.labelled(data))
    if items is not None:
        write_output(items, trained.items_csv(scores))
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)} if data == "test" else {}
    on_test = {f"test/{name}": value for name, value in metrics.items()}
    files = trained.count_files(data, scores)
    return Scored(run, data, scores, tracking.store_scores(of_run, files, on_test, best.step))
