"""Confusion counts, the worst items, and the F1 of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.frames import Findings
from analysis.statistics.intervals import t_interval
from analysis.tables.items import by_class, confusion, worst_items
from tests.analysis import frames
from tests.analysis.cells import items, study

ITEMS = {
    "plain-0-0": ["a,1,0,0", "b,0,0,1", "c,0,1,0", "d,0,0,0"],
    "plain-1-1": ["a,1,0,0", "b,0,0,1", "c,0,0,0", "d,0,0,0"],
    "dice-0-2": ["a,1,0,0", "b,0,0,1", "c,0,1,0", "d,0,1,0"],
    "dice-1-3": ["a,0,0,1", "b,0,0,1", "c,0,1,0", "d,0,1,0"],
    "none-0-4": ["a,0,0,1", "b,0,0,1", "c,0,0,0", "d,0,0,0"],
}
"""id, tp, fp and fn of four items of two classes, of which a and b are positive."""
CLASSES = {
    "plain-0-0": ["no,2,1,1,1", "yes,2,1,1,1"],
    "plain-1-1": ["no,2,2,1,0", "yes,2,1,0,1"],
    "dice-0-2": ["no,2,0,1,2", "yes,2,1,2,1"],
    "dice-1-3": ["no,2,0,2,2", "yes,2,0,2,2"],
    "none-0-4": ["no,2,2,2,0", "yes,2,0,0,2"],
}


def found(classes: dict[str, list[str]] = CLASSES) -> Findings:
    scores = {"plain": [0.5, 0.6], "dice": [0.7, 0.8], "none": [0.0]}
    cells = [
        {"arm": arm, "seed": seed, "metrics.test/f1": score, "tags.collapsed": str(arm == "none").lower()}
        for arm, of_arm in scores.items()
        for seed, score in enumerate(of_arm)
    ]
    files = {
        "test/items.csv": {id_: "\n".join(["id,tp,fp,fn", *rows]) for id_, rows in ITEMS.items()},
        "test/classes.csv": {id_: "\n".join(["class,support,tp,fp,fn", *rows]) for id_, rows in classes.items()},
    }
    return replace(frames.study(cells), texts=lambda runs, file: files.get(file, {}))


def test_of_two_classes_the_positive_one_is_counted() -> None:
    """Finds counts of the wrong class, sums in place of means, and true negatives that do not add up to all items."""
    (table,) = confusion(found())
    assert table.title == "Confusion counts of class yes by arm"
    assert table.shown.to_numpy().tolist() == [
        ["dice", "0.5", "2.0", "1.5", "0.0"],
        ["plain", "1.0", "0.5", "1.0", "1.5"],
        ["none", "0.0", "0.0", "2.0", "2.0"],
    ]


def test_of_several_classes_each_has_its_counts_for_the_best_arm_and_the_baseline() -> None:
    three = {id_: [*rows[:1], "maybe,0,0,0,0", *rows[1:]] for id_, rows in CLASSES.items()}
    (table,) = confusion(found(three))
    assert table.shown[["class", "arm"]].to_numpy().tolist() == [
        [label, arm] for label in ("no", "maybe", "yes") for arm in ("dice", "plain")
    ]
    assert len(table.data) == 9
    assert "The baseline and the best other arm; the CSV file has all." in table.notes, "of studies side by side too"


def test_the_items_that_most_runs_get_wrong_come_first() -> None:
    """Finds collapsed runs among those counted, items in another order, and counts of another arm."""
    (table,) = worst_items(found())
    assert [*table.shown] == ["item", "wrong in", "wrong in dice", "wrong in plain", "missed in", "false alarm in"]
    assert table.shown.to_numpy().tolist() == [
        ["b", "4 of 4", "2 of 2", "2 of 2", "4 of 4", "0 of 4"],
        ["c", "3 of 4", "2 of 2", "1 of 2", "0 of 4", "3 of 4"],
        ["d", "2 of 4", "2 of 2", "0 of 2", "0 of 4", "2 of 4"],
        ["a", "1 of 4", "1 of 2", "0 of 2", "1 of 4", "0 of 4"],
    ]
    assert table.notes[1] == "Wrong in every run: 1 of 4 items."
    assert table.title == "The test items that are wrong most often"
    assert not worst_items(replace(found(), texts=lambda runs, file: {}))
    # With the decision that the verdict is on, with which no run has collapsed.
    head, files = "id,tp,fp,fn,tuned_tp,tuned_fp,tuned_fn", {}
    for id_, rows in ITEMS.items():
        tuned = (f"{row},{row[2:]}".replace("0,0,1,0,0,1", "0,0,1,1,0,0") for row in rows)
        files[id_] = "\n".join([head, *tuned])
    frame = found().frame.copy()
    frame["metrics.test/f1_tuned"], frame["tags.threshold"] = frame["metrics.test/f1"], "tuned"
    (table,) = worst_items(replace(found(), frame=frame, texts=lambda runs, file: files if "items" in file else {}))
    assert [*map(tuple, table.shown[["item", "wrong in"]].to_numpy())] == [("c", "3 of 5"), ("d", "2 of 5")]
    assert table.notes[0].startswith("Over the runs of all arms with the decision fitted on dev. ")
    right = dict.fromkeys(ITEMS, "id,tp,fp,fn\na,1,0,0\nb,0,0,0")
    assert not worst_items(replace(found(), texts=lambda runs, file: right if "items" in file else {})), "all are right"


def with_probabilities(text: str = "false") -> Findings:
    """The same with what each run gives to the label of a, b, c and d; the run plain-1-1 is older and lacks them."""
    of_runs = {"plain-0-0": (0.9, 0.02, 0.4, 0.6), "dice-0-2": (0.8, 0.4, 0.01, 0.3), "dice-1-3": (0.4, 0.3, 0.03, 0.1)}
    items = {id_: [f"{row},{of}" for row, of in zip(ITEMS[id_], ofs, strict=True)] for id_, ofs in of_runs.items()}
    files = {id_: "\n".join(["id,tp,fp,fn,label_probability", *rows]) for id_, rows in items.items()}
    files["plain-1-1"] = "\n".join(["id,tp,fp,fn", *ITEMS["plain-1-1"], "e,0,1,0"])
    stored = {
        "test/items.csv": files,
        "test/classes.csv": {},
        "test/texts.csv": {"dice-0-2": f"id,text\nc,{'7' * 300}\nd,007\n"},
    }

    def read(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
        return {id_: text for id_, text in stored[file].items() if id_ in set(runs["id"])}

    findings = found()
    return replace(findings, frame=findings.frame.assign(**{"params.tracking.text": text}), texts=read)


def test_of_items_that_are_wrong_equally_often_the_most_confident_errors_come_first() -> None:
    """Finds runs without probabilities counted as 0, and the order of confident errors turned round."""
    findings = with_probabilities()
    findings.items["plain-1-1"].loc["c", "fp"] = 1
    (table,) = worst_items(findings)
    by_item = table.shown.set_index("item")
    assert by_item["wrong in"].head(3).to_dict() == {"e": "1 of 1", "c": "4 of 4", "b": "4 of 4"}
    assert list(by_item.index)[:3] == ["c", "b", "e"], "e is wrong in one run, which has no probabilities"
    assert by_item["probability"].to_dict() == {"c": "0.147", "b": "0.240", "e": "", "d": "0.333", "a": "0.700"}
    assert any(note.startswith("Probability: the mean") for note in table.notes)


def test_texts_are_shown_only_of_runs_that_may_store_them() -> None:
    """Finds texts of runs whose settings forbid them, texts read as numbers, and ones that fill the page."""
    (table,) = worst_items(with_probabilities(text="false"))
    assert "text" not in table.shown
    (table,) = worst_items(with_probabilities(text="true"))
    texts = table.shown.set_index("item")["text"].to_dict()
    assert (texts["b"], texts["d"], texts["a"]) == ("", "007", "")
    assert texts["c"] == "7" * 199 + "…"
    assert len(table.data.set_index("item")["text"]["c"]) == 300


def test_splits_of_their_own_count_each_item_where_it_was_scored() -> None:
    """Finds an item counted as scored in runs that never saw it."""
    findings = found()
    findings.items["dice-1-3"].index = findings.items["plain-1-1"].index = ["a", "b", "x", "y"]
    (table,) = worst_items(findings)
    by_item = table.shown.set_index("item")["wrong in"].to_dict()
    assert by_item == {"b": "4 of 4", "c": "2 of 2", "d": "1 of 2", "x": "1 of 2", "y": "1 of 2", "a": "1 of 4"}


F1 = {"cross_entropy": [0.7, 0.71], "dice": [0.8, 0.79]}
COUNTS = {
    "cross_entropy-0": "class,support,tp,fp,fn\nO,6,5,2,1\nrare,2,0,1,2\n",
    "cross_entropy-1": "class,support,tp,fp,fn\nO,6,6,1,0\nrare,2,1,0,1\n",
    "dice-0": "class,support,tp,fp,fn\nO,6,5,0,1\nrare,2,2,1,0\n",
    "dice-1": "class,support,tp,fp,fn\nO,6,6,0,0\nrare,2,2,0,0\n",
}


def findings(frame: pd.DataFrame, num_items: int, classes: Mapping[str, str] = COUNTS) -> Findings:
    files = {"test/classes.csv": classes, "test/items.csv": items(dict.fromkeys(COUNTS, np.ones(num_items, bool)))}
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
    texts = COUNTS | {"dice-1": COUNTS["dice-1"].replace("O,6,6", "O,10,10")}
    (table,) = by_class(Findings(frame, lambda runs, file: texts if file == "test/classes.csv" else {}))
    assert table.shown["support"].tolist() == ["2", "7"]
    of = {(row["class"], row["arm"]): row for row in table.data.to_dict("records")}
    expected = t_interval([0.0, 2 / 3], 0.5)
    rare = of["rare", "cross_entropy"]
    assert [rare["f1"], rare["low"], rare["high"]] == pytest.approx([expected.mean, expected.low, expected.high])


def test_a_constant_predictor_where_each_item_has_one_class() -> None:
    frame = study(F1)
    (table,) = by_class(findings(frame, 8, dict.fromkeys(COUNTS, COUNTS["cross_entropy-0"])))
    assert table.shown["constant predictor"].tolist() == [f"{100 * 4 / 10:.2f}", f"{100 * 12 / 14:.2f}"]
    (spans,) = by_class(findings(frame, 9))
    assert "constant predictor" not in spans.shown
    more = COUNTS | {"dice-1": "class,support,tp,fp,fn\nO,6,6,0,0\nrare,2,2,1,0\n"}
    (by_chance,) = by_class(findings(frame, 8, more))
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
    files = {f"{name}-0": COUNTS["dice-0"] for name in names}
    (table,) = by_class(Findings(frame, lambda runs, file: files if file == "test/classes.csv" else {}))
    assert list(table.shown)[2:] == ["cross_entropy", "arm 7", "arm 6", "arm 5", "arm 4", "arm 3"]
    assert set(table.data["arm"]) == set(names)
    assert "The baseline and the 5 best arms of 9; the CSV file has all." in table.notes


@pytest.mark.parametrize("name", ["class", "support"])
def test_an_arm_called_as_a_column(name: str) -> None:
    """The F1 of the arm stood in the column of the classes, or in that of their support."""
    frame = study({"cross_entropy": [0.7], name: [0.8]})
    files = {f"{arm}-0": COUNTS["dice-0"] for arm in ("cross_entropy", name)}
    (table,) = by_class(Findings(frame, lambda runs, file: files if file == "test/classes.csv" else {}))
    assert list(table.shown) == ["class", "support", "cross_entropy", f"arm {name}"]
    assert table.shown["class"].tolist() == ["rare", "O"]
    assert table.shown["support"].tolist() == ["2", "6"]
    assert table.shown[f"arm {name}"].tolist() == table.shown["cross_entropy"].tolist()
