"""The tables of a study: two questions, who wins, and what is tuned, missing or left out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.statistics.best_arm import TUNED
from analysis.statistics.intervals import ALPHA, holm_of, t_interval
from analysis.statistics.new_data import _of_all_counts, over_seeds_and_items
from analysis.tables.base import ReportTable
from analysis.tables.study import comparison, left_out
from analysis.verdict import verdicts
from tests.analysis.cells import items, study

RNG = np.random.default_rng(0)
RIGHT = {
    f"{arm}-{seed}": RNG.normal(size=400) < worth
    for arm, worth in (("cross_entropy", 0.3), ("focal", 0.35), ("dice", 0.9))
    for seed in range(10)
}
ACCURACY = {
    arm: [float(RIGHT[f"{arm}-{seed}"].mean()) for seed in range(10)] for arm in ("cross_entropy", "focal", "dice")
}


def findings(frame: pd.DataFrame, files: Mapping[tuple[str, str], str]) -> Findings:
    return Findings(frame, lambda runs, file: {id_: files[id_, file] for id_ in runs["id"] if (id_, file) in files})


def with_items(frame: pd.DataFrame, rights: Mapping[str, np.ndarray] = RIGHT) -> Findings:
    return findings(frame, {(id_, "test/items.csv"): text for id_, text in items(rights).items()})


def rows(table: ReportTable) -> dict[str, dict[str, Any]]:
    return {str(row["arm"]): {str(name): value for name, value in row.items()} for row in table.data.to_dict("records")}


def marked(table: ReportTable, arm: str, mark: str) -> set[str]:
    """The headings of the cells of an arm that have a mark."""
    number = table.data["arm"].tolist().index(arm)
    return {name for (row, name), of_cell in table.marks.items() if (row, of_cell) == (number, mark)}


def test_on_new_data_is_the_bootstrap_of_the_stored_counts() -> None:
    (table,) = comparison(with_items(study(ACCURACY, "test/accuracy")))
    parts = {arm: np.stack([_of_all_counts(counts(RIGHT[f"{arm}-{seed}"])) for seed in range(10)]) for arm in ACCURACY}
    expected = {arm: over_seeds_and_items(parts[arm], parts["cross_entropy"]) for arm in ("focal", "dice")}
    for arm, difference in zip(expected, holm_of(list(expected.values())), strict=True):
        row = rows(table)[arm]
        assert [row["new_data_low"], row["new_data_high"], row["new_data_holm_p"]] == pytest.approx(
            [difference.interval.low, difference.interval.high, difference.p]
        )
        assert row["difference"] == pytest.approx(difference.interval.mean)


def counts(right: np.ndarray) -> np.ndarray:
    return np.stack([right, ~right, ~right], -1).astype(float)


@pytest.mark.parametrize(
    ("rights", "why"),
    [
        ({}, "no cell has the counts of its test items"),
        ({**RIGHT, "dice-3": RIGHT["dice-3"][:-1]}, "the cells were not scored on the same test items"),
        ({**RIGHT, "dice-3": ~RIGHT["dice-3"]}, "the counts of the test items do not give the stored score"),
        (RIGHT, "the score is not on the test split"),
    ],
)
def test_without_counts_that_fit_nothing_is_said_of_new_data(rights: dict[str, np.ndarray], why: str) -> None:
    metric = "dev/accuracy" if "test split" in why else "test/accuracy"
    (table,) = comparison(with_items(study(ACCURACY, metric), rights))
    assert not [name for name in [*table.data, *table.shown] if "new" in str(name) or str(name) == "Holm p, new data"]
    assert f"On new data: not estimated, because {why}." in table.text()


def test_over_splits_of_their_own_seeds_say_less_and_nothing_of_one_test_set() -> None:
    scores = {"cross_entropy": [0.50, 0.52, 0.51, 0.53, 0.50, 0.52], "dice": [0.53, 0.54, 0.52, 0.56, 0.52, 0.55]}
    frames = study(scores), study(scores, test_per_train="0.28", tuned="sweep 0001")
    for frame in frames:
        frame["metrics.test/pr_auc"] = frame["metrics.test/f1"]
        frame["metrics.test/constant_f1"] = frame["seed"].astype("float64") / 100
    (here,), (drawn,) = (comparison(findings(frame, {})) for frame in frames)
    assert rows(here)["dice"]["holm_p"] < ALPHA
    assert rows(drawn)["dice"]["holm_p"] > rows(here)["dice"]["holm_p"]
    for name in ("cross_entropy", "dice"):
        widths = [np.ptp(special.logit([rows(table)[name][end] for end in ("low", "high")])) for table in (drawn, here)]
        assert widths[0] / widths[1] == pytest.approx(math.sqrt((1 / 6 + 0.28) * 6))
        assert rows(drawn)[name]["pr_auc_low"] == rows(drawn)[name]["low"]
    constant = rows(drawn)["constant predictor"]
    assert constant["high"] == pytest.approx(t_interval([seed / 100 for seed in range(6)], 0.28).high)
    text = " ".join(drawn.text().split())
    assert "Each seed drew its own test split" in text
    assert "(1/n + 0.28) s^2" in text
    assert "scores of tuned arms are slightly too high" in text
    (untuned,) = comparison(findings(study(scores, test_per_train="0.28"), {}))
    (here_tuned,) = comparison(findings(study(scores, tuned="sweep 0001"), {}))
    assert not any("slightly too high" in table.text() for table in (untuned, here_tuned))
    (verdict,) = verdicts(findings(study(scores, test_per_train="0.28", tuned="sweep 0001"), {}))
    assert "Better than cross_entropy on other splits: dice +" in verdict.headline
    assert "this test set" not in text
    assert "other seeds on this test set" in here.text()


@pytest.mark.parametrize("metric", ["test/mcc", "test/saved"])
@pytest.mark.parametrize("lowest", [0.0, -0.001])
def test_scores_above_chance_do_not_exclude_chance(metric: str, lowest: float) -> None:
    """As shares, MCC near 0 had intervals above 0, differences up to 1, and one seed below 0 changed both."""
    scores = {"cross_entropy": [0, 0.01, 0.02, 0, 0.03], "dice": [lowest, 0.01, 1, 1, 1]}
    frame = study({**scores, "control_dice": scores["dice"]}, metric)
    frame["tags.control"] = frame["arm"].map({"control_dice": "dice"})
    (table,), (compared,) = comparison(Findings(frame)), comparisons(Findings(frame))
    for arm, of_arm in scores.items():
        mean, (low, high) = np.mean(of_arm), stats.ttest_1samp(of_arm, 0).confidence_interval(0.95)
        if metric == "test/mcc":
            # Fisher's z by the delta method.
            low, high = np.tanh(np.arctanh(mean) + (np.array([low, high]) - mean) / (1 - mean**2))
        assert low < 0
        assert [rows(table)[arm]["low"], rows(table)[arm]["high"]] == pytest.approx([low, high])
    expected = stats.ttest_rel(scores["dice"], scores["cross_entropy"]).confidence_interval(0.95)
    assert [rows(table)["dice"][f"difference_{end}"] for end in ("low", "high")] == pytest.approx([*expected])
    assert expected.high > 1
    (control,) = compared.controls
    assert control.difference.interval.high == pytest.approx(expected.high)


def test_at_the_tuned_threshold_its_own_counts_say_how_sure_it_is_on_new_data() -> None:
    frame = study(ACCURACY, "test/accuracy")
    frame["tags.threshold"] = None
    frame["metrics.test/threshold"] = 0.4
    frame["metrics.test/accuracy_tuned"] = [math.nan, *(score for arm in ACCURACY for score in ACCURACY[arm][::-1])]
    tuned = {f"{arm}-{seed}": RIGHT[f"{arm}-{9 - seed}"] for arm in ACCURACY for seed in range(10)}
    texts = {
        id_: pd.DataFrame(
            np.hstack([counts(right), counts(tuned[id_])]),
            columns=["tp", "fp", "fn", "tuned_tp", "tuned_fp", "tuned_fn"],
        ).to_csv(index_label="id")
        for id_, right in RIGHT.items()
    }
    (table,) = comparison(findings(frame, {(id_, "test/items.csv"): text for id_, text in texts.items()}))
    plain, at_tuned = rows(table)["dice"], rows(table)["dice (tuned threshold)"]
    assert not pd.isna(at_tuned["new_data_low"])
    assert pd.isna(plain["new_data_low"])
    (plainly,) = comparison(with_items(study(ACCURACY, "test/accuracy")))
    assert at_tuned["new_data_low"] == pytest.approx(rows(plainly)["dice"]["new_data_low"], abs=1e-3)


def test_what_this_test_set_is_significant_a_few_items_may_not() -> None:
    """Two items of thirty make the difference, in every seed."""
    right = {
        f"{arm}-{seed}": np.arange(30) < better + (seed % 3 == 0)
        for arm, better in (("cross_entropy", 15), ("dice", 17))
        for seed in range(10)
    }
    right |= {f"dice-{seed}": np.arange(30) < 18 for seed in range(2)}
    scores = {arm: [float(right[f"{arm}-{seed}"].mean()) for seed in range(10)] for arm in ("cross_entropy", "dice")}
    (table,) = comparison(with_items(study(scores, "test/accuracy"), right))
    assert rows(table)["dice"]["holm_p"] < ALPHA < rows(table)["dice"]["new_data_holm_p"]
    assert marked(table, "dice", "grey") == {"on new data", "Holm p, new data"}


def test_an_arm_whose_items_are_lost_has_no_interval_on_new_data() -> None:
    rights = {id_: right for id_, right in RIGHT.items() if id_ != "focal-3"}
    (table,) = comparison(with_items(study(ACCURACY, "test/accuracy"), rights))
    lost, kept = rows(table)["focal"], rows(table)["dice"]
    assert pd.isna(lost["new_data_low"])
    assert not pd.isna(kept["new_data_low"])
    assert not pd.isna(lost["difference_low"])
    assert "Not estimated on new data, because cells lack the counts of their test items: focal." in table.notes


def test_the_winner_beats_every_other_row_on_both_questions() -> None:
    found = with_items(study(ACCURACY, "test/accuracy"))
    (table,), (verdict,) = comparison(found), verdicts(found)
    over = 100 * (np.mean(ACCURACY["dice"]) - np.mean(ACCURACY["focal"]))
    assert verdict.headline.startswith("Better than cross_entropy on new data: ")
    assert f"and better than every other arm (+{over:.2f} over focal)" in verdict.headline
    assert marked(table, "dice", "bold") == {"test/accuracy (%)"}
    assert not marked(table, "dice", "grey")
    (table,) = comparison(findings(study({"cross_entropy": [0.5, 0.6, 0.7] * 2, "dice": [0.6, 0.5, 0.8] * 2}), {}))
    assert "bold" not in table.marks.values(), "the best mean alone does not win"


def test_how_often_an_arm_is_ahead_is_counted_over_shared_seeds() -> None:
    scores = {"cross_entropy": [0.5, 0.6, 0.7, np.nan], "dice": [0.6, 0.6, 0.8, 0.9], "focal": [np.nan] * 4}
    (table,) = comparison(findings(study(scores), {}))
    assert [rows(table)[arm]["seeds_ahead"] for arm in ("dice", "focal")] == [2, None]
    assert table.shown["ahead in"].tolist() == ["2 of 3", "", ""]


def test_the_area_under_the_curve_stands_beside_the_score() -> None:
    frame = study({"cross_entropy": [0.5, 0.6, 0.7], "dice": [0.6, 0.7, np.nan]})
    (without,) = comparison(findings(frame, {}))
    assert not [name for name in [*without.data, *without.shown] if "auc" in str(name).lower()]
    frame["metrics.test/pr_auc"] = [np.nan, 0.7, 0.8, 0.9, 0.6, 0.8, 0.1]
    frame = frame.assign(**{"metrics.test/f1_tuned": 0.75, "metrics.test/threshold": 0.4})
    (table,) = comparison(findings(frame, {}))
    area = t_interval([0.7, 0.8, 0.9])
    plain = rows(table)["cross_entropy"]
    assert [plain["pr_auc"], plain["pr_auc_low"], plain["pr_auc_high"]] == [area.mean, area.low, area.high]
    assert rows(table)["dice"]["pr_auc"] == pytest.approx(0.7), "the last value of a failed cell does not count"
    assert table.shown["PR-AUC (%)"].tolist()[1].startswith("80.00 [")
    assert "PR-AUC (%)" in table.tips
    assert pd.isna(rows(table)["dice (tuned threshold)"]["pr_auc"]), "no threshold changes it: it stands once"
    of_cost = frame.replace("test/f1", "test/cost").rename(columns=lambda name: name.replace("/f1", "/cost"))
    (table,) = comparison(findings(of_cost, {}))
    assert "80.00 [" in " ".join(table.shown["PR-AUC (%)"]), "a share beside every score"


def test_a_second_reading_of_the_same_runs_is_no_rival() -> None:
    frame = study(ACCURACY, "test/accuracy")
    frame["metrics.test/threshold"] = 0.4
    frame["metrics.test/accuracy_tuned"] = frame["metrics.test/accuracy"] + frame["seed"].mod(2).map(
        {0: -1e-6, 1: 3e-6}
    )
    found = findings(frame.assign(**{"tags.threshold": "tuned"}), {})
    (table,), (verdict,) = comparison(found), verdicts(found)
    over = 100 * (np.mean(ACCURACY["dice"]) - np.mean(ACCURACY["focal"]))
    assert f"and better than every other arm (+{over:.2f} over focal{TUNED[0]})" in verdict.headline
    assert marked(table, f"dice{TUNED[0]}", "bold")
    assert [is_open for _, _, is_open in table.bodies] == [True, False], "the rows that are compared come first"


def test_what_is_not_told_apart_is_grey() -> None:
    (table,) = comparison(findings(study({"cross_entropy": [0.7, 0.71, 0.69] * 2, "dice": [0.7, 0.72, 0.68] * 2}), {}))
    assert marked(table, "dice", "grey") == {"minus cross_entropy", "Holm p"}
    assert r"\textcolor{gray}{1.000}" in table.latex()
    assert "| *1.000* |" in table.markdown()
    assert "*" not in table.text()
    (untested,) = comparison(findings(study({"cross_entropy": [0.5, 0.75], "dice": [0.25, 0.5]}), {}))
    assert "Holm p" in marked(untested, "dice", "grey"), "one difference in all seeds has no p"
    scores = {"cross_entropy": [0.5, 0.51, 0.52, 0.5, 0.51], "dice": [0.7, 0.711, 0.72, 0.7, 0.711]}
    (three,) = comparison(findings(study({arm: of_arm[:3] for arm, of_arm in scores.items()}), {}))
    (five,) = comparison(findings(study(scores), {}))
    assert math.isnan(rows(three)["dice"]["holm_p"]), "few seeds are not tested, so no p is corrected"
    assert marked(three, "dice", "grey") == {"minus cross_entropy", "Holm p"}
    assert not marked(five, "dice", "grey")


def test_an_arm_has_one_row_and_the_rest_is_folded() -> None:
    """Finds a table that shows the tuned or collapsed rows among the losses, or hides the winner or every arm."""
    frame = study({"cross_entropy": [0.5] * 5, "dice": [0.6, 0.7, 0.6, 0.7, 0.6], "tversky": [0.0] * 5})
    frame["metrics.test/collapsed"] = (frame["arm"] == "tversky").astype(float)
    frame["metrics.test/f1_tuned"] = frame["metrics.test/f1"] + 0.1 * frame["seed"]
    frame["metrics.test/threshold"] = 0.4
    frame["metrics.test/constant_f1"] = 0.2
    (table,) = comparison(findings(frame, {}))
    parts = {name: table.data["arm"].iloc[rows.start : rows.stop].tolist() for name, rows, _ in table.bodies}
    assert [*parts.values()] == [
        ["dice", "cross_entropy", "constant predictor"],
        [f"{arm} (tuned threshold)" for arm in ("dice", "cross_entropy", "tversky")],
        ["tversky"],
    ]
    assert "failed" not in table.shown
    assert set(table.tips) >= {*table.shown} - {"arm", "test/f1 (%)"}
    frame["metrics.test/collapsed"] = 1.0
    (table,) = comparison(findings(frame, {}))
    assert table.data["arm"].tolist()[:3] == ["dice", "cross_entropy", "tversky"], "not folded"


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"class_weights": {"dice": "0.5 (no) to 5 (yes)"}}, "Class weights: dice has 0.5 (no) to 5 (yes)."),
        ({}, "No arm is tuned: each runs with the settings of its definition."),
        (
            {"tuned": {"dice": "search-ab t3, best of 6"}},
            "Tuned on dev, with other seeds than those compared here: cross_entropy (not tuned); dice (search-ab t3, "
            "best of 6).",
        ),
        ({}, "Missing: no cell of seed 0, 2 for dice."),
    ],
)
def test_the_notes_say_what_the_numbers_do_not(columns: dict[str, dict[str, str]], note: str) -> None:
    scores = {"cross_entropy": [0.7, 0.71, 0.69], "dice": [0.7, 0.72, 0.68]}
    frame = study(scores)
    frame = frame.assign(**{f"tags.{tag}": frame["arm"].map(of_arm) for tag, of_arm in columns.items()})
    (table,) = comparison(with_items(frame[~frame["id"].isin(["dice-0", "dice-2"])], RIGHT))
    assert note in table.notes


def test_variants_are_compared_by_themselves() -> None:
    frame = pd.concat(
        [
            study({"cross_entropy": [0.7, 0.71], "dice": [0.8, 0.79]}, data="qqp", variant="original"),
            study({"cross_entropy": [0.5, 0.51], "dice": [0.4, 0.49]}, data="qqp", variant="+ positive"),
            study({"cross_entropy": [0.6, 0.61], "dice": [0.3, 0.39]}, data="qqp", encoder="mini", variant="qqp, mini"),
        ]
    )
    tables = comparison(Findings(frame))
    assert [table.title for table in tables] == [
        f"test/f1 by arm on {place}" for place in ("qqp, original", "qqp, + positive", "qqp, mini")
    ], "a place says each word once"
    assert rows(tables[1])["dice"]["mean"] == pytest.approx(0.445)


def test_arms_left_out_stand_with_their_reason() -> None:
    frame = study({"cross_entropy": [0.7], "dice": [0.8]})
    arms = [{"variant": None, "arm": "asymmetric", "reason": "takes sigmoid heads alone"}]
    (table,) = left_out(findings(frame, {("study", "left_out.json"): json.dumps(arms)}))
    assert table.shown.to_numpy().tolist() == [["asymmetric", "takes sigmoid heads alone"]]
    assert not left_out(Findings(frame))
