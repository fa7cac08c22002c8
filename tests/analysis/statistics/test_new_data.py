"""Differences on new data against their definition, against scipy, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics.intervals import Difference, paired_difference
from analysis.statistics.new_data import _of_all_counts, _ratio, item_parts, over_seeds_and_items
from dice_ray.metrics.answers import answer_scores, squad_score


def f1(counts: np.ndarray) -> np.ndarray:
    """The micro F1 of `counts_...3`."""
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    return np.asarray(2 * tp / (2 * tp + fp + fn))


def on_new_data(counts: np.ndarray, baseline: np.ndarray) -> Difference:
    """Of `counts_SI3`."""
    mine, its = (np.stack([_of_all_counts(seed) for seed in arm]) for arm in (counts, baseline))
    return over_seeds_and_items(mine, its)


def test_a_ratio_of_nothing_is_0() -> None:
    assert _ratio(np.array([[6.0, 9.0], [0.0, 0.0], [0.0, 5.0]])).tolist() == pytest.approx([6 / 9, 0, 0])


def test_the_two_parts_of_the_error() -> None:
    rng = np.random.default_rng(1)
    counts, baseline = rng.integers(0, 3, size=(2, 6, 300, 3))
    difference = on_new_data(counts, baseline)
    differences = f1(counts.sum(1)) - f1(baseline.sum(1))
    assert difference.interval.mean == pytest.approx(differences.mean())
    drawn = np.random.default_rng(2)
    means = []
    for _ in range(2000):
        items = drawn.integers(0, 300, 300)
        means.append((f1(counts[:, items].sum(1)) - f1(baseline[:, items].sum(1))).mean())
    of_seeds, of_items = differences.var(ddof=1) / 6, np.var(means)
    freedom = (of_seeds + of_items) ** 2 / (of_seeds**2 / 5 + of_items**2 / 299)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(of_seeds + of_items)
    assert difference.interval.high - difference.interval.mean == pytest.approx(half, rel=0.1)


def test_the_variance_over_few_documents_is_unbiased() -> None:
    """The bootstrap's own is two thirds of it for three documents: 8 % of studies of equal arms found a difference."""
    parts_SI2 = np.ones((2, 3, 2))
    parts_SI2[..., 0] = [[0.1, 0.5, 0.9], [0.2, 0.5, 0.9]]
    baseline = np.stack([np.zeros((2, 3)), np.ones((2, 3))], -1)
    both, of_seeds = over_seeds_and_items(parts_SI2, baseline).errors
    expected = parts_SI2[..., 0].mean(0).var(ddof=1) / 3
    assert both.size**2 - of_seeds.size**2 == pytest.approx(expected, rel=0.15)


def test_it_is_never_surer_than_on_this_test_set() -> None:
    rng = np.random.default_rng(5)
    narrower = 0
    for _ in range(20):
        worth = rng.normal(0.5, 0.05, size=(2, 3, 1))
        right = rng.random((2, 3, 200)) < worth
        arm, baseline = (np.stack([each, ~each, ~each], -1).astype(int) for each in right)
        difference = on_new_data(arm, baseline)
        ours, theirs = (dict(enumerate(f1(counts.sum(1)).tolist())) for counts in (arm, baseline))
        here = paired_difference(ours, theirs)
        assert difference.interval.high - difference.interval.low >= here.interval.high - here.interval.low - 1e-12
        assert difference.p >= here.p - 1e-12
        narrower += difference.p == pytest.approx(here.p)
    assert 0 < narrower < 20


def test_a_difference_that_is_the_same_with_each_seed_is_tested_over_items() -> None:
    """With the same predictions of all seeds, the seeds say nothing and the items do: of a share, by the binomial."""
    counts = np.ones((5, 200, 3), dtype=int)
    baseline = counts.copy()
    assert math.isnan(on_new_data(counts, baseline).p)
    baseline[:, :40, 0] = 0
    difference = on_new_data(counts, baseline)
    assert difference.p < 1e-6
    assert difference.interval.num == 5


def test_one_seed_or_one_item_has_no_interval() -> None:
    counts, baseline = np.random.default_rng(0).integers(0, 3, size=(2, 4, 5, 3))
    for seeds, items in ((slice(1), slice(5)), (slice(4), slice(1))):
        difference = on_new_data(counts[seeds, items], baseline[seeds, items])
        expected = f1(counts[seeds, items].sum(1)).mean() - f1(baseline[seeds, items].sum(1)).mean()
        assert difference.interval.mean == pytest.approx(expected)
        assert np.isnan([difference.interval.low, difference.interval.high, difference.p]).all()


