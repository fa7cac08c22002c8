"""A first preset for a user's own files: what was guessed of them, the reasons as comments, checked on all rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.data.guess import Guess, guess
from dice_ray.data.records import Record, Splits
from dice_ray.errors import DataError, InputError
from dice_ray.settings import Nested
from dice_ray.tasks.inspection import Inspection, inspect

BATCH_SIZE = 32
LEAST_STEPS = 200
MOST_EPOCHS = 20
NUM_SHOWN = 3
BALANCED = 1.5
"""Up to so many negatives for each positive, and as many the other way, losses for imbalance have little to do."""


@dataclass(frozen=True)
class Starter:
    """A preset for a user's files.

    Attributes:
        text: The preset, with comments.
        why: What was guessed and why, by path; the comments say the same.
        first: The first records, as the reader gives them.
        imbalance: What the training split's imbalance is, in words.
    """

    text: str
    guess: Guess
    why: dict[str, str]
    first: tuple[Record, ...]
    imbalance: str
    inspection: Inspection


def start(file: Path, dev: Path | None = None, test: Path | None = None) -> Starter:
    """Guess how the file is read, and read all rows of all files so.

    Raises:
        DataError: No reader takes the file, or a row of a file, or a label that the training split does not have.
    """
    for other in (dev, test):
        if other is not None and not other.is_file():
            raise DataError(f"there must be a file {other}, and there is none")
    found = guess(file)
    values = _values(found, file, {"dev": dev, "test": test})
    config = resolve([Layer("init", values)])
    splits = sources.load(config.data)
    config.task.classes(splits.train)
    inspection = inspect(file.name.partition(".")[0], config.task, splits)
    _check_labels(config, splits)
    values["training"] = _training(len(splits.train))
    why = {path: reason for path, reason in (found.why | _more_reasons(found, splits)).items() if _at(values, path)}
    imbalance = _imbalance(inspection)
    head = [f"Guessed by `dice-ray init` from {file.name}.", imbalance, *str(splits.report).splitlines()]
    opening = [line for paragraph in head for line in _comment(paragraph, "")]
    text = "\n".join([*opening, *_lines(values, why, "", 0)]) + "\n"
    return Starter(text, found, why, tuple(splits.train[:NUM_SHOWN]), imbalance, inspection)


def target(file: Path, out: Path | None, overwrite: bool) -> Path:
    """Where the preset of a file is written; a preset that is there stays, unless it is to be overwritten."""
    out = out or Path(f"{file.name.partition('.')[0]}.yaml")
    if out.suffix not in (".yaml", ".yml") or not out.absolute().parent.is_dir():
        raise InputError(f"a preset must be a .yaml file in a folder that is there, got {out}")
    if out.exists() and not overwrite:
        raise InputError(f"{out} must not be there yet: choose another --out, or --overwrite it")
    return out


def _values(found: Guess, file: Path, others: Mapping[str, Path | None]) -> Nested:
    folder = file.resolve().parent
    files: Nested = {"folder": str(folder).replace("$", "$$"), "train": file.name}
    for split, other in others.items():
        if other is not None:
            files[split] = os.path.relpath(other.resolve(), folder)
    files["reader"] = found.reader
    if found.bad:
        files["on_bad_row"] = "skip"
    return {
        "task": found.task,
        "data": {"source": {"files": files}},
        "model": {"encoder": "tiny"},
    }


def _training(num_records: int) -> Nested:
    """Enough steps for the tiny encoder to learn something from few records."""
    batch_size = min(BATCH_SIZE, num_records)
    epochs = -(-LEAST_STEPS * batch_size // num_records)
    return {"epochs": min(max(epochs, 3), MOST_EPOCHS), "batch_size": batch_size, "lr": 1e-3}


def _more_reasons(found: Guess, splits: Splits) -> dict[str, str]:
    drawn = splits.report.drawn.get("dev")
    why = {
        "data": f"`dev: FILE` beside `train` for one of your own: dev is {drawn}." if drawn else "",
        "model": "Small, with random weights: to see that all runs. `encoder: bert-base-uncased` or a folder of "
        "weights, with lr 3e-5, for figures that mean something.",
    }
    if not splits.test:
        why["data"] += (
            " A study needs `test: FILE`, or `test_share: 0.2` beside `source`: each of its seeds then draws a test "
            "split of its own."
        )
    if found.bad:
        num, (first, *_) = len(found.bad), found.bad
        why["data.source.files.on_bad_row"] = (
            f"Malformed rows are counted and left out, {num} of the first ones; the first of them at "
            f"{f'line {first.place}' if isinstance(first.place, int) else first.place}: expected {first.expected}, "
            f"found {first.actual}."
        )
    return {path: reason.strip() for path, reason in why.items() if reason}


def _check_labels(config: RunConfig, splits: Splits) -> None:
    """A label of dev or test that train does not have could not be encoded."""
    if config.task.name not in ("sentence_pair", "text_classification"):
        return
    known = config.task.label_counts(splits.train)
    for split, records in (("dev", splits.dev), ("test", splits.test)):
        if unknown := [label for label in config.task.label_counts(records) if label not in known]:
            is_drawn = split in splits.report.drawn
            drawn = (
                " (dev was drawn from train: give a dev file of your own, or write the preset by hand with another "
                "data.split_seed or data.dev_share)"
            )
            raise DataError(
                f"every label of {split} must stand in the training split, which has {', '.join(sorted(known)[:20])}; "
                f"got {unknown[0]!r}{drawn if is_drawn else ''}"
            )


def _imbalance(inspection: Inspection) -> str:
    train = inspection.splits["train"]
    if train.ratio is None:
        return f"Imbalance: {train.negatives:,} negatives and no positive."
    counts = f"{train.negatives:,} negatives to {train.positives:,} positives, {train.ratio:,.2f} to 1"
    balanced = 1 / BALANCED <= train.ratio <= BALANCED
    verdict = "nearly balanced: losses for imbalance have little to do here" if balanced else inspection.convention
    return f"Imbalance: {counts} ({verdict.rstrip('.')})."


def _at(values: Any, path: str) -> bool:
    """Whether the preset writes this path."""
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _lines(values: Nested, why: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    """The values as YAML, each behind the comment of its path."""
    indent = "  " * depth
    for key, value in values.items():
        here = f"{path}.{key}" if path else key
        if here in why:
            yield from _comment(why[here], indent)
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            yield from _lines(value, why, here, depth + 1)
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def _comment(reason: str, indent: str, width: int = 110) -> Iterator[str]:
    line = ""
    for word in "".join(letter if letter.isprintable() else " " for letter in reason).split():
        if line and len(indent) + len(line) + len(word) > width:
            yield f"{indent}# {line}"
            line = ""
        line = f"{line} {word}" if line else word
    yield f"{indent}# {line}"


def _scalar(value: Any) -> str:
    """A value as YAML takes it: JSON, a letter that YAML does not print as its number."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08X}" for letter in text)
