"""Arms at equal tuning budget, from the cells of a study: pairing, gaps, failed runs, and how far the verdict holds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from analysis.budget import AtBudget, at_budget
from analysis.comparison import comparisons
from analysis.frames import Findings, decisive_metric, of_kind
from analysis.statistics.best_of_n import best_of
from analysis.statistics.intervals import holm_of, paired_difference
from tests.analysis.cells import drawn_settings, study
from tests.benchmarks.equal_budget import DESIGNS, SCENARIOS, false_claims

AT_BUDGET = ("settings x seeds", "one seed a setting")
MOST = 0.06
"""The share of studies that may find a difference between equal losses."""

RNG = np.random.default_rng(0)
NUM, SEEDS = 9, 5
SETTINGS_1NR = RNG.normal(0.6, 0.1, (1, NUM, 1)) + RNG.normal(0, 0.01, (1, NUM, SEEDS))
TEST = np.concatenate([SETTINGS_1NR, SETTINGS_1NR + 0.05 + RNG.normal(0, 0.004, (1, NUM, SEEDS))]).clip(0, 1)
DEV = TEST + RNG.normal(0, 0.01, TEST.shape)


def of(frame: pd.DataFrame) -> AtBudget:
    (made,) = at_budget(Findings(frame))
    return made


def test_settings_are_one_comparison_and_no_data_sets() -> None:
    """Read as variants, each setting would have a verdict of its own, and ranks over them would be drawn."""
    frame = drawn_settings(DEV, TEST)
    assert comparisons(Findings(frame)) == ()
    assert (of(frame).num_draws, of(frame).num_seeds, of(frame).budget) == (NUM, SEEDS, 3)
    by_data = frame.assign(**{"tags.variants_are": "data"})
    assert at_budget(Findings(by_data)) == () == at_budget(Findings(study({"cross_entropy": [0.5]})))
    assert len(comparisons(Findings(by_data))) == NUM


def test_an_arm_is_compared_with_the_same_settings_and_seeds() -> None:
    """Unpaired, a lead of half the spread of the settings would not be found."""
    dice, baseline = of(drawn_settings(DEV, TEST)).arms
    assert (dice.name, baseline.name, baseline.differences) == ("dice", "cross_entropy", {})
    for budget in (1, 3, 4):
        expected = best_of(DEV[1], TEST[1], budget).mean() - best_of(DEV[0], TEST[0], budget).mean()
        assert dice.differences[budget].interval.mean == pytest.approx(expected)
        assert dice.scores[budget - 1].mean == pytest.approx(best_of(DEV[1], TEST[1], budget).mean())
    assert of(drawn_settings(DEV, TEST)).outcome == "different"
    assert dice.differences[3].is_ahead
    assert len(dice.scores) == NUM
    assert [math.isnan(score.low) for score in dice.scores] == [False] * 4 + [True] * 5
    shuffled = drawn_settings(DEV, TEST).sample(frac=1, random_state=0)
    assert of(shuffled).arms[0].differences == dice.differences


def test_p_values_are_corrected_over_the_arms_of_one_budget() -> None:
    """Corrected over all numbers of settings too, or not at all, the claims would not be those that are promised."""
    three = np.concatenate([TEST, TEST[:1] + 0.005])
    made = of(drawn_settings(np.concatenate([DEV, DEV[:1]]), three, ("cross_entropy", "dice", "focal")))
    dice, focal = (next(arm for arm in made.arms if arm.name == name) for name in ("dice", "focal"))
    plain = of(drawn_settings(DEV, TEST)).arms[0].differences[3]
    assert math.isnan(focal.differences[3].p), "a constant lead has no spread, and is not tested"
    assert dice.differences[3].p == pytest.approx(plain.p)
    noisy = three + np.concatenate([np.zeros((2, NUM, SEEDS)), RNG.normal(0, 0.01, (1, NUM, SEEDS))])
    made = of(drawn_settings(np.concatenate([DEV, DEV[:1]]), noisy, ("cross_entropy", "dice", "focal")))
    dice = next(arm for arm in made.arms if arm.name == "dice")
    assert dice.differences[3].p == pytest.approx(2 * plain.p)


@pytest.mark.parametrize(("constant", "expected"), [(0.2, 0.2), (0.9, TEST[0, 0]), (None, TEST.min())])
def test_a_failed_run_is_last_by_dev_and_no_better_than_any_other(
    constant: float | None, expected: float | np.ndarray
) -> None:
    """Left out, the settings at which an arm fails would not count against it.

    With the constant predictor's score, an arm that fails would be better than one that trains a worse model.
    """
    failed = TEST.copy()
    failed[1, 0, :] = np.nan
    frame = drawn_settings(DEV, failed).assign(**{"metrics.test/constant_f1": constant})
    made = of(frame)
    filled = np.where(np.isnan(failed), expected, failed)
    dev = np.where(np.isnan(failed), -np.inf, DEV)
    dice = next(arm for arm in made.arms if arm.name == "dice")
    assert [score.mean for score in dice.scores] == pytest.approx(
        [best_of(dev[1], filled[1], number).mean() for number in range(1, NUM + 1)]
    )
    assert made.num_failed == {"dice": SEEDS}


def test_where_no_arm_has_a_score_all_have_the_constant_predictors_or_the_lowest_of_the_study() -> None:
    """Finds a score of 0, which accuracy never has, and a difference between arms that all failed."""
    failed = TEST.copy()
    failed[:, 0, :] = np.nan
    frame = drawn_settings(DEV, failed)
    for constant, expected in ((0.2, 0.2), (None, np.nanmin(failed))):
        made = of(frame.assign(**{"metrics.test/constant_f1": constant}))
        filled = np.where(np.isnan(failed), expected, failed)
        assert {arm.name: arm.scores[0].mean for arm in made.arms} == pytest.approx(
            {"cross_entropy": filled[0].mean(), "dice": filled[1].mean()}
        )
    assert of(drawn_settings(DEV, np.full_like(TEST, np.nan))).outcome == "nothing"


def test_only_settings_and_seeds_that_all_arms_have_are_compared() -> None:
    """While a study runs, one arm has more settings than another."""
    frame = drawn_settings(DEV, TEST)
    without = of(frame[frame["id"] != "dice-2-4"])
    assert (without.num_draws, without.num_seeds, without.num_left_out) == (NUM - 1, SEEDS, 2 * SEEDS - 1)
    kept = [draw for draw in range(NUM) if draw != 2]
    assert without.arms[0].differences == of(drawn_settings(DEV[:, kept], TEST[:, kept])).arms[0].differences
    running = frame.assign(state=frame["state"].where(frame["seed"] != 4, None))
    assert (of(running).num_seeds, of(running).num_draws) == (4, NUM)
    later = of(frame[(frame["arm"] != "dice") | (frame["seed"] != 4)])
    assert (later.num_seeds, later.num_draws, later.num_left_out) == (4, NUM, NUM)
    started = of(frame[frame["id"].isin(["study", "cross_entropy-0-0"])])
    assert (started.outcome, started.arms[0].name) == ("nothing", "cross_entropy")
    assert of(frame[frame["arm"] != "cross_entropy"]).outcome == "nothing"


def test_the_latest_run_with_a_score_counts() -> None:
    """A cell that failed is tried again under its own id in another experiment of the same study."""
    frame = drawn_settings(DEV, TEST)
    again = frame[frame["id"] == "dice-0-0"].assign(id="again", state="failed", **{"metrics.test/f1": np.nan})
    assert of(pd.concat([frame, again], ignore_index=True)).arms[0].differences == of(frame).arms[0].differences


def test_few_settings_or_seeds_and_collapsed_runs_make_no_claim() -> None:
    """A lead in all of 4 settings or 4 seeds is not called significant, as nowhere in a report.

    A third of 5 settings is the best of 1, which no search has chosen.
    """
    few = ((DEV[:, :5], TEST[:, :5]), (DEV[..., :4], TEST[..., :4]), (DEV[..., :1], TEST[..., :1]))
    for dev, test in few:
        made = of(drawn_settings(dev, test))
        assert (made.outcome, made.different) == ("too_few", ())
    assert math.isnan(of(drawn_settings(DEV[..., :1], TEST[..., :1])).arms[0].differences[1].p)
    assert of(drawn_settings(DEV[:, :6], TEST[:, :6])).outcome == "different"
    failed = TEST.copy()
    failed[1, 0, 0] = np.nan
    for test in (TEST, failed):
        assert of(drawn_settings(DEV, test, collapsed="true")).outcome == "all_collapsed"


ONCE = np.random.default_rng(2).normal(0.6, 0.05, (3, 24, 1))
NAMES = ("cross_entropy", "dice", "focal")


def once(test: np.ndarray = ONCE, budget: str | None = "4", **tags: str) -> pd.DataFrame:
    """A study of 24 settings with a seed each."""
    frame = drawn_settings(test, test, NAMES[: len(test)], one_seed=True, **tags)
    return frame if budget is None else frame.assign(**{"tags.budget": budget})


def test_of_one_seed_a_setting_the_test_is_that_of_the_jackknife_over_settings() -> None:
    """Finds the variance of one arm in place of the difference's, and N - 1 degrees of freedom: 8 % false claims."""
    made = of(once())
    assert (made.num_draws, made.is_crossed, made.budget, made.deviations) == (24, False, 4, {})
    whole, left_out = (best_of(each, each, 4).item() for each in (ONCE[1], ONCE[0])), []
    for left in range(24):
        rest_ANR = np.delete(ONCE, left, 1)
        dice_left, plain_left = (best_of(each, each, 4).item() for each in (rest_ANR[1], rest_ANR[0]))
        left_out.append(dice_left - plain_left)
    of_dice, of_plain = whole
    values = 24 * (of_dice - of_plain) - 23 * np.array(left_out)
    dice = next(arm for arm in made.arms if arm.name == "dice")
    (error,) = dice.differences[4].errors
    assert dice.differences[4].interval.mean == pytest.approx(values.mean())
    assert error.size == pytest.approx(values.std(ddof=1) / np.sqrt(24))
    ranked = [math.comb(below, 3) / math.comb(24, 4) for below in range(24)]
    assert error.freedom == pytest.approx(1 / sum(chance**2 for chance in ranked))
    assert error.freedom == pytest.approx(7 * 24 / 16, rel=0.1)
    (wider,) = next(arm for arm in of(once(test_per_train="0.25")).arms if arm.name == "dice").differences[4].errors
    assert wider.size == pytest.approx(values.std(ddof=1) * math.sqrt(1 / 24 + 0.25)), "each setting drew its own split"


