"""The rows of a data set for a task and a tokenizer, encoded once and cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowTable, ArrowWriter, Rows, batch_of_rows
from dice_ray.data.reading import chunked
from dice_ray.data.records import Splits
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.models.tiny import TINY, tiny_tokenizer, tokenizer_json
from dice_ray.tasks.base import Row, Task, TaskBranch
from dice_ray.terms import TermFacts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Encoding:
    """A data set as a task and a tokenizer see it.

    Attributes:
        key: The cache key: everything that the rows depend on.
        about: The names of data, task and encoder, to list the cache by.
    """

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    facts: tuple[TermFacts, ...]
    train: Sequence[Row]
    dev: Sequence[Row]
    key: dict[str, Any]
    about: dict[str, str]

    def test(self, records: Sequence[Any]) -> Sequence[Row]:
        """The rows of the test split, encoded on first use."""

        def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
            return {"test": _write_rows(self.task, self.tokenizer, records, folder / "test.arrow")}, {}

        return Rows(cache.get_or_write("rows", {**self.key, "split": "test"}, self.about, write).tables["test"])


def encode(config: TaskBranch, model: ModelConfig, splits: Splits, data: str) -> Encoding:
    """The rows of the training and dev splits, from the cache if they are in it."""
    pretrained = None if model.encoder == TINY else load_tokenizer(model, ())
    key = {
        "digest": splits.digest,
        "task": {config.name: config.row_settings()},
        "tokenizer": TINY
        if pretrained is None
        else [
            hashlib.sha256(tokenizer_json(pretrained).encode()).hexdigest(),
            list(pretrained.model_input_names),
            pretrained.truncation_side,
        ],
        "tokenizers": version("tokenizers"),
        "facts": 2,  # raised when the stored facts of terms change, so that rows are encoded again
    }
    about = {"data": data, "task": config.name, "encoder": model.encoder}
    entry = cache.get_or_write("rows", key, about, partial(_write, config, model, pretrained, splits))
    return Encoding(
        config.build(tuple(entry.holds["classes"])),
        pretrained or tiny_tokenizer(entry.holds["tokenizer"]),
        TypeAdapter(tuple[TermFacts, ...]).validate_python(entry.holds["facts"]),
        Rows(entry.tables["train"]),
        Rows(entry.tables["dev"]),
        key,
        about,
    )


def _write_rows(task: Task[Any], tokenizer: PreTrainedTokenizerBase, records: Iterable[Any], path: Path) -> int:
    """Encode records into an Arrow file, a chunk at a time; returns the number of rows."""
    first = num_rows = 0
    with ArrowWriter(path) as file:
        for chunk in chunked(records):
            task.check_labels(chunk)
            rows = task.encode(chunk, tokenizer)
            for row in rows:
                row["record"] += first
            if rows:
                file.write(batch_of_rows(rows))
            first += len(chunk)
            num_rows += len(rows)
    return num_rows


def _write(
    config: TaskBranch, model: ModelConfig, pretrained: PreTrainedTokenizerBase | None, splits: Splits, folder: Path
) -> tuple[dict[str, int], dict[str, Any]]:
    classes = config.classes(splits.train)
    task = config.build(classes)
    texts = (text for chunk in chunked(splits.train) for text in task.texts(chunk))
    tokenizer = pretrained or load_tokenizer(model, texts)
    rows = {
        split: _write_rows(task, tokenizer, records, folder / f"{split}.arrow")
        for split, records in (("train", splits.train), ("dev", splits.dev))
    }
    facts = task.facts(Rows(ArrowTable(folder / "train.arrow")))
    holds = {"classes": classes, "facts": [asdict(term) for term in facts]}
    return rows, {**holds, "tokenizer": None if pretrained else tokenizer_json(tokenizer)}
