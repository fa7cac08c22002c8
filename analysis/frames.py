"""The stored results of an experiment: the frame of its runs, typed access to its columns, and the files of runs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from analysis.statistics.intervals import NO_SPREAD, Interval, t_interval
from dice_ray.errors import RunError, reason_of
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema


def parent_tag(frame: pd.DataFrame, tag: str) -> str:
    """A tag of the sweep or study, `schema.METRIC` or `schema.BASELINE`; of the latest one if there are several.

    Raises:
        RunError: No sweep or study of the frame has it.
    """
    parents = of_kind(frame, "sweep", "study")
    tags = tag_values(parents, tag).dropna()
    if tags.empty:
        raise RunError(f"the sweep or study must carry the tag {tag}, and no run of this frame does")
    return str(tags.iloc[-1])


def of_kind(frame: pd.DataFrame, *kinds: _RunKind) -> pd.DataFrame:
    """The runs of these kinds."""
    return frame[frame["kind"].isin(kinds)]


def tag_values(runs: pd.DataFrame, tag: str) -> pd.Series[Any]:
    """The values of a tag, by its name in `schema`; all are missing if no run stored it."""
    return _column(runs, schema.tag_column(tag))


def param_values(runs: pd.DataFrame, path: str) -> pd.Series[Any]:
    """The values of a parameter, as `tag_values`."""
    return _column(runs, schema.param_column(path))


def metric_values(runs: pd.DataFrame, metric: str) -> pd.Series[Any]:
    """The last values of a metric, as `tag_values`."""
    return _column(runs, schema.metric_column(metric))


def _column(runs: pd.DataFrame, name: str) -> pd.Series[Any]:
    return runs[name] if name in runs else pd.Series(np.nan, index=runs.index)


def all_params(runs: pd.DataFrame) -> pd.DataFrame:
    """All parameters that a run stored, by path."""
    return _family(runs, schema.param_column(""))


def all_metrics(runs: pd.DataFrame) -> pd.DataFrame:
    """The last value of all metrics that a run stored, by name."""
    return _family(runs, schema.metric_column(""))


def _family(runs: pd.DataFrame, prefix: str) -> pd.DataFrame:
    found = {str(name).removeprefix(prefix): runs[name] for name in runs if str(name).startswith(prefix)}
    return pd.DataFrame(found, index=runs.index)


@dataclass(frozen=True)
class Declared:
    """What a study declared before its first run.

    Attributes:
        looks: The numbers of seeds after which the arms are compared; one if their number is fixed, and empty for a
            study of an older version.
        care: The smallest difference that matters, in points of the metric where it is a share; 0 for none.
        threshold: At which the arms are compared, where the task tunes one.
        compared_by: Of runs that other programs made, which declared nothing: the column of the arms; else empty.
    """

    looks: tuple[int, ...] = ()
    care: float = 0.0
    threshold: Literal["tuned", "untuned"] = "tuned"
    compared_by: str = ""

    @classmethod
    def in_frame(cls, frame: pd.DataFrame) -> Declared:
        """What the parent of a study stored."""
        parents = of_kind(frame, "study")
        stored = {
            name: str(values.iloc[-1])
            for name in (schema.LOOKS, schema.CARE, schema.THRESHOLD, schema.COMPARED_BY)
            if len(values := tag_values(parents, name).dropna())
        }
        return cls(
            tuple(map(int, stored.get(schema.LOOKS, "").split())),
            float(stored.get(schema.CARE, 0.0)),
            "untuned" if stored.get(schema.THRESHOLD) == "untuned" else "tuned",
            stored.get(schema.COMPARED_BY, ""),
        )


def has_drawn_settings(frame: pd.DataFrame) -> bool:
    """Whether the variants of a study are settings drawn from a search space, so that they are no data sets."""
    return bool(tag_values(of_kind(frame, "study"), schema.VARIANTS_ARE).eq("settings").any())


def place_of(cells: pd.DataFrame, *tags: str) -> pd.Series[str]:
    """The values of these tags (data set, encoder, variant), joined by commas, each word once."""
    # Once, because a variant may be named by its data set or encoder.
    known = [tag_values(cells, tag).astype("str").fillna("") for tag in tags]
    words = [dict.fromkeys(", ".join(filter(None, place)).split(", ")) for place in zip(*known, strict=True)]
    return pd.Series([", ".join(place) for place in words], cells.index)


def test_per_train(cells: pd.DataFrame) -> float:
    """The number of test records for each training record if each seed drew its own splits, else 0."""
    known = tag_values(cells, schema.TEST_PER_TRAIN).astype("float64").dropna()
    return float(known.max()) if len(known) else 0.0


def scores(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The score of each run: the best value if one is stored, else the last; NaN for a run or trial without a score."""
    last = metric_values(runs, metric)
    best = metric_values(runs, schema.sibling(metric, "best"))
    values = best.fillna(last).astype("float64")
    # A trial that has not ended is no candidate yet (`tuning.ranking`), and a failed run has no score.
    has_score = (runs["state"] != "failed") & ~((runs["kind"] == "trial") & runs["state"].isna())
    return values.where(np.isfinite(values) & has_score)


