"""The decision on a comparison: each outcome, and that no sentence contradicts the table it stands above."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.comparison import CONSTANT, comparisons
from analysis.figures.differences import forests
from analysis.frames import Findings
from analysis.outcome import summary
from analysis.statistics.best_arm import TUNED
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.tables.base import ReportTable
from analysis.tables.study import comparison
from analysis.verdict.base import MoreSeeds, Verdict
from analysis.verdict.decision import Decision, Outcome, decide
from analysis.verdict.over_seeds import _ONE_SEARCH, over_seeds
from tests.analysis.cells import study
from tests.analysis.frames import study as made_up

RNG = np.random.default_rng(0)
JITTER = RNG.normal(0, 0.01, 20)


def around(mean: float, num: int = 10, spread: float = 1.0) -> list[float]:
    """Scores of so many seeds around a mean, with a spread of their own."""
    return [float(score) for score in mean + JITTER[:num] + spread * RNG.normal(0, 0.002, num)]


def around_each(scores: list[float]) -> list[float]:
    return [float(score) for score in np.array(scores) + RNG.normal(0, 0.002, len(scores))]


def decided(
    scores: Mapping[str, list[float]],
    *,
    constant: float | None = 0.2,
    collapsed: tuple[str, ...] = (),
    **tags: str,
) -> Decision:
    frame = study(scores, baseline="plain", **tags)
    frame["metrics.test/constant_f1"] = np.nan if constant is None else constant
    frame["metrics.test/collapsed"] = frame["arm"].isin(collapsed).astype(float)
    (compared,) = comparisons(Findings(frame))
    return decide(compared)


def of(scores: Mapping[str, list[float]], **options: Any) -> Verdict:
    return over_seeds(decided(scores, **options))


def test_a_winner() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8), "focal": around(0.6)})
    assert made.outcome == "winner"
    assert made.headline.startswith("Winner: dice, significantly better than every other arm on this test set")
    second = [*made.sentences][1]
    assert re.search(r"Significantly better than plain .* \(Holm p <= 0.05\): dice \+10.\d\d; worse: focal", second)
    collapse = "0 of 10 scored runs of dice collapsed: a chance to collapse of up to 26 % is not excluded."
    assert collapse in made.sentences
    assert made.more is None


def test_an_arm_with_failed_runs_does_not_win() -> None:
    made = of({"plain": around(0.7), "dice": [*around(0.8, 7), math.nan, math.nan, math.nan]})
    assert made.outcome == "different"
    said = [*made.sentences]
    assert "No winner: dice is significantly better than every other arm, but 3 of its 10 runs have no score." in said
    assert made.use == "dice (3 of 10 runs without a score)"
    assert any("Holm" in sentence and sentence.endswith("(3 of 10 runs without a score).") for sentence in said)
    assert any(sentence.startswith("0 of 7 scored runs of dice collapsed") for sentence in said)
    assert not any("seeds would show" in sentence for sentence in said)


def test_an_arm_below_the_constant_predictor_does_not_win() -> None:
    made = of({"plain": around(0.5), "dice": around(0.6)}, constant=0.75)
    assert made.outcome == "different"
    assert (
        "No winner: dice is significantly better than every other arm, but not better than the constant predictor."
        in made.sentences
    )
    assert made.more is None
    assert not any("seeds would show" in sentence for sentence in made.sentences)


def test_an_arm_that_always_collapses_is_not_recommended_where_no_constant_predictor_is_stored() -> None:
    made = decided({"plain": around(0.94), "dice": [0.96] * 10}, constant=None, collapsed=("dice",))
    assert [arm.name for arm in made.different] == ["dice"]
    assert over_seeds(made).use == "plain, since no arm is shown to be better"


def test_one_arm_with_few_seeds_does_not_silence_the_others() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8), "focal": [*around(0.9, 4), *[math.nan] * 6]})
    assert made.outcome == "winner"
    assert "significantly better than every compared arm" in made.headline
    assert "Not compared, with fewer than 5 seeds shared with plain: focal with 4 seeds." in made.sentences


def test_three_seeds_are_too_few_and_five_are_asked_for() -> None:
    made = of({"plain": around(0.7, 3), "dice": around(0.9, 3)})
    assert (
        made.headline
        == "Too few seeds to say which arm is better: 3 seeds shared with plain, and 5 are needed. Run 2 more."
    )
    assert made.more is not None
    assert (made.more.num, made.more.arms) == (5, ())


def test_cells_that_have_not_ended_need_no_further_seeds_and_failed_ones_do() -> None:
    """An interrupted study asked for a sixth seed, as if the one that it had begun were lost."""
    frame = study({"plain": around(0.7, 3), "dice": around(0.9, 3)}, baseline="plain")
    for state, num in ((None, 5), ("failed", 7)):
        frame.loc[frame["id"].isin(["dice-1", "dice-2"]), ["state", "metrics.test/f1"]] = [state, math.nan]
        (compared,) = comparisons(Findings(frame, lambda runs, file: {}))
        made = over_seeds(decide(compared))
        assert made.outcome == "too_few_seeds"
        assert made.more == MoreSeeds(num)


def test_a_baseline_with_collapsed_runs_is_not_recommended_without_a_word() -> None:
    """A card recommended a mean of 18: arms with 91 in each run were not significantly better."""
    frame = study({"plain": [0.0, 0.0, 0.9, 0.0, 0.9], "dice": around(0.9, 5)}, baseline="plain")
    frame["metrics.test/constant_f1"] = 0.1
    frame["metrics.test/collapsed"] = (frame["metrics.test/f1"] == 0).astype(float)
    (compared,) = comparisons(Findings(frame, lambda runs, file: {}))
    use = over_seeds(decide(compared)).use
    assert use == "plain, since no arm is shown to be better; but 3 of its 5 runs predict one class only at .5"


def test_an_arm_that_ran_on_hard_seeds_too_does_not_win_below_another_mean() -> None:
    base = [score + (0.2 if seed < 5 else -0.2) for seed, score in enumerate(around(0.7))]
    dice, focal = ([score + gain for score in around_each(base)] for gain in (0.05, 0.02))
    made = of({"plain": base, "dice": dice, "focal": [*focal[:5], *[math.nan] * 5]})
    assert made.outcome == "different"
    assert "No winner: dice leads on the shared seeds, but focal has a higher mean over its own." in made.sentences


def test_arms_that_are_not_compared_cost_no_other_its_significance() -> None:
    """Finds p values that are corrected over arms with too few seeds, or over arms without a score."""
    scores = {"plain": around(0.7), "dice": around(0.71), "focal": around(0.702, spread=5)}
    alone = decided(scores)
    nothing = [math.nan] * 10
    without = {name: [*around(0.9, 4), *nothing[4:]] for name in "abc"} | dict.fromkeys("de", nothing)
    more = decided({**scores, **without})
    assert more.different == alone.different
    assert [arm.name for arm in more.different] == ["dice"]
    said = [sentence for sentence in over_seeds(more).sentences if "80 % power" in sentence]
    assert said == [sentence for sentence in over_seeds(alone).sentences if "80 % power" in sentence]


def test_seeds_are_counted_for_the_arm_that_is_not_beaten_yet() -> None:
    """Finds seeds for the runner-up, which is beaten: another arm is far behind in the mean and has a collapsed run."""
    dice = around(0.8)
    made = of(
        {
            "plain": around(0.7),
            "dice": dice,
            "focal": around_each([score - 0.01 for score in dice]),
            "tversky": [*around_each([score - 0.02 for score in dice[:9]]), 0.1],
        }
    )
    said = r"No winner: dice leads, \S+ over focal, but not significantly over every other arm"
    assert any(re.match(said, sentence) for sentence in made.sentences)
    assert made.more is not None
    assert made.more.arms == ("plain", "dice", "tversky")
    assert made.more.num > 10
    assert f"About {made.more.num} seeds would show a lead as large as that of dice over tversky: " in " ".join(
        made.sentences
    )


def test_seeds_are_counted_for_the_difference_that_needs_the_fewest() -> None:
    """Finds the hundreds of seeds of a control that is the baseline again, because it has the higher mean."""
    plain = around(0.7)
    again = [score + 0.0001 * sign for score, sign in zip(plain, [1, -1, 1, 1, -1, 1, -1, -1, 1, -1], strict=True)]
    dice = [score - shift for score, shift in zip(plain, [0.02, -0.01, 0.015, -0.01, 0.02] * 2, strict=True)]
    made = of({"plain": plain, "again": again, "dice": dice})
    assert made.outcome == "no_difference"
    assert made.more is not None
    assert made.more.arms == ("plain", "dice")
    assert 10 < made.more.num < 100


def test_no_seeds_are_asked_for_a_difference_that_is_shown() -> None:
    """The baseline leads: focal is worse already, and seeds were counted for it, no more than had run."""
    plain = around(0.8, 5)
    focal = [score - 0.019 - shift for score, shift in zip(plain, [0.001, -0.001, 0, 0.0005, 0], strict=True)]
    dice = [score - 0.02 - shift for score, shift in zip(plain, [0.03, -0.02, 0.01, -0.02, 0.01], strict=True)]
    made = decided({"plain": plain, "focal": focal, "dice": dice})
    assert [arm.name for arm in made.different] == ["focal"]
    assert made.more is not None
    assert made.more.arms == ("plain", "dice")
    assert made.more.num > 5


def test_a_run_that_has_not_ended_did_not_fail() -> None:
    """A study is read while it runs: an arm that is better has no winner's flaw because its last seed is running."""
    frame = study({"plain": around(0.7, 6), "dice": [*around(0.9, 5), math.nan]}, baseline="plain")
    (compared,) = comparisons(Findings(frame))
    assert decide(compared).obstacle == "failed_runs"
    frame["state"] = frame["state"].replace("failed", None)
    (compared,) = comparisons(Findings(frame))
    assert decide(compared).winner is not None