def test_a_setting_counts_once_all_arms_have_run_with_it() -> None:
    """Finds a block of one seed, which is one setting, in place of all settings."""
    part = once().iloc[:-3]
    made = of(part)
    assert (made.num_draws, made.num_left_out) == (21, 6)
    failed = ONCE.copy()
    failed[1, :2] = np.nan
    made = of(once(failed))
    assert (made.num_draws, made.num_failed, made.outcome) == (24, {"dice": 2}, "no_difference")


def test_cells_that_go_on_show_the_design() -> None:
    """Finds settings of one seed each taken for crossed ones, with other numbers needed, until the second has ended."""
    frame = once()
    first = frame["tags.variant"] == "01"
    assert not of(frame.assign(state=frame["state"].where(first | (frame["kind"] == "study")))).is_crossed


def test_the_budget_is_that_of_the_plan() -> None:
    """Without it, as in studies of older versions, it is a third; and only settings beside it make a search."""
    assert [of(once(budget=budget)).budget for budget in ("4", "2", None)] == [4, 2, 8]
    assert of(once(budget="13")).outcome == "too_few", "two searches of 13 share some of 24 settings"
    assert of(once(ONCE[:, :3])).budget == 3
    crossed = drawn_settings(DEV, TEST).assign(**{"tags.budget": "4"})
    assert (of(crossed).budget, of(crossed).outcome, of(crossed).is_crossed) == (4, "different", True)
    assert of(crossed.assign(**{"tags.budget": "5"})).outcome == "too_few"