def best_score(runs: pd.DataFrame, metric: str) -> float:
    """The score of the best of these runs; NaN if none has one."""
    return float(scores(runs, metric).agg("min" if catalogue.metric(metric).is_minimised else "max"))


def decisive_metric(cells: pd.DataFrame, metric: str) -> str:
    """The metric on dev that chose the checkpoints of cells, by that on test: `dev/f1`, or `dev/f1_tuned`."""
    plain = f"dev/{metric.rpartition('/')[2]}"
    tuned = schema.sibling(plain, "tuned")
    return plain if metric_values(cells, schema.sibling(tuned, "best")).isna().all() else tuned


def unfailed(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The last value of a metric; NaN for a run that failed or did not store it."""
    return metric_values(runs, metric).astype("float64").where(runs["state"] != "failed")


def constant(runs: pd.DataFrame, metric: str) -> Interval | None:
    """The score of the constant predictor, with an interval only if it differs between seeds; None if not stored."""
    stored = metric_values(runs, schema.sibling(metric, "constant"))
    # The arms of one seed are scored on the same test split, and so is their constant predictor: one value a seed.
    values = stored.groupby(runs["seed"], dropna=False).mean().dropna()
    if values.empty:
        return None
    if np.ptp(values) < NO_SPREAD:
        return Interval(float(values.iloc[0]))
    return t_interval(values.tolist(), test_per_train(runs), catalogue.metric(metric).limits)


def collapsed(runs: pd.DataFrame, metric: str) -> pd.Series[bool]:
    """Whether a run predicts one class only: by its tag (of the best evaluation), else by the last value.

    False for a run that failed, which is counted as failed only.
    """
    tag, last = tag_values(runs, schema.COLLAPSED), metric_values(runs, schema.sibling(metric, "collapsed"))
    return ((tag == "true") | (tag.isna() & (last > 0))) & (runs["state"] != "failed")


def has_objectives(frame: pd.DataFrame) -> bool:
    """Whether a sweep searched for several objectives, so that no trial is the best one."""
    return bool(tag_values(of_kind(frame, "sweep"), schema.OBJECTIVES).notna().any())


def states(runs: pd.DataFrame) -> pd.Series[str]:
    """done, pruned, failed, or unfinished."""
    return runs["state"].fillna("unfinished")


def losses(runs: pd.DataFrame) -> pd.Series[str]:
    """The name of each run's loss."""
    return tag_values(runs, schema.LOSS).astype("str").fillna(param_values(runs, "loss").astype("str"))


def drawn_losses(runs: pd.DataFrame) -> pd.Series[str]:
    """The name of each run's loss in a figure: `unknown` where it was deleted in MLflow. Tables leave such runs out."""
    return losses(runs).fillna("unknown")


def by_seed(values: pd.Series[float], seeds: pd.Series[int]) -> dict[int, float]:
    """The values that are not NaN, by seed."""
    return {int(seed): float(value) for seed, value in zip(seeds, values, strict=True) if not math.isnan(value)}


_RunKind: TypeAlias = Literal["run", "sweep", "trial", "rerun", "study", "cell"]
"""`run`, trained alone; `sweep`, its trials and their reruns with other seeds; `study` and its cells."""
_ReadTexts: TypeAlias = Callable[[pd.DataFrame, str], Mapping[str, str]]
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
    texts: _ReadTexts = lambda runs, file: {}
    read_curves: Callable[[], pd.DataFrame] = lambda: pd.DataFrame(columns=["id", "step", "metric", "value"])
    ranked: tuple[str, ...] = ()
    rerun_scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def cells(self) -> pd.DataFrame:
        return of_kind(self.frame, "cell")

    @property
    def trials(self) -> pd.DataFrame:
        return of_kind(self.frame, "trial")

    @property
    def metric(self) -> str:
        """What the sweep or study searched or compares by; a RunError if it has none, as of `parent_tag`."""
        return parent_tag(self.frame, schema.METRIC)

    @cached_property
    def items(self) -> dict[str, pd.DataFrame]:
        """The counts of each test item, the probability of its label and its document if known, indexed by the item's
        id, by the id of the cell.
        """
        return self._tables(self.cells, f"test/{schema.ITEMS_FILE}", "id", ["tp", "fp", "fn"])

    @cached_property
    def classes(self) -> dict[str, pd.DataFrame]:
        """Support and counts of each class on the test split, indexed by the class's name, by the id of the cell."""
        return self._tables(self.cells, f"test/{schema.CLASSES_FILE}", "class", ["support", "tp", "fp", "fn"])

    @cached_property
    def item_texts(self) -> dict[str, pd.DataFrame]:
        """The text of each test item, indexed by its id, by the id of a cell that may store texts and did."""
        # Only these runs are asked: over a network, each question costs a request.
        may_store = self.cells[param_values(self.cells, "tracking.text") == "true"]
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
        variants = tag_values(cells, schema.VARIANT).dropna().unique()
        return self.data.get(str(variants[0]) if len(variants) else "", {})

    def sizes_of(self, cells: pd.DataFrame) -> dict[str, str]:
        """The rows of dev and test and their rarest class in words, by split, as stored at the start of the study."""
        stored = self.data_of(cells)
        rarest = {
            split: f", {found['count']:,} {found['label']}"
            if found.get("together")
            else f", {found['count']:,} of them {found['label']} (the rarest class that is scored)"
            for split, found in stored.get("rarest", {}).items()
        }
        sizes = stored.get("sizes", {})
        return {split: f"{sizes[split]:,} rows{rarest.get(split, '')}" for split in ("dev", "test") if split in sizes}

    def _of_study(self, file: str) -> list[Any]:
        """What a JSON file of a study holds; a frame may have several studies."""
        stored = []
        for id_, text in self.texts(of_kind(self.frame, "study"), file).items():
            with _naming_damage(file, id_):
                stored.append(json.loads(text))
        return stored

    def _tables(self, runs: pd.DataFrame, file: str, index: str, columns: list[str]) -> dict[str, pd.DataFrame]:
        tables = {}
        for id_, text in self.texts(runs, file).items():
            with _naming_damage(file, id_):
                # A class may be called NA, and an item 007: neither is a missing value or a number.
                table = pd.read_csv(
                    io.StringIO(text), dtype={index: str, schema.DOCUMENT: str, "text": str}, keep_default_na=False
                )
                if missing := {index, *columns} - set(table):
                    names = ", ".join(sorted(missing))
                    raise RunError(f"{file} of the run {id_} must have the columns {names}, which it lacks")
                numbers = table.drop(columns=[index, schema.DOCUMENT, "text"], errors="ignore")
                numbers.astype("float64")  # which raises a ValueError for a text
                if numbers.isna().any(axis=None):  # a file that was cut short may lack the last ones
                    raise ValueError("a number is missing")
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
