"""A trained run, loaded from its folder alone: settings, task, tokenizer and best weights; its data are not needed."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.config.schema import RunConfig
from dice_ray.data import inputs
from dice_ray.data.formats.json_rows import parted
from dice_ray.data.records import Record, documents, record_text
from dice_ray.errors import DataError, RunError
from dice_ray.files import sync, write_atomically
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.models import stored
from dice_ray.models.encoder import EncoderWithHeads, merged, with_heads
from dice_ray.models.export import export
from dice_ray.run import object_store
from dice_ray.run.decision import Prior, in_use, notes, with_prior
from dice_ray.run.folder import CONFIG, ENCODER, TASK, check_digest, store_config, stored_config, stored_task
from dice_ray.tasks.base import Scores, Task
from dice_ray.tasks.predictions import Predictions, TablePredictions
from dice_ray.terms import TermFacts
from dice_ray.tracking import schema
from dice_ray.training import precision
from dice_ray.training.checkpoint import BEST, Checkpoints, check_kept
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.precision import Numerics
from dice_ray.training.step import TrainingTally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SPLITS = ("dev", "test")
"""Data that is scored by its name; any other is a file."""
_COUNTS = ("tp", "fp", "fn")


def store(
    config: RunConfig,
    folder: Path,
    task: Task[Any],
    facts: Sequence[TermFacts],
    model: EncoderWithHeads,
    tokenizer: PreTrainedTokenizerBase,
    digest: str,
) -> None:
    """Write beside the checkpoints all that `load` needs: the folder can be moved, and the data deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    stored.store(model.encoder, tokenizer, folder / ENCODER)
    for file in filter(Path.is_file, (folder / ENCODER).rglob("*")):
        sync(file)
    if not (folder / CONFIG).exists():  # the driver may have written it: a worker has its own number of threads
        store_config(config, folder)
    values = _task_values(task, facts) | {"data": digest}
    write_atomically(folder / TASK, json.dumps(values, ensure_ascii=False, indent=1))


@dataclass(frozen=True)
class Trained:
    """The best checkpoint of a run, ready to predict.

    Attributes:
        digest: Of the data that it was trained on.
        decision: What was fitted on dev, and whether predictions use it; None for a task without a decision.
        step: The optimizer step of the checkpoint.
    """

    config: RunConfig
    task: Task[Any]
    facts: tuple[TermFacts, ...]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    numerics: Numerics
    digest: str
    decision: FittedDecision | None
    step: int

    def predict(
        self, file: Path | Iterable[str | tuple[str, str]], threshold: float | str = "auto", prior: Prior = None
    ) -> Predictions:
        """Predictions for the records of a file, whose labels are not read, or for lines of text."""
        if not isinstance(file, Path):
            return self.predictions(inputs.read_lines(self.config.data, file), threshold, prior)
        predicted = self.predictions(inputs.read(self.config.data, file, "ignored")[0], threshold, prior)
        if isinstance(predicted, TablePredictions):
            _, *columns = predicted.columns
            return replace(predicted, columns=(inputs.id_column(self.config.data), *columns))
        return predicted

    def predictions(self, records: Sequence[Any], threshold: float | str = "auto", prior: Prior = None) -> Predictions:
        """Predictions for records, whose labels are not read, with the decision of `in_use` and `with_prior`."""
        decision, chosen = in_use(self.decision, self.config.task, threshold)
        split = self.encoded(records)
        items = self._decoded(split)
        predicted = self.task.predict(split.records, split.rows, items, decision)
        if prior is not None:
            has_number = threshold not in ("auto", "tuned")
            decision = with_prior(decision, prior, predicted, None if has_number else self.config.task)
            predicted = self.task.predict(split.records, split.rows, items, decision)
        return replace(predicted, threshold=chosen, notes=notes(decision))

    def score(self, split: EncodedSplit, *, is_dev: bool = False) -> Scores:
        """The scores on labelled records, untuned and with the decision fitted on dev, which they may be themselves."""
        scores = self.task.score(split.records, split.rows, self._decoded(split), self.decision)
        return replace(scores.on_dev(self.decision) if is_dev else scores, documents=documents(split.records))

    def export(self, folder: Path) -> str:
        """Write a plain Hugging Face folder with the task beside it; returns the auto class that loads it.

        The temperature of the calibration and the bias of a tagger's background are in the weights of its head.
        """
        folder.mkdir(parents=True, exist_ok=True)
        values = _task_values(self.task, self.facts) | {"decisions": self._stored_decision()}
        (folder / TASK).write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")
        tokenizer = copy.copy(self.tokenizer)
        tokenizer.model_max_length = self.config.task.max_length  # pipelines truncate at it
        term = self.facts[0]
        temperature = self.decision.calibration.get("temperature", 1.0) if self.decision else 1.0
        return export(
            merged(self.model),
            tokenizer,
            self.task.classes,
            folder,
            is_multi_label=bool(term.labels),
            is_position=term.link == "position",
            temperature=temperature,
            background_bias=self.decision.used.get("background", 0.0) if self.decision else 0.0,
        )

    def copy(self, to: Path) -> None:
        """Write what `load` needs, without what only training needs; it needs no other encoder, and no adapter."""
        model = merged(self.model)
        config = self.config.model_copy(update={"model": self.config.model.as_merged()})
        store(config, to, self.task, self.facts, model, self.tokenizer, self.digest)
        decisions = self._stored_decision()
        Checkpoints(to).save_best({"model": model.state_dict(), "decisions": decisions, "step": self.step})

    def labelled(self, data: str) -> EncodedSplit:
        """The split of this name, read again from the run's data, or the labelled records of a file.

        Raises:
            DataError: The split or file does not exist, or holds nothing that can be scored.
        """
        if data not in _SPLITS:
            if not parted(Path(data))[0].exists():
                raise DataError(f"data to score must be {' or '.join(_SPLITS)}, or an existing file, got {data!r}")
            try:
                records = inputs.read(self.config.data, Path(data), "read")[0]
            except DataError as error:
                raise DataError(f"{error}; `dice-ray predict` takes files without labels") from error
            self.task.check_labels(records)
            return self.encoded(records)
        splits = self.config.splits()
        check_digest(self.digest, splits.digest, f"to score {data}, the run", "name a file to score")
        records = getattr(splits, data)
        if not records:
            raise DataError(f"the data must have a {data} split to be scored on: it has none; name a file with labels")
        return self.encoded(records)

    def encoded(self, records: Sequence[Any]) -> EncodedSplit:
        return EncodedSplit(records, self.task.encode(records, self.tokenizer))

    def _stored_decision(self) -> dict[str, Any]:
        return self.decision.stored() if self.decision else {}

    def _decoded(self, split: EncodedSplit) -> list[Any]:
        tally = TrainingTally(self.config.training.tokens)
        return decoded(self.task, self.model, split, self.tokenizer, self.numerics, tally)


