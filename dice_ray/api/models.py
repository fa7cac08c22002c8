"""Uses of a trained run: predict a file, score a split or a file, export the model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import tracking
from dice_ray.errors import InputError
from dice_ray.files import check_output, is_url, write_output
from dice_ray.run.tables import table_file

if TYPE_CHECKING:
    from dice_ray.run.tables import Table
    from dice_ray.tasks.base import Scores
    from dice_ray.tasks.predictions import Predictions


def predict(
    run: str | Path,
    file: str | Path | Table | Sequence[str | tuple[str, str]],
    *,
    threshold: float | str = "auto",
    prior: float | str | None = None,
    out: str | Path | None = None,
) -> Predictions:
    """The predictions of a run's best checkpoint for a file, in the format of the run's data; labels are not read.

    They are made with the decision fitted on dev only where it suits the run's score, and dev has enough positives to
    show, on held-out folds, that it is better than the untuned one: 0.5, or 0 for the no-answer threshold of questions.
    The reason: a threshold tuned on a few positives can label every record positive. `Predictions.threshold` and
    `Predictions.notes` say what was applied.

    Args:
        run: Name of a run, SWEEP/TRIAL, STUDY/ARM/SEED, STUDY/VARIANT/ARM/SEED, or the path of a run's folder.
        file: Records to predict: a file in the format of the run's data, or its URL, labels not needed; a table with
            the columns of the run's data; or lines (on the command line - for those of stdin), each a text, a pair
            with a tab between, or words. Ids of tables are those of their column of ids (of `id` where the data have
            none), else the numbers of the lines.
        threshold: Probability above which a record is positive: a number, `tuned` for the one tuned on dev, or `auto`
            for that one where dev shows that it is better, else 0.5.
        prior: Share of positives where the predictions are used, to correct probabilities for it, if it differs from
            that of dev; `auto` estimates it from the records (Saerens et al. 2002), which needs
            calibrated probabilities.
        out: File to write; it is written whole or not at all, and a new one only you can read.
    """
    from dice_ray.run import trained
    from dice_ray.tuning import places

    out = None if out is None else Path(out)
    if out is not None:
        check_output(out, [Path(file)] if isinstance(file, str | Path) else [])
    best = trained.load(places.place(run).folder)
    if isinstance(file, list | tuple):
        predictions = best.predict(file, threshold, prior)
    else:
        with table_file(file) as path:
            predictions = best.predict(path, threshold, prior)
    if out is not None:
        write_output(out, predictions.text(), is_private=True)
    return predictions


def export(run: str | Path, folder: str | Path | None = None, *, push: str | None = None, public: bool = False) -> str:
    """Write a run's best checkpoint as a plain Hugging Face folder with a model card; returns the class that loads it.

    Args:
        run: As in `predict`.
        folder: New or empty folder to write, whole or not at all; it may be left out where the model is pushed.
        push: Upload the model to this repository of the Hugging Face hub; a new one is private. It needs a token:
            `hf auth login`, or HF_TOKEN.
        public: Make the new repository on the hub public.
    """
    from dice_ray.models import hub
    from dice_ray.run import packaging, trained
    from dice_ray.tuning import places

    if folder is None and push is None:
        raise InputError("an export needs a folder, or a repository to push to")
    if public and push is None:
        raise InputError("only a repository that is pushed to can be made public: name it")
    target = None if folder is None else Path(folder).resolve()
    if target is not None and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"the folder of an export must be new or empty, got {folder}")
    if target == Path.cwd():  # it is replaced
        raise InputError("the folder of an export must be another one than the working directory")
    if push is not None:
        hub.check(push)
    place = places.place(run)
    best = trained.load(place.folder)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that it can be moved there.
    with tempfile.TemporaryDirectory(dir=target and target.parent, prefix=".export.") as unfinished:
        written = Path(unfinished) / "export"
        auto_class = best.export(written)
        text = packaging.card(best, str(run), auto_class, tracking.stored_scores(place))
        write_output(written / packaging.FILE, text.replace("FOLDER", push or (target or written).name))
        if push is not None:
            hub.push(written, push, is_public=public)
        if target is not None:
            written.replace(target)
    return auto_class


@dataclass(frozen=True)
class Scored:
    """The scores of a run's best checkpoint.

    Attributes:
        data: A split's name, a file, or the name that a table was given by its content.
        scores: Its metrics, at threshold 0.5 and at the one tuned on dev, and the counts of each record.
        not_stored: Why MLflow does not hold the scores, if it does not, and where they wait.
    """

    run: str
    data: str
    scores: Scores
    not_stored: str | None

    def _repr_html_(self) -> str:
        """The metrics as a table, for a notebook."""
        import pandas as pd

        title = f"{self.run} on {self.data}"
        html: str = pd.Series(self.scores.metrics, name=title).to_frame().to_html(float_format="{:.4f}".format)
        return html


def evaluate(run: str | Path, data: str | Table = "test", *, items: str | Path | None = None) -> Scored:
    """Score a run's best checkpoint; the counts of each record and class become artifacts of the run.

    While MLflow is away, they wait in the run's folder: `send_waiting` sends them, as does `dice-ray runs`.

    Args:
        run: As in `predict`.
        data: dev, test, a file with labels or its URL, or a table with the columns of the run's data.
        items: CSV file for the counts of each record (id, tp, fp, fn).
    """
    from dice_ray.data.urls import local_file
    from dice_ray.run import trained
    from dice_ray.tuning import places

    items = None if items is None else Path(items)
    if items is not None:
        check_output(items, [Path(data)] if isinstance(data, str | Path) else [])
    place = places.place(run)
    best = trained.load(place.folder)
    if isinstance(data, str | Path):
        data = str(local_file(data, "DATA")) if is_url(str(data)) else str(data)
        scores = best.score(best.labelled(data), is_dev=data == "dev")
    else:
        with table_file(data) as file:
            data, scores = file.name, best.score(best.labelled(str(file)))
    if items is not None:
        write_output(items, trained.items_csv(scores))
    on_test = scores.named("test") if data == "test" else {}
    files = trained.count_files(data, scores)
    return Scored(str(run), data, scores, tracking.store_scores(place, files, on_test, best.step))