def test_one_arm_alone_has_nothing_to_be_compared_with() -> None:
    """The card said TOO FEW SEEDS and 0 seeds: no number of seeds would help."""
    for scores in ({"plain": around(0.7)}, {"plain": [math.nan] * 5, "dice": around(0.7, 5)}):
        made = of(scores)
        assert (made.outcome, made.answer) == ("nothing", "TOO FEW RUNS")
    assert any("plain has no score" in sentence for sentence in made.sentences)


def test_an_arm_that_does_what_the_constant_predictor_does_is_not_one_to_look_at() -> None:
    """It differs from a baseline that is always 0 by the same with each seed."""
    focal = [0.01, 0.6, 0.02, 0.5, 0.03]
    made = of({"plain": [0.0] * 5, "dice": [0.2] * 5, "focal": focal}, collapsed=("plain", "dice"))
    assert made.outcome == "no_difference"
    assert "dice" not in made.use


def test_the_same_difference_with_each_seed_is_named_and_not_taken_for_none() -> None:
    made = of({"plain": [0.0] * 5, "dice": [1.0] * 5})
    assert made.outcome == "no_difference"
    said = "The same difference from plain with each seed, which cannot be tested: dice +100.00."
    assert said in made.sentences
    assert made.use == "not known: dice differs by the same with each seed, which cannot be tested"
    made = of({"plain": [1.0] * 5, "dice": [0.5] * 5})
    assert made.use == "plain, since no arm is shown to be better"
    made = of({"plain": around(0.7, 5), "dice": [1.0] * 5, "tversky": [0.0] * 5})
    assert re.fullmatch(
        r"Winner: dice, significantly better than every other arm on this test set, not estimated on new data; \S+ "
        r"over plain \(not tested: the lead over tversky is the same with each seed\)\.",
        made.headline,
    )


