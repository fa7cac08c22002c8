"""What a comparison of arms shows: one decision, of which summary, tables and command line form their sentences.

Every sentence about which arm is better is formed here, from the numbers in the table of the same comparison, so that
no headline contradicts the table below it. A row is compared if it shares `FEW_SEEDS` seeds with the baseline; the
other rows are named, and do not keep those from being compared. The winner is significantly better than every other
compared arm, in the table too; it has the highest mean of them, no run without a score, and exceeds the constant
predictor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pandas as pd

from analysis.columns import column
from analysis.comparison import CONSTANT, TUNED, Arm, BestArm, Comparison
from analysis.power import MOST_SEEDS, collapse_bound, seeds_needed, smallest_visible
from analysis.statistics import ALPHA, FEW_SEEDS, NO_SPREAD
from analysis.tables.base import ScoreFormat
from dice_ray.errors import counted

Outcome: TypeAlias = Literal["nothing", "all_collapsed", "too_few_seeds", "no_difference", "different", "winner"]
ToldApart: TypeAlias = Literal["YES", "NO", "TOO FEW SEEDS"]
"""Whether the arms can be told apart."""
ANSWERS: Final[dict[Outcome, ToldApart]] = {
    "nothing": "TOO FEW SEEDS",
    "all_collapsed": "NO",
    "too_few_seeds": "TOO FEW SEEDS",
    "no_difference": "NO",
    "different": "YES",
    "winner": "YES",
}


@dataclass(frozen=True)
class MoreSeeds:
    """The seeds that would answer the question of a study.

    Attributes:
        num: How many in all, those that have run among them.
        arms: The arms to run them with; empty for all.
        shows: What they would show; empty if they only make the arms comparable.
    """

    num: int
    arms: tuple[str, ...] = ()
    shows: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a comparison shows; rows are those of its table.

    Attributes:
        outcome: `nothing`: no row shares a seed with the baseline. `all_collapsed`: no run does more than predict one
            class. `too_few_seeds`: no row shares `FEW_SEEDS` seeds with the baseline. `no_difference`: no compared row
            differs significantly from the baseline. `different`: some do, and there is no winner.
        num_seeds: The fewest seeds that a compared row shares with the baseline; without one, the most of any row.
        compared: The rows that share enough seeds with the baseline.
        not_compared: Those that do not.
        different: The compared rows that differ significantly from the baseline.
        winner: The row that wins, and its lead over the closest row of another arm.
        why_no_winner: The reason why the leading row does not win.
        more: The seeds that would answer the question; None if it is answered, or if `MOST_SEEDS` would not do.
    """

    comparison: Comparison
    outcome: Outcome
    num_seeds: int = 0
    compared: tuple[Arm, ...] = ()
    not_compared: tuple[Arm, ...] = ()
    different: tuple[Arm, ...] = ()
    winner: BestArm | None = None
    why_no_winner: str = ""
    more: MoreSeeds | None = None

    @property
    def answer(self) -> ToldApart:
        """Whether the arms can be told apart."""
        return ANSWERS[self.outcome]

    @property
    def use(self) -> str:
        """The arm to use, as far as the comparison shows one."""
        return _use(self)

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        return self.sentences[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The headline, what it rests on, and what it does not show."""
        return tuple(_sentences(self))


def verdict(comparison: Comparison) -> Verdict:
    """Decide what a comparison shows."""
    scored = [arm for arm in comparison.arms if arm.name != CONSTANT and arm.score.num]
    shared = {arm.name: arm.difference.interval.num for arm in comparison.arms if arm.difference}
    most = max(shared.values(), default=0)
    if not most:
        return Verdict(comparison, "nothing")
    if all(_is_constant(arm, comparison) for arm in scored):
        return Verdict(comparison, "all_collapsed", most)
    not_compared = tuple(arm for arm in comparison.arms if arm.difference and shared[arm.name] < FEW_SEEDS)
    if most < FEW_SEEDS:
        more = MoreSeeds(comparison.cells["seed"].nunique() + FEW_SEEDS - most)
        return Verdict(comparison, "too_few_seeds", most, not_compared=not_compared, more=more)
    compared = tuple(arm for arm in scored if shared.get(arm.name, 0) >= FEW_SEEDS)
    different = tuple(arm for arm in compared if arm.difference and arm.difference.is_significant)
    why_no_winner = _why_no_winner(comparison, compared)
    winner = comparison.best if different and not why_no_winner else None
    outcome: Outcome = "winner" if winner else "different" if different else "no_difference"
    return Verdict(
        comparison,
        outcome,
        min(shared[arm.name] for arm in compared),
        compared,
        not_compared,
        different,
        winner,
        why_no_winner,
        None if winner else _more_seeds(comparison, compared),
    )


def _is_constant(arm: Arm, comparison: Comparison) -> bool:
    """Whether a row says no more than a predictor of one class: every run collapsed at .5, and no threshold helps."""
    row = next((row for row in comparison.arms if row.name == arm.name.removesuffix(TUNED)), arm)
    has_collapsed = row.collapsed is not None and row.collapsed >= row.score.num > 0
    return has_collapsed and (row is arm or not arm.score.mean > _predictor(comparison) + NO_SPREAD)


def _predictor(comparison: Comparison) -> float:
    """The mean of the constant predictor; NaN if it is not stored."""
    return next((arm.score.mean for arm in comparison.arms if arm.name == CONSTANT), math.nan)


def _why_no_winner(comparison: Comparison, compared: tuple[Arm, ...]) -> str:
    """The reason why the leading row does not win; empty if it wins."""
    best = comparison.best
    if best is None:
        return "no two compared arms share a seed"
    leader = next(arm for arm in comparison.arms if arm.name == best.name)
    rivals = [arm for arm in (*_of_baseline(comparison), *compared) if _arm_of(arm) != _arm_of(leader)]
    highest = _highest(rivals)
    if highest.score.mean > leader.score.mean:
        return f"{best.name} leads on the shared seeds, but {highest.name} has a higher mean over its own"
    # The winner must be told apart by the p values of the table too, which are corrected over other tests.
    in_table = [leader] if leader.difference else [arm for arm in compared if _is_tuned(arm) == _is_tuned(leader)]
    if not best.wins or not all(arm.difference and arm.difference.is_significant for arm in in_table):
        lead = _format(comparison).show(best.difference.interval.mean, "+")
        return f"{best.name} leads, {lead} over {best.runner_up}, but not significantly over every other arm"
    is_better = f"{best.name} is significantly better than every other arm, but"
    if leader.failed:
        return f"{is_better} {leader.failed} of its {leader.failed + leader.score.num} runs have no score"
    if leader.score.mean <= _predictor(comparison) + NO_SPREAD or _is_constant(leader, comparison):
        return f"{is_better} not better than the {CONSTANT}"
    return ""


def _more_seeds(comparison: Comparison, compared: tuple[Arm, ...]) -> MoreSeeds | None:
    """The seeds that would show the lead of the best arm over its runner-up; if no arm is better, over the baseline."""
    num_tests, show = sum(arm.difference is not None for arm in comparison.arms), _format(comparison).show
    best, highest = comparison.best, _highest(compared)
    if best and any(arm.difference and arm.difference.is_ahead for arm in compared):
        by_seed, rows = best.by_seed, [best.name, best.runner_up]
        shows = f"a lead as large as that of {best.name} over {best.runner_up}: {show(best.difference.interval.mean)}"
    else:
        by_seed, rows = highest.by_seed, [highest.name]
        shows = f"a difference as large as that of {_names([highest], show)}"
    num = seeds_needed(by_seed, num_tests, comparison.test_per_train)
    names = dict.fromkeys(name.removesuffix(TUNED) for name in (comparison.baseline, *rows))
    return MoreSeeds(num, tuple(names), shows) if num else None


def _highest(rows: Sequence[Arm]) -> Arm:
    return max(rows, key=lambda arm: arm.score.mean)


def _of_baseline(comparison: Comparison) -> list[Arm]:
    return [arm for arm in comparison.arms if _arm_of(arm) == comparison.baseline]


def _arm_of(row: Arm) -> str:
    return row.name.removesuffix(TUNED)


def _is_tuned(row: Arm) -> bool:
    return row.name.endswith(TUNED)


def _format(comparison: Comparison) -> ScoreFormat:
    """How the table of the comparison writes its scores."""
    return ScoreFormat.of(pd.Series([arm.score.mean for arm in comparison.arms]))


def _use(of: Verdict) -> str:
    baseline = of.comparison.baseline
    if of.winner:
        return of.winner.name
    better = [arm.name for arm in of.different if arm.difference and arm.difference.is_ahead]
    # An arm that is better at both thresholds is named once.
    names = [name for name in better if not name.endswith(TUNED) or name.removesuffix(TUNED) not in better]
    if names:
        *others, last = names
        return f"{', '.join(others)}{' or ' if others else ''}{last}; no winner: {of.why_no_winner}"
    if of.outcome in ("nothing", "too_few_seeds"):
        return "not known yet"
    if of.outcome == "all_collapsed" or _of_baseline(of.comparison)[0].score.mean <= _predictor(of.comparison):
        return f"no arm: {baseline} is not better than the {CONSTANT}"
    return f"{baseline}, since no arm is shown to be better{' and some are worse' if of.different else ''}"


def _sentences(of: Verdict) -> Iterator[str]:
    comparison, baseline = of.comparison, of.comparison.baseline
    if of.outcome == "nothing":
        yield f"Nothing to compare: no arm has a score for a seed for which {baseline} has one."
    elif of.outcome == "all_collapsed":
        num = sum(arm.score.num for arm in comparison.arms if arm.name != CONSTANT and not _is_tuned(arm))
        yield (
            f"This says nothing about the arms: all {num} runs with a score predict one class only. Change the "
            f"training until {baseline} is better than the {CONSTANT}, then compare."
        )
    elif of.outcome == "too_few_seeds":
        yield (
            f"Too few seeds to say which arm is better: {counted(of.num_seeds, 'seed')} shared with {baseline}, and "
            f"{FEW_SEEDS} are needed. Run {FEW_SEEDS - of.num_seeds} more."
        )
    elif of.outcome == "no_difference":
        seeds = counted(of.num_seeds, "seed")
        yield f"No difference shown: over {seeds}, no arm differs significantly from {baseline}."
    elif of.outcome == "winner":
        yield _of_winner(of)
    yield from _of_different(of)
    if of.outcome == "different":
        yield f"No winner: {of.why_no_winner}."
    if of.compared and of.not_compared:
        names = ", ".join(f"{arm.name} ({counted(_num_shared(arm), 'seed')})" for arm in of.not_compared)
        yield f"Not compared, with fewer than {FEW_SEEDS} seeds shared with {baseline}: {names}."
    yield _of_levels(of)
    yield from _of_power(of)
    yield from _of_collapse(of)
    if column(comparison.cells, "tags.tuned").notna().any():
        yield "Each tuned arm has the settings that one search found: this compares these settings, not the losses."
    if rarest := comparison.rarest_class:
        name, num = rarest
        yield f"The rarest class in test, {name}, has {counted(num, 'item')}."


def _of_winner(of: Verdict) -> str:
    best = of.winner
    assert best
    if of.comparison.test_per_train:
        where = _where(of.comparison)
    else:
        where = "on this test set" + (" and on new data" if best.wins_on_new_data else ", not shown on new data")
    among = "compared" if of.not_compared else "other"
    # The lead is the difference of two means of the table only if both rows ran on the same seeds.
    rows = {arm.name: arm for arm in of.comparison.arms}
    shared = best.difference.interval.num
    is_shared = {shared} == {rows[name].score.num for name in (best.name, best.runner_up)}
    over = "" if is_shared else f" on the {counted(shared, 'seed')} that both have"
    lead = _format(of.comparison).show(best.difference.interval.mean, "+")
    return (
        f"Winner: {best.name}, significantly better than every {among} arm {where}; {lead} over {best.runner_up}{over}."
    )


def _of_different(of: Verdict) -> Iterator[str]:
    """Which compared rows differ significantly from the baseline, on this test set and on new data."""
    if not of.different:
        return
    places_by_names: dict[str, list[str]] = {_better_and_worse(of, of.different): [_where(of.comparison)]}
    if any(arm.new_data for arm in of.compared):
        on_new_data = [arm for arm in of.different if arm.new_data and arm.new_data.is_significant]
        places_by_names.setdefault(_better_and_worse(of, on_new_data), []).append("on new data")
    for names, places in places_by_names.items():
        yield (
            f"Significantly better than {of.comparison.baseline} {' and '.join(places)} (Holm p <= {ALPHA}): {names}."
        )


def _better_and_worse(of: Verdict, rows: Sequence[Arm]) -> str:
    show = _format(of.comparison).show
    better = [arm for arm in rows if arm.difference and arm.difference.is_ahead]
    worse = [arm for arm in rows if arm not in better]
    return (_names(better, show) or "no arm") + (f"; worse: {_names(worse, show)}" if worse else "")


def _of_levels(of: Verdict) -> str:
    """What is compared on how many seeds, and the scores of the baseline and the constant predictor."""
    comparison, show = of.comparison, _format(of.comparison)
    levels = [f"{arm.name} has {show.show_interval(arm.score)}" for arm in _of_baseline(comparison)[:1]]
    levels += [f"the {CONSTANT} {show.show(arm.score.mean)}" for arm in comparison.arms if arm.name == CONSTANT]
    place = f" on {comparison.place}" if comparison.place else ""
    seeds = f", {counted(of.num_seeds, 'seed')}" if of.num_seeds else ""
    return f"{show.heading(comparison.metric)}{place}{seeds}: {', '.join(filter(None, levels))}."


def _of_power(of: Verdict) -> Iterator[str]:
    """Which differences these seeds can show, and how many would show the one that was seen."""
    num_tests = sum(arm.difference is not None for arm in of.comparison.arms)
    visible = {arm.name: smallest_visible(arm.by_seed, num_tests, of.comparison.test_per_train) for arm in of.compared}
    known = sorted((value, name) for name, value in visible.items() if not math.isnan(value))
    if known:
        of_format, (low, easiest), (high, hardest) = _format(of.comparison), known[0], known[-1]
        # The spread of a few seeds of which one collapsed asks for differences that no score can have.
        is_possible = not of_format.percent or high < 1
        largest = f" to {of_format.show(high)} ({hardest})" if is_possible else f"; for {hardest}, no possible one"
        yield (
            f"Difference from {of.comparison.baseline} that so many seeds show in 4 of 5 studies: at least "
            f"{of_format.show(low)} ({easiest}){largest if hardest != easiest else ''}."
        )
    if of.more and of.more.shows:
        yield f"About {of.more.num} seeds would show {of.more.shows}."
    elif of.compared and not of.winner:
        yield f"Not even {MOST_SEEDS} seeds would show a difference as small as the one seen."


def _of_collapse(of: Verdict) -> Iterator[str]:
    """How often the arms that are better may collapse: a chance of 5 % is seldom seen in 10 runs."""
    better = {arm.name for arm in of.different if arm.difference and arm.difference.is_ahead}
    better |= {of.winner.name} if of.winner else set()
    arms_by_counts: dict[tuple[int, int], list[str]] = {}
    for arm in of.comparison.arms:
        if arm.collapsed is not None and arm.score.num and better & {arm.name, f"{arm.name}{TUNED}"}:
            arms_by_counts.setdefault((arm.collapsed, arm.score.num), []).append(arm.name)
    for (num, runs), names in arms_by_counts.items():
        yield (
            f"{num} of {runs} runs of {', '.join(names)} collapsed: a chance to collapse of up to "
            f"{100 * collapse_bound(num, runs):.0f} % is not excluded."
        )


def _where(comparison: Comparison) -> str:
    """What the differences over seeds hold for."""
    return "on other splits" if comparison.test_per_train else "on this test set"


def _names(rows: Sequence[Arm], show: Callable[[float, str], str]) -> str:
    """The rows with their differences from the baseline."""
    return ", ".join(f"{arm.name} ({show(arm.difference.interval.mean, '+')})" for arm in rows if arm.difference)


def _num_shared(arm: Arm) -> int:
    return arm.difference.interval.num if arm.difference else 0
