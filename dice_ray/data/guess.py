"""Guesses the format and task of a user's file: tries formats on its first rows and takes the first that fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dice_ray.data.folders import are_classes, is_dataset
from dice_ray.data.formats import FORMATS
from dice_ray.data.formats.base import NOTHING_GIVEN, NUM_ROWS, READER, Attempt, Given, Guess, Sample
from dice_ray.data.formats.encodings import guess_encoding
from dice_ray.data.formats.json_rows import parted
from dice_ray.data.formats.rows import guess_named_rows
from dice_ray.data.formats.text import SUFFIXES, UTF_8, binary_format, known_encoding, lines, unreadable
from dice_ray.data.hub import HubConfig, local_splits
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.data.split_names import NAMES, split_of
from dice_ray.errors import DataError, InputError, UnknownNameError, one_line, shown
from dice_ray.settings import Nested


def guess(path: Path, given: Given = NOTHING_GIVEN) -> Guess:
    """Guess the reader and the task of a file.

    Args:
        path: The file, or a folder that is read whole; `data.json#train` is one list of a JSON document.
        given: What is not to be guessed.

    Raises:
        DataError: The file does not exist or is empty, or no reader fits; the error gives the reason for each.
        InputError: There is no such encoding, a positive label is given for another task, or another reader than the
            only one that reads such a path.
        UnknownNameError: The file has no such column or label.
    """
    if path.is_dir() and is_dataset(path):
        _check_only("hub", path, given)
        found = _guess_dataset(path, given)
    else:
        found = _guess_format(path, given)
    return found if given.positive is None else _with_positive(found, given.positive)


def _guess_format(path: Path, given: Given) -> Guess:
    kind = _kind(path)
    encoding, why_encoding = _encoding(path, kind, given)
    formats = {reader.name: reader for reader in FORMATS if kind in reader.reads}
    if given.format is not None and kind == "text":
        if given.format not in formats:
            raise UnknownNameError("reader", given.format, formats)
        formats = {given.format: formats[given.format]}
    elif kind != "text":
        (only,) = formats
        _check_only(only, path, given)
    if kind == "text" and given.columns:
        formats = {name: reader for name, reader in formats.items() if "columns" in reader.model_fields}
    sample = Sample(path, encoding, given)
    reasons, fitting = dict[str, str](), dict[str, Guess]()
    for name, reader in formats.items():
        result = reader.fits(sample)
        if isinstance(result, str):
            reasons[name] = result
            continue
        fitting[name] = replace(result, why={f"{READER}.{name}.encoding": why_encoding} | result.why)
        if not reader.is_lax:
            break
    if len(fitting) > 1:
        candidates = "".join(f"\n  --as {name}: {shown(one_line(found.records[0]))}" for name, found in fitting.items())
        raise DataError(
            f"{path}: several readers fit the file. Name the right one, of which this is a record:{candidates}"
        )
    if fitting:
        return next(iter(fitting.values()))
    if path.is_dir():
        what = "a text for each class" if kind == "classes" else "texts with annotations as brat writes them"
        raise DataError(f"{path}: a folder must hold {what}: {', '.join(reasons.values())}")
    if len(reasons) == 1:
        ((name, reason),) = reasons.items()
        raise DataError(f"{path}: its first {NUM_ROWS:,} rows must fit the reader {name}: {reason}")
    # First the reader that the file's name stands for.
    name = path.with_suffix("").name if path.suffix.lower() in SUFFIXES else path.name
    suffix = name.rpartition(".")[2].lower()
    expected = {"csv": "tables", "tsv": "tables", "json": "squad"}.get(suffix, suffix)
    ordered = sorted(reasons.items(), key=lambda item: item[0] != expected)
    tried = "".join(f"\n  {name}: {reason}" for name, reason in ordered)
    if sample.first_line.startswith("#"):
        raise DataError(
            f"{path}: no reader of tables or rows skips lines of comments, and the first line begins with #: remove "
            f"these lines (`grep -v '^#' {path} > NEW_FILE`) if they are comments. Tried:{tried}"
        )
    raise DataError(
        f"{path}: its first {NUM_ROWS:,} rows must fit a reader, and fit none. Tried:{tried}\n"
        "If it is one of these, write the preset by hand: `dice-ray validate NAME` shows an existing one, such as mrpc "
        "for a table, wnut17 for tagged words, squad2 for questions."
    )


def _kind(path: Path) -> str:
    """What lies at a path, as `ReaderBranch.reads` names it."""
    if path.is_dir():
        return "classes" if are_classes(path) else "brat"
    file, key = parted(path)
    if not file.is_file() or (key is not None and binary_format(file)):
        raise DataError(f"there must be a file {path}, and there is none")
    binary = binary_format(file)  # whatever its name
    if binary not in ("Parquet", "Arrow", None):
        raise unreadable(path, "the file", "text, Parquet or Arrow", f"a file of {binary}")
    if path.suffix == ".ann":
        # Its rows would pass for a table of types and texts.
        raise DataError(f"{path}: a file of brat is read with the others of its folder, give {path.parent}")
    return binary or ("text" if key is None else "list")


def _encoding(path: Path, kind: str, given: Given) -> tuple[str, str]:
    """The encoding of a text, and why it is this one."""
    file, _ = parted(path)
    if given.encoding is not None:
        if kind in ("Parquet", "Arrow"):
            raise InputError(f"{path}: an encoding must be of a text, and this is a file of {kind}: leave it out")
        try:
            encoding, why = known_encoding(given.encoding), ""
        except ValueError as error:
            raise InputError(f"the encoding {error}, got {given.encoding!r}") from None
    elif kind in ("text", "list"):
        encoding, why = guess_encoding(file)
    else:
        encoding, why = UTF_8, ""
    if kind in ("text", "list") and not any(text.strip() for _, text in lines(file, encoding)):
        raise DataError(f"{file}: the file must hold rows, and it is empty")
    return encoding, why


def _check_only(reader: str, path: Path, given: Given) -> None:
    if given.format not in (None, reader):
        raise InputError(f"{path}: --as must be {reader}, its only reader, or be left out; got {given.format}")


def _with_positive(found: Guess, positive: str) -> Guess:
    """The guess with the positive label that the user names; its records must have one label each."""
    (task, settings), *_ = found.task.items()
    labels = {
        label for record in found.records if isinstance(record, PairRecord | TextRecord) for label in record.labels
    }
    if not labels or settings.get("labels") == "several":
        raise InputError(f"a positive label must be for texts or pairs with one label each, and the task is {task}")
    if positive not in labels:
        raise UnknownNameError("label", positive, labels)
    why = {path: reason for path, reason in found.why.items() if path != f"task.{task}.positive"}
    return replace(found, task={task: settings | {"positive": positive}}, why=why)


def _guess_dataset(folder: Path, given: Given) -> Guess:
    """The splits and the columns of a folder that `datasets` reads: saved by `save_to_disk`, or of Parquet files."""
    loaded = local_splits(folder.resolve())
    names = {split: _split_named(split, list(loaded), folder) for split in NAMES}
    train = names["train"] or (next(iter(loaded)) if len(loaded) == 1 else None)
    if train is None:
        raise DataError(f"{folder}: a split must be named train, and the splits are {', '.join(loaded)}")
    settings: Nested = {"id": str(folder.resolve()).replace("$", "$$")} | ({} if train == "train" else {"train": train})
    settings |= {split: name for split, name in names.items() if split != "train" and name is not None}

    def read(columns: Nested) -> Attempt:
        source = settings | {"columns": columns}
        return Attempt.on(folder, {"hub": source}, HubConfig.model_validate(source).read()["train"].rows())

    rows = loaded[train].select(range(min(NUM_ROWS, len(loaded[train])))).to_list()
    found = guess_named_rows(read, "data.source.hub.columns", rows, given)
    if isinstance(found, str):
        raise DataError(f"{folder}: columns must hold what a task reads: {found}")
    return found


def _split_named(split: str, names: Sequence[str], folder: Path) -> str | None:
    """The split of a data set that is named exactly so, else the only one with a name for it."""
    exact = [name for name in names if re.fullmatch(NAMES[split], name.lower())]
    named = exact or [name for name in names if split_of(name) == split]
    if len(named) > 1:
        raise DataError(
            f"{folder}: one split must be named {split}, got {', '.join(named)}: save the ones that you want as a data "
            f"set of their own, or write a preset with `data.source.hub.{split}`"
        )
    return named[0] if named else None
