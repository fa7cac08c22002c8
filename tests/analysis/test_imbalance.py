"""The tables of inspected data sets: Table 1 with the published figures beside, and where there are none."""

from __future__ import annotations

import pytest

from analysis.figures.paper import _ImbalanceBars
from analysis.imbalance import _NUM_LABELS, imbalance_report
from analysis.paper.printed import table_1
from dice_ray.data.records import LoadReport, ReadReport, RowTally
from dice_ray.tasks.inspection import Inspection, _Lengths, _SplitFacts


def inspection(name: str, negatives: int, positives: int, labels: dict[str, int] | None = None) -> Inspection:
    facts = _SplitFacts(10, negatives, positives, labels or {"O": negatives, "B": positives}, _Lengths(3, 5, 9, 40), 1)
    read = {"train": ReadReport("a.txt", 12, 10, {"no label": RowTally(2, [3, 7])})}
    load = LoadReport(read, {"train": 10, "dev": 5}, {}, {"train and dev": 4})
    return Inspection(name, "tagging", "Words of the background, and others.", "words", {"train": facts}, load)


def test_table_1_has_the_published_figures_beside() -> None:
    table = imbalance_report([inspection("conll03", 169_578, 34_043), inspection("mine", 30, 0)]).tables[0]
    first, second = table.shown.to_dict("records")
    assert list(first.values()) == ["conll03", "tagging", "169,578", "34,043", "4.98", "170K", "34K", "4.98"]
    assert list(second.values()) == ["mine", "tagging", "30", "0", "", "", "", ""]
    assert table.data["ratio"][0] == 169_578 / 34_043
    assert any("169,578 and 34,043" in note for note in table.notes)


def test_without_a_published_set_nothing_is_said_of_the_paper() -> None:
    table = imbalance_report([inspection("mine", 30, 3)]).tables[0]
    assert list(table.data) == ["data", "task", "# neg", "# pos", "ratio"]
    assert table.notes == ("tagging counts: Words of the background, and others.",)


def test_what_was_dropped_and_what_stands_twice_is_said() -> None:
    text = imbalance_report([inspection("mine", 30, 3)]).text()
    assert "mine: 2 of 12 rows of a.txt dropped: no label (line 3, line 7)" in text
    assert "mine: 4 of 5 dev records also occur in train" in text


def test_the_file_holds_all_labels() -> None:
    every = {f"label {number}": number + 1 for number in range(_NUM_LABELS + 5)}
    table = imbalance_report([inspection("mine", 30, 3, every)]).tables[2]
    assert (len(table.data), len(table.shown)) == (_NUM_LABELS + 5, _NUM_LABELS)
    assert table.notes == (f"The first {_NUM_LABELS} labels of each; labels.csv has 5 more.",)
    assert table.data["share of train"].sum() == pytest.approx(1)


def test_the_published_ratios_are_those_of_the_counts_but_for_one() -> None:
    units = {"K": 1e3, "M": 1e6}
    off = []
    for name, row in table_1().items():
        negatives, positives = (float(text[:-1]) * units[text[-1]] for text in (row["negatives"], row["positives"]))
        if negatives / positives != pytest.approx(float(row["ratio"]), rel=0.01):
            off.append(name)
    assert off == ["squad1"]


def test_the_bars_stand_beside_their_ratio() -> None:
    (figure,) = imbalance_report([inspection("mine", 30, 3), inspection("none", 5, 0)]).figures
    assert isinstance(figure, _ImbalanceBars)
    assert figure.counts == (("mine", 30, 3), ("none", 5, 0))
    assert figure.labels == ["mine  (10.00 : 1)", "none  (no positives)"]
