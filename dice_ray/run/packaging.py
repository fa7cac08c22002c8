"""A trained run for others: as a model of MLflow, its predictions as artifacts, and a model card."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dice_ray.config.schema import RunConfig
from dice_ray.data import inputs
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.models.export import ENCODER, HEADS, TEXTS, TOKENS
from dice_ray.run import trained
from dice_ray.run.decision import in_use, notes
from dice_ray.run.folder import TASK
from dice_ray.run.trained import Trained
from dice_ray.tasks.predictions import Conll, Json, TablePredictions
from dice_ray.tasks.tagging import TaggingConfig
from dice_ray.tracking import model, schema

if TYPE_CHECKING:
    import pandas as pd

_RUN = "run"
"""Subfolder with the run's own files."""
_THRESHOLD: Final = "threshold"
"""The parameter of predictions that chooses the threshold."""
_LOADER: Final = "dice_ray.served"
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
    _, threshold = in_use(best.decision, best.config.task)
    params = {} if threshold is None else {_THRESHOLD: "auto"}
    example = inputs.example_row(best.config.data)
    is_frame = best.config.data.yields() in (PairRecord, TextRecord)
    predicted = ServedRun(best).predict([example]) if is_frame else None
    model.write(folder, _LOADER, auto_class, params, example, inputs.id_column(best.config.data), predicted)
    best.copy(folder / _RUN)
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
        """Predictions for rows with the columns of the run's data, at the threshold of `in_use`.

        Pairs and texts give a frame with the label and the probability of each class, sentences the tags of their
        words, questions their answers by id, and queries a document in MRC-NER's JSON format.

        Args:
            rows: The records.
            params: `threshold`: `auto`, `tuned` or a number, as text.
        """
        import pandas as pd

        choice = (params or {}).get(_THRESHOLD, "auto")
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
    return ServedRun(trained.load(Path(folder) / _RUN))


FILE = "README.md"
_USE = {
    TEXTS: """from transformers import pipeline

classify = pipeline("text-classification", model="FOLDER", top_k=None, truncation=True)
print(classify({example}))""",
    TOKENS: """from transformers import pipeline

tag = pipeline("token-classification", model="FOLDER")
print(tag({example}, is_split_into_words=True))""",
    ENCODER: """from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer
from transformers.utils import cached_file

tokenizer, encoder = AutoTokenizer.from_pretrained("FOLDER"), AutoModel.from_pretrained("FOLDER")
# NAME.output.weight and NAME.output.bias of each linear head
heads = load_file(cached_file("FOLDER", "heads.safetensors"))
hidden = encoder(**tokenizer("A text.", truncation=True, return_tensors="pt")).last_hidden_state""",
}
_POOLED = {
    "auto": "the hidden state of the classification token",
    "first": "the hidden state of the first token",
    "last": "the hidden state of the last token",
    "mean": "the mean of the hidden states of all tokens",
}
_PAIR = '{"text": "The first sentence.", "text_pair": "The second."}'
_WORDS = {"word": '["Anna", "lives", "in", "Berlin"]', "character": '["B", "e", "r", "l", "i", "n"]'}
"""An example for taggers, by the unit that they tag."""


def card(best: Trained, name: str, auto_class: str, scores: Mapping[str, float]) -> str:
    """The card of a model in Markdown, with its class of transformers and the stored scores of its run."""
    config, task = best.config, best.config.task.name
    data, classes = config.data_name, ", ".join(f"`{each}`" for each in best.task.classes)
    front = ["---", "library_name: transformers", "tags: [dice-ray]"]
    front += [f"pipeline_tag: {model.PIPELINES[auto_class][0]}"] if auto_class in model.PIPELINES else []
    counts = [f"`{label}` {num}" for term in best.facts for label, num in zip(term.classes, term.counts, strict=True)]
    parts = [
        "\n".join([*front, "---"]),
        f"# {name}",
        f"A model for the task `{task}`, trained by dice_ray on {data} with the loss `{config.loss.name}`; its encoder "
        f"is `{config.model.encoder}`. Classes: {classes}.",
        f"## Data\n\n{data} (digest `{best.digest}`). Items of the training split by class: {', '.join(counts)}.",
        f"## Scores\n\n{_scores(name, scores)}",
        *_decision(best),
        f"## Use\n\n{_use(config, auto_class)}\n\n{_length(config)}",
        f"## Intended use\n\nFor data like {data}, with the same classes. The scores hold for that data; on texts "
        "of another kind, time or language the model was not measured. Its probabilities may be badly calibrated: "
        "`dice-ray evaluate` gives the calibration error.",
    ]
    return "\n\n".join(parts) + "\n"


def _scores(name: str, scores: Mapping[str, float]) -> str:
    if not scores:
        return f"None are stored: `dice-ray evaluate {name} test` computes them."
    return "\n".join(
        ["| metric | value |", "|---|---|", *(f"| {key} | {value:.4f} |" for key, value in scores.items())]
    )


def _decision(best: Trained) -> list[str]:
    decision, threshold = in_use(best.decision, best.config.task)
    applied = [str(threshold)] * (threshold is not None) + list(notes(decision))
    if not applied:
        return []
    text = "\n".join(["`dice-ray predict` applies:", "", *(f"- {each}" for each in applied)])
    if threshold is not None:
        text += (
            "\n\nA pipeline of transformers reports the class with the highest probability: compare the probability of "
            "the positive class with the threshold instead. A temperature is in the weights already."
        )
    elif decision is not None and decision.is_used and "background" in decision.tuned:
        text += "\n\nThe bias of the exported output layer holds what is added to the background's logit."
    return [f"## Decision\n\n{text}"]


def _use(config: RunConfig, auto_class: str) -> str:
    code = _USE.get(
        auto_class, f'from transformers import {auto_class}\n\nmodel = {auto_class}.from_pretrained("FOLDER")'
    )
    example = _PAIR if config.data.yields() is PairRecord else repr("A text.")
    if isinstance(config.task, TaggingConfig):
        example = _WORDS[config.task.unit]
    text = f"```python\n{code.replace('{example}', example)}\n```"
    if auto_class == TEXTS:
        return (
            f"{text}\n\nThe head is linear in the first token. The stock class has a dense layer before its output, "
            "which is set such that it changes nothing in float32; it is too coarse for that in half precision."
        )
    if auto_class == ENCODER:
        return (
            f"{text}\n\nNo class of transformers has this head: `{HEADS}` holds its weights, `{TASK}` its classes. "
            f"A head over texts is applied to {_POOLED[config.model.pooling]} (padding left out), one over tokens to "
            "each of them."
        )
    return text


def _length(config: RunConfig) -> str:
    reads = f"The model reads at most {config.task.max_length} tokens."
    if config.data.yields() is PairRecord:
        return f"{reads} Of a longer pair the longer text is truncated, as in the run."
    combines = "averages their probabilities" if config.task.classifies_texts else "joins their predictions"
    return (
        f"{reads} Of a longer text `dice-ray predict` reads overlapping windows of that length and {combines}; "
        "transformers reads the first one alone."
    )
