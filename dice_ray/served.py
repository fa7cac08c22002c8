"""A trained run as a model of MLflow: packed into a folder, and loaded from it by `mlflow.pyfunc.load_model`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dice_ray import trained
from dice_ray.data import files, sources
from dice_ray.models.export import ENCODER
from dice_ray.tasks.predictions import Conll, Json, TablePredictions
from dice_ray.tracking import model

if TYPE_CHECKING:
    import pandas as pd

RUN = "run"
"""Where the run's own files lie in the folder."""


def predictions(run: Path, split: Literal["dev", "test"]) -> tuple[str, str]:
    """What a run's best checkpoint predicts of a split: the name of the artifact, and its content."""
    best = trained.load(run)
    splits = sources.load(best.config.data, best.config.task.positive_label())
    found = best.predictions(getattr(splits, split))
    return f"{split}/predictions{found.suffix}", found.text()


def pack(run: Path, folder: Path) -> Path:
    """Write the best checkpoint of a run as a model of MLflow; what was in the folder goes.

    A tagger that is a stock class of Hugging Face can be loaded by `mlflow.transformers` too.
    """
    best = trained.load(run)
    shutil.rmtree(folder, ignore_errors=True)
    exported = folder.with_name(f"{folder.name}.exported")
    auto_class = best.export(exported)
    model.write(folder, __name__, auto_class)
    trained.copy(run, folder / RUN)
    if auto_class != ENCODER:
        exported.replace(folder / model.MODEL)
        best.tokenizer.save_pretrained(folder / model.TOKENIZER)
    shutil.rmtree(exported, ignore_errors=True)
    return folder


class Served:
    """What `mlflow.pyfunc` asks for predictions."""

    def __init__(self, run: trained.Trained) -> None:
        self._run = run

    def predict(self, rows: pd.DataFrame | Sequence[Mapping[str, Any]], params: object = None) -> Any:
        """What the run predicts for rows with the columns of its data.

        Pairs and texts give a frame with the label and the probability of each class, sentences the tags of their
        words, questions their answers by id, and queries what MRC-NER's JSON holds.
        """
        import pandas as pd

        given = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
        found = self._run.predictions(files.read_rows(self._run.config.data, given))
        match found:
            case TablePredictions(columns, cells):
                return pd.DataFrame(list(cells), columns=list(columns))
            case Conll(sentences):
                return [[tag for _, tag in sentence] for sentence in sentences]
            case Json(document):
                return document
        raise AssertionError(f"predictions of an unknown form: {found}")


def _load_pyfunc(folder: str) -> Served:
    return Served(trained.load(Path(folder) / RUN))
