"""The files of the splits in a folder, by their names, and folders read whole: of brat, classes and `datasets`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dice_ray.data.formats.texts import NO_CLASS, classes_in
from dice_ray.data.hub import is_saved
from dice_ray.data.split_names import NAMES, split_of
from dice_ray.errors import DataError

_LABELS_BESIDE: Final = {"_text.": "_labels.", "seq.in": "seq.out"}
"""The name of a file of texts, and that of the file with their labels or tags."""
_BESIDE: Final = re.compile("(texts?|tags?|labels?|ann|annotations?)", re.IGNORECASE)
"""Names of folders for the texts, and for what is said of them."""
_NO_DATA: Final = frozenset([".md", ".yaml", ".yml", ".py", ".html", ".ann", ".conf", ".license"])
"""The ends of names of files that accompany data."""


def files_of_splits(folder: Path) -> dict[str, Path]:
    """The file or folder of each split that has one, such as `train.tsv`, `x-valid.txt`, `TestSet.txt`, `test/a.txt`.

    It may be a folder of brat's files, or one with a folder for each class; and the only file is for training. A folder
    that `datasets` reads stands for all splits in it.

    Raises:
        DataError: No file is named as the training split and there are several, or several are named as one split.
    """
    if _is_brat(folder) or is_dataset(folder) or are_classes(folder):
        return {"train": folder}
    found = dict[str, Path]()
    files = _data_files(folder)
    subfolders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    for split in NAMES:
        named = [path for path in files if split_of(path.name) == split]
        if not named:
            named = [inner for path in subfolders if split_of(path.name) == split for inner in _of_subfolder(path)]
        beside = {
            path.name.replace(text, label)
            for path in named
            for text, label in _LABELS_BESIDE.items()
            if text in path.name
        }
        named = [path for path in named if path.name not in beside]
        if len(named) > 1:
            several = ", ".join(path.name for path in named[:5])
            raise DataError(f"{folder}: one file must be named {split}, got {several}: give the file, --dev and --test")
        if named:
            found[split] = named[0]
    if not found and len(files) == 1:
        found = {"train": files[0]}
    if "train" not in found:
        names = ", ".join(path.name for path in (*files, *subfolders)[:10]) or "none"
        raise DataError(f"{folder}: a file must be named train, and the files are {names}: give one of them")
    return found


def _is_brat(folder: Path) -> bool:
    return any(folder.glob("*.ann"))


def are_classes(folder: Path) -> bool:
    """Whether a folder holds a folder of texts for each class: not for each split, nor of texts and of their labels."""
    names = [name for name in classes_in(folder) if name != NO_CLASS]
    return len(names) > 1 and not any(split_of(name) or _BESIDE.fullmatch(name) for name in names)


def is_dataset(folder: Path) -> bool:
    """Whether `datasets` reads a folder: it was saved by it, or holds several Parquet files."""
    splits = [split_of(path.name) for path in folder.rglob("*.parquet")]
    is_in_parts = len(splits) > len(set(splits)) or (len(splits) > 1 and None in splits)
    return is_saved(folder) or is_in_parts


def _data_files(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return [
        path for path in files if path.suffix.lower() not in _NO_DATA and not path.name.lower().startswith("readme")
    ]


def _of_subfolder(folder: Path) -> list[Path]:
    """The folder itself if it is one of brat's or of classes, else its files."""
    return [folder] if _is_brat(folder) or are_classes(folder) else _data_files(folder)
