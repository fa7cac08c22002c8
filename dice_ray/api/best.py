"""The best run, trial or arm, as results name it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dice_ray.errors import RunError, shortened

if TYPE_CHECKING:
    from analysis.frames import Findings

ONE_CLASS: Final = (
    "It predicts one class only: try more epochs (training.epochs), another rate (training.lr), model.head_bias=prior "
    "or another loss; a threshold tuned on dev may already help."
)


@dataclass(frozen=True)
class Best:
    """The best run, trial or arm.

    Attributes:
        name: The run's, as `predict` and `evaluate` take it, or the arm's.
        metric: Of a sweep and a run on dev, of a study on test.
        score: The best value; the mean of an arm, and of a trial that was run again with other seeds.
        settings: The parameters that the search chose, None for `null`; empty for a run and an arm.
        is_collapsed: Whether the model predicts one class only.
    """

    name: str
    metric: str
    score: float
    settings: dict[str, Any] = field(default_factory=dict)
    is_collapsed: bool = False

    @property
    def line(self) -> str:
        """One line of text."""
        settings = ", ".join(f"{path} {shortened(value)}" for path, value in self.settings.items())
        advice = f" {ONE_CLASS}" if self.is_collapsed else ""
        return f"{self.name} has {self.metric} {self.score:.4f}{f' with {settings}' if settings else ''}.{advice}"


def best_of(name: str, found: Findings) -> Best:
    """The best trial of a sweep, or the winner of a study.

    Raises:
        RunError: Nothing has a score, or the study has no winner or is on several data sets.
    """
    from analysis.frames import has_objectives
    from analysis.sweep import best_trial
    from analysis.verdict import verdicts

    if made := verdicts(found):
        if len(made) > 1:
            places = ", ".join(each.place for each in made)
            raise RunError(
                f"the best arm must be that of one data set, and {name} compares on {places}: see its report"
            )
        (verdict,) = made
        if verdict.best is None:
            raise RunError(f"the best arm must be a winner, and {name} has none: {verdict.headline}")
        arm, score = verdict.best
        return Best(arm, verdict.metric, score)
    trial = best_trial(found)
    if trial is None:
        if has_objectives(found.frame):
            raise RunError(f"{name} searched for several objectives, and has no best trial: see its Pareto front")
        raise RunError(f"the best trial must have a score, and no trial of {name} has one")
    # The frame holds NumPy's numbers, which JSON and YAML do not take.
    settings = {path: value.item() if hasattr(value, "item") else value for path, value in trial.settings.items()}
    return Best(f"{name}/{trial.id}", trial.metric, trial.score, settings, trial.is_collapsed)