def test_a_winner_is_one_in_the_table_too() -> None:
    """The table corrects p values over other tests than those of the best arm."""
    made = decided({"plain": around(0.7), "dice": around(0.8), "focal": around(0.6)}).comparison
    assert made.best is not None
    best = replace(made.best, wins_on_new_data=True)
    for p, says in ((0.051, "on this test set, not shown on new data"), (0.05, "on this test set and on new data")):
        arms = tuple(
            replace(arm, new_data=replace(arm.difference, p=p)) if arm.difference else arm for arm in made.arms
        )
        assert says in over_seeds(decide(replace(made, arms=arms, best=best))).headline
    lost = [
        replace(arm, difference=replace(arm.difference, p=0.051)) if arm.name == "dice" and arm.difference else arm
        for arm in made.arms
    ]
    assert decide(replace(made, arms=tuple(lost), best=best)).winner is None


def test_no_difference_is_planned_that_no_score_can_have() -> None:
    plain, steady = [0.9, 0.0, 0.91, 0.0, 0.92], [0.92, 0.93, 0.92, 0.91, 0.92]
    made = of({"plain": plain, "dice": steady, "focal": [score + 0.002 for score in plain[:4]] + [0.921]})
    (said,) = [sentence for sentence in made.sentences if "80 % power" in sentence]
    assert re.fullmatch(r".* with 80 % power: 0\.\d\d for focal; none that is possible for dice\.", said)
    made = of({"plain": plain, "dice": steady, "focal": steady[::-1]})
    assert any(sentence.endswith(" with 80 % power: none that is possible.") for sentence in made.sentences)


