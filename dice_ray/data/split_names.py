"""The names that stand for splits, of files, folders, lists in a document and values in a column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

NAMES: Final = {"train": "train|training", "dev": "dev|devel|development|val|valid|validation", "test": "test|testing"}


def split_of(name: str) -> str | None:
    """The split that a name stands for, such as `x-valid.txt` or `TestSet.txt`."""
    name = name.lower()
    return next(
        (split for split, names in NAMES.items() if re.search(rf"(^|[^a-z])({names})(set)?([^a-z]|$)", name)), None
    )


def lists_of_splits(keys: Sequence[str]) -> dict[str, str]:
    """The list of each split among the lists of a document; empty without one for training. No part of a key counts.

    >>> lists_of_splits(["oos_train", "train", "val"]), lists_of_splits(["rows", "more"])
    ({'train': 'train', 'dev': 'val'}, {})
    """
    found = {split: key for split, names in NAMES.items() for key in reversed(keys) if re.fullmatch(names, key.lower())}
    return found if "train" in found else {}
