"""Counts of test items as parts of the score: only where they give the score that is stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.item_counts import item_parts
from analysis.new_data import ratio
from dice_ray.metrics.answers import answer_scores, squad_score

COUNTS = ["tp", "fp", "fn"]


def frame(*rows: tuple[int, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COUNTS, index=pd.Index([str(number) for number in range(len(rows))], name="id"))


def score(items: dict[str, pd.DataFrame], stored: dict[str, float]) -> dict[str, float]:
    return {id_: float(ratio(parts.sum(0))) for id_, parts in item_parts(items, stored).parts.items()}


def test_micro_f1() -> None:
    items = {"a": frame((2, 1, 0), (0, 0, 3), (0, 0, 0)), "b": frame((0, 0, 2), (3, 0, 0), (0, 1, 0))}
    stored = {"a": 4 / 8, "b": 6 / 9}
    assert score(items, stored) == pytest.approx(stored)


def test_accuracy_of_items_with_one_label() -> None:
    right, wrong = (1, 0, 0), (0, 1, 1)
    assert score({"a": frame(right, wrong, right)}, {"a": 2 / 3}) == pytest.approx({"a": 2 / 3})


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_mean_f1_of_answers_as_it_is_scored(version: str) -> None:
    answers = [("the red box", ["red box of tin"]), ("", []), ("a lamp", []), ("", ["a lamp"]), ("blue", ["red"])]
    scores = [squad_score(str(number), *answer, version) for number, answer in enumerate(answers)]  # type: ignore[arg-type]
    items = frame(*[(one.counts.tp, one.counts.fp, one.counts.fn) for one in scores])
    stored = {"a": answer_scores(scores)["f1"]}
    assert score({"a": items}, stored) == pytest.approx(stored)


def test_a_score_that_the_counts_do_not_give_is_not_guessed() -> None:
    items = {"a": frame((2, 1, 0), (1, 0, 3)), "b": frame((2, 1, 0), (1, 1, 3))}
    result = item_parts(items, {"a": 6 / 10, "b": 6 / 11 + 1e-5})
    assert not result.parts
    assert result.why_not == "the counts of the test items do not give the stored score"


def test_other_items_are_not_paired() -> None:
    other = frame((2, 1, 0), (1, 0, 3)).set_axis(["1", "0"])
    result = item_parts({"a": frame((2, 1, 0), (1, 0, 3)), "b": other}, {"a": 0.6, "b": 0.6})
    assert result.why_not == "the cells were not scored on the same test items"


@pytest.mark.parametrize("scored", ["micro", "mean"])
def test_items_of_one_document_are_counted_together(scored: str) -> None:
    items, documents = frame((2, 1, 0), (0, 0, 3), (1, 0, 0), (0, 1, 1)), ["b", "a", "b", "c"]
    known = items.assign(document=documents)
    stored = 6 / 12 if scored == "micro" else (0.8 + 0 + 1 + 0) / 4
    wanted = [[0, 3], [6, 7], [0, 2]] if scored == "micro" else [[0, 1], [1.8, 2], [0, 1]]
    parts = item_parts({"a": known, "old": items}, {"a": stored, "old": stored}).parts
    assert parts["a"].tolist() == parts["old"].tolist() == [pytest.approx(each) for each in wanted]
    assert len(item_parts({"a": items}, {"a": stored}).parts["a"]) == 4, "without documents, by item"


def test_the_counts_at_the_tuned_threshold() -> None:
    both = frame((1, 0, 1), (0, 1, 0)).join(frame((2, 0, 0), (0, 0, 0)).add_prefix("tuned_"))
    result = item_parts({"a": both, "old": frame((1, 0, 1), (0, 1, 0))}, {"a": 1.0, "old": 0.9}, "tuned_")
    assert {id_: parts.tolist() for id_, parts in result.parts.items()} == {"a": [[4, 4], [0, 0]]}
    assert item_parts({}, {"a": 1.0}).why_not == "no cell has the counts of its test items"
    assert np.array_equal(item_parts({"a": both}, {"a": 0.5}).parts["a"], [[2, 3], [0, 1]])
