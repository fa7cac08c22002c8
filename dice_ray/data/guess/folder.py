"""The files of the splits in a folder, by their names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dice_ray.errors import DataError

NAMES: Final = {"train": "train|training", "dev": "dev|devel|val|valid|validation", "test": "test|testing"}
NO_DATA: Final = frozenset([".md", ".yaml", ".yml", ".py", ".html", ".ann", ".license"])
"""The ends of names of files that accompany data."""


def files_of_splits(folder: Path) -> dict[str, Path]:
    """The file of each split that has one, such as `train.tsv`, `cased-valid.txt`; or the only file, for training.

    Raises:
        DataError: No file is named as the training split and there are several, or several are named as one split.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    files = [
        path for path in files if path.suffix.lower() not in NO_DATA and not path.name.lower().startswith("readme")
    ]
    found = dict[str, Path]()
    for split, names in NAMES.items():
        named = [path for path in files if re.search(rf"(^|[^a-z])({names})([^a-z]|$)", path.name.lower())]
        if len(named) > 1:
            several = ", ".join(path.name for path in named[:5])
            raise DataError(f"{folder}: one file must be named {split}, got {several}: give the file, --dev and --test")
        if named:
            found[split] = named[0]
    if not found and len(files) == 1:
        found = {"train": files[0]}
    if "train" not in found:
        names = ", ".join(path.name for path in files[:10]) or "none"
        raise DataError(f"{folder}: a file must be named train, and the files are {names}: give one of them")
    return found