def load(folder: Path) -> Trained:
    """Load the run of a folder.

    Raises:
        RunError: It has not been trained, or lacks files that this version stores.
    """
    object_store.fetch(folder)
    best, config = Checkpoints(folder).best(), stored_config(folder)
    if missing := [name for name in (CONFIG, TASK, ENCODER) if not (folder / name).exists()]:
        raise RunError(
            f"{folder} must hold {CONFIG}, {TASK} and {ENCODER}/ with its checkpoint, and lacks {', '.join(missing)}: "
            "if an older version trained it, `dice-ray train` with its settings and its name adds them"
        )
    assert config is not None
    values = stored_task(folder)
    facts = values["facts"]
    task = config.task.build(values["classes"])
    numerics = precision.resolve(config.training.precision)
    kept = config.model if best.get("kept") else None
    encoder, tokenizer = stored.load(folder / ENCODER, numerics.attention, kept)
    # Trained on a GPU in half precision, a model may have to predict on a machine or with a family that lacks it.
    numerics = precision.with_fallback(numerics, encoder.config.model_type)
    model = with_heads(encoder, task.heads(encoder.config.hidden_size, config.model), config.model)
    check_kept(best, model.kept_digest, folder / BEST)
    try:
        model.load_stored(best["model"])
    except RuntimeError as error:
        raise RunError(
            f"{folder / BEST} must fit {TASK} and {ENCODER}/: {str(error).splitlines()[-1].strip()}"
        ) from error
    model = model.to(numerics.device).eval()
    decision = FittedDecision.of(best["decisions"])
    return Trained(config, task, facts, tokenizer, model, numerics, values["data"], decision, best["step"])


def _task_values(task: Task[Any], facts: Sequence[TermFacts]) -> dict[str, Any]:
    return {"classes": task.classes, "facts": [asdict(term) for term in facts]}


def count_files(data: str, scores: Scores) -> dict[str, str]:
    """The counts behind scores as files: content by path, in the run's folder and among its artifacts.

    `items.csv` has the counts of each record, also at the tuned threshold if there is one, the probability of its label
    where it has one label, and its document if that is known; `classes.csv` has the counts of each class.
    """
    items = items_csv(scores)
    # Files of one name may be scored, and names need not be UTF-8, as paths of artifacts must be.
    name, digest = os.fsencode(Path(data).name).decode(errors="replace"), hashlib.sha256(items.encode()).hexdigest()
    folder = data if data in _SPLITS else f"files/{name}-{digest[:8]}"
    files = {f"{folder}/{schema.ITEMS_FILE}": items}
    if scores.classes:
        rows = [(name, num.tp + num.fn, num.tp, num.fp, num.fn) for name, num in scores.classes.items()]
        files[f"{folder}/{schema.CLASSES_FILE}"] = _csv(("class", "support", *_COUNTS), rows)
    return files


def items_csv(scores: Scores) -> str:
    """The counts of each record by its id, the probability of its label, also after calibration, and its document, as
    far as they are known.
    """
    thresholds = [items for items in (scores.items, scores.tuned_items) if items]
    tuned = tuple(f"tuned_{name}" for name in _COUNTS if scores.tuned_items)
    probabilities = {
        schema.LABEL_PROBABILITY: scores.label_probabilities,
        schema.CALIBRATED_PROBABILITY: scores.calibrated_probabilities,
    }
    known, documents = {name: by_id for name, by_id in probabilities.items() if by_id}, scores.documents
    header = ("id", *_COUNTS, *tuned, *known, *((schema.DOCUMENT,) if documents else ()))
    rows = []
    for items in zip(*thresholds, strict=True):
        id_, counts = items[0].id, [count for item in items for count in (item.tp, item.fp, item.fn)]
        values = [repr(float(by_id[id_])) for by_id in known.values()]
        rows.append([id_, *counts, *values, *([documents[id_]] if documents else [])])
    return _csv(header, rows)


def texts_csv(records: Sequence[Record]) -> str:
    """The text of each record by its id."""
    return _csv(("id", "text"), ((record.id, record_text(record)) for record in records))


def _csv(header: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(header)).to_csv(index=False, lineterminator="\n")
