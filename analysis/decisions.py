"""The decision that runs fit on dev, in words: where scores are taken, and what it promises. THE place for both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from analysis.frames import all_params, metric_values, tag_values, test_per_train, unfailed
from analysis.statistics.intervals import Interval, t_interval
from dice_ray.tracking import schema

_PROMISED: Final = {"recall": "recall", "precision": "precision", "rate": "flagged"}
"""What a decision with a target keeps within a limit, by the kind of decision."""


@dataclass(frozen=True)
class DecisionFacts:
    """How the runs of a comparison turn scores into answers.

    Attributes:
        has_threshold: Whether that is a threshold: other decisions are shifts of classes.
        is_of_answers: Whether it is that for no answer, which is no probability: untuned, a question has no answer
            where that is likelier than the best one.
        is_tuned: Whether scores with the fitted decision are stored.
        promised: The metric that it keeps within a limit: `recall`, `precision` or `flagged`; empty for none.
        limit: The limit in words, as `at least 90`, in percent.
        costs: Of a false positive and of a false negative, of a decision for the lowest cost.
        thresholds: The mean threshold of each arm, where there is one.
        kept: What it promises within the limit as it is on test, by arm.
        missed: In how many runs that is beyond the limit, by arm.
        unused: In how many runs `predict` uses the untuned threshold by default, by arm, where there are any: dev has
            few positives, or shows no gain.
    """

    has_threshold: bool
    is_of_answers: bool = False
    is_tuned: bool = True
    promised: str = ""
    limit: str = ""
    costs: tuple[float, float] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Interval] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)
    unused: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: pd.DataFrame, metric: str) -> DecisionFacts:
        """That of cells of one comparison; of different ones, nothing of what they are fitted for is known."""
        settings = _settings(cells)
        kind = settings.get("", "")
        costs = [float(settings.get(f".cost.{name}", "nan")) for name in ("false_positive", "false_negative")]
        limits = {name: settings.get(f".{kind}.{name}") for name in ("at_least", "at_most")}
        limit = next((f"{name.replace('_', ' ')} {100 * float(of):g}" for name, of in limits.items() if of), "")
        promised, split = _PROMISED.get(kind, "") if limit else "", metric.rpartition("/")[0]
        threshold = schema.sibling(metric, "threshold")
        thresholds, kept, missed = (
            {str(arm): of for arm, of in unfailed(cells, stored).dropna().groupby(cells["arm"])}
            for stored in (threshold, f"{split}/{promised}_tuned", f"{split}/target_missed")
        )
        used = metric_values(cells, f"{threshold}_used")
        is_unused = used.notna() & (used != metric_values(cells, threshold))
        ratio = test_per_train(cells)
        return cls(
            bool(thresholds),
            bool(tag_values(cells, schema.TASK).eq("extractive_qa").any()),
            bool(metric_values(cells, schema.sibling(metric, "tuned")).notna().any()),
            promised,
            limit,
            (costs[0], costs[1]) if kind == "cost" else None,
            {arm: float(of.mean()) for arm, of in thresholds.items()},
            {arm: t_interval(of.tolist(), ratio) for arm, of in kept.items()},
            {arm: int((of > 0).sum()) for arm, of in missed.items() if promised},
            {str(arm): int(num) for arm, num in is_unused.groupby(cells["arm"]).sum().items() if num},
        )

    def words(self, arm: str) -> str:
        """How to use an arm: `with the threshold .12`."""
        if arm not in self.thresholds:
            return "with its decision fitted on dev"
        kind = "no-answer threshold" if self.is_of_answers else "threshold"
        return f"with the {kind} {f'{self.thresholds[arm]:.3g}'.removeprefix('0') or 0}"

    @property
    def suffix(self) -> str:
        """What follows the name of an arm in the row of its tuned scores; `statistics.best_arm.arm_of` removes it."""
        return " (tuned threshold)" if self.has_threshold else " (tuned decision)"

    @property
    def tuned(self) -> str:
        """Where tuned scores are taken, as the end of a phrase."""
        return " at the threshold tuned on dev" if self.has_threshold else " with the decision fitted on dev"

    @property
    def untuned(self) -> str:
        """Where those of plain predictions are taken; empty for a task without a decision."""
        if self.has_threshold:
            return f" at the {'untuned no-answer threshold' if self.is_of_answers else 'threshold of .5'}"
        return " with the untuned decision" if self.is_tuned else ""

    @property
    def untuned_in_short(self) -> str:
        return "at .5" if self.has_threshold and not self.is_of_answers else "untuned"


def _settings(cells: pd.DataFrame) -> Mapping[str, str]:
    """The parameters of the decision that are the same for all cells, by their path below `task.NAME.decision`."""
    settings = {}
    for name, values in all_params(cells).items():
        found = re.fullmatch(r"task\..*?\.decision(|\..*)", str(name))
        if found and values.nunique() == 1:
            settings[found[1]] = str(values.dropna().iloc[0])
    return settings