def test_data_sets_and_encoders_have_a_comparison_each() -> None:
    """Settings of two data sets together would be paired by name only."""
    frames = [drawn_settings(DEV, TEST, data=data) for data in ("mrpc", "qqp")]
    frame = pd.concat([frames[0], frames[1].iloc[1:]], ignore_index=True)
    assert [(each.place, each.num_draws) for each in at_budget(Findings(frame))] == [("mrpc", NUM), ("qqp", NUM)]


def test_of_one_setting_tried_the_difference_is_that_of_means() -> None:
    """With effects of settings alone, the p of the best of 1 is that of the paired t test over settings."""
    own = TEST.mean(2, keepdims=True) + np.zeros(TEST.shape)
    dice = of(drawn_settings(own, own)).arms[0]
    plain, better = (dict(enumerate(of_arm.tolist())) for of_arm in own[..., 0])
    expected = paired_difference(better, plain)
    assert dice.differences[1].p == pytest.approx(holm_of([expected])[0].p)


@pytest.mark.parametrize(("metric", "bound"), [("f1", 1), ("mcc", 2), ("saved", math.inf)])
def test_the_metric_says_which_differences_are_possible(metric: str, bound: float) -> None:
    """Taken from the scores, an MCC near 0 had intervals above 0, the MCC of guessing."""
    spread = np.where(np.arange(NUM) % 3 == 0, 0.0, 0.02)[:, None] * [0.0, 1, 0, 2, 0]
    frame = drawn_settings(DEV, np.stack([spread, 20 * spread]))
    made = of(frame.rename(columns=lambda name: name.replace("f1", metric)).replace("test/f1", f"test/{metric}"))
    assert made.arms[0].differences[3].bound == bound
    (plain,) = (arm for arm in made.arms if not arm.differences)
    assert (plain.scores[0].low > 0) == (metric == "f1")


