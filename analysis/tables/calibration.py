"""The table of how good the probabilities of a study are, before and after calibration on dev."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from analysis.comparison import Comparison, comparisons
from analysis.formats import ScoreFormat, named, on_place
from analysis.frames import Findings, tag_values, unfailed
from analysis.statistics.intervals import t_interval
from analysis.tables.base import ReportTable, numbers
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_MEASURES: Final = {"log_loss": "log loss", "brier": "Brier", "calibration_error": "ECE"}


def calibration(findings: Findings) -> list[ReportTable]:
    """The mean losses of the probabilities by arm, in a table for each data set, encoder and variant."""
    made = (_table(name, each) for name, each in named("calibration", comparisons(findings)))
    return [table for table in made if len(table.data.columns) > 1]


def _table(name: str, compared: Comparison) -> ReportTable:
    split = compared.metric.rpartition("/")[0]
    data: list[dict[str, Any]] = []
    shown: list[dict[str, str]] = []
    for arm in [arm.arm for arm in compared.primary]:
        runs = compared.cells[compared.cells["arm"] == arm]
        if tag_values(runs, schema.PREDICTIONS).notna().any() and unfailed(runs, f"{split}/log_loss").isna().all():
            continue  # predictions of labels alone
        data.append({"arm": arm})
        shown.append({"arm": arm})
        for suffix, after in (("", ""), ("_calibrated", ", calibrated")):
            for measure, heading in _MEASURES.items():
                metric = f"{split}/{measure}{suffix}"
                stored = unfailed(runs, metric).dropna().tolist()
                if unfailed(compared.cells, metric).notna().any():
                    mean = t_interval(stored, compared.test_per_train, catalogue.metric(metric).limits)
                    data[-1] |= numbers(f"{measure}{suffix}", mean)
                    shown[-1] |= {f"{heading}{after}": ScoreFormat.of(metric, stored).show(mean.mean)}
    note = (
        "Means over seeds, lower is better; the CSV file has 95 % intervals. Log loss is the mean -log of the "
        "probability of the item's label, Brier score the mean squared error of the probability of the positive class, "
        "ECE the expected calibration error, in 15 bins of equal width. Nothing is tested."
    )
    title = f"Quality of the probabilities{on_place(compared.place)}"
    return ReportTable(name, title, pd.DataFrame(data), pd.DataFrame(shown), (note,))
