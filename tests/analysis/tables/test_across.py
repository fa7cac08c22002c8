"""Arms over data sets, and experiments side by side."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison import CONSTANT
from analysis.frames import Findings
from analysis.outcome import summary
from analysis.report import report, side_by_side
from analysis.statistics.intervals import ALPHA
from analysis.tables.across import across_data_sets
from tests.analysis import frames
from tests.analysis.cells import study
from tests.analysis.test_outcome import cells


def several(num: int, *others: str) -> Findings:
    rng = np.random.default_rng(2)
    arms = ("cross_entropy", "dice", *others)
    studies = [
        study({arm: rng.normal(0.1 * (arm == "dice"), 0.01, 3).tolist() for arm in arms}, data=f"d{n}")
        for n in range(num)
    ]
    return Findings(pd.concat(studies))


@pytest.mark.parametrize("others", [(), ("focal",)])
def test_each_arm_needs_its_number_of_data_sets(others: tuple[str, ...]) -> None:
    least = 6 + len(others)
    (table,) = across_data_sets(several(least - 1, *others))
    assert set(table.shown["Holm p"]) == {f"impossible below {least} data sets"}
    (table,) = across_data_sets(several(least, *others))
    dice = next(row for row in table.data.to_dict("records") if row["arm"] == "dice")
    assert (dice["better_on"], dice["data_sets"]) == (least, least)
    assert dice["holm_p"] == pytest.approx((1 + len(others)) * stats.wilcoxon([*range(1, least + 1)]).pvalue)
    assert dice["holm_p"] <= ALPHA


def test_collapsed_runs_count_over_data_sets() -> None:
    """An arm that collapses in two of three runs was better on each, by the third."""
    frame = several(6).frame.reset_index(drop=True)
    lost = (frame["arm"] == "dice") & (frame["seed"] > 0)
    frame.loc[lost, "metrics.test/f1"] = -0.5
    (table,) = across_data_sets(Findings(frame.assign(**{"metrics.test/collapsed": lost.astype(float)})))
    (dice,) = (row for row in table.data.to_dict("records") if row["arm"] == "dice")
    assert (dice["better_on"], dice["data_sets"]) == (0, 6)


def test_data_sets_without_a_difference_say_nothing() -> None:
    """From 14 on SciPy approximates their test: five gains of nine zeros were significant."""
    frame = several(14).frame
    same = frame["tags.data"].isin([f"d{number}" for number in range(5, 14)])
    frame.loc[same & (frame["kind"] == "cell"), "metrics.test/f1"] = 0.5
    (table,) = across_data_sets(Findings(frame))
    assert table.data["holm_p"].isna().all()


def test_variants_and_encoders_are_no_data_sets() -> None:
    scores = {"cross_entropy": [0.7, 0.71], "dice": [0.8, 0.79]}
    tags = ({"variant": "original"}, {"variant": "+ positive"}, {"variant": "original", "encoder": "mini"})
    assert not across_data_sets(Findings(pd.concat([study(scores, data="qqp", **each) for each in tags])))


def test_the_summary_says_which_arms_are_worse_over_data_sets_and_nothing_where_none_is_tested() -> None:
    frame = several(6).frame.reset_index(drop=True)
    frame.loc[frame["arm"] == "dice", "metrics.test/f1"] -= 0.2
    sentence = next(summary(Findings(frame)))
    assert sentence.startswith(
        "Over data sets (Wilcoxon, Holm p <= 0.05), significantly better than cross_entropy: no arm"
    )
    assert "; worse: dice (median -" in sentence
    assert sentence.endswith(", better on 0 of 6).")
    assert not any("Wilcoxon" in sentence for sentence in summary(several(5)))


def test_one_outlier_does_not_decide_which_arm_is_better_over_data_sets() -> None:
    """Finds an arm called worse by its mean, although it is better on eleven data sets of twelve."""
    differences = (*np.linspace(0.02, 0.03, 11), -0.4)
    studies = [
        study({"cross_entropy": [0.5, 0.5], "dice": [0.5 + each, 0.5 + each]}, data=f"d{number}")
        for number, each in enumerate(differences)
    ]
    sentence = next(summary(Findings(pd.concat(studies))))
    assert "better than cross_entropy: dice (median +2.45, better on 11 of 12); worse: no arm" in sentence


@pytest.mark.parametrize(("least", "shown"), [(0.01, ("test/f1 (%)", "+5.00")), (-0.01, ("test/f1", "+0.05"))])
def test_over_data_sets_is_in_percent_only_if_the_scores_of_all_of_them_are(
    least: float, shown: tuple[str, str]
) -> None:
    """Finds a mean difference that is 100 times the one in the table of a data set, because it is small."""
    dice, focal = [0.35, 0.36], [least, least]
    studies = [study({"cross_entropy": [0.3, 0.31], "dice": dice, "focal": focal}, data=data) for data in "ab"]
    (table,) = across_data_sets(Findings(pd.concat(studies)))
    assert table.shown[f"{shown[0]} minus cross_entropy"].tolist()[0] == shown[1]


def test_a_data_set_on_which_an_arm_failed_is_none_of_its_data_sets() -> None:
    frame = several(7).frame.reset_index(drop=True)
    frame.loc[(frame["arm"] == "dice") & (frame["tags.data"] == "d0"), "state"] = "failed"
    (table,) = across_data_sets(Findings(frame))
    (row,) = table.data.to_dict("records")
    assert (row["better_on"], row["data_sets"]) == (6, 6)
    assert row["p"] == pytest.approx(stats.wilcoxon([1, 2, 3, 4, 5, 6]).pvalue)
    assert "Missing: no difference to cross_entropy on d0 for dice." in table.notes
    assert "Missing" not in across_data_sets(several(7))[0].text()


def test_over_data_sets_names_the_variants_that_an_arm_lacks() -> None:
    """Finds an arm whose mean difference is over fewer variants, or which has none at all, without a word of it."""
    scores = {"cross_entropy": [0.5, 0.6], "dice": [0.7, 0.7], "focal": [0.6, 0.7], "tversky": [math.nan, math.nan]}
    studies = [study(scores, data=data, variant=variant) for data in "ab" for variant in ("1:1", "1:100")]
    studies[1].loc[studies[1]["arm"] == "dice", "state"] = "failed"
    (table,) = across_data_sets(Findings(pd.concat(studies, ignore_index=True)))
    assert table.notes[1:] == (
        "Missing: no difference to cross_entropy on a, 1:100 for dice.",
        "Missing: no difference to cross_entropy on a, 1:1; a, 1:100; b, 1:1; b, 1:100 for tversky.",
    )


def test_arms_on_fewer_data_sets_do_not_make_the_test_of_the_others_harder() -> None:
    """Finds seven data sets that are too few because of rows that cannot be tested, and such rows called missing."""
    frame = several(7, "focal").frame.reset_index(drop=True)
    elsewhere = (frame["tags.data"] != "d0") & (frame["arm"] == "focal")
    (table,) = across_data_sets(Findings(frame[~elsewhere]))
    shown = dict(zip(table.shown["arm"], table.shown["Holm p"], strict=True))
    assert shown["dice"] == "0.016"
    assert shown["focal"].startswith("impossible below ")


def of_two_arms(metric: str, data: str, baseline: str = "cross_entropy") -> Findings:
    scores = {"cross_entropy": (0.5, 0.52), "dice": (0.6, 0.61)}
    return frames.study(
        [
            {"arm": arm, "seed": seed, "tags.data": data, f"metrics.{metric}": score}
            for arm, of_arm in scores.items()
            for seed, score in enumerate(of_arm)
        ],
        metric=metric,
        baseline=baseline,
    )


def test_studies_of_different_metrics_are_compared_over_their_data_sets() -> None:
    """Finds that each contrast is read by the metric of one of the studies, and a heading that names that one."""
    metrics = ("test/f1", "test/accuracy", "test/exact", "test/macro_f1", "test/accuracy", "test/f1")
    studies = {f"s{n}": of_two_arms(metric, f"d{n}") for n, metric in enumerate(metrics)}
    made = side_by_side(studies)
    assert made.summary[0] == (
        "Over data sets (Wilcoxon, Holm p <= 0.05), significantly better than cross_entropy: "
        "dice (median +9.50, better on 6 of 6); worse: no arm."
    )
    table = {each.name: each for each in made.tables}["across_data_sets"]
    assert table.shown.to_numpy().tolist() == [["dice", "+9.50", "+9.50", "6 of 6", "0.031"]]
    assert table.shown.columns[1] == "score (%) minus cross_entropy"
    assert "The data sets differ in their metric: test/accuracy, test/exact, test/f1, test/macro_f1." in table.notes


def test_an_arm_that_one_of_two_studies_on_a_data_set_lacks_is_named() -> None:
    """Finds an arm whose mean difference is over fewer studies than that of the others, without a word of it."""
    studies = {"a": of_two_arms("test/f1", "x"), "b": of_two_arms("test/f1", "x"), "c": of_two_arms("test/f1", "y")}
    frame = studies["b"].frame
    studies["b"] = Findings(frame.assign(state=frame["state"].mask(frame["arm"] == "dice", "failed")))
    table = {each.name: each for each in side_by_side(studies).tables}["across_data_sets"]
    assert "Missing: no difference to cross_entropy on x for dice." in table.notes


@pytest.mark.parametrize(
    "studies",
    [
        (("test/f1", "x"), ("test/mcc", "x"), ("test/f1", "y")),
        (("test/f1", "x", "cross_entropy"), ("test/f1", "y", "dice")),
    ],
    ids=["one data set by several metrics", "different baselines"],
)
def test_differences_that_have_no_mean_are_not_compared_over_data_sets(studies: tuple[tuple[str, ...], ...]) -> None:
    made = side_by_side({str(number): of_two_arms(*each) for number, each in enumerate(studies)})
    assert "across_data_sets" not in {each.name for each in made.tables}


TRIALS = [{"params.loss": "dice", "metrics.dev/f1": 0.5}, {"params.loss": "focal", "metrics.dev/f1": 0.75}]


def test_an_arm_stands_in_one_row_with_each_study_in_its_columns() -> None:
    more = [{"arm": "focal", "seed": 1, "metrics.test/f1": 0.4}]
    made = side_by_side({"first": frames.study(cells(3, 0.1)), "second": frames.study([*cells(5, 0.2), *more])})
    table = made.tables[0]
    assert table.name == "arms_side_by_side"
    rows = {row["arm"]: row for row in table.data.to_dict("records")}
    assert rows["dice"]["first: difference"] == pytest.approx(0.1, abs=1e-3)
    assert rows["dice"]["second: difference"] == pytest.approx(0.2, abs=1e-3)
    assert (rows["plain"]["first: seeds"], rows["plain"]["second: seeds"]) == (3, 5)
    assert [line.split(",")[2] for line in table.csv().splitlines()[1:]] == ["3", "3", ""], "no decimals, as shown"
    with_constant = [cell | {"metrics.test/constant_f1": 0.3} for cell in cells(3, 0.1)]
    both = side_by_side({"a": frames.study(with_constant), "b": frames.study(cells(3, 0.1))})
    assert f"{CONSTANT},0.3,,,,,,,,,\n" in both.tables[0].csv()
    shown = {row["arm"]: row for row in table.shown.to_dict("records")}
    assert shown["focal"]["first: test/f1 (%)"] == ""
    assert shown["focal"]["second: test/f1 (%)"] == "40.00"
    assert list(table.shown) == [
        "arm",
        *(f"{name}: {each}" for name in ("first", "second") for each in ("test/f1 (%)", "seeds", "minus plain")),
    ]


def test_each_data_set_of_a_study_has_columns_of_its_own() -> None:
    of_both = [*cells(3, 0.1, **{"tags.data": "x"}), *cells(3, 0.2, **{"tags.data": "y"})]
    table = side_by_side({"first": frames.study(of_both), "second": frames.study(cells(3, 0.3))}).tables[0]
    (dice,) = [row for row in table.data.to_dict("records") if row["arm"] == "dice"]
    differences = [dice[f"{place}: difference"] for place in ("first, x", "first, y", "second")]
    assert differences == pytest.approx([0.1, 0.2, 0.3], abs=1e-3)


def test_losses_of_sweeps_stand_beside_each_other() -> None:
    worse = {"params.loss": "dice", "metrics.dev/f1": 0.25}
    made = side_by_side({"a": frames.sweep([*TRIALS, worse]), "b": frames.sweep(TRIALS[:1])})
    table = made.tables[0]
    assert table.name == "losses_side_by_side"
    assert table.shown.to_numpy().tolist() == [["focal", "75.00", "1", "", ""], ["dice", "50.00", "2", "50.00", "1"]]


def test_each_part_has_the_name_of_its_experiment() -> None:
    experiments = {"a/b": frames.study(cells(3, 0.1)), "c": frames.sweep(TRIALS)}
    made, alone = side_by_side(experiments), report(experiments["c"])
    names = [each.name for part in (made.tables, made.figures) for each in part]
    assert {name.partition("-")[0] for name in names} == {"a_b", "c"}
    assert len(set(names)) == len(names)
    assert [f"c: {sentence}" for sentence in alone.summary] == [each for each in made.summary if each.startswith("c: ")]
    assert [origin.name for origin in made.origins] == ["study", "sweep"]
    assert "c-best_so_far.svg" in made.markdown()