def studies(num: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two arms that are equally good, each with items of its own that it is good at; seeds differ a little."""
    rng = np.random.default_rng(0)
    for _ in range(num):
        difficulty = rng.normal(0.8, 0.8, size=150)
        arms = []
        for liking in rng.normal(0, 1, size=(2, 150)):
            right = difficulty + liking + rng.normal(0, 0.3, size=(8, 150)) > 0
            arms.append(np.stack([right, ~right, ~right], -1).astype(int))
        yield arms[0], arms[1]


def test_an_interval_on_new_data_covers_where_one_on_this_test_set_does_not() -> None:
    covered, too_narrow = [], []
    for arm, baseline in studies(300):
        difference = on_new_data(arm, baseline).interval
        covered.append(difference.low <= 0 <= difference.high)
        ours, theirs = (dict(enumerate(f1(counts.sum(1)).tolist())) for counts in (arm, baseline))
        here = paired_difference(ours, theirs).interval
        too_narrow.append(here.low <= 0 <= here.high)
    assert 0.93 <= np.mean(covered) <= 0.99
    assert np.mean(too_narrow) < 0.85


def test_items_that_share_a_document_are_resampled_with_it() -> None:
    """Questions on 40 articles: by question, an interval covers as if there were many times as many articles."""
    rng, covered = np.random.default_rng(0), {"by item": 0, "by document": 0}
    num_studies, num_seeds = 50, 3
    for _ in range(num_studies):
        documents = np.repeat(np.arange(40), rng.integers(2, 15, 40))
        tables, stored = {}, {}
        for arm in ("arm", "baseline"):
            # Each arm is good at some articles; on average over articles they are equally good.
            liking = rng.normal(0.8, 0.8, 40)[documents]
            for seed in range(num_seeds):
                right = liking + rng.normal(0, 1, len(documents)) > 0
                table = pd.DataFrame({"tp": right, "fp": ~right, "fn": ~right}).astype(int)
                tables[f"{arm} {seed}"] = table.assign(document=documents.astype(str))
                stored[f"{arm} {seed}"] = float(right.mean())
        for name, known in (
            ("by document", tables),
            ("by item", {id_: table.drop(columns="document") for id_, table in tables.items()}),
        ):
            parts = item_parts(known, stored).parts
            arms = [np.stack([parts[f"{arm} {seed}"] for seed in range(num_seeds)]) for arm in ("arm", "baseline")]
            interval = over_seeds_and_items(arms[0], arms[1]).interval
            covered[name] += interval.low <= 0 <= interval.high
    assert covered["by item"] / num_studies < 0.8
    assert 0.92 <= covered["by document"] / num_studies <= 0.99


COUNTS = ["tp", "fp", "fn"]


def frame(*rows: tuple[int, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COUNTS, index=pd.Index([str(number) for number in range(len(rows))], name="id"))


def score(items: dict[str, pd.DataFrame], stored: dict[str, float]) -> dict[str, float]:
    return {id_: float(_ratio(parts.sum(0))) for id_, parts in item_parts(items, stored).parts.items()}


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


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("precision", lambda tp, fp, fn: tp / (tp + fp)),
        ("recall", lambda tp, fp, fn: tp / (tp + fn)),
        ("test/f2", lambda tp, fp, fn: 5 * tp / (5 * tp + fp + 4 * fn)),
        ("test/cost", lambda tp, fp, fn: 1000 * (1 * fp + 20 * fn) / 50),
    ],
)
def test_the_value_of_a_decision_from_its_counts(metric: str, score: Callable[..., float]) -> None:
    """Finds a cost, or a precision at a recall, that is compared on one test set alone."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.integers(0, 2, (50, 3)), columns=["tp", "fp", "fn"])
    stored = float(score(*table.sum()))
    found = item_parts({"a": table}, {"a": stored}, metric=metric, costs=(1.0, 20.0))
    assert _ratio(found.parts["a"].sum(0)) == pytest.approx(stored)
    assert "do not give" in item_parts({"a": table}, {"a": stored + 0.01}, metric=metric, costs=(1.0, 20.0)).why_not
    if metric.endswith("cost"):
        assert not item_parts({"a": table}, {"a": stored}, metric=metric).parts, "the costs of decisions may differ"
        other = found.parts["a"] * np.array([2.0, 1.0])
        mine, its = (np.stack([parts] * 5) for parts in (found.parts["a"], other))
        assert over_seeds_and_items(mine, its, bound=math.inf).interval.low < -stored, "a share differs by 1 at most"