def test_arms_with_other_seeds_have_their_own_number_in_the_sentences() -> None:
    made = of({"plain": around(0.7), "dice": around(0.7), "focal": [*around(0.7, 6), *[math.nan] * 4]})
    assert made.headline.startswith("No difference shown: over 6 to 10 seeds, no arm")
    assert any(sentence.startswith("test/f1 (%), 10 seeds: plain has") for sentence in made.sentences)


def test_the_same_mean_is_no_higher_one() -> None:
    """Finds a mean that rounding makes higher: the two arms have the same scores with other seeds."""
    made = of(
        {
            "plain": around(0.7, 5),
            "dice": [0.83, 0.80, 0.82, 0.83, 0.82],
            "focal": [0.80, 0.82, 0.83, 0.83, 0.82],
        }
    )
    assert any(re.match(r"No winner: (dice|focal) leads, \+0.00 over", sentence) for sentence in made.sentences)


def test_two_arms_that_are_better_and_alike_do_not_win() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8), "focal": around(0.8)})
    assert made.outcome == "different"
    assert any(re.match(r"No winner: (dice|focal) leads, \+0.\d\d over", sentence) for sentence in made.sentences)
    assert made.more is None or {"dice", "focal"} < set(made.more.arms)


def test_equal_scores_make_no_best_arm() -> None:
    made = of({arm: [1.0] * 5 for arm in ("plain", "dice", "focal")})
    assert made.headline == "No difference shown: over 5 seeds, no arm differs significantly from plain."
    assert not [sentence for sentence in made.sentences if "+0.00" in sentence or "Not even" in sentence]


def test_a_difference_that_no_study_shows_is_named() -> None:
    plain = around(0.7)
    made = of({"plain": plain, "dice": [score + 0.0001 * (-1) ** seed for seed, score in enumerate(plain)]})
    assert any(
        re.fullmatch(r"Not even 1000 seeds would show a difference as large as that of dice [+-]0.00\.", sentence)
        for sentence in made.sentences
    )


def test_all_collapsed_says_nothing() -> None:
    arms = ("plain", "dice")
    made = of(dict.fromkeys(arms, [0.0] * 6), collapsed=arms)
    assert made.headline.startswith(
        "This says nothing about the arms: all 12 runs with a score predict one class only."
    )
    assert not any("inner" in sentence for sentence in made.sentences)


def test_only_the_baseline_has_a_score() -> None:
    made = decided({"plain": around(0.7), "dice": [math.nan] * 10})
    reason = "no other arm has a score for a seed for which plain has one"
    assert over_seeds(made).headline == f"Nothing to compare: {reason}. The report lists 10 runs without a score."
    assert made.comparison.why_not == "no arm shares a seed with plain"


def test_the_seeds_that_would_show_what_was_seen() -> None:
    made = of({"plain": [0.70, 0.72, 0.69, 0.71, 0.70], "dice": [0.72, 0.70, 0.72, 0.71, 0.72]})
    assert made.outcome == "no_difference"
    assert made.more is not None
    assert made.more.num > 5
    assert made.more.arms == ("plain", "dice")
    assert f"About {made.more.num} seeds would show a difference as large as that of dice +1.00." in [*made.sentences]
    assert any("with 80 % power: " in sentence for sentence in made.sentences)


