"""Guesses for folders that `datasets` reads: saved by `save_to_disk`, or of Parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dice_ray.data.guess.base import NUM_ROWS, Attempt, Guess, attempt_rows
from dice_ray.data.guess.choose import Given
from dice_ray.data.guess.folder import NAMES, split_of
from dice_ray.data.guess.tables import guess_named_rows
from dice_ray.data.hub import HubConfig, local_splits
from dice_ray.errors import DataError
from dice_ray.settings import Nested

HUB = "data.source.hub"


def guess_folder(folder: Path, given: Given) -> Guess:
    """The splits and the columns of a folder that `datasets` reads.

    Raises:
        DataError: It has no training split, or no columns that a task reads.
    """
    loaded = local_splits(folder.resolve())
    names = {split: _split_named(split, list(loaded), folder) for split in NAMES}
    train = names["train"] or (next(iter(loaded)) if len(loaded) == 1 else None)
    if train is None:
        raise DataError(f"{folder}: a split must be named train, and the splits are {', '.join(loaded)}")
    settings: Nested = {"id": str(folder.resolve()).replace("$", "$$")} | ({} if train == "train" else {"train": train})
    settings |= {split: name for split, name in names.items() if split != "train" and name is not None}

    def read(columns: Nested) -> Attempt:
        source = settings | {"columns": columns}
        return attempt_rows(folder, {"hub": source}, HubConfig.model_validate(source).read()["train"].rows())

    rows = loaded[train].select(range(min(NUM_ROWS, len(loaded[train])))).to_list()
    found = guess_named_rows(read, f"{HUB}.columns", rows, given)
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
