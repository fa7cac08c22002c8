"""Several experiments in one report: what they share in one table, then each by its name."""

from __future__ import annotations

import pytest

from analysis.report import report, side_by_side
from tests.analysis.frames import study, sweep
from tests.analysis.test_outcome import cells

TRIALS = [{"params.loss": "dice", "metrics.dev/f1": 0.5}, {"params.loss": "focal", "metrics.dev/f1": 0.75}]


def test_an_arm_stands_in_one_row_with_each_study_in_its_columns() -> None:
    more = [{"arm": "focal", "seed": 1, "metrics.test/f1": 0.4}]
    made = side_by_side({"first": study(cells(3, 0.1)), "second": study([*cells(5, 0.2), *more])})
    table = made.tables[0]
    assert table.name == "arms_side_by_side"
    rows = {row["arm"]: row for row in table.data.to_dict("records")}
    assert rows["dice"]["first: difference"] == pytest.approx(0.1, abs=1e-3)
    assert rows["dice"]["second: difference"] == pytest.approx(0.2, abs=1e-3)
    assert (rows["plain"]["first: seeds"], rows["plain"]["second: seeds"]) == (3, 5)
    shown = {row["arm"]: row for row in table.shown.to_dict("records")}
    assert shown["focal"]["first: test/f1 (%)"] == ""
    assert shown["focal"]["second: test/f1 (%)"] == "40.00"
    assert list(table.shown) == [
        "arm",
        *(f"{name}: {each}" for name in ("first", "second") for each in ("test/f1 (%)", "seeds", "minus plain")),
    ]


def test_each_data_set_of_a_study_has_columns_of_its_own() -> None:
    of_both = [*cells(3, 0.1, **{"tags.data": "x"}), *cells(3, 0.2, **{"tags.data": "y"})]
    table = side_by_side({"first": study(of_both), "second": study(cells(3, 0.3))}).tables[0]
    (dice,) = [row for row in table.data.to_dict("records") if row["arm"] == "dice"]
    differences = [dice[f"{place}: difference"] for place in ("first, x", "first, y", "second")]
    assert differences == pytest.approx([0.1, 0.2, 0.3], abs=1e-3)


def test_losses_of_sweeps_stand_beside_each_other() -> None:
    worse = {"params.loss": "dice", "metrics.dev/f1": 0.25}
    made = side_by_side({"a": sweep([*TRIALS, worse]), "b": sweep(TRIALS[:1])})
    table = made.tables[0]
    assert table.name == "losses_side_by_side"
    assert table.shown.to_numpy().tolist() == [["focal", "75.00", "1", "", ""], ["dice", "50.00", "2", "50.00", "1"]]


def test_each_part_has_the_name_of_its_experiment() -> None:
    experiments = {"a/b": study(cells(3, 0.1)), "c": sweep(TRIALS)}
    made, alone = side_by_side(experiments), report(experiments["c"])
    names = [each.name for part in (made.tables, made.figures) for each in part]
    assert {name.partition("-")[0] for name in names} == {"a_b", "c"}
    assert len(set(names)) == len(names)
    assert [f"c: {sentence}" for sentence in alone.summary] == [each for each in made.summary if each.startswith("c: ")]
    assert [origin.name for origin in made.origins] == ["study", "sweep"]
    assert "c-best_so_far.svg" in made.markdown()
