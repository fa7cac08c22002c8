"""What was found: the runs of an experiment as a frame, and the files that they left, read when asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pandas as pd

from dice_ray.errors import RunError

Texts: TypeAlias = Callable[[pd.DataFrame, str], Mapping[str, str]]
"""Of rows of the frame and the name of a file: its text by the id of each run that has it."""


def _no_texts(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
    return {}


def _no_curves() -> pd.DataFrame:
    return pd.DataFrame(columns=["id", "step", "metric", "value"])


@dataclass(frozen=True, eq=False)
class Found:
    """What an experiment holds.

    Attributes:
        frame: Its runs, as `tracking.reader.read` gives them.
        texts: How to read the text files among their artifacts.
        read_curves: How to read every metric at every step.
    """

    frame: pd.DataFrame
    texts: Texts = _no_texts
    read_curves: Callable[[], pd.DataFrame] = _no_curves

    @cached_property
    def items(self) -> dict[str, pd.DataFrame]:
        """By the id of a cell: the counts of each record of the test split, its id the index."""
        return self._tables("test/items.csv", "id", ["tp", "fp", "fn"])

    @cached_property
    def classes(self) -> dict[str, pd.DataFrame]:
        """By the id of a cell: support and counts of each class of the test split, its name the index."""
        return self._tables("test/classes.csv", "class", ["support", "tp", "fp", "fn"])

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Every metric at every step: id, step, metric, value."""
        return self.read_curves()

    @cached_property
    def left_out(self) -> list[dict[str, Any]]:
        """The arms that a study could not run: variant (none where there are none), arm, reason."""
        texts = self.texts(self._of_kinds("study"), "left_out.json").values()
        return [each for text in texts for each in json.loads(text)]

    def _tables(self, file: str, index: str, columns: list[str]) -> dict[str, pd.DataFrame]:
        return {
            id_: _table(id_, file, text, index, columns)
            for id_, text in self.texts(self._of_kinds("cell"), file).items()
        }

    def _of_kinds(self, *kinds: str) -> pd.DataFrame:
        return self.frame[self.frame["kind"].isin(kinds)]


def _table(id_: str, file: str, text: str, index: str, columns: list[str]) -> pd.DataFrame:
    table = pd.read_csv(io.StringIO(text), dtype={index: str}, keep_default_na=False)
    if missing := {index, *columns} - set(table):
        raise RunError(f"{file} of the run {id_} must have the columns {', '.join(sorted(missing))}, which it lacks")
    return table.set_index(index)
