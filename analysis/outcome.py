"""The outcome of a sweep or study as MLflow shows it on the parent run: scores as metrics, the summary as note."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from analysis.best_trial import best_trial
from analysis.budget import at_budget
from analysis.columns import column
from analysis.comparison import CONSTANT, comparisons
from analysis.summary import summary
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from analysis.findings import Findings


def metrics(findings: Findings) -> dict[str, float]:
    """Mean and interval of each arm, `test/f1/dice`, `test/f1_low/dice`, `test/f1_high/dice`; or the best score.

    Of a study of drawn settings: the score of each arm at the budget of its verdict, `test/f1 best of 4/dice`. The
    names have the place between metric and arm where a study compares on several data sets, encoders or variants.
    """
    found: dict[str, float] = {}
    compared = comparisons(findings)
    for comparison in compared:
        place = f"/{comparison.place}" if len(compared) > 1 else ""
        for arm in comparison.arms:
            if arm.name == CONSTANT or not arm.score.num:
                continue
            bounds = {"": arm.score.mean, "_low": arm.score.low, "_high": arm.score.high}
            found |= {
                _metric_name(f"{comparison.metric}{bound}{place}/{arm.name}"): value
                for bound, value in bounds.items()
                if not math.isnan(value)
            }
    studied = at_budget(findings)
    for study in studied:
        place = f"/{study.place}" if len(studied) > 1 else ""
        found |= {
            _metric_name(f"{study.metric} best of {study.budget}{place}/{arm.name}"): arm.scores[study.budget - 1].mean
            for arm in study.arms
        }
    if best := best_trial(findings):
        found[schema.best_metric(best.metric)] = best.score
    return found


def note(findings: Findings, name: str) -> str:
    """The user's own note, then the summary of the report as a list in Markdown, its first sentence bold."""
    own = column(findings.frame[findings.frame["id"] == name], f"tags.{schema.OWN_NOTE.removeprefix(schema.PREFIX)}")
    headline, *others = summary(findings)
    parts = [*map(str, own.dropna()), f"**{headline}**", "\n".join(f"- {sentence}" for sentence in others)]
    return "\n\n".join(filter(None, parts))


def _metric_name(name: str) -> str:
    """The name without what MLflow does not accept in one.

    >>> _metric_name("test/f1/dice (tuned threshold)")
    'test/f1/dice tuned threshold'
    """
    return re.sub(r"[^\w./ :-]", "", name)