def test_tuned_arms_are_settings_and_not_losses() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8)}, tuned="search 0003, best of 16")
    assert made.headline.startswith(f"{_ONE_SEARCH}. Winner: dice, ")
    assert "not the losses" in _ONE_SEARCH
    assert made.question == "Can the settings of the tuned arms be told apart?"
    assert made.facts["certainty"].startswith("covers other seeds on this test set; not another search")


def test_data_metric_and_seeds_are_named() -> None:
    made = of({"plain": around(0.7), "dice": around(0.8)}, data="tickets", encoder="tiny")
    assert any(sentence.startswith("test/f1 (%) on tickets, tiny, 10 seeds: plain has ") for sentence in made.sentences)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Studies of two to four arms with missing seeds, failures, collapse, ties, and a constant predictor."""
    num_seeds = draw(st.sampled_from([3, 5, 6, 8]))
    arms: dict[str, list[float]] = {}
    for arm in ("plain", "dice", "focal", "tversky")[: draw(st.sampled_from([4, 3, 2]))]:
        level, spread = draw(st.sampled_from([0.0, 0.5, 0.51, 0.7, 0.99])), draw(st.sampled_from([0.0, 0.002, 0.05]))
        noise = np.random.default_rng(draw(st.integers(0, 99))).normal(0, spread, num_seeds)
        arms[arm] = np.clip(level + noise, 0, 1).tolist()
        for seed in draw(st.lists(st.integers(0, num_seeds - 1), max_size=draw(st.sampled_from([0, 0, 1, 5])))):
            arms[arm][seed] = math.nan
    frame = study(arms, baseline="plain")
    has_collapsed = draw(st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0]))
    chance = np.random.default_rng(draw(st.integers(0, 99))).uniform(size=len(frame))
    frame["metrics.test/collapsed"] = (chance < has_collapsed).astype(float)
    constant = draw(st.sampled_from([None, 0.18, 0.6]))
    frame["metrics.test/constant_f1"] = np.nan if constant is None else constant
    collapsed_score = draw(st.sampled_from([0.0, constant or 0.0]))
    scored = frame["metrics.test/f1"].notna() & (frame["metrics.test/collapsed"] > 0)
    frame.loc[scored, "metrics.test/f1"] = collapsed_score
    if draw(st.booleans()):
        frame["metrics.test/f1_tuned"] = (frame["metrics.test/f1"] + draw(st.sampled_from([0.0, 0.1]))).clip(0, 1)
    missing = draw(st.lists(st.integers(1, len(frame) - 1), max_size=draw(st.sampled_from([0, 0, 6]))))
    kept = frame.drop(index=list(set(missing)))
    return kept if (kept["arm"] == "plain").any() else frame


def test_no_sentence_contradicts_its_table() -> None:
    """Finds a headline that names a best arm below another one, without a lead, or where all runs collapsed."""
    outcomes = Counter[str]()

    @settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(frames())
    @example(study({"plain": around(0.7), "dice": [math.nan] * 10}, baseline="plain"))
    def holds(frame: pd.DataFrame) -> None:
        found = Findings(frame)
        (table,), (compared,) = comparison(found), comparisons(found)
        made = over_seeds(decide(compared))
        outcomes[made.outcome] += 1
        assert [*contradictions(made, list(summary(found)), table)] == []

    holds()
    assert set(outcomes) == set(get_args(Outcome)), "else it could pass without a winner"


def contradictions(made: Verdict, sentences: list[str], table: ReportTable) -> Iterator[str]:
    """What the sentences of a summary say and the numbers of the table do not."""
    rows: dict[str, dict[str, Any]] = {
        str(row["arm"]): {str(key): value for key, value in row.items()} for row in table.data.to_dict("records")
    }
    predictor = rows.pop(CONSTANT, {"mean": math.nan})["mean"]
    rows = {name: row for name, row in rows.items() if not pd.isna(row["mean"])}
    shared = {name: row["shared_seeds"] for name, row in rows.items() if not pd.isna(row["shared_seeds"])}
    enough = {name for name, num in shared.items() if num >= FEW_SEEDS}
    different = {name for name in enough if rows[name]["holm_p"] <= ALPHA}
    text = " ".join(sentences)
    collapsed = [name for name, row in rows.items() if not name.endswith(TUNED) and row["collapsed"] == row["seeds"]]
    plain = [name for name in rows if not name.endswith(TUNED)]
    helped = [name for name in rows if name.endswith(TUNED) and rows[name]["mean"] > predictor + 1e-9]
    expected = (
        {"nothing"}
        if not max(shared.values(), default=0)
        else {"all_collapsed"}
        if collapsed == plain and not helped
        else {"too_few_seeds"}
        if not enough
        else {"winner", "different"}
        if different
        else {"no_difference"}
    )
    if made.outcome not in expected:
        yield f"{made.outcome} must be one of {expected}"
    if sentences[0] not in table.notes:
        yield "the headline is not below the table"
    for name, sign, number in re.findall(
        r"(plain|dice|focal|tversky)(?: \(tuned threshold\))? \(?([-+])(\d+\.\d\d)", text
    ):
        if f"{sign}{number}" not in table.text():
            yield f"{name} {sign}{number} is nowhere in the table"
    if made.outcome in ("winner", "different"):
        (sentence,) = [each for each in sentences if each.startswith("Significantly better than plain on this")]
        better, _, worse = sentence.rstrip(".").partition(": ")[2].partition("; worse: ")
        for part, sign in ((better, 1), (worse, -1)):
            named = set(re.findall(r"((?:dice|focal|tversky)(?: \(tuned threshold\))?) [-+]", part))
            if named != {name for name in different if sign * rows[name]["difference"] > 0}:
                yield f"{sentence} does not name the rows with a p of at most {ALPHA}"
    bold = [
        rows_name
        for (number, _), mark in table.marks.items()
        if mark == "bold"
        for rows_name in [table.data["arm"][number]]
    ]
    if made.outcome != "winner":
        yield from (f"{each} names a winner" for each in sentences if re.match("Winner|Best", each))
        yield from (f"{name} is bold" for name in bold)
        return
    name = re.findall(r"^Winner: (\w+(?: \(tuned threshold\))?),", sentences[0])[0]
    winner, arm = rows[name], name.removesuffix(TUNED)
    if bold != [name]:
        yield f"bold: {bold}"
    if winner["failed"]:
        yield "the winner has failed runs"
    if winner["mean"] <= predictor:
        yield "the winner is not above the constant predictor"
    if arm in collapsed and not name.endswith(TUNED):
        yield "the winner collapsed"
    others = [
        other
        for other in rows
        if other.removesuffix(TUNED) not in (arm,) and (other in enough or other.startswith("plain"))
    ]
    yield from (f"{other} is above the winner" for other in others if rows[other]["mean"] > winner["mean"])
    if name in shared and name not in different:
        yield "the table does not tell the winner from the baseline"
    lead, runner_up, seeds = re.findall(
        r"; (\S+) over (\w+(?: \(tuned threshold\))?)( on the \d+ seeds)?", sentences[0]
    )[0]
    if not lead.startswith("+") or (
        not seeds and abs(float(lead) - 100 * (winner["mean"] - rows[runner_up]["mean"])) > 0.011
    ):
        yield f"the lead {lead} is not the difference of the means"


def test_a_study_is_offered_again_with_the_seeds_that_it_needs() -> None:
    """Finds arms added that were not asked for, and arms that are not in question run again."""
    command = "dice-ray ablate loss_comparison --data 'my data.yaml' --arm a --arm 'b (1)' --arm c --name x"
    assert shlex.join(MoreSeeds(5).words(command)) == f"{command} --seeds 5"
    assert shlex.join(MoreSeeds(40, ("a", "b (1)")).words(command)) == (
        "dice-ray ablate loss_comparison --data 'my data.yaml' --name x --arm a --arm 'b (1)' --seeds 40"
    )


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
    assert over_seeds(decide(compared)).headline.startswith("Winner: dice")
    assert {arm.collapsed for arm in compared.arms} == {None}
    assert not [sentence for sentence in summary(made) if "one class" in sentence or "constant predictor." in sentence]
    (forest,) = forests(made)
    assert "threshold" not in forest.caption


def test_some_are_worse_only_where_some_are() -> None:
    """A better arm that is not above the constant predictor was counted among the worse ones."""
    made = of({"plain": around(0.3), "dice": around(0.4)}, collapsed=("dice",))
    assert made.use == "plain, since no arm is shown to be better"
