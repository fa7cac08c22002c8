"""Forest plot and mean ranks as records: the numbers of the tables, and the critical difference."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from analysis.comparison import comparisons
from analysis.figures.differences import _critical_difference, _Forest, _Ranks, forests, ranks, ranks_of
from analysis.report import side_by_side
from analysis.tables.study import comparison
from tests.analysis.frames import study

SCORES = {"plain": [0.50, 0.51, 0.52, 0.50, 0.51], "dice": [0.7, 0.711, 0.72, 0.7, 0.711], "a<b": [0.51, 0.5, 0.5] * 2}


def cells() -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": score, "metrics.test/f1_tuned": 0.5}
        for arm, scores in SCORES.items()
        for seed, score in enumerate(scores[:5])
    ]


def test_each_arm_has_its_difference_once_with_the_intervals_of_the_table() -> None:
    """Finds rows of the tuned threshold, another order or other intervals than the table's, and a wrong grey."""
    findings = study(cells())
    (figure,) = forests(findings)
    assert isinstance(figure, _Forest)
    assert [(arm.name, difference.is_significant) for arm, difference in figure.rows] == [
        ("dice", True),
        ("a<b", False),
    ]
    assert {arm for arm, _ in figure.rows} < {*comparisons(findings)[0].arms}
    assert all(arm.is_primary for arm, _ in figure.rows)
    assert not [*forests(study(cells()[:5]))]


def test_the_picture_has_its_numbers_as_text() -> None:
    """Finds a picture without alternative text, and a name on hover that becomes markup."""
    (figure,) = forests(study(cells()))
    assert figure.alt.startswith("Difference to plain: dice +20.04 [")
    first, second = re.findall(r"<title>([^<]*)</title>", figure.svg())
    assert first.startswith("dice +20.04 [")
    assert second.startswith("a&lt;b -0.40 [")
    assert "<!-- test/f1 minus plain (%) -->" in figure.svg()
    assert isinstance(figure, _Forest)
    (arm, difference), _ = figure.rows
    of_one_seed = replace(arm, new_data=difference.untested)
    assert "new data" not in replace(figure, rows=((of_one_seed, difference),)).alt


def test_scores_that_are_not_shares_are_written_as_in_the_table() -> None:
    """Finds differences in percent beside a table without percent: each difference is small, but one score negative."""
    means = {"plain": 0.3, "dice": 0.35, "focal": -0.01}
    of_mcc = [
        {"arm": arm, "seed": seed, "metrics.test/mcc": mean * (1 + seed % 3 / 100)}
        for arm, mean in means.items()
        for seed in range(5)
    ]
    findings = study(of_mcc, metric="test/mcc")
    (figure,), (table,) = forests(findings), comparison(findings)
    shown = dict(zip(table.shown["arm"], table.shown["minus plain"], strict=True))
    assert shown["dice"].startswith("+0.05")
    assert f"dice {shown['dice']}" in figure.alt
    assert "<!-- test/mcc minus plain -->" in figure.svg()


def scored(data: str, **scores: float) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": score + seed / 1000, "tags.data": data}
        for arm, score in scores.items()
        for seed in (1, 2)
    ]


def on(data: str, **others: float) -> list[dict[str, Any]]:
    return scored(data, plain=0.5, dice=0.7, focal=0.6, **others)


def test_ranks_are_means_over_data_sets_and_only_where_they_can_tell_arms_apart() -> None:
    """Finds the worst arm ranked first, an arm ranked on some data sets only, and a diagram that can show nothing."""
    last = scored("e", plain=0.7, dice=0.7, focal=0.6)
    (figure,) = ranks(study([*(cell for data in "abcd" for cell in on(data, tversky=0.9)), *last]))
    assert isinstance(figure, _Ranks)
    assert figure.num_data_sets == 5
    assert dict(figure.ranks) == {"dice": 1.1, "focal": 2.2, "plain": 2.7}
    assert figure.missing == ("tversky",)
    assert not [*ranks(study([*on("a"), *on("b")]))]
    assert "by its mean score, over 5 data sets" in figure.caption
    tuned = [cell | {"metrics.test/threshold": 0.4} for data in "abcde" for cell in on(data)]
    (figure,) = ranks(study(tuned))
    assert "by its mean score at the threshold of .5, over 5 data sets" in figure.caption
    (figure,) = ranks(study([*tuned[6:], *on("a")]))
    assert "by its mean score, over 5 data sets" in figure.caption, "one of them has no threshold"
    assert not [*ranks(study([]))]


@pytest.mark.parametrize("tag", ["tags.variant", "tags.encoder"])
def test_an_arm_that_failed_on_one_variant_or_encoder_is_not_ranked(tag: str) -> None:
    """Finds an arm ranked first by the mean over the easy variants, because it has no score on the hard ones."""
    easy = [cell | {tag: "easy"} for data in "abcdef" for cell in on(data, tversky=0.65)]
    hard = [cell | {tag: "hard", "metrics.test/f1": cell["metrics.test/f1"] - 0.4} for cell in easy]
    failed = [cell | {"state": "failed"} if cell["arm"] == "dice" else cell for cell in hard]
    (figure,) = ranks(study([*easy, *failed]))
    assert isinstance(figure, _Ranks)
    assert (figure.num_data_sets, figure.missing) == (6, ("dice",))
    assert dict(figure.ranks) == {"tversky": 1, "focal": 2, "plain": 3}
    (whole,) = ranks(study([*easy, *hard]))
    assert isinstance(whole, _Ranks)
    assert (whole.num_data_sets, whole.missing, whole.ranks[0]) == (6, (), ("dice", 1))
    (without_hard,) = ranks(study([*easy, *(cell | {"state": "failed"} for cell in hard)]))
    assert without_hard.alt == whole.alt, "a place without any score favours no arm"


def test_studies_side_by_side_are_ranked_together() -> None:
    made = side_by_side({data: study(on(data)) for data in "abcdef"})
    assert made.figures[0].name == "ranks"
    assert made.figures[0].alt == "Mean ranks over data sets: dice 1.00; focal 2.00; plain 3.00."
    of_dice = [study(scored(data, plain=0.44, dice=0.5)) for data in "abcdef"]
    of_focal = [study(scored(data, plain=0.53, focal=0.52)) for data in "abcdef"]
    compared = [each for findings in (*of_dice, *of_focal) for each in comparisons(findings)]
    assert not [*ranks_of(compared)], "dice and focal are in no study together: the baseline's mean was that of all"
    by_mcc = [{name.replace("f1", "mcc"): value for name, value in cell.items()} for cell in on("a")]
    studies = [*(study(on(data)) for data in "abcdef"), study(by_mcc, metric="test/mcc")]
    assert not [*ranks_of([each for findings in studies for each in comparisons(findings)])], "F1 and MCC have no mean"


def test_bars_join_the_longest_rows_that_are_not_told_apart() -> None:
    """Finds bars within other bars, and one that joins arms as far apart as the critical difference."""
    places = tuple((str(mean), mean) for mean in (1.0, 2.0, 2.5, 4.0, 5.5))
    assert _Ranks("r", "r", 9, places, 2.0).groups == ((0, 2), (2, 3), (3, 4))
    assert _Ranks("r", "r", 9, places, 1.0).groups == ((1, 2),)


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    """Demsar (2006), table 5(a): q is 2.343 for three and 3.164 for ten classifiers."""
    assert _critical_difference(3, 1) == pytest.approx(2.343 * 2**0.5, abs=2e-3)
    assert _critical_difference(10, 11) == pytest.approx(3.164 * (110 / 66) ** 0.5, abs=2e-3)
