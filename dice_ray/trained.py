"""A trained run as its folder holds it: settings, task, tokenizer and best weights, whatever became of its data."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dice_ray.config.load import as_yaml, read_layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import files, sources
from dice_ray.errors import DataError, RunError
from dice_ray.models import stored
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.models.export import export
from dice_ray.tasks.base import Decisions, Scores, Task
from dice_ray.tasks.predictions import Predictions
from dice_ray.terms import TermFacts
from dice_ray.training import precision
from dice_ray.training.checkpoint import BEST, Checkpoints, sync
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.precision import Numerics
from dice_ray.training.step import TrainingTally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONFIG, TASK, ENCODER = "config.yaml", "task.json", "encoder"
SPLITS = ("dev", "test")
"""What can be scored by its name; any other data is a file."""
COUNTS = ("tp", "fp", "fn")


def store(
    config: RunConfig,
    folder: Path,
    task: Task[Any],
    facts: Sequence[TermFacts],
    model: EncoderWithHeads,
    tokenizer: PreTrainedTokenizerBase,
    digest: str,
) -> None:
    """Write beside the checkpoints all that `load` needs: the folder can then be moved, and the data may go."""
    folder.mkdir(parents=True, exist_ok=True)
    stored.store(model.encoder, tokenizer, folder / ENCODER)
    for file in filter(Path.is_file, (folder / ENCODER).rglob("*")):
        sync(file)
    write_whole(folder / CONFIG, as_yaml(config))
    write_whole(folder / TASK, json.dumps(_task_json(task, facts) | {"data": digest}, ensure_ascii=False, indent=1))


def write_whole(file: Path, text: str) -> None:
    """Write a file over the one that is there, whole or not at all, even after a kill or a power cut."""
    unfinished = file.with_name(f"{file.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    sync(unfinished)
    unfinished.replace(file)


def copy(folder: Path, to: Path) -> None:
    """Copy what `load` needs of a run, and nothing that only training needs."""
    shutil.copytree(folder / ENCODER, to / ENCODER)
    for name in (CONFIG, TASK, BEST):
        shutil.copyfile(folder / name, to / name)


@dataclass(frozen=True)
class Trained:
    """The best checkpoint of a run, ready to predict.

    Attributes:
        digest: Of the data that it was trained on.
        decisions: What dev decided: the tuned threshold.
        step: The optimizer step of the checkpoint.
    """

    config: RunConfig
    task: Task[Any]
    facts: tuple[TermFacts, ...]
    tokenizer: PreTrainedTokenizerBase
    model: EncoderWithHeads
    numerics: Numerics
    digest: str
    decisions: Decisions
    step: int

    def predict(self, file: Path) -> Predictions:
        """What it predicts for the records of a file; their labels, if there are any, are not read."""
        return self.predictions(files.read(self.config.data, file, "ignored")[0])

    def predictions(self, records: Sequence[Any]) -> Predictions:
        """What it predicts for records."""
        split = self.encoded(records)
        return self.task.predict(split.records, split.rows, self._decoded(split), self.decisions)

    def score(self, split: EncodedSplit) -> Scores:
        """The scores on labelled records, under what dev decided."""
        return self.task.score(split.records, split.rows, self._decoded(split), self.decisions)

    def export(self, folder: Path) -> str:
        """Write a plain Hugging Face folder, and the task beside it; returns the auto class that loads it."""
        folder.mkdir(parents=True, exist_ok=True)
        told = _task_json(self.task, self.facts) | {"decisions": self.decisions}
        (folder / TASK).write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")
        return export(self.model, self.tokenizer, self.task.classes, folder)

    def labelled(self, data: str) -> EncodedSplit:
        """The split of this name, read again where the run's settings say, or the labelled records of a file.

        Raises:
            DataError: There is no such split or file, or it holds nothing that can be scored.
        """
        if data not in SPLITS:
            if not Path(data).is_file():
                raise DataError(f"what is scored must be {' or '.join(SPLITS)}, or a file that is there, got {data!r}")
            return self.encoded(self._labelled_file(Path(data)))
        splits = sources.load(self.config.data, self.config.task.positive_label())
        check_digest(self.digest, splits.digest, f"to score {data}, the run")
        records = getattr(splits, data)
        if not records:
            raise DataError(f"the data must have a {data} split to be scored on: it has none")
        return self.encoded(records)

    def _labelled_file(self, file: Path) -> Sequence[Any]:
        try:
            return files.read(self.config.data, file, "read")[0]
        except DataError as error:
            try:
                files.read(self.config.data, file, "ignored")
            except DataError:
                raise error from None
            raise DataError(f"{error}; `dice-ray predict` takes files without labels") from error

    def encoded(self, records: Sequence[Any]) -> EncodedSplit:
        return EncodedSplit(records, self.task.encode(records, self.tokenizer))

    def _decoded(self, split: EncodedSplit) -> list[Any]:
        tally = TrainingTally(self.config.training.tokens)
        return decoded(self.task, self.model, split, self.tokenizer, self.numerics, tally)


def load(folder: Path) -> Trained:
    """The run of a folder.

    Raises:
        RunError: It has not been trained, or lacks what newer runs store.
    """
    best = Checkpoints(folder).best()
    if missing := [name for name in (CONFIG, TASK, ENCODER) if not (folder / name).exists()]:
        raise RunError(
            f"{folder} must hold {CONFIG}, {TASK} and {ENCODER}/ with its checkpoint, and lacks {', '.join(missing)}: "
            "if an older version trained it, `dice-ray train` with its settings and its name adds them"
        )
    config = resolve([read_layer(folder / CONFIG)])
    torch.set_num_threads(config.launch.threads)
    written = json.loads((folder / TASK).read_text(encoding="utf-8"))
    facts = tuple(
        TermFacts(**{**term, "classes": tuple(term["classes"]), "counts": tuple(term["counts"])})
        for term in written["facts"]
    )
    task = config.task.build(tuple(written["classes"]))
    numerics = precision.resolve(config.training.precision)
    encoder, tokenizer = stored.load(folder / ENCODER, numerics.attention)
    numerics = precision.with_fallback(numerics, encoder.config.model_type)
    heads = task.heads(facts, encoder.config.hidden_size, config.model.dropout)
    model = EncoderWithHeads(encoder, heads)
    try:
        model.load_state_dict(best["model"])
    except RuntimeError as error:
        raise RunError(
            f"{folder}/best.pt must fit {TASK} and {ENCODER}/: {str(error).splitlines()[-1].strip()}"
        ) from error
    model = model.to(numerics.device).eval()
    return Trained(config, task, facts, tokenizer, model, numerics, written["data"], best["decisions"], best["step"])


def check_digest(then: str, now: str, who: str) -> None:
    """Whether the data are those that a run was begun on: a new dev split may hold what it was trained on.

    Raises:
        RunError: They were changed.
    """
    if then != now:
        raise RunError(
            f"{who} must have the data that it was begun on, and they were changed (digest {then} then, {now} now): "
            "bring the old data back, choose another name, or name a file to score"
        )


def stored_digest(folder: Path) -> str | None:
    """The digest of the data that the run of a folder was begun on, if it was begun."""
    return json.loads((folder / TASK).read_text(encoding="utf-8"))["data"] if (folder / TASK).exists() else None


def _task_json(task: Task[Any], facts: Sequence[TermFacts]) -> dict[str, Any]:
    return {"classes": task.classes, "facts": [asdict(term) for term in facts]}


def count_files(data: str, scores: Scores) -> dict[str, str]:
    """The counts behind scores as files, by where they lie in the run's folder and among its artifacts.

    `items.csv` has those of each record, also at the tuned threshold if there is one; `classes.csv` of each class.
    """
    folder = data if data in SPLITS else f"files/{Path(data).name}"
    files = {f"{folder}/items.csv": items_csv(scores)}
    if scores.classes:
        rows = [(name, of.tp + of.fn, of.tp, of.fp, of.fn) for name, of in scores.classes.items()]
        files[f"{folder}/classes.csv"] = _csv(("class", "support", *COUNTS), rows)
    return files


def items_csv(scores: Scores) -> str:
    """The counts of each record by its id."""
    readings = [of for of in (scores.items, scores.tuned_items) if of]
    header = ("id", *COUNTS, *(f"tuned_{name}" for name in COUNTS if scores.tuned_items))
    records = zip(*readings, strict=True)
    rows = ((of[0].id, *(count for item in of for count in (item.tp, item.fp, item.fn))) for of in records)
    return _csv(header, rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return written.getvalue()
