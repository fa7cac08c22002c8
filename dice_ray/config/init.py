"""A first preset for a user's own files: guessed from the rows, explained in comments, checked on all rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

from dice_ray.config.load import Layer, resolve, writes
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.data.formats.base import MAX_BAD_SHARE, NOTHING_GIVEN, Given, Guess
from dice_ray.data.formats.candidates import ID_NOTE
from dice_ray.data.formats.encodings import refuse_other_encoding
from dice_ray.data.formats.json_rows import parted
from dice_ray.data.formats.text import BadRowError
from dice_ray.data.guess import guess
from dice_ray.data.imbalance import AsReadConfig
from dice_ray.data.reading import REPEATED_ID, OnBadRow
from dice_ray.data.records import MALFORMED, Record, Splits
from dice_ray.data.task_of import task_of
from dice_ray.errors import DataError, InputError
from dice_ray.settings import Nested
from dice_ray.tasks.inspection import Inspection, inspect

_MIN_STEPS = 200
_MIN_POSITIVES = 400
"""Positives in all epochs: with 52 of them in 1,800 rows, F1 on test was 50 after 4 epochs and 79 after 8."""
_WIDTH = 98
"""Of the comments after `# `, in letters: the preset is printed too, on a screen of 100."""
_HUB = "hub"
"""The source of folders that `datasets` reads."""
_BALANCED = 1.5
"""Up to this ratio between the classes, either way, losses for imbalanced data make little difference."""


@dataclass(frozen=True)
class Starter:
    """A preset for a user's files, as text with comments.

    Attributes:
        why: The reasons for the guesses, by path; also written as comments.
        first: The first records, as the reader returns them.
    """

    text: str
    guess: Guess
    why: dict[str, str]
    first: tuple[Record, ...]
    inspection: Inspection


def start(
    file: Path,
    dev: Path | None = None,
    test: Path | None = None,
    given: Given = NOTHING_GIVEN,
    below: Layer | None = None,
    name: str | None = None,
    on_bad_row: OnBadRow | None = None,
    url: str | None = None,
) -> Starter:
    """Guess how to read the file, beyond what is given, and check the guess on all rows of all files.

    Without a dev file, dev is drawn from the training file. Of a preset `below` all but the files is kept, and its task
    unless the positive label is given. By default the data have the name of the file, and malformed rows, repeated ids
    among them, are skipped if each file has few of them. `url` is the folder that the files were fetched from.

    Raises:
        DataError: A file does not exist, no reader can read the file or one of its rows, or the training split lacks a
            label.
    """
    for other in (dev, test):
        if other is not None and not parted(other)[0].exists():
            raise DataError(f"there must be a file {other}, but it does not exist")
    guessed = guess(file, given)
    if _HUB in guessed.reader and (dev or test):
        raise InputError(f"dev and test must be splits of the folder {file}, got files")
    ((_, reader),) = guessed.reader.items()
    for other in (dev, test):
        if other is not None and not other.is_dir() and given.encoding is None and "encoding" in reader:
            # In cp1252 and its like nearly every file can be read: as wrong letters.
            refuse_other_encoding(parted(other)[0], file, reader["encoding"])
    values = _values(guessed, file, {"dev": dev, "test": test}, url)
    if below is not None:
        values = _with_data(below, values, is_task_given=given.positive is not None)
    uses = [column for kind in reader.get("columns", {}).values() for column in kind.values()]
    are_numbers = any(type(column) is int for column in uses)
    values["data"] |= {
        key: int(name) if are_numbers and name.isdecimal() else name for key, name in given.splits.items()
    }
    name = name or file.name.partition(".")[0]
    guessed_ids = _guessed_ids(values) if given.id is None else {}
    id_ = guessed_ids.get("id")
    config, splits, bad_row = _load(values, name, on_bad_row, guessed_ids)
    # A rare label may occur in later rows than those of the guess.
    is_longer = config.task.classifies_texts and len(splits.train) + len(splits.dev) > len(guessed.records)
    # Not the task of another preset, and not the one that the positive label asks for.
    if is_longer and given.positive is None and values["task"] is guessed.task:
        guessed = _of_all_rows(guessed, splits.train)
        values["task"] = guessed.task
        config = resolve([Layer("init", values)])
    config.task.classes(splits.train)
    inspection = inspect(name, config.task, splits)
    _check_labels(config, splits)
    if below is None:
        values["training"] = _training(len(splits.train), inspection.splits["train"].positives)
    reasons = guessed.why | _more_reasons(splits, bad_row)
    if id_ is not None and "id" not in guessed_ids:
        not_read = f" The column {id_!r} is not read as ids, as some of them repeat; predictions count lines."
        reasons = {path: reason.replace(ID_NOTE, not_read) for path, reason in reasons.items()}
    why = {path: reason for path, reason in reasons.items() if writes(values, path.split("."))}
    imbalance = _imbalance(inspection, config.task.positive_label())
    head = [f"Guessed by `dice-ray init` from {file.name}.", *str(inspection.load).splitlines(), imbalance]
    opening = [line for paragraph in head for line in _comment(paragraph, "")]
    text = "\n".join([*opening, *_lines(values, why, "", 0)]) + "\n"
    return Starter(text, guessed, why, tuple(splits.train[:3]), inspection)


def _of_all_rows(guessed: Guess, records: Sequence[Record]) -> Guess:
    """The guess with the task of all records of the training split."""
    why = {path: reason for path, reason in guessed.why.items() if path.partition(".")[0] != "task"}
    found = task_of(records)
    return guessed if isinstance(found, str) else replace(guessed, task=found[0], why=found[1] | why)


def _guessed_ids(values: Nested) -> Nested:
    """The settings of the columns of texts or pairs in a preset, if a column of ids is one of them; else none."""
    (source,) = values["data"]["source"].values()
    (reader,) = source.get("reader", {_HUB: source}).values()
    columns = reader.get("columns", {})
    return next((columns[kind] for kind in ("text", "pair") if "id" in columns.get(kind, {})), {})


def _load(values: Nested, name: str, on_bad_row: OnBadRow | None, guessed_ids: Nested) -> tuple[RunConfig, Splits, str]:
    """The configuration and the data, with malformed rows skipped if there are few, and the first malformed row.

    A guessed column of ids that repeat is deleted from `guessed_ids`, a part of `values`: no row is lost to a guess.
    """
    (files,) = values["data"]["source"].values()
    files |= {} if on_bad_row is None else {"on_bad_row": on_bad_row}

    def load() -> tuple[RunConfig, Splits]:
        config = resolve([Layer("init", values)])
        return config, sources.load(config.data.model_copy(update={"imbalance": AsReadConfig()}), name=name)

    first: BadRowError | None = None
    try:
        config, splits = load()
    except BadRowError as error:
        if on_bad_row == "error" and not ("id" in guessed_ids and REPEATED_ID in str(error)):
            raise
        first = error
        files["on_bad_row"] = "skip"
        config, splits = load()
    if "id" in guessed_ids and any(f"{MALFORMED}{REPEATED_ID}" in read.dropped for read in splits.report.read.values()):
        del guessed_ids["id"], files["on_bad_row"]
        return _load(values, name, on_bad_row, guessed_ids)
    for read in splits.report.read.values() if first else ():
        if read.num_malformed > MAX_BAD_SHARE * read.rows:
            raise BadRowError(
                f"{first}. {read.num_malformed} of {read.rows} rows of {read.origin} are malformed or have an id "
                "of an earlier row: correct them, or skip them by --on-bad-row skip"
            )
    return config, splits, str(first or "")


def target(name: str, out: Path | None, overwrite: bool) -> Path:
    """The path of the preset for a file of this name.

    Raises:
        InputError: It is not a YAML file in an existing folder, or it exists and is not to be overwritten.
    """
    out = out or Path(f"{name.partition('.')[0]}.yaml")
    if out.suffix not in (".yaml", ".yml") or not out.absolute().parent.is_dir():
        raise InputError(f"a preset must be a .yaml file in a folder that exists, got {out}")
    if out.exists() and not overwrite:
        raise InputError(f"{out} must not exist yet: choose another --out, or --overwrite it")
    return out


def _values(guessed: Guess, file: Path, others: Mapping[str, Path | None], url: str | None) -> Nested:
    if _HUB in guessed.reader:
        return {"task": guessed.task, "data": {"source": guessed.reader}, "model": {"encoder": "tiny"}}
    folder = file.resolve().parent
    files: Nested = {"folder": (url or str(folder)).replace("$", "$$"), "train": file.name}
    files |= {split: f"{file.name}#{key}" for split, key in guessed.lists.items()}
    for split, other in others.items():
        if other is not None:
            files[split] = other.name if url else os.path.relpath(other.resolve(), folder)
    files["reader"] = guessed.reader
    return {"task": guessed.task, "data": {"source": {"files": files}}, "model": {"encoder": "tiny"}}


def _with_data(below: Layer, values: Nested, *, is_task_given: bool) -> Nested:
    """A preset with other files; the name of its own data, and whether they are published, is left out."""
    data, tracking = below.values.get("data"), below.values.get("tracking")
    kept: Nested = {name: value for name, value in below.values.items() if name != "tracking"}
    if isinstance(tracking, Mapping) and "text" in tracking:
        kept["tracking"] = {"text": tracking["text"]}
    if is_task_given or "task" not in kept:
        kept["task"] = values["task"]
    others = {key: value for key, value in data.items() if key != "source"} if isinstance(data, Mapping) else {}
    return {**kept, "data": {**values["data"], **others}}


def _training(num_records: int, num_positives: int) -> Nested:
    """Enough steps for the tiny encoder to learn something even from few records, or few positives."""
    batch_size = min(32, num_records)
    by_steps, by_positives = -(-_MIN_STEPS * batch_size // num_records), -(-_MIN_POSITIVES // max(num_positives, 1))
    epochs = min(max(by_steps, by_positives, 3), 20)
    return {"epochs": epochs, "batch_size": batch_size, "lr": 2e-3 if by_positives > max(by_steps, 3) else 1e-3}


def _more_reasons(splits: Splits, bad_row: str) -> dict[str, str]:
    drawn = splits.report.drawn.get("dev")
    why = {
        "data": f"Add `dev: FILE` beside `train` for a dev split of your own: dev is {drawn}." if drawn else "",
        "model": "Small, with random weights, to check that everything runs. For meaningful scores write "
        "`encoder: minilm` (English) with lr 1e-4, a model of the Hugging Face hub or a folder of weights with 3e-5.",
    }
    if not splits.test:
        who = "the latest fifth is the" if drawn and "latest" in drawn else "each of its seeds draws its own"
        why["data"] += (
            f" A study needs `test: FILE`, or `test_share: 0.2` beside `source`, with which {who} test split."
        )
    if bad_row:
        num = sum(read.num_malformed for read in splits.report.read.values())
        reason = f"Malformed rows are skipped and counted: {num}, the first one at {bad_row}."
        why |= {f"data.source.{source}.on_bad_row": reason for source in ("files", _HUB)}
    return {path: reason.strip() for path, reason in why.items() if reason}


def _check_labels(config: RunConfig, splits: Splits) -> None:
    """Raise DataError for labels of dev or test that train lacks: they could not be encoded."""
    if not config.task.classifies_texts:
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
                f"every label of {split} must occur in the training split, which has {', '.join(sorted(known)[:20])}; "
                f"got {unknown[0]!r}{drawn if is_drawn else ''}"
            )


def _imbalance(inspection: Inspection, positive: str | None) -> str:
    train = inspection.splits["train"]
    if train.ratio is None:
        return f"Imbalance: {train.negatives:,} negatives and no positives."
    counts = f"{train.negatives:,} negatives to {train.positives:,} positives, {train.ratio:,.2f} to 1"
    verdict = inspection.convention if positive is None else f"{positive!r} is positive"
    if 1 / _BALANCED <= train.ratio <= _BALANCED:
        verdict = "nearly balanced: losses for imbalanced data make little difference"
    return f"Imbalance: {counts} ({verdict.rstrip('.')})."


def _lines(values: Nested, why: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    """The values as lines of YAML, each after the comment for its path."""
    indent = "  " * depth
    for key, value in values.items():
        below = f"{path}.{key}" if path else key
        if below in why:
            yield from _comment(why[below], indent)
        if isinstance(value, dict) and value:
            yield f"{indent}{_key(key)}:"
            yield from _lines(value, why, below, depth + 1)
        else:
            yield f"{indent}{_key(key)}: {_scalar(value)}"


def _comment(reason: str, indent: str) -> Iterator[str]:
    words = "".join(letter if letter.isprintable() else " " for letter in reason).split()
    # Words are kept whole: a path or a column name that is cut in two could not be copied.
    lines = wrap(" ".join(words), _WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    yield from (f"{indent}# {line}" for line in lines or [""])


def _key(key: str) -> str:
    """A key as YAML, which takes `no` for a truth value: keys may be names of classes."""
    is_plain = key.isidentifier() and key.lower() not in ("yes", "no", "on", "off", "true", "false", "null")
    return key if is_plain else _scalar(key)


def _scalar(value: Any) -> str:
    """A value as YAML: JSON, with characters that YAML does not print as escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08X}" for letter in text)
