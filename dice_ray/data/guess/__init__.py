"""Guesses the format and task of a user's file: tries readers on its first rows and takes the first that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from dice_ray.data.formats.base import UTF_8, lines, unreadable
from dice_ray.data.formats.json_rows import parted
from dice_ray.data.formats.opened import SUFFIXES, binary_format
from dice_ray.data.guess.base import NUM_ROWS, READER, Guess
from dice_ray.data.guess.choose import NOTHING_GIVEN, Given, with_positive
from dice_ray.data.guess.documents import guess_classes, guess_fasttext, guess_mrc_ner, guess_squad, guess_trees
from dice_ray.data.guess.encoding import checked_encoding, guess_encoding
from dice_ray.data.guess.folder import are_classes, is_dataset
from dice_ray.data.guess.hub import guess_folder
from dice_ray.data.guess.spans import guess_spans
from dice_ray.data.guess.tables import guess_columnar, guess_json_lines, guess_table
from dice_ray.data.guess.tagged import guess_conll, guess_conllu, guess_parallel, guess_word_tag
from dice_ray.errors import DataError, InputError, UnknownNameError, one_line, shown

__all__ = ["GUESSERS", "NOTHING_GIVEN", "Given", "Guess", "guess"]

GUESSERS: Final[dict[str, Callable[[Path, str], Guess | str]]] = {
    "squad": guess_squad,
    "mrc_ner": guess_mrc_ner,
    "spans": guess_spans,
    "jsonl": guess_json_lines,
    "trees": guess_trees,
    "fasttext": guess_fasttext,
    "conllu": guess_conllu,
    "conll": guess_conll,
    "parallel": guess_parallel,
    "word_tag": guess_word_tag,
    "tables": guess_table,
}
"""The guesser of each reader, which `--as` names, in the order tried: strict formats first, tables last, as they take
most files.

Each returns a guess, or the reason why its reader does not fit the file.
"""

SUFFIX_READERS: Final = {"csv": "tables", "tsv": "tables", "json": "squad"}
"""The reader that users mean by the end of a file's name, if that is not the reader's own name."""

LAX: Final = ("conll", "parallel", "word_tag", "tables")
"""The readers that may fit a file of another format, in the order of GUESSERS: if several fit, the user is asked."""
COLUMNAR: Final = {"Parquet": "parquet", "Arrow": "arrow"}
"""The reader of each binary format."""
WITH_COLUMNS: Final = {"jsonl": guess_json_lines, "tables": guess_table}
"""The guessers for a file of which the user names columns."""


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
        return guess_folder(path, given)
    if path.is_dir():
        _check_only("folders" if are_classes(path) else "spans", path, given)
        encoding = UTF_8 if given.encoding is None else checked_encoding(given.encoding)
        found = guess_classes(path, encoding) if are_classes(path) else _guess_brat(path, encoding)
        return found if given.positive is None else with_positive(found, given.positive)
    file, key = parted(path)
    if not file.is_file() or (key is not None and binary_format(file)):
        raise DataError(f"there must be a file {path}, and there is none")
    binary = binary_format(file)  # whatever its name
    if binary is not None and binary not in COLUMNAR:
        raise unreadable(path, "the file", "text, Parquet or Arrow", f"a file of {binary}")
    if path.suffix == ".ann":
        # Its rows would pass for a table of types and texts.
        raise DataError(f"{path}: a file of brat is read with the others of its folder, give {path.parent}")
    if binary and given.encoding is not None:
        raise InputError(f"{path}: an encoding must be of a text, and this is a file of {binary}: leave it out")
    if given.encoding is not None:
        encoding, why_encoding = checked_encoding(given.encoding), ""
    else:
        encoding, why_encoding = (UTF_8, "") if binary else guess_encoding(file)
    if not binary and not any(text.strip() for _, text in lines(file, encoding)):
        raise DataError(f"{file}: the file must hold rows, and it is empty")
    guessers = GUESSERS
    if binary:
        _check_only(COLUMNAR[binary], path, given)
        guessers = {binary: partial(guess_columnar, reader=COLUMNAR[binary], given=given)}
    elif key is not None:
        guessers = {"jsonl": partial(guess_json_lines, given=given)}
    elif given.columns:
        guessers = {name: partial(guesser, given=given) for name, guesser in WITH_COLUMNS.items()}
    if given.format is not None and not binary:
        if given.format not in GUESSERS:
            raise UnknownNameError("reader", given.format, GUESSERS)
        guessers = {name: guesser for name, guesser in guessers.items() if name == given.format}
    reasons, fitting = {}, list[Guess]()
    for name, guesser in guessers.items():
        result = guesser(path, encoding)
        if isinstance(result, Guess):
            (reader,) = result.reader
            fitting.append(replace(result, why={f"{READER}.{reader}.encoding": why_encoding} | result.why))
            if reader not in LAX:
                break
        else:
            reasons[name] = result
    if len(fitting) > 1:
        candidates = "".join(f"\n  --as {reader}: {_example(each)}" for each in fitting for reader in each.reader)
        raise DataError(
            f"{path}: several readers fit the file. Name the right one, of which this is a record:{candidates}"
        )
    if fitting:
        return fitting[0] if given.positive is None else with_positive(fitting[0], given.positive)
    # First the reader that the file's name stands for.
    name = path.with_suffix("").name if path.suffix.lower() in SUFFIXES else path.name
    suffix = name.rpartition(".")[2].lower()
    expected = SUFFIX_READERS.get(suffix, suffix)
    ordered = sorted(reasons.items(), key=lambda item: item[0] != expected)
    tried = "".join(f"\n  {name}: {reason}" for name, reason in ordered)
    raise DataError(
        f"{path}: its first {NUM_ROWS:,} rows must fit a reader, and fit none. Tried:{tried}\n"
        "If it is one of these, write the preset by hand: `dice-ray validate NAME` shows an existing one, such as mrpc "
        "for a table, wnut17 for tagged words, squad2 for questions."
    )


def _check_only(reader: str, path: Path, given: Given) -> None:
    if given.format not in (None, reader):
        raise InputError(f"{path}: --as must be {reader}, its only reader, or be left out; got {given.format}")


def _guess_brat(folder: Path, encoding: str) -> Guess:
    if isinstance(found := guess_spans(folder, encoding), str):
        raise DataError(f"{folder}: a folder must hold texts with annotations as brat writes them: {found}")
    return found


def _example(found: Guess) -> str:
    """The first record of a guess, in one line."""
    return shown(one_line(found.records[0]))
