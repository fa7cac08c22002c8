"""A task's rows of a data set, encoded once for a tokenizer and kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowTable, ArrowWriter, Rows, batch_of_rows
from dice_ray.data.reading import chunked
from dice_ray.data.records import Splits
from dice_ray.models.encoder import ModelConfig, load_tokenizer, tiny_tokenizer, tokenizer_json
from dice_ray.settings import nested
from dice_ray.tasks.base import Row, Task, TaskBranch
from dice_ray.terms import TermFacts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Encoding:
    """A data set as a task and a tokenizer see it.

    Attributes:
        key: All that its rows depend on.
        about: What data, task and encoder are called.
    """

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    facts: tuple[TermFacts, ...]
    train: Sequence[Row]
    dev: Sequence[Row]
    key: dict[str, Any]
    about: dict[str, str]

    def test(self, records: Sequence[Any]) -> Sequence[Row]:
        """The rows of the test split, encoded when they are asked for first."""

        def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
            return {"test": write_rows(self.task, self.tokenizer, records, folder / "test.arrow")}, {}

        return Rows(cache.get_or_write("rows", {**self.key, "split": "test"}, self.about, write).tables["test"])


def encode(config: TaskBranch, model: ModelConfig, splits: Splits, data: str) -> Encoding:
    """The rows of the training and the dev split, from the cache where they were encoded before."""
    own = None if model.encoder == "tiny" else load_tokenizer(model, ())
    key = {
        "digest": splits.digest,
        "task": {config.name: nested(config)},
        "tokenizer": "tiny" if own is None else _tokenizer_key(own),
        "tokenizers": version("tokenizers"),
    }
    about = {"data": data, "task": config.name, "encoder": model.encoder}
    entry = cache.get_or_write("rows", key, about, partial(_write, config, model, own, splits))
    return Encoding(
        config.build(tuple(entry.holds["classes"])),
        own or tiny_tokenizer(entry.holds["tokenizer"]),
        tuple(_facts(told) for told in entry.holds["facts"]),
        Rows(entry.tables["train"]),
        Rows(entry.tables["dev"]),
        key,
        about,
    )


def write_rows(task: Task[Any], tokenizer: PreTrainedTokenizerBase, records: Iterable[Any], path: Path) -> int:
    """Encode records into an Arrow file, a chunk at a time; returns how many rows they gave."""
    first = num_rows = 0
    with ArrowWriter(path) as file:
        for chunk in chunked(records):
            rows = task.encode(chunk, tokenizer)
            for row in rows:
                row["record"] += first
            if rows:
                file.write(batch_of_rows(rows))
            first += len(chunk)
            num_rows += len(rows)
    return num_rows


def _write(
    config: TaskBranch, model: ModelConfig, own: PreTrainedTokenizerBase | None, splits: Splits, folder: Path
) -> tuple[dict[str, int], dict[str, Any]]:
    classes = config.classes(splits.train)
    task = config.build(classes)
    texts = (text for chunk in chunked(splits.train) for text in task.texts(chunk))
    tokenizer = own or load_tokenizer(model, texts)
    rows = {
        split: write_rows(task, tokenizer, records, folder / f"{split}.arrow")
        for split, records in (("train", splits.train), ("dev", splits.dev))
    }
    facts = task.facts(Rows(ArrowTable(folder / "train.arrow")))
    holds = {"classes": classes, "facts": [asdict(term) for term in facts]}
    return rows, {**holds, "tokenizer": None if own else tokenizer_json(tokenizer)}


def _tokenizer_key(tokenizer: PreTrainedTokenizerBase) -> list[Any]:
    content = hashlib.sha256(tokenizer_json(tokenizer).encode()).hexdigest()
    return [content, list(tokenizer.model_input_names), tokenizer.truncation_side]


def _facts(told: dict[str, Any]) -> TermFacts:
    return TermFacts(**{**told, "classes": tuple(told["classes"]), "counts": tuple(told["counts"])})