def test_a_study_whose_dev_metric_is_tuned_is_chosen_and_compared_by_it_unless_it_declared_otherwise() -> None:
    """By `dev/f1` a search would be the best of the last evaluations, at a threshold that nobody would use."""
    frame = drawn_settings(DEV, TEST).assign(**{"metrics.test/f1_tuned": 0.0, "metrics.dev/f1": 0.0})
    of_cells = frame["kind"] == "cell"
    frame.loc[of_cells, "metrics.test/f1_tuned"] = frame.loc[of_cells, "metrics.test/f1"] + 0.125
    tuned = frame.rename(columns={"metrics.dev/best_f1": "metrics.dev/best_f1_tuned"})
    assert decisive_metric(of_kind(tuned, "cell"), "test/f1") == "dev/f1_tuned"
    (plain,), (made,) = at_budget(Findings(frame)), at_budget(Findings(tuned))
    assert (plain.metric, made.metric) == ("test/f1", "test/f1_tuned")
    scores = {arm.name: arm.scores[2].mean for arm in plain.arms}
    assert {arm.name: arm.scores[2].mean - 0.125 for arm in made.arms} == pytest.approx(scores)
    (untuned,) = at_budget(Findings(tuned.assign(**{"tags.threshold": "untuned"})))
    assert (untuned.metric, {arm.name: arm.scores[2].mean for arm in untuned.arms}) == ("test/f1", scores)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_equal_arms_are_seldom_told_apart(scenario: str) -> None:
    """An interval that is too narrow shows in no other test; the slow test below runs 2,000 studies."""
    assert max(false_claims(60, scenario, name) for name in AT_BUDGET) <= MOST + 1.65 * math.sqrt(
        MOST * (1 - MOST) / 60
    )
    assert false_claims(60, scenario, "after one search each") > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("design", DESIGNS)
def test_of_2000_studies_of_equal_losses_few_find_a_difference(design: str, scenario: str) -> None:
    """Each design but one search for each arm keeps what its report promises.

    A comparison at one setting, given or shared, is about that setting: where settings suit each loss differently, the
    losses do differ there.
    """
    share = false_claims(2000, scenario, design)
    is_of_settings = design in ("as given", "shared settings") and scenario == "settings suit each arm differently"
    if design == "after one search each" or is_of_settings:
        assert share > 0.5
    else:
        assert share <= MOST
