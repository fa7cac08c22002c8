"""The verdict at equal tuning budget in words: what it claims, what it covers, and what a report leaves out for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.budget import at_budget
from analysis.frames import Findings
from analysis.outcome import metrics, note
from analysis.report import report, side_by_side
from analysis.statistics.power import smallest_visible
from analysis.tables.base import in_markdown
from analysis.verdict.equal_budget import equal_budget
from tests.analysis.cells import drawn_settings, study
from tests.analysis.frames import BEGIN
from tests.analysis.test_budget import DEV, TEST
from tests.analysis.verdict.test_base import cards

BUDGET = "At equal tuning budget (the best of 3 by dev, over 9 settings and 5 seeds)"


def findings(dev: np.ndarray = DEV, test: np.ndarray = TEST, **tags: Any) -> Findings:
    return Findings(drawn_settings(dev, test, **tags).assign(parent=None, start=BEGIN, end=BEGIN))


def test_a_difference_is_claimed_with_what_it_covers() -> None:
    """A claim without its budget, or one that seems to hold for other data, is read as that of a loss."""
    of = findings()
    (made,), (card,) = at_budget(of), cards(of)
    dice = made.arms[0].differences[3].interval.mean
    assert equal_budget(made).headline == (
        f"{BUDGET}, arms differ significantly from cross_entropy (Holm p <= 0.05); better: dice (+{100 * dice:.2f})."
    )
    covered = list(equal_budget(made).sentences)[1]
    assert covered == (
        "This certainty covers seeds and the draw of the search; it does not cover other test items, other data sets, "
        "other search spaces."
    )
    assert (card.answer, card.use, card.settle) == ("YES", "dice", "")
    assert card.facts["budget"] == "the best of 3 settings by dev, of 9"
    worse = Findings(drawn_settings(DEV[::-1], TEST[::-1]))
    assert f"worse: dice ({-100 * dice:+.2f})" in equal_budget(at_budget(worse)[0]).headline
    assert cards(worse)[0].use == "cross_entropy, since no arm is shown to be better and some are worse"


def test_no_difference_is_no_claim() -> None:
    """Also of arms that are the same run for run."""
    same = findings(np.stack([DEV[0]] * 2), np.stack([TEST[0]] * 2))
    assert equal_budget(at_budget(same)[0]).headline == f"{BUDGET}, no arm is shown to differ from cross_entropy."
    assert (cards(same)[0].answer, cards(same)[0].use) == (
        "NO",
        "cross_entropy, since no arm is shown to be better",
    )


@pytest.mark.parametrize(
    ("share", "use", "not_better"),
    [
        (0.5, "dice", "cross_entropy"),
        (1.5, "no arm: cross_entropy is not better than the constant predictor", "dice, cross_entropy"),
    ],
)
def test_no_arm_is_recommended_that_is_not_better_than_the_constant_predictor(
    share: float, use: str, not_better: str
) -> None:
    """An arm may be significantly better than a baseline of 10 where the constant predictor has 54.6."""
    dice, baseline = (arm.scores[2].mean for arm in at_budget(findings())[0].arms)
    level = baseline + share * (dice - baseline)
    of = Findings(findings().frame.assign(**{"metrics.test/constant_f1": level}))
    (card,) = cards(of)
    assert (card.answer, card.use) == ("YES" if use == "dice" else "CANNOT SAY", use)
    said = equal_budget(at_budget(of)[0]).sentences
    assert f"Not better than the constant predictor ({100 * level:.2f}): {not_better}." in said


def test_a_baseline_at_the_level_of_the_constant_predictor_is_not_recommended() -> None:
    """Equal up to rounding: the mean over subsets of one score is not that score to the last digit."""
    same = Findings(drawn_settings(DEV, np.full_like(TEST, 0.546)).assign(**{"metrics.test/constant_f1": 0.546}))
    (card,) = cards(same)
    assert (card.answer, card.use) == ("NO", "no arm: cross_entropy is not better than the constant predictor")


def test_few_runs_have_the_command_that_goes_on() -> None:
    """Finds a certainty named where nothing is certain."""
    few = findings(DEV[..., :2], TEST[..., :2])
    (card,) = cards(few)
    assert (card.answer, card.use, card.is_command) == ("TOO FEW RUNS", "not known yet", True)
    assert card.settle == "dice-ray ablate a_study --seeds 5"
    assert "covers" not in card.text()
    assert not any("certainty" in sentence for sentence in equal_budget(at_budget(few)[0]).sentences)
    (card,) = cards(findings(DEV[:, :5], TEST[:, :5]))
    assert (card.settle, card.is_command) == ("the same study with 6 settings and 5 seeds or more", False)
    assert "tuned" not in card.facts["design"], "of one setting nothing is chosen"
    assert "budget" not in card.lines
    assert equal_budget(at_budget(findings(DEV[:, :5], TEST[:, :5]))[0]).headline == (
        "Too few runs to say which arm is better at equal tuning budget: 5 settings and 5 seeds, and 6 settings "
        "and 5 seeds are needed."
    )


def test_an_arm_without_any_score_is_named_and_not_compared() -> None:
    """It had the score of the constant predictor, or the lowest of the other arms, with an interval and a verdict."""
    dev, test = (np.concatenate([of, of[:1]]) for of in (DEV, TEST))
    test[2] = np.nan
    frame = drawn_settings(dev, test, ("cross_entropy", "dice", "broken"))
    made, without = at_budget(Findings(frame))[0], at_budget(findings())[0]
    assert [arm.name for arm in made.arms] == ["dice", "cross_entropy"]
    assert made.arms[0].differences[3].p == without.arms[0].differences[3].p
    assert "Not compared, without any score: broken." in list(equal_budget(made).sentences)


def test_what_the_scores_vary_with_is_in_points_with_intervals_and_never_a_share() -> None:
    """`NO` beside `loss 20 % of the variance` was read as a contradiction; the loss of two arms is hardly known."""
    (table,) = [each for each in report(findings()).tables if each.name == "variance_components"]
    loss = table.data.iloc[0]
    assert loss["low"] < loss["standard_deviation"] < loss["high"]
    shown = "{standard_deviation:.2f} [{low:.2f}, {high:.2f}]".format(
        **{name: 100 * loss[name] for name in ("standard_deviation", "low", "high")}
    )
    assert table.shown["standard deviation of test/f1 (%)"].iloc[0] == shown
    said = " ".join(equal_budget(at_budget(findings())[0]).sentences)
    assert f"Standard deviations of test/f1 (%) of single runs: loss {shown}, settings " in said
    assert "The intervals are about these arms and settings, not about others." in said


def of_one_seed_each(num: int, lead: float) -> Findings:
    """A study of settings with a seed each, in which dice leads by this much."""
    rng = np.random.default_rng(1)
    test = rng.normal(0.6, 0.05, (1, num, 1)) + rng.normal(0, 0.02, (2, num, 1)) + np.array([0, lead])[:, None, None]
    frame = drawn_settings(test, test, one_seed=True).assign(parent=None, start=BEGIN, end=BEGIN)
    return Findings(frame.assign(**{"tags.budget": "4"}))


def test_settings_of_one_seed_each_have_a_verdict_without_sources_of_variance() -> None:
    """Read as a table of settings by seeds with gaps, all runs but one would be left out."""
    of = of_one_seed_each(30, 0.05)
    (card,) = cards(of)
    assert equal_budget(at_budget(of)[0]).headline.startswith(
        "At equal tuning budget (the best of 4 by dev, over 30 settings with a seed each), arms differ significantly "
        "from cross_entropy (Holm p <= 0.05); better: dice (+"
    )
    assert (card.answer, card.use, card.settle) == ("YES", "dice", "")
    assert (card.facts["budget"], card.facts["seeds"]) == (
        "the best of 4 settings by dev, of 30",
        "another one for each setting",
    )
    assert {table.name for table in report(of).tables} == {"at_equal_budget"}
    assert "each with a seed of its own." in report(of).tables[0].text()


def test_parameters_that_one_arm_searches_are_named() -> None:
    """Finds all arms said to have the same settings where dice was tuned further, and seeds said to be searched."""
    frame = of_one_seed_each(30, 0.05).frame
    draw = frame["tags.variant"].astype("float64")
    own: dict[str, Any] = {
        "training.seed": draw,
        "training.lr": draw,
        "loss.dice.gamma": draw.where(frame["arm"] == "dice"),
    }
    of = Findings(frame.assign(**{f"params.{path}": value for path, value in own.items()}))
    assert cards(of)[0].facts["design"] == (
        "tuned each, with the search repeated: all arms have the same settings; dice its own loss.dice.gamma too"
    )
    assert "seeds, apart from what one draws for itself, so that" in report(of).tables[0].text()


def test_no_difference_says_what_so_many_settings_show_and_how_more_are_run() -> None:
    """`NO` of 30 settings was read as a proof that the arms are equal."""
    of = of_one_seed_each(30, 0.0)
    (made,), (card,) = at_budget(of), cards(of)
    (difference,) = (arm.differences[4] for arm in made.arms if arm.differences)
    (error,), found = difference.errors, smallest_visible(difference)
    critical = stats.t.ppf(0.975, error.freedom)
    assert stats.nct.sf(critical, error.freedom, found / error.size) == pytest.approx(0.8, abs=1e-3)
    assert (
        f"Smallest true difference from cross_entropy that so many settings detect with 80 % power: {100 * found:.2f} "
        "for dice; twice as many detect about two thirds of it."
    ) in equal_budget(made).sentences
    assert (card.answer, card.settle, card.is_command) == ("NO", "dice-ray ablate a_study --settings 60", True)


def test_fewer_than_20_settings_of_one_seed_are_too_few() -> None:
    """With 12 settings and the best of 4 the degrees of freedom are 5."""
    of = of_one_seed_each(19, 0.05)
    (made,), (card,) = at_budget(of), cards(of)
    assert (card.answer, card.settle) == ("TOO FEW RUNS", "dice-ray ablate a_study --settings 20")
    (older,) = cards(replace(of, frame=of.frame.drop(columns="tags.command")))
    assert older.settle == "the same study with 20 settings", "it asked for seeds"
    assert made.different == ()
    assert equal_budget(made).headline == (
        "Too few runs to say which arm is better at equal tuning budget: 19 settings with a seed each, and 20 settings "
        "are needed."
    )
    assert equal_budget(at_budget(of_one_seed_each(2, 0.05))[0]).headline.startswith("Too few runs")


def test_one_setting_is_too_few_and_not_nothing() -> None:
    """Finds the settings and seeds of a crossed study asked for before a second run shows which design it is."""
    assert equal_budget(at_budget(findings(DEV[:, :1], TEST[:, :1]))[0]).headline.startswith("Too few runs")
    made = equal_budget(at_budget(of_one_seed_each(1, 0.05))[0])
    assert made.headline == "Too few runs to say which arm is better at equal tuning budget: 1 setting and 1 seed."
    assert made.settle == "the same study with more settings"


def test_runs_that_failed_or_collapsed_are_named() -> None:
    """A failed run that nobody sees makes an arm look bad for no reason."""
    failed = TEST.copy()
    failed[1, 0, 0] = np.nan
    said = " ".join(equal_budget(at_budget(findings(test=failed))[0]).sentences)
    assert "Runs without a score, which a search chooses only where all its runs failed: dice (1)." in said
    collapsed = findings(test=failed, collapsed="true")
    assert equal_budget(at_budget(collapsed)[0]).headline.startswith(
        "This says nothing about the arms: all 89 runs with a score predict one class only."
    )
    assert cards(collapsed)[0].use == "no arm: cross_entropy is not better than the constant predictor"
    one = findings()
    one.frame.loc[1, "tags.collapsed"] = "true"
    said = " ".join(equal_budget(at_budget(one)[0]).sentences)
    assert "Runs that predict one class only: cross_entropy (1)." in said


def test_a_report_has_no_part_for_single_settings() -> None:
    """Finds nine verdicts, tables or ranks for nine settings, and a report or note without the verdict."""
    of = findings()
    made = report(of)
    assert {table.name for table in made.tables} == {"at_equal_budget", "variance_components"}
    assert {figure.name for figure in made.figures} == {"score_by_budget"}
    assert [card.title for card in made.cards] == ["Is an arm better than cross_entropy at equal tuning budget?"]
    headline = equal_budget(at_budget(of)[0]).headline
    assert made.cards[0].sentences[0] == headline
    assert note(of, "study").startswith(f"**{in_markdown(headline)}**")
    best = at_budget(of)[0].arms[0].scores[2].mean
    assert metrics(of)["test/f1 best of 3/dice"] == best


def test_a_report_of_two_studies_has_both_verdicts() -> None:
    """The experiments of a report may be studies of both kinds."""
    other = Findings(study({"cross_entropy": [0.5] * 5}).assign(parent=None, start=BEGIN, end=BEGIN))
    made = side_by_side({"drawn": findings(), "plain": other})
    assert [card.name for card in made.cards] == ["drawn", "plain"]
