"""The table of classes: rare ones first, their F1 by arm, and a constant predictor only where there can be one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.frames import Findings
from analysis.statistics.intervals import t_interval
from analysis.tables.classes import by_class
from tests.analysis.cells import items, study

F1 = {"cross_entropy": [0.7, 0.71], "dice": [0.8, 0.79]}
CLASSES = {
    "cross_entropy-0": "class,support,tp,fp,fn\nO,6,5,2,1\nrare,2,0,1,2\n",
    "cross_entropy-1": "class,support,tp,fp,fn\nO,6,6,1,0\nrare,2,1,0,1\n",
    "dice-0": "class,support,tp,fp,fn\nO,6,5,0,1\nrare,2,2,1,0\n",
    "dice-1": "class,support,tp,fp,fn\nO,6,6,0,0\nrare,2,2,0,0\n",
}


def findings(frame: pd.DataFrame, num_items: int) -> Findings:
    files = {"test/classes.csv": CLASSES, "test/items.csv": items(dict.fromkeys(CLASSES, np.ones(num_items, bool)))}
    return Findings(
        frame, lambda runs, file: {id_: files[file][id_] for id_ in runs["id"] if id_ in files.get(file, {})}
    )


def test_rare_classes_stand_first_with_the_f1_of_each_arm() -> None:
    (table,) = by_class(findings(study(F1), 9))
    assert table.shown["class"].tolist() == ["rare", "O"]
    assert table.shown["support"].tolist() == ["2", "6"]
    assert list(table.shown) == ["class", "support", "cross_entropy", "dice"]
    of = {(row["class"], row["arm"]): row for row in table.data.to_dict("records")}
    expected = t_interval([0.0, 2 / 3])
    assert [of["rare", "cross_entropy"][name] for name in ("f1", "low", "high", "seeds")] == pytest.approx(
        [expected.mean, expected.low, expected.high, 2]
    )
    assert of["rare", "dice"]["f1"] == pytest.approx((0.8 + 1) / 2)
    assert table.marks == {(0, "dice"): "bold", (1, "dice"): "bold"}


def test_seeds_with_test_splits_of_their_own_have_wider_intervals_and_their_mean_support() -> None:
    frame = study(F1, test_per_train="0.5")
    texts = CLASSES | {"dice-1": CLASSES["dice-1"].replace("O,6,6", "O,10,10")}
    (table,) = by_class(Findings(frame, lambda runs, file: texts if file == "test/classes.csv" else {}))
    assert table.shown["support"].tolist() == ["2", "7"]
    of = {(row["class"], row["arm"]): row for row in table.data.to_dict("records")}
    expected = t_interval([0.0, 2 / 3], 0.5)
    rare = of["rare", "cross_entropy"]
    assert [rare["f1"], rare["low"], rare["high"]] == pytest.approx([expected.mean, expected.low, expected.high])


def test_a_constant_predictor_where_each_item_has_one_class() -> None:
    CLASSES_OF_ONE = dict.fromkeys(CLASSES, "class,support,tp,fp,fn\nO,6,5,2,1\nrare,2,0,1,2\n")
    frame = study(F1)
    files = {"test/classes.csv": CLASSES_OF_ONE, "test/items.csv": items(dict.fromkeys(CLASSES, np.ones(8, bool)))}
    (table,) = by_class(
        Findings(frame, lambda runs, file: {i: files[file][i] for i in runs["id"] if i in files.get(file, {})})
    )
    assert table.shown["constant predictor"].tolist() == [f"{100 * 4 / 10:.2f}", f"{100 * 12 / 14:.2f}"]
    (spans,) = by_class(findings(frame, 9))
    assert "constant predictor" not in spans.shown
    files["test/classes.csv"] = CLASSES | {"dice-1": "class,support,tp,fp,fn\nO,6,6,0,0\nrare,2,2,1,0\n"}
    (by_chance,) = by_class(
        Findings(frame, lambda runs, file: {i: files[file][i] for i in runs["id"] if i in files.get(file, {})})
    )
    assert "constant predictor" not in by_chance.shown, "eight spans in eight sentences"


def test_cells_that_failed_and_studies_without_classes() -> None:
    frame = study(F1)
    frame.loc[frame["id"] == "dice-0", "state"] = "failed"
    (table,) = by_class(findings(frame, 9))
    (rare,) = [row for row in table.data.to_dict("records") if (row["class"], row["arm"]) == ("rare", "dice")]
    assert (rare["f1"], rare["seeds"]) == (1, 1)
    assert "1 to 2 seeds each." in table.notes
    assert by_class(Findings(frame)) == []


def test_more_arms_than_are_shown() -> None:
    names = ["cross_entropy", *(f"arm {number}" for number in range(8))]
    frame = study({name: [number / 10] for number, name in enumerate(names)})
    files = {f"{name}-0": CLASSES["dice-0"] for name in names}
    (table,) = by_class(Findings(frame, lambda runs, file: files if file == "test/classes.csv" else {}))
    assert list(table.shown)[2:] == ["cross_entropy", "arm 7", "arm 6", "arm 5", "arm 4", "arm 3"]
    assert set(table.data["arm"]) == set(names)
    assert "The baseline and the 5 best arms of 9; classes.csv has all." in table.notes


@pytest.mark.parametrize("name", ["class", "support"])
def test_an_arm_called_as_a_column(name: str) -> None:
    """The F1 of the arm stood in the column of the classes, or in that of their support."""
    frame = study({"cross_entropy": [0.7], name: [0.8]})
    files = {f"{arm}-0": CLASSES["dice-0"] for arm in ("cross_entropy", name)}
    (table,) = by_class(Findings(frame, lambda runs, file: files if file == "test/classes.csv" else {}))
    assert list(table.shown) == ["class", "support", "cross_entropy", f"arm {name}"]
    assert table.shown["class"].tolist() == ["rare", "O"]
    assert table.shown["support"].tolist() == ["2", "6"]
    assert table.shown[f"arm {name}"].tolist() == table.shown["cross_entropy"].tolist()
