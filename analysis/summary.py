"""What was found, in sentences: who won and how sure that is, what a search reached, and what has no score."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.found import Found
from analysis.layout import Scale
from analysis.scores import states
from analysis.search import best_trial
from analysis.statistics import what_seeds_allow
from analysis.study import shared_seeds, told_apart, who_wins


def summary(found: Found) -> Iterator[str]:
    """The sentences, most telling first."""
    made = comparisons(found)
    for comparison in made:
        where = f"On {comparison.place}: " if len(made) > 1 else ""
        yield from (f"{where}{sentence}" for sentence in _of_comparison(comparison))
    yield from _of_search(found)
    yield from _without_score(found)


def _of_comparison(made: Comparison) -> Iterator[str]:
    scale = Scale.of(pd.Series([arm.score.mean for arm in made.arms]))
    yield who_wins(made, scale)
    yield from told_apart(made, scale)
    seeds = shared_seeds(made)
    baseline, *others = made.arms
    constant = [f", the constant predictor has {scale.show(arm.score.mean)}" for arm in others if arm.name == CONSTANT]
    said = f"{baseline.name} has {scale.show_interval(baseline.score)}{''.join(constant)}"
    yield f"{scale.heading(made.metric)}: {said}; {seeds} shared seeds are {what_seeds_allow(seeds)}."
    collapsed = [f"{arm.name} ({arm.collapsed} of {arm.score.num})" for arm in made.arms if arm.collapsed]
    if collapsed:
        yield f"Cells that predict one class only: {', '.join(collapsed)}."


def _of_search(found: Found) -> Iterator[str]:
    best = best_trial(found)
    if best is None:
        return
    scale = Scale.of(pd.Series([best.score]))
    reached = f"{scale.heading(best.metric)} {scale.show(best.score)}"
    yield f"The best of {(found.frame['kind'] == 'trial').sum()} trials is {best.id}, with {best.loss}: {reached}."
    by = f"the mean over {best.num_reruns} other seeds, on dev" if best.num_reruns else "this very score, on dev"
    yield f"The search chose it by {by}; what it is worth on new data a study over seeds tells."


def _without_score(found: Found) -> Iterator[str]:
    runs = found.frame[found.frame["kind"].isin(["trial", "cell"])]
    if runs.empty:
        return
    state = states(runs)
    counts = [f"{(state == name).sum()} {name}" for name in ("failed", "unfinished") if (state == name).any()]
    listed = f"Of {len(runs)} runs {' and '.join(counts)}: they are listed below."
    yield listed if counts else f"All {len(runs)} runs ended well."
