"""A trained run in MLflow's model format: packed into a folder, and loaded from it by `mlflow.pyfunc.load_model`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dice_ray.data import inputs
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.models.export import ENCODER
from dice_ray.run import trained
from dice_ray.tasks.predictions import Conll, Json, TablePredictions
from dice_ray.tracking import model, schema

if TYPE_CHECKING:
    import pandas as pd

RUN = "run"
"""Subfolder with the run's own files."""
THRESHOLD: Final = "threshold"
"""The parameter of predictions that chooses the threshold."""
LOADER: Final = "dice_ray.served"
"""The module that MLflow imports to load a model. It is stored with each one, so it must not change."""


def predictions(run: Path, split: Literal["dev", "test"]) -> dict[str, str]:
    """The predictions of a run's best checkpoint on a split, and the texts of its records: content by artifact."""
    best = trained.load(run)
    splits = best.config.splits()
    records = getattr(splits, split)
    predicted = best.predictions(records)
    return {
        f"{split}/predictions{predicted.suffix}": predicted.text(),
        f"{split}/{schema.TEXTS_FILE}": trained.texts_csv(records),
    }


def pack(run: Path, folder: Path) -> Path:
    """Write the best checkpoint of a run as an MLflow model, over what the folder holds.

    A model of a class of Hugging Face's own can be loaded by `mlflow.transformers` too.
    """
    best = trained.load(run)
    shutil.rmtree(folder, ignore_errors=True)
    exported = folder.with_name(f"{folder.name}.exported")
    auto_class = best.export(exported)
    params = {} if best.task.untuned_threshold is None else {THRESHOLD: "auto"}
    example = inputs.example_row(best.config.data)
    predicted = ServedRun(best).predict([example])
    is_frame = best.config.data.yields() in (PairRecord, TextRecord)
    model.write(
        folder, LOADER, auto_class, params, example, inputs.id_column(best.config.data), predicted if is_frame else None
    )
    best.copy(folder / RUN)
    if auto_class != ENCODER:
        exported.replace(folder / model.MODEL)
        best.tokenizer.save_pretrained(folder / model.TOKENIZER)
    shutil.rmtree(exported, ignore_errors=True)
    return folder


class ServedRun:
    """The object that `mlflow.pyfunc` asks for predictions."""

    def __init__(self, run: trained.Trained) -> None:
        self._run = run

    def predict(self, rows: pd.DataFrame | Sequence[Mapping[str, Any]], params: Mapping[str, Any] | None = None) -> Any:
        """Predictions for rows with the columns of the run's data, at the threshold of `Trained.threshold`.

        Pairs and texts give a frame with the label and the probability of each class, sentences the tags of their
        words, questions their answers by id, and queries a document in MRC-NER's JSON format.

        Args:
            rows: The records.
            params: `threshold`: `auto`, `tuned` or a number, as text.
        """
        import pandas as pd

        choice = (params or {}).get(THRESHOLD, "auto")
        records = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
        predicted = self._run.predictions(inputs.read_rows(self._run.config.data, records), choice)
        match predicted:
            case TablePredictions(columns, cells):
                return pd.DataFrame(list(cells), columns=list(columns))
            case Conll(sentences):
                return [[tag for _, tag in sentence] for sentence in sentences]
            case Json(document):
                return document
        raise AssertionError(f"predictions of an unknown form: {predicted}")


def load_pyfunc(folder: str) -> ServedRun:
    """Load a packed model."""
    return ServedRun(trained.load(Path(folder) / RUN))
