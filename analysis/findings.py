"""The stored results of an experiment: a frame of its runs, and their files and curves, which are read on first use."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import pandas as pd

from analysis.columns import column
from dice_ray.errors import RunError, reason_of
from dice_ray.tracking import schema

DOCUMENT: Final = "document"
"""Column of the items' documents, which not every run has stored."""

ReadTexts: TypeAlias = Callable[[pd.DataFrame, str], Mapping[str, str]]
"""From rows of the frame and a file name to the text of that file, by the id of each run that has it."""


@dataclass(frozen=True, eq=False)
class Findings:
    """The stored results of an experiment.

    Attributes:
        frame: Its runs, as `tracking.reader.read` returns them.
        texts: Reads text files among the artifacts of runs.
        read_curves: Reads every metric at every step.
        ranked: The ids of a sweep's trials that have a score, best first. The caller ranks them, so that a report and
            the sweep itself agree on which trial is best.
        rerun_scores: The scores of a trial's reruns with other seeds, by the trial's id.
    """

    frame: pd.DataFrame
    texts: ReadTexts = lambda runs, file: {}
    read_curves: Callable[[], pd.DataFrame] = lambda: pd.DataFrame(columns=["id", "step", "metric", "value"])
    ranked: tuple[str, ...] = ()
    rerun_scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @cached_property
    def items(self) -> dict[str, pd.DataFrame]:
        """The counts of each test item, the probability of its label and its document if known, indexed by the item's
        id, by the id of the cell.
        """
        return self._tables(self._cells, f"test/{schema.ITEMS_FILE}", "id", ["tp", "fp", "fn"])

    @cached_property
    def classes(self) -> dict[str, pd.DataFrame]:
        """Support and counts of each class on the test split, indexed by the class's name, by the id of the cell."""
        return self._tables(self._cells, f"test/{schema.CLASSES_FILE}", "class", ["support", "tp", "fp", "fn"])

    @cached_property
    def item_texts(self) -> dict[str, pd.DataFrame]:
        """The text of each test item, indexed by its id, by the id of a cell that may store texts and did."""
        # Only these runs are asked: over a network, each question costs a request.
        may_store = self._cells[column(self._cells, "params.tracking.text") == "true"]
        return self._tables(may_store, f"test/{schema.TEXTS_FILE}", "id", ["text"])

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Every metric at every step, with the columns id, step, metric, value."""
        return self.read_curves()

    @cached_property
    def left_out(self) -> list[dict[str, Any]]:
        """The arms that a study could not run, with the keys variant (None without variants), arm, reason."""
        return [arm for arms in self._of_study(schema.LEFT_OUT_FILE) for arm in arms]

    @cached_property
    def data(self) -> dict[str, dict[str, Any]]:
        """What a study stored of its data (`sizes`, `rarest`), by variant; the key of a study without any is empty."""
        stored = self._of_study(schema.DATA_FILE)
        return {variant: of for each in stored for variant, of in ({"": each} if "sizes" in each else each).items()}

    def data_of(self, cells: pd.DataFrame) -> Mapping[str, Any]:
        """What the study stored of the data of cells, which have one variant; empty if it stored nothing."""
        variants = column(cells, "tags.variant").dropna().unique()
        return self.data.get(str(variants[0]) if len(variants) else "", {})

    @property
    def _cells(self) -> pd.DataFrame:
        return self.frame[self.frame["kind"] == "cell"]

    def _of_study(self, file: str) -> list[Any]:
        """What a JSON file of a study holds; a frame may have several studies."""
        stored = []
        for id_, text in self.texts(self.frame[self.frame["kind"] == "study"], file).items():
            with _naming_damage(file, id_):
                stored.append(json.loads(text))
        return stored

    def _tables(self, runs: pd.DataFrame, file: str, index: str, columns: list[str]) -> dict[str, pd.DataFrame]:
        tables = {}
        for id_, text in self.texts(runs, file).items():
            with _naming_damage(file, id_):
                # A class may be called NA, and an item 007: neither is a missing value or a number.
                table = pd.read_csv(
                    io.StringIO(text), dtype={index: str, DOCUMENT: str, "text": str}, keep_default_na=False
                )
                if missing := {index, *columns} - set(table):
                    names = ", ".join(sorted(missing))
                    raise RunError(f"{file} of the run {id_} must have the columns {names}, which it lacks")
                _check_numbers(table.drop(columns=[index, DOCUMENT, "text"], errors="ignore"))
            tables[id_] = table.set_index(index)
        return tables


@contextmanager
def _naming_damage(file: str, id_: str) -> Iterator[None]:
    """Name the file and its run in the error of a parser: the file was cut short, or another program wrote it."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"{file} of the run {id_} must be as dice_ray wrote it, but is damaged: {reason_of(error)}"
        ) from error


def _check_numbers(table: pd.DataFrame) -> None:
    """Raise a ValueError if a cell is no number: a file that was cut short may lack the last ones."""
    table.astype("float64")
    if table.isna().any(axis=None):
        raise ValueError("a number is missing")
