"""A cost is the mirror of a score: whatever orders, ranks or judges arms by one does the same by the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from analysis.budget import at_budget
from analysis.comparison import comparisons
from analysis.data_sets import over_data_sets, sentence_over_data_sets
from analysis.figures.by_number import _ScoreByNumber, gain_by_ratio
from analysis.figures.curves import _panel
from analysis.figures.differences import _Forest, _Ranks, forests, ranks
from analysis.figures.sweep import _BestSoFar, best_so_far
from analysis.frames import Findings
from analysis.ratios import by_ratio
from analysis.sweep import importances
from analysis.tables.across import losses_side_by_side
from analysis.tables.items import _best_first
from analysis.tables.runs import by_loss
from analysis.tables.study import comparison
from analysis.verdict import verdicts
from tests.analysis import frames
from tests.analysis.cells import drawn_settings

MEANS = {"plain": 0.6, "dice": 0.75, "focal": 0.5, "tversky": 0.61}
RATIO = "params.data.imbalance.ratio.negatives"


def mirror(name: str, value: Any) -> tuple[str, Any]:
    """A metric as the cost that is 1 minus it."""
    is_score = "accuracy" in name
    return (name.replace("accuracy", "brier"), 1 - value) if is_score else (name, value)


def both(runs: Iterable[Mapping[str, Any]], make: Callable[..., Findings] = frames.study) -> tuple[Findings, Findings]:
    """The same runs by a score and by a cost."""
    runs, split = list(runs), "dev" if make is frames.sweep else "test"
    costs = [dict(mirror(name, value) for name, value in run.items()) for run in runs]
    return make(runs, metric=f"{split}/accuracy"), make(costs, metric=f"{split}/brier")


def cells(data: str = "a", columns: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    draw = np.random.default_rng(len(data))
    return [
        {"arm": arm, "seed": seed, "metrics.test/accuracy": mean + draw.normal(0, 0.01), "tags.data": data}
        | {"metrics.test/constant_accuracy": 0.52, **(columns or {})}
        for arm, mean in MEANS.items()
        for seed in range(1, 7)
    ]


def test_a_comparison() -> None:
    """Finds the worst arm at the top of the table or the forest, or first of those whose test items are shown."""
    orders = []
    for found in both(cells()):
        (table,), (made,), (forest,), (compared,) = (
            comparison(found),
            verdicts(found),
            forests(found),
            comparisons(found),
        )
        assert isinstance(forest, _Forest)
        rows = [arm.name for arm, _ in forest.rows]
        marks = {(row, mark) for (row, _), mark in table.marks.items()}
        shown = table.data["arm"].tolist(), marks, _best_first(compared, {*MEANS})
        orders.append((*shown, rows, made.outcome, made.use, made.answer, made.best and made.best[0]))
    assert orders[0] == orders[1]
    assert orders[0][0] == ["dice", "tversky", "plain", "focal", "constant predictor"]


def test_over_data_sets() -> None:
    """Finds the worst arm ranked first, and an arm that costs more called better on every data set."""
    found = both([cell for data in ("a", "bb", "ccc", "dddd", "eeeee", "ffffff", "g" * 7) for cell in cells(data)])
    (first,), (second,) = (ranks(each) for each in found)
    assert isinstance(first, _Ranks)
    assert isinstance(second, _Ranks)
    assert first.ranks == second.ranks
    scores, costs = (over_data_sets(comparisons(each)) for each in found)
    assert {arm.arm: (arm.better_on, arm.is_better) for arm in scores} == {
        arm.arm: (arm.better_on, arm.is_better) for arm in costs
    }
    (sentence,) = sentence_over_data_sets(comparisons(found[1]))
    assert "significantly better than plain: dice (median lower by 0.1" in sentence
    mixed = [*comparisons(both(cells("a"))[0]), *comparisons(both(cells("b"))[1])]
    assert not over_data_sets(mixed), "the differences of a score and of a cost have no mean"


def test_ratios() -> None:
    """Finds the worst arm first in the table of the ratios, and a loss drawn as a gain."""
    runs = [cell for ratio in (1, 10) for cell in cells(columns={RATIO: ratio, "tags.variant": f"1:{ratio}"})]
    orders, gains = [], []
    for found in both(runs):
        (of,), (figure,) = by_ratio(found), gain_by_ratio(found)
        assert isinstance(figure, _ScoreByNumber)
        orders.append(([*of.readings[0].scores], of.readings[0].significantly))
        gains.append({line.name: np.round(line.y, 9).tolist() for panel in figure.panels for line in panel.lines})
    assert orders[0] == orders[1]
    assert gains[0] == gains[1]


def test_equal_budget() -> None:
    """Finds a search that keeps the most costly setting, and a failed run that is better than any other."""
    draw = np.random.default_rng(0)
    test = draw.normal(0.6, 0.1, (2, 9, 5)).clip(0.1, 0.9)
    test[1] += 0.07
    test[:, 2, 3] = 0.2, np.nan
    score = drawn_settings(test - 0.01, test).assign(**{"metrics.test/constant_f1": 0.5})
    score = score.rename(columns=lambda name: str(name).replace("f1", "accuracy"))
    cost = score.assign(**{str(name): 1 - score[name] for name in score if "accuracy" in str(name)})
    cost = cost.rename(columns=lambda name: str(name).replace("accuracy", "brier"))
    made = []
    for frame, metric in ((score, "test/accuracy"), (cost, "test/brier")):
        (found,) = at_budget(Findings(frame.assign(**{"tags.metric": metric})))
        made.append(found)
    first, second = made
    assert [arm.name for arm in first.arms] == [arm.name for arm in second.arms] == ["dice", "cross_entropy"]
    assert first.not_above_constant == second.not_above_constant == ()
    for mine, its in zip(first.arms, second.arms, strict=True):
        assert [of.mean for of in mine.scores] == pytest.approx([1 - of.mean for of in its.scores])
        assert {n: of.gain.mean for n, of in mine.differences.items()} == pytest.approx(
            {n: of.gain.mean for n, of in its.differences.items()}
        )


def test_a_sweep() -> None:
    """Finds the most costly trial of each loss called its best, and a line that rises to the worst trial."""
    draw = np.random.default_rng(0)
    trials = [
        {"params.loss": ("dice", "focal")[number % 2], "params.training.lr": rate, "tags.searched": "loss training.lr"}
        | {"metrics.dev/accuracy": 0.5 + rate / 10 + draw.normal(0, 0.01)}
        for number, rate in enumerate(draw.uniform(0, 1, 60))
    ]
    score, cost = both(trials, frames.sweep)
    (of_score,), (of_cost,) = by_loss(score), by_loss(cost)
    assert of_score.data["loss"].tolist() == of_cost.data["loss"].tolist()
    assert of_score.data["best"].tolist() == pytest.approx((1 - of_cost.data["best"]).tolist())
    (curve,), (falling,) = best_so_far(score), best_so_far(cost)
    assert isinstance(curve, _BestSoFar)
    assert isinstance(falling, _BestSoFar)
    assert curve.best == pytest.approx([1 - best for best in falling.best])
    assert importances(score.frame) == importances(cost.frame)
    (beside,) = losses_side_by_side({"one": cost, "two": cost})
    assert beside.data["one: best dev/brier"].tolist() == of_cost.data["best"].tolist()


def test_curves() -> None:
    """Finds the thirty worst runs drawn of more."""
    points = frames.points(
        *((f"{number:02d}", step, "dev/brier", number / 100) for number in range(40) for step in (1, 2))
    )
    names = [line.name for line in _panel("dice", points, "dev/brier", has_mean=False).runs]
    assert names == [f"{number:02d}" for number in range(30)]
