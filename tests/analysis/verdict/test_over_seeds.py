"""The verdict on arms over seeds: each outcome, and that no sentence contradicts the table it stands above."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from analysis.comparison import CONSTANT, comparisons
from analysis.figures.differences import forests
from analysis.frames import Findings
from analysis.statistics.best_arm import TUNED, arm_of
from analysis.statistics.intervals import paired_difference
from analysis.tables.base import ReportTable
from analysis.tables.study import comparison
from analysis.verdict import verdicts
from analysis.verdict.base import MoreSeeds, Verdict, card_of
from analysis.verdict.decision import Decision, _Outcome, decide, open_arms
from analysis.verdict.over_seeds import _ONE_SEARCH, over_seeds
from dice_ray.metrics.catalogue import gain
from tests.analysis.cells import items, study
from tests.analysis.frames import study as made_up

RNG = np.random.default_rng(0)
JITTER = RNG.normal(0, 0.01, 20)
ARMS = ("plain", "dice", "focal", "tversky")


def around(mean: float, num: int = 10, spread: float = 1.0) -> list[float]:
    """Scores of so many seeds around a mean, with a spread of their own."""
    return [float(score) for score in mean + JITTER[:num] + spread * RNG.normal(0, 0.002, num)]


def framed(
    scores: Mapping[str, Sequence[float]],
    *,
    constant: float | None = 0.2,
    collapsed: tuple[str, ...] = (),
    looks: str | None = None,
    care: str | None = None,
    metric: str = "f1",
    **tags: str,
) -> pd.DataFrame:
    """A study by seeds from 1; an arm or a single cell, `dice-3`, may have collapsed."""
    frame = study(scores, f"test/{metric}", baseline="plain", **tags)
    frame["seed"] += 1
    frame[f"metrics.test/constant_{metric}"] = np.nan if constant is None else constant
    frame["metrics.test/collapsed"] = (frame["arm"].isin(collapsed) | frame["id"].isin(collapsed)).astype(float)
    return frame.assign(**{"tags.looks": looks, "tags.care": care})


def decided(scores: Mapping[str, Sequence[float]], **options: Any) -> Decision:
    (compared,) = comparisons(Findings(framed(scores, **options), lambda runs, file: {}))
    return decide(compared)


def of(scores: Mapping[str, Sequence[float]], **options: Any) -> Verdict:
    return over_seeds(decided(scores, **options))


def shifted(scores: Sequence[float], *shifts: float) -> list[float]:
    return [score + shift for score, shift in zip(scores, np.resize(shifts, len(scores)), strict=True)]


def test_a_winner() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8), "focal": around(0.6)})
    assert (made.outcome, made.answer, made.use, made.more) == ("winner", "YES", "dice", None)
    said = (
        r"Better than plain on this test set: dice \+10\.\d\d \[.*\], and better than every other arm; worse: focal -"
    )
    assert re.match(said, made.headline)
    assert "dice collapsed in none of 10 runs: a chance of up to 26 % is not excluded." in made.sentences
    alike = of({"plain": around(0.7), "dice": around(0.8), "focal": around(0.8)})
    assert (alike.outcome, set(alike.use.split(" or "))) == ("better", {"dice", "focal"})


def test_an_arm_with_failed_runs_is_not_recommended() -> None:
    """Four of ten runs failed, and the card said: use dice."""
    made = of({"plain": around(0.7), "dice": [*around(0.8, 6), *[math.nan] * 4]})
    assert (made.outcome, made.answer) == ("flawed", "CANNOT SAY")
    assert made.headline.endswith("but 4 of its 10 runs have no score.")
    assert made.use == "plain, since no arm can be recommended instead"
    frame = framed({"plain": around(0.7, 6), "dice": [*around(0.9, 5), math.nan]})
    frame["state"] = frame["state"].replace("failed", None)
    (compared,) = comparisons(Findings(frame))
    assert decide(compared).outcome == "winner", "a run that has not ended did not fail"


@pytest.mark.parametrize("care", [None, "1"])
def test_arms_below_the_constant_predictor_say_nothing(care: str | None) -> None:
    """The card said YES and, below it, to use no arm."""
    made = of({"plain": around(0.5), "dice": around(0.6)}, constant=0.75, care=care)
    assert (made.outcome, made.answer) == ("useless", "CANNOT SAY")
    assert made.use == "no arm: plain is not better than the constant predictor"
    assert of(dict.fromkeys(("plain", "dice"), [0.0] * 6), collapsed=("plain", "dice")).outcome == "useless"
    above = of({"plain": around(0.5), "dice": around(0.8)}, constant=0.75)
    assert (above.answer, above.use) == ("YES", "dice")


def test_one_arm_with_few_seeds_does_not_silence_the_others() -> None:
    """Finds p values that are corrected over arms with too few seeds, or over arms without a score."""
    scores = {"plain": around(0.7), "dice": around(0.71), "tversky": around(0.702, spread=5)}
    few = {"focal": [*around(0.9, 4), *[math.nan] * 6], "nothing": [math.nan] * 10}
    alone, more = decided(scores), decided(scores | few)
    assert [*more.standings] == [*alone.standings]
    assert "Not compared, with fewer than 5 seeds: focal, nothing." in over_seeds(more).sentences


def test_too_few_seeds_ask_for_five_that_are_not_lost() -> None:
    frame = framed({"plain": around(0.7, 3), "dice": around(0.9, 3)})
    for state, num in (("done", 5), (None, 5), ("failed", 7)):
        lost = {} if state == "done" else {"metrics.test/f1": math.nan}
        frame.loc[frame["id"].isin(["dice-1", "dice-2"]), ["state", *lost]] = [state, *lost.values()]
        (compared,) = comparisons(Findings(frame, lambda runs, file: {}))
        made = over_seeds(decide(compared))
        assert (made.answer, made.more) == ("TOO FEW SEEDS", MoreSeeds(num))


def test_too_few_seeds_beside_predictions_without_a_seed_ask_for_five() -> None:
    """The card of three seeds asked for two: predictions have no seeds that have ended."""
    frame = framed({"plain": around(0.7, 3), "given": [0.9]})
    frame.loc[frame["arm"] == "given", "seed"] = pd.NA
    (compared,) = comparisons(Findings(frame))
    made = over_seeds(decide(compared))
    assert (made.answer, made.more) == ("TOO FEW SEEDS", MoreSeeds(5))


def test_the_fact_of_the_seeds_counts_those_of_each_arm_and_those_declared() -> None:
    """Six of twenty seeds had a score: `6, 10 of them declared`; nine of ten: `9, declared before the first run`."""
    plain = around(0.7, 20)
    few = [*shifted(plain[:6], 0.01, 0.011), *[math.nan] * 14]
    made = of({"plain": plain, "dice": shifted(plain, 0.02, 0.021), "focal": few}, looks="10")
    assert made.facts["seeds"].startswith("6 to 20, beyond the 10 declared: judged by e-values")
    made = of({"plain": plain[:10], "dice": [*shifted(plain[:9], 0.02, 0.021), math.nan]}, looks="10")
    assert made.facts["seeds"] == "9 of 10, declared before the first run"


def test_only_arms_with_known_test_items_are_claimed_on_new_data() -> None:
    """The headline said `on new data` of an arm without counts of its items, because those of another were stored."""
    rights = {
        f"{arm}-{seed}": RNG.permutation(np.arange(400) < wrong + seed)
        for arm, wrong in (("plain", 200), ("dice", 320))
        for seed in range(6)
    }
    stored = items(rights)
    by_arm = {arm: [float(rights[f"{arm}-{seed}"].mean()) for seed in range(6)] for arm in ("plain", "dice")}
    by_arm["focal"] = [0.8, 0.81, 0.8, 0.79, 0.82, 0.81]
    frame = framed(by_arm)

    def texts(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
        return stored if file.endswith("items.csv") else {}

    (compared,) = comparisons(Findings(frame, texts))
    made = over_seeds(decide(compared))
    assert made.headline.startswith("Better than plain on this test set:")
    assert made.facts["certainty"].startswith("covers other seeds on this test set")
    (alone,) = comparisons(Findings(frame[frame["arm"] != "focal"], texts))
    assert over_seeds(decide(alone)).headline.startswith("Better than plain on new data:")


def test_a_question_that_enough_seeds_left_open_does_not_ask_for_items() -> None:
    """The card said that no number of seeds would answer it, where more seeds would."""
    plain = around(0.7, 10)
    gains = [0.008 + each for each in np.tile([-0.014, 0.0145], 5)]
    made = of({"plain": plain, "dice": [a + b for a, b in zip(plain, gains, strict=True)]}, care="1.6", looks="10")
    assert (made.outcome, made.more, made.settle) == ("open", None, "")


def test_collapses_are_judged_apart_from_the_other_runs() -> None:
    """With 2 of 20 runs collapsed, a t test over all runs does not see 2 points."""
    plain = around(0.7, 20)
    made = of({"plain": plain, "dice": [0.0, 0.0, *shifted(plain[2:], 0.02, 0.021)]}, collapsed=("dice-0", "dice-1"))
    assert made.outcome == "flawed"
    assert re.search(r"dice \+2\.05 \[.*but 2 of its 20 runs predict one class only", made.headline)
    assert any(re.match(r"dice collapsed in 2 of 20 runs \(p 0.5 against plain\)", text) for text in made.sentences)
    dead = of({"plain": plain, "dice": [0.0] * 20}, collapsed=("dice",))
    assert (dead.answer, "; worse: dice -69." in dead.headline) == ("NO", True)
    saved = of({"plain": [0.0] * 12, "dice": around(0.7, 12)}, collapsed=("plain",))
    assert (saved.answer, saved.use) == ("YES", "dice"), "an arm that learns where the baseline does not is better"


def test_an_arm_that_collapses_less_often_and_is_worse_where_it_learns() -> None:
    """The headline said `Better than plain: dice -2.05`, and of the opposite `worse: dice +2.05`."""
    plain = around(0.7, 20)
    by_arm = {"plain": [*[0.0] * 8, *plain[8:]], "dice": [*plain[:8], *shifted(plain[8:], -0.02, -0.021)]}
    made = of(by_arm, collapsed=tuple(f"plain-{number}" for number in range(8)))
    assert made.headline.startswith("Better than plain on this test set: dice (collapses less often; -2.05 [")
    assert "where neither does)" in made.headline
    by_arm = {"plain": plain, "dice": [*[0.0] * 8, *shifted(plain[8:], 0.02, 0.021)]}
    made = of(by_arm, collapsed=tuple(f"dice-{number}" for number in range(8)))
    assert "; worse: dice (collapses more often; +2.05 [" in made.headline


def test_collapses_are_tested_at_each_look_as_scores_are() -> None:
    """A sign test repeated at every look would find in the end what it may find in 5 % of studies."""
    collapsed = tuple(f"dice-{number}" for number in range(6))
    plain = around(0.7)
    scores = {"plain": plain, "dice": [0.0] * 6 + plain[6:]}
    (fixed, *_), (looking, *_) = (
        decided(scores, collapsed=collapsed, looks=looks).comparison.arms[1:] for looks in ("10", "5 10 15 20")
    )
    assert fixed.collapse_p < looking.collapse_p < 1
    assert looking.collapse_p > 0.05 >= fixed.collapse_p / 2


def test_a_baseline_with_collapsed_runs_is_not_recommended_without_a_word() -> None:
    """A card recommended a mean of 18: arms with 91 in each run were not significantly better."""
    zeros = ("plain-0", "plain-1", "plain-3")
    made = of({"plain": [0.0, 0.0, 0.9, 0.0, 0.9], "dice": around(0.9, 5)}, constant=0.1, collapsed=zeros)
    assert made.use == "plain, since no arm is shown to be better; but 3 of its 5 runs predict one class only"


def test_a_place_without_its_baseline_takes_no_verdict_from_the_others() -> None:
    """The verdicts ended silently before it, and with them the cards and the gate."""
    places = [framed({"plain": around(0.7), "dice": around(0.8)}, data=data) for data in ("mrpc", "qqp", "sst2")]
    places[1] = places[1][places[1]["arm"] != "plain"]
    made = verdicts(Findings(pd.concat(places, ignore_index=True)))
    assert [(each.place, each.outcome) for each in made] == [("mrpc", "winner"), ("qqp", "nothing"), ("sst2", "winner")]


def test_collapses_are_counted_over_the_seeds_that_both_have() -> None:
    """An arm that collapsed in 9 of 10 runs was better than a baseline that did in 1 of these, and 13 of 40 others."""
    plain = around(0.5, 20) + around(0.5, 20) + around(0.5, 10)
    zeros = (0, *range(10, 49, 3))
    scores = {"plain": [0.0 if n in zeros else each for n, each in enumerate(plain)], "dice": [0.0] * 9 + plain[9:10]}
    collapsed = (*(f"plain-{number}" for number in zeros), *(f"dice-{number}" for number in range(9)))
    made = decided(scores, collapsed=collapsed)
    assert len(zeros) == 14
    assert [arm.name for arm in made.standing("worse")] == ["dice"]
    assert not made.recommended


def test_a_winner_is_better_than_arms_that_collapse_sometimes_too() -> None:
    """An arm that collapses in 2 of 6 runs, and is far ahead in the others, was left out without a word."""
    plain = around(0.5, 6)
    scores = {"plain": plain, "dice": shifted(plain, 0.05, 0.051), "focal": [0.0, 0.0, *around(0.8, 4)]}
    made = of(scores, collapsed=("focal-0", "focal-1"))
    assert (made.use, "better than every other arm" in made.headline) == ("dice", False)


def test_arms_with_seeds_of_their_own_are_compared_unpaired() -> None:
    """Ten seeds each, none shared: nothing was compared."""
    frame = framed({"plain": around(0.7), "dice": around(0.8)})
    frame.loc[frame["arm"] == "dice", "seed"] += 100
    (compared,) = comparisons(Findings(frame))
    assert over_seeds(decide(compared)).use == "dice"


def test_the_same_difference_with_each_seed() -> None:
    """The card said NO, and that the arm to use is not known. With test items there is something to test."""
    scores = {"plain": [0.5] * 5, "dice": [0.6] * 5}
    made = of(scores)
    assert (made.outcome, made.answer) == ("untested", "CANNOT SAY")
    assert made.headline == "Not tested: the same difference from plain with each seed, dice +10.00."
    assert made.use == "not known: dice cannot be tested"
    right = {"plain": np.arange(200) < 100, "dice": np.arange(200) < 120}
    texts = items({f"{arm}-{seed}": right[arm] for arm in scores for seed in range(5)})
    (compared,) = comparisons(Findings(framed(scores), lambda runs, file: texts))
    assert over_seeds(decide(compared)).headline.startswith("Better than plain on new data: dice +10.00 [")


def test_a_cost_is_better_where_it_is_lower() -> None:
    """The arm with the highest cost was the winner."""
    cells = [
        {"arm": arm, "seed": seed, "metrics.test/brier": score}
        for arm, mean in (("plain", 0.2), ("dice", 0.1), ("focal", 0.3))
        for seed, score in enumerate(around(mean), start=1)
    ]
    (made,) = verdicts(made_up(cells, metric="test/brier"))
    assert (made.use, made.outcome) == ("dice", "winner")
    assert "; worse: focal" in made.headline


def test_a_claim_rests_on_new_data() -> None:
    """Over seeds the arm is ahead, by three items of twenty: other items may say otherwise."""
    right = {"plain": np.arange(20) < 10, "dice": (np.arange(20) < 10) ^ np.isin(np.arange(20), [0, 15, 16, 17])}
    scores = {"plain": [0.5] * 6, "dice": [0.6, 0.6, 0.55, 0.6, 0.6, 0.6]}
    texts: dict[str, str] = {}
    for arm in scores:
        for seed, score in enumerate(scores[arm]):
            flipped = right[arm] & ~((np.arange(20) == 17) & (score == 0.55))
            texts |= items({f"{arm}-{seed}": flipped})
    (compared,) = comparisons(Findings(framed(scores), lambda runs, file: texts))
    made = over_seeds(decide(compared))
    assert made.answer == "NO"
    assert "On these test items only, not on new data, different from plain: dice." in made.sentences
    assert any("; more seeds on these test items, at least " in text for text in made.sentences)


def test_the_smallest_difference_that_matters() -> None:
    plain = around(0.7)
    for shifts, care, outcome, said in (
        ((0.001, 0.0012), "1", "settled", "No arm matters: all are equal to plain within 1."),
        ((0.03, 0.032), "1", "winner", "Better than plain on this test set: dice +3.10"),
        ((0.007, 0.019), "1", "winner", "Better, but not shown to be by more than 1: dice."),
        ((-0.004, 0.02), "1", "open", "No worse than plain by more than 1: dice."),
        ((-0.004, 0.012), None, "open", "No arm is shown to be better than plain, nor by more than 1.0"),
        ((-0.03, -0.032), None, "settled", "No arm is shown to be better than plain; worse: dice -3.10"),
    ):
        made = of({"plain": plain, "dice": shifted(plain, *shifts)}, care=care)
        assert made.outcome == outcome
        assert any(text.startswith(said) for text in made.sentences), made.sentences
    assert re.match(r"not declared; in a new study, --care \S+: the score of plain itself", made.facts["what matters"])
    spread = shifted(plain, -0.03, 0.03, 0.01)
    planned = of({"plain": plain, "dice": spread}, care="1")
    assert planned.more is not None
    assert planned.more.num is not None
    assert planned.more.arms == ("plain", "dice")
    assert 10 < planned.more.num < 200
    assert of({"plain": plain, "dice": spread}).more is None, "no number is planned from the difference that was seen"


def test_looks() -> None:
    """Finds a claim between two looks, a look that counts later seeds, and arms that go on after they are settled."""
    plain = around(0.7, 20)
    dice, focal, tversky = (
        shifted(plain, 0.02, 0.0215, 0.0195),
        shifted(plain, 0.03, -0.01, 0.03),
        shifted(plain, 1e-4, 0),
    )
    looks = "5 10 15 20"

    def after(num: int) -> Decision:
        arms = {"plain": plain, "dice": dice, "focal": focal, "tversky": tversky}
        return decided({arm: scores[:num] for arm, scores in arms.items()}, looks=looks, care="1")

    first, between, second = after(5), after(9), after(10)
    assert between.comparison.best == first.comparison.best
    assert [arm.by_seed for arm, _ in between.standings] == [arm.by_seed for arm, _ in first.standings]
    standings = {arm.name: standing for arm, standing in first.standings}
    assert standings == {"dice": "better", "focal": "open", "tversky": "equal"}
    assert open_arms(first.comparison) == ["focal"]
    assert len(next(arm for arm, _ in second.standings if arm.name == "focal").by_seed) == 10
    assert over_seeds(first).facts["seeds"] == "5, compared after 5, 10, 15, 20, declared before the first run"
    alone = decided({"plain": plain[:5], "focal": focal[:5]}, looks=looks)
    made = over_seeds(alone)
    assert (made.answer, made.more) == ("NOT YET", MoreSeeds())
    futile = of({"plain": plain[:5], "dice": shifted(plain[:5], 0.01, -0.012, 0.008, -0.006, 0.001)}, looks="5 10")
    assert any(each.startswith("Run no further") for each in futile.sentences), "no reason where all arms stopped"
    for ended in (shifted(plain, 0.03, -0.03), shifted(plain, -0.125), plain):
        late = decided({"plain": [0.75] * 20 if ended is not plain else plain, "focal": ended}, looks=looks)
        assert open_arms(late.comparison) == [], "no look is left, whatever can be tested"
        assert late.outcome in ("open", "settled")


def test_seeds_beyond_the_declared_ones_are_judged_at_any_time() -> None:
    plain = around(0.7)
    made = {looks: decided({"plain": plain, "dice": shifted(plain, 0.0, 0.02)}, looks=looks) for looks in ("5", "10")}
    widths = {}
    for looks, each in made.items():
        (arm, _), *_ = each.standings
        assert arm.decisive is not None
        widths[looks] = arm.decisive.interval.high - arm.decisive.interval.low
    assert widths["5"] > 1.3 * widths["10"]
    assert "e-values" in over_seeds(made["5"]).facts["seeds"]


def test_only_the_declared_threshold_is_tested() -> None:
    """Four arms at two thresholds are eight tests, and cost power; a recommendation compared .5 with tuned scores."""
    frame = framed({"plain": around(0.5), "dice": around(0.65)})
    frame["metrics.test/f1_tuned"] = frame["metrics.test/f1"] + np.where(frame["arm"] == "plain", 0.2, 0.0)
    frame["metrics.test/threshold"] = 0.12
    for threshold, use in (("tuned", f"plain{TUNED[0]}, since no arm is shown to be better"), ("untuned", "dice")):
        (compared,) = comparisons(Findings(frame.assign(**{"tags.threshold": threshold})))
        assert over_seeds(decide(compared)).use == use
        assert compared.num_tests == 1


def test_tuned_arms_are_settings_and_not_losses() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8)}, tuned="search 0003, best of 16")
    assert made.headline.startswith(f"{_ONE_SEARCH}. Better than plain on this test set: dice ")
    assert made.question == "Are the settings found for an arm better than plain?"
    assert made.facts["certainty"].startswith("covers other seeds on this test set; not another search")


def test_nothing_to_compare() -> None:
    """The card said TOO FEW SEEDS and 0 seeds: no number of seeds would help."""
    for scores in ({"plain": around(0.7)}, {"plain": [math.nan] * 5, "dice": around(0.7, 5)}):
        made = of(scores)
        assert (made.outcome, made.answer) == ("nothing", "TOO FEW RUNS")
        assert made.headline.startswith("Nothing to compare: no other arm has a score beside one of plain.")
    lost = of({"plain": around(0.7), "dice": [math.nan] * 10})
    assert lost.headline.endswith("The report lists 10 runs without a score.")


def test_a_study_is_offered_again_with_the_seeds_that_it_needs() -> None:
    """Finds arms added that were not asked for, and arms that are not in question run again."""
    command = "dice-ray ablate loss_comparison --data 'my data.yaml' --arm a --arm 'b (1)' --arm c --name x"
    assert shlex.join(MoreSeeds(5).words(command)) == f"{command} --seeds 5"
    assert shlex.join(MoreSeeds().words(command)) == command
    assert shlex.join(MoreSeeds(40, ("a", "b (1)")).words(command)) == (
        "dice-ray ablate loss_comparison --data 'my data.yaml' --name x --arm a --arm 'b (1)' --seeds 40"
    )
    beyond = MoreSeeds(79).words("dice-ray ablate x --until-settled --seeds 20 --care 1")
    assert shlex.join(beyond) == "dice-ray ablate x --care 1 --seeds 79", "the other command is refused"


@pytest.mark.parametrize("collapsed", [("plain", "dice"), ("dice",)])
def test_predictions_at_half_do_not_judge_an_area_under_a_curve(collapsed: tuple[str, ...]) -> None:
    """Arms that rank well and predict no positive yet at .5 were called no better than the constant predictor."""
    cells = [
        {"arm": arm, "seed": seed, "metrics.test/roc_auc": score, "metrics.test/constant_roc_auc": 0.5}
        | {"metrics.test/threshold": 0.5, "tags.collapsed": str(arm in collapsed).lower()}
        for arm, mean in (("plain", 0.8), ("dice", 0.9))
        for seed, score in enumerate(around(mean), start=1)
    ]
    made = made_up(cells, metric="test/roc_auc")
    (compared,) = comparisons(made)
    assert over_seeds(decide(compared)).use == "dice"
    assert {arm.collapsed for arm in compared.arms} == {None}
    (forest,) = forests(made)
    assert "threshold" not in forest.caption


NAMES = r"(?:dice|focal|tversky)(?: \(tuned (?:threshold|decision)\))?"


def generated(rng: np.random.Generator) -> pd.DataFrame:
    """A study of two to four arms with missing seeds, failures, collapses, ties, looks and a constant predictor.

    Its metric is F1, a cost, or the recall of a decision with a target; tuned scores have a threshold or none.
    """

    def pick(*choices: str | None) -> str | None:
        return choices[rng.integers(len(choices))]

    num = int(rng.choice([3, 5, 6, 8, 10]))
    arms = {}
    for arm in ARMS[: rng.integers(2, 5)]:
        level, spread = rng.choice([0.0, 0.5, 0.51, 0.7, 0.72, 0.99]), rng.choice([0.0, 0.002, 0.02])
        scores = np.clip(level + rng.normal(0, spread, num), 0, 1)
        scores[rng.random(num) < rng.choice([0, 0, 0, 0.3])] = math.nan
        arms[arm] = scores.tolist()
    constant = rng.choice([0.18, 0.6, np.nan], p=[0.6, 0.2, 0.2])
    metric = pick("f1", "f1", "cost", "recall") or ""
    name, is_cost = f"metrics.test/{metric}", metric == "cost"
    frame = framed(arms, constant=constant, looks=pick(None, "5 10 15 20", "5"), care=pick(None, "1"), metric=metric)
    is_collapsed = (rng.random(len(frame)) < rng.choice([0, 0, 0.2, 1], p=[0.4, 0.3, 0.2, 0.1])) & frame["arm"].notna()
    frame["metrics.test/collapsed"] = is_collapsed.astype(float)
    frame.loc[is_collapsed & frame[name].notna(), name] = rng.choice([0.0, 0.18])
    if rng.random() < 0.5:
        gain = rng.choice([0.0, 0.1]) * np.where(frame["arm"] == "plain", rng.choice([1, 3]), 1)
        frame[f"{name}_tuned"] = (frame[name] + gain + rng.normal(0, 0.01, len(frame))).clip(0, 1)
        frame["tags.threshold"] = pick("tuned", "tuned", "untuned")
        frame["metrics.test/threshold"] = rng.choice([0.12, np.nan])
        if metric == "recall":
            frame["params.task.a.decision"], frame["params.task.a.decision.rate.at_most"] = "rate", 0.02
            frame["metrics.test/flagged_tuned"] = 0.02 + rng.normal(0, 0.001, len(frame))
            frame["metrics.test/target_missed"] = (frame["metrics.test/flagged_tuned"] > 0.02).astype(float)
    if is_cost:
        for column in [str(column) for column in frame if str(column).endswith(("cost", "cost_tuned"))]:
            frame[column] = 100 * (1 - frame[column])
    kept = frame[(rng.random(len(frame)) > rng.choice([0, 0, 0.2])) | (frame["kind"] == "study")]
    return kept if (kept["arm"] == "plain").any() else frame


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_no_sentence_contradicts_its_table(seed: int) -> None:
    """500 studies: finds a headline or card that the table does not bear out, or a bad arm that is recommended."""
    outcomes, rng = Counter[str](), np.random.default_rng(seed)
    for number in range(500):
        found = Findings(generated(rng), lambda runs, file: {})
        (table,), (compared,) = comparison(found), comparisons(found)
        made = over_seeds(decide(compared))
        outcomes[made.outcome] += 1
        assert [*contradictions(made, table, found)] == [], f"study {number}"
    assert set(outcomes) == set(get_args(_Outcome)), "else it could pass without a winner"


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_interval_is_rounded_to_no_other_claim(sign: int) -> None:
    """Finds `[+0.00, +0.44]` called significant, and no gain `by more than 0.00`, which no study can show."""
    shifts = np.array([0.0012, 0.0052, 0.0009, 0.0031, 0.0035])
    shifts += 1e-5 - paired_difference(dict(enumerate(shifts)), dict.fromkeys(range(5), 0.0)).interval.low
    plain = around(0.6, 5)
    found = Findings(framed({"plain": plain, "dice": shifted(plain, *(sign * shifts))}))
    (table,), (verdict,) = comparison(found), verdicts(found)
    end = "[+0.001, +" if sign > 0 else ", -0.001]"
    assert end in table.shown["minus plain"].iloc[1 - max(sign, 0)]
    assert end in verdict.headline
    nearly = decided({"plain": plain, "dice": shifted(plain, *(2e-5 - shifts))})
    assert ", nor by more than 0.001 on this test set." in over_seeds(nearly).headline


def contradictions(made: Verdict, table: ReportTable, found: Findings) -> Iterator[str]:
    """What sentences and card say and the numbers of the table do not."""
    rows: dict[str, dict[str, Any]] = {
        str(row["arm"]): {str(key): value for key, value in row.items()} for row in table.data.to_dict("records")
    }
    predictor, sign = rows.pop(CONSTANT, {"mean": math.nan})["mean"], gain(made.metric, 1.0)
    for name, direction, number in re.findall(rf"({NAMES}) ([-+]|lower by |higher by )(\d+(?:\.\d+)?)", made.headline):
        if f"{'-' if direction in ('-', 'lower by ') else '+'}{number}" not in table.text():
            yield f"{name} {direction}{number} is nowhere in the table"
    card = card_of(made, found)
    recommended = [name for name in rows if re.search(rf"(?:^| or ){re.escape(name)}(?:,|$| or)", card.use)]
    for name in recommended:
        row = rows[name]
        if arm_of(name) == "plain":
            continue
        if sign * (row["mean"] - predictor) <= 1e-12 or row["failed"] or row["collapsed"] == row["seeds"]:
            yield f"{name} is recommended"
        baseline = rows.get("plain", {})
        learns = not pd.isna(row["collapsed"]) and row["collapsed"] < baseline["collapsed"]
        if not (row["holm_p"] <= 0.05 and sign * row["difference"] > 0) and not learns:
            yield f"{name} is recommended without a difference"
    if made.outcome not in ("useless", "nothing", "too_few_seeds"):
        # Where tuned scores are compared, a sentence on the decision names arms without any suffix.
        named = set(re.findall(NAMES, " ".join(made.sentences)))
        differ = {name for name, row in rows.items() if row["holm_p"] <= 0.05 and row["shared_seeds"] >= 5}
        yield from (f"{name} differs, and no sentence names it" for name in differ - named)
    if (made.answer == "YES") != any(arm_of(name) != "plain" for name in recommended):
        yield f"{made.answer}, and use {card.use}"
    bold = [str(table.data["arm"][number]) for (number, _), mark in table.marks.items() if mark == "bold"]
    if bold != [card.use] * (made.outcome == "winner"):
        yield f"bold: {bold}"
    for sentence in made.sentences[1:]:
        for arm, number in re.findall(r"(?:Use |; or )(\w+) .*?: \w+ (\d+(?:\.\d+)?)", sentence):
            used = [name for name in recommended if arm_of(name) == arm]
            if not used or number not in table.shown.set_index("arm").loc[used[0]].iloc[0]:
                yield f"use {arm} with {number}, not {card.use}"
        if found_only := re.match(r"(.*) (?:is|are) better (?:at .5|untuned) only: ", sentence):
            for arm in found_only[1].split(", "):
                (row,) = (each for name, each in rows.items() if arm_of(name) == arm and name != arm)
                (best,) = (each for name, each in rows.items() if arm_of(name) == "plain" and name != "plain")
                is_better = row["holm_p"] <= 0.05 and sign * row["difference"] > 0 and not pd.notna(row["new_data_low"])
                if is_better or sign * (best["mean"] - rows[arm]["mean"]) < 0:
                    yield sentence


def test_an_arm_that_gets_better_is_never_judged_worse() -> None:
    order = ["worse", "open", "untested", "no_worse", "equal", "better"]
    rng, seen = np.random.default_rng(1), set[str]()
    for _ in range(60):
        plain, focal, dice = rng.normal(0.6, 0.02, (3, 10)).tolist()
        # One study of all five, which costs a third of five studies.
        arms = {f"dice {shift:+}": shifted(dice, shift) for shift in (-0.05, -0.02, 0.0, 0.02, 0.05)}
        made = decided({"plain": plain, "focal": focal} | arms, care=(None, "1")[rng.integers(2)])
        standings = {arm.name: "open" if each in ("equal", "no_worse") else each for arm, each in made.standings}
        ranks = [order.index(standings[arm]) for arm in arms]
        assert ranks == sorted(ranks)
        seen |= {standings[arm] for arm in arms}
    assert seen == {"worse", "open", "better"}, "else it could pass with one standing for all"
