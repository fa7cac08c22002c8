"""A verdict in sentences: every sentence about which arm is better is formed here, for summary, tables and terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from analysis.comparison import CONSTANT, Arm, Comparison
from analysis.decision import Verdict, failures, is_useful, rows_of_baseline, score_format, with_differences
from analysis.formats import on_place
from analysis.frames import tag_values
from analysis.statistics.best_arm import TUNED
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.statistics.power import MOST_SEEDS, collapse_bound, smallest_visible
from dice_ray.errors import counted
from dice_ray.tracking import schema

ONE_SEARCH: Final = "ONE SEARCH FOR EACH ARM: this compares the settings that the searches found, not the losses"
CONTROL_FAILED: Final = "CONTROL FAILED: no difference here is evidence about a loss"


def headline(of: Verdict) -> str:
    """The outcome in one sentence, after warnings of what keeps it from being about the losses."""
    return next(sentences(of))


def arm_to_use(of: Verdict) -> str:
    """The arm to use, as far as the comparison shows one that is better than the constant predictor."""
    if of.winner:
        return of.winner.name
    if of.outcome in ("nothing", "too_few_seeds"):
        return "not known yet"
    constant = [arm for arm in _constant(of) if is_useful(arm, of.comparison)]
    ahead = [arm for arm in constant if arm.difference and arm.difference.interval.mean > 0]
    if ahead and not of.different:
        return f"not known: {_names(ahead)} differs by the same with each seed, which cannot be tested"
    at_half = _better_only_at_half(of)
    better = [arm for arm in _better(of.different) if is_useful(arm, of.comparison)]
    if names := _names([arm for arm in better if arm not in at_half]):
        return names
    baseline = [row for row in rows_of_baseline(of.comparison) if is_useful(row, of.comparison)]
    if of.outcome == "all_collapsed" or not baseline:
        return _names(better) or f"no arm: {of.comparison.baseline} is not better than the {CONSTANT}"
    if at_half:
        instead = f";{of.comparison.at_threshold}, {names}" if (names := _names(better)) else ""
        return f"{baseline[-1].name}, since no arm is shown to be better at its tuned threshold{instead}"
    worse = " and some are worse" if len(_better(of.different)) < len(of.different) else ""
    row = baseline[0]
    num = max(each.collapsed or 0 for each in rows_of_baseline(of.comparison))
    caution = f"; but {num} of its {counted(row.score.num, 'run')} predict one class only at .5" if num else ""
    return f"{row.name}, since no arm is shown to be better{worse}{caution}"


def _constant(of: Verdict) -> list[Arm]:
    """The compared rows that differ from the baseline by the same with each seed, of which no test says anything."""
    return [arm for arm in of.compared if arm.difference and arm.difference.is_constant]


def _better(rows: Sequence[Arm]) -> list[Arm]:
    """The rows that are ahead of the baseline, of those that differ from it significantly."""
    return [arm for arm in rows if arm.difference and arm.difference.is_ahead]


def _better_only_at_half(of: Verdict) -> list[Arm]:
    """The rows that are better at .5, but not if each arm, the baseline too, has its threshold tuned on dev.

    A tuned threshold may do what their losses do.
    """
    better, tuned = _better(of.different), {arm.name for arm in of.compared if arm.at_tuned_threshold}
    tuned -= {arm.name for arm in better}
    return [arm for arm in better if f"{arm.name}{TUNED}" in tuned]


def _names(rows: Sequence[Arm]) -> str:
    """The arms, of which one with both its rows is named once, and the runs that failed."""
    plain = {arm.name: arm for arm in rows if not arm.at_tuned_threshold}
    tuned = [arm for arm in rows if arm.at_tuned_threshold and arm.arm not in plain]
    *others, last = [f"{arm.name}{failures(arm)}" for arm in (*plain.values(), *tuned)] or [""]
    return f"{', '.join(others)}{' or ' if others else ''}{last}"


def design(of: Verdict) -> str:
    """What was tuned, and so what the arms stand for."""
    cells = of.comparison.cells
    if shared := _shared(of.comparison):
        own = tag_values(cells, schema.TUNED).groupby(cells["arm"]).last().dropna()
        searched = "; ".join(f"{arm}, {trial}" for arm, trial in own.items())
        return f"shared settings: searched once ({shared}), the same for all arms; " + (
            f"then the parameters of the loss alone ({searched})" if searched else "no loss has parameters searched"
        )
    if _is_tuned(of.comparison):
        return f"tuned each: {ONE_SEARCH}"
    return "as given: no search; each arm has the settings of its definition"


def certainty(of: Verdict) -> str:
    """What the intervals cover, and what they do not."""
    comparison = of.comparison
    drawn = "seeds and splits" if comparison.test_per_train else "seeds on this test set"
    if any(arm.new_data for arm in of.compared):
        drawn += " (and, in the columns on new data, other test items)"
    if _shared(comparison):
        return (
            f"covers other {drawn}, with these shared settings; not another search, whose settings may favour another "
            "loss"
        )
    if _is_tuned(comparison):
        return f"covers other {drawn}; not another search, which would find other settings for each tuned arm"
    return f"covers other {drawn}, with the settings of this study; not other settings"


def controls(of: Verdict) -> Iterator[str]:
    """For each control of a tuned study, whether it passed, and what follows."""
    baseline, show = of.comparison.baseline, score_format(of.comparison).show_interval
    for control in of.comparison.controls:
        is_same = control.arm == baseline
        name = f"{baseline} with {'equal class weights' if is_same else f'the other settings found for {control.arm}'}"
        found = control.difference.interval
        if control.is_passed is None:
            why = "with all seeds" if found.num >= FEW_SEEDS else f"over {found.num} of the {FEW_SEEDS} seeds needed"
            yield f"not known: {name} minus {baseline} is {show(found, '+') or 'without a value'} {why}"
        elif control.is_passed:
            yield f"passed: {name} is not told apart from {baseline}, {show(found, '+')}"
        else:
            cause = "The same loss makes such a difference" if is_same else "The settings alone make such a difference"
            yield (
                f"failed: {name} differs significantly from {baseline}, {show(found, '+')}. {cause}, so none here is "
                "evidence about a loss"
            )


def question(of: Verdict) -> str:
    """What the verdict answers; settings that a search found do not stand for their losses."""
    return f"Can {'the settings of the tuned arms' if is_one_search(of.comparison) else 'the arms'} be told apart?"


def sentences(of: Verdict) -> Iterator[str]:
    """The headline, what it rests on, and what it does not show."""
    of_verdict = _sentences(of)
    warnings = [ONE_SEARCH] if is_one_search(of.comparison) else []
    warnings += [CONTROL_FAILED] if has_failed_control(of.comparison) else []
    # In the same sentence, so that no list of headlines shows the outcome without them.
    yield ". ".join([*warnings, next(of_verdict)])
    yield from of_verdict


def has_failed_control(comparison: Comparison) -> bool:
    """Whether a control differs significantly from the baseline, whose loss it has."""
    return any(control.is_passed is False for control in comparison.controls)


def _sentences(of: Verdict) -> Iterator[str]:
    comparison, baseline = of.comparison, of.comparison.baseline
    if of.outcome == "nothing":
        failed = sum(arm.failed or 0 for arm in comparison.arms if not arm.at_tuned_threshold)
        listed = f" The report lists {counted(failed, 'run')} without a score." if failed else ""
        yield f"Nothing to compare: no other arm has a score for a seed for which {baseline} has one.{listed}"
    elif of.outcome == "all_collapsed":
        num = sum(arm.score.num for arm in comparison.arms if arm.name != CONSTANT and not arm.at_tuned_threshold)
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
        fewest = "" if of.num_seeds == of.most_seeds else f"{of.num_seeds} to "
        seeds = f"{fewest}{counted(of.most_seeds, 'seed')}"
        yield f"No difference shown: over {seeds}, no arm differs significantly from {baseline}."
    elif of.outcome == "winner":
        yield _of_winner(of)
    yield from (f"Control {text}." for text in controls(of))
    yield from _of_different(of)
    if constant := _constant(of):
        names = with_differences(constant, score_format(comparison).show)
        yield f"The same difference from {baseline} with each seed, which cannot be tested: {names}."
    if of.outcome == "different":
        yield f"No winner: {of.why_no_winner}."
    if of.compared and of.not_compared:
        names = ", ".join(f"{arm.name} with {counted(_num_shared(arm), 'seed')}" for arm in of.not_compared)
        yield f"Not compared, with fewer than {FEW_SEEDS} seeds shared with {baseline}: {names}."
    yield _of_levels(of)
    yield from _of_power(of)
    yield from _of_collapse(of)
    if rarest := comparison.rarest_class:
        name, num = rarest
        yield f"The rarest class in test, {name}, has {counted(num, 'item')}."


def is_one_search(comparison: Comparison) -> bool:
    """Whether arms have all their settings from a search each: their difference may be that of the searches."""
    return _is_tuned(comparison) and not _shared(comparison)


def _is_tuned(comparison: Comparison) -> bool:
    """Whether settings of an arm are those of the best trial of a sweep."""
    return bool(tag_values(comparison.cells, schema.TUNED).notna().any())


def _shared(comparison: Comparison) -> str:
    """The trial whose settings all arms share; empty for none."""
    known = tag_values(comparison.cells, schema.SHARED).dropna()
    return str(known.iloc[-1]) if len(known) else ""


def _of_winner(of: Verdict) -> str:
    best = of.winner
    assert best
    if of.comparison.test_per_train:
        where = _where(of.comparison)
    else:
        unknown = "not shown" if any(arm.new_data for arm in of.compared) else "not estimated"
        where = "on this test set" + (" and on new data" if of.wins_on_new_data else f", {unknown} on new data")
    among = "compared" if of.not_compared else "other"
    # The lead is the difference of two means of the table only if both rows ran on the same seeds.
    rows = {arm.name: arm for arm in of.comparison.arms}
    shared = best.difference.interval.num
    is_shared = {shared} == {rows[name].score.num for name in (best.name, best.runner_up)}
    over = "" if is_shared else f" on the {counted(shared, 'seed')} that both have"
    lead = score_format(of.comparison).show(best.difference.interval.mean, "+")
    untested = ", ".join(best.untested)
    return (
        f"Winner: {best.name}, significantly better than every {among} arm {where}; {lead} over {best.runner_up}{over}"
        f"{f' (not tested: the lead over {untested} is the same with each seed)' if untested else ''}."
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
    if at_half := _better_only_at_half(of):
        names = ", ".join(arm.name for arm in at_half)
        yield f"At thresholds tuned on dev, not significantly better than {of.comparison.baseline}: {names}."


def _better_and_worse(of: Verdict, rows: Sequence[Arm]) -> str:
    show = score_format(of.comparison).show
    better = _better(rows)
    worse = [arm for arm in rows if arm not in better]
    return (with_differences(better, show) or "no arm") + (f"; worse: {with_differences(worse, show)}" if worse else "")


def _of_levels(of: Verdict) -> str:
    """What is compared on how many seeds, and the scores of the baseline and the constant predictor."""
    comparison, show = of.comparison, score_format(of.comparison)
    baseline = rows_of_baseline(comparison)[:1]
    levels = [f"{arm.name} has {show.show_interval(arm.score) or 'no score'}" for arm in baseline]
    levels += [f"the {CONSTANT} {show.show(arm.score.mean)}" for arm in comparison.arms if arm.name == CONSTANT]
    seeds = "".join(f", {counted(arm.score.num, 'seed')}" for arm in baseline if arm.score.num)
    return f"{show.heading(comparison.metric)}{on_place(comparison.place)}{seeds}: {', '.join(levels)}."


def _of_power(of: Verdict) -> Iterator[str]:
    """Which differences these seeds can show, and how many would show the one that was seen."""
    num_tests, ratio = of.comparison.num_tests, of.comparison.test_per_train
    visible = [
        (smallest_visible(arm.by_seed, num_tests, ratio), arm.name, arm.difference.bound)
        for arm in of.compared
        if arm.difference and not math.isnan(arm.difference.p)
    ]
    if visible:
        (low, easiest, bound), (high, hardest, bound_of_hardest) = min(visible), max(visible)
        show = score_format(of.comparison).show
        # The spread of a few seeds of which one collapsed asks for differences that no score can have.
        least = f"{show(low)} for {easiest}" if low < bound else "none that is possible"
        largest = (
            f", {show(high)} for {hardest}" if high < bound_of_hardest else f"; none that is possible for {hardest}"
        )
        yield (
            f"Smallest true difference from {of.comparison.baseline} that so many seeds detect with 80 % power: {least}"
            f"{largest if hardest != easiest and low < bound else ''}."
        )
    if of.more and of.more.shows:
        yield f"About {of.more.num} seeds would show {of.more.shows}."
    elif of.too_small:
        yield f"Not even {MOST_SEEDS} seeds would show {of.too_small}."


def _of_collapse(of: Verdict) -> Iterator[str]:
    """How often the arms that are better may collapse: a chance of 5 % is seldom seen in 10 runs."""
    better = {arm.name for arm in _better(of.different)}
    better |= {of.winner.name} if of.winner else set()
    arms_by_counts: dict[tuple[int, int], list[str]] = {}
    for arm in of.comparison.arms:
        if arm.collapsed is not None and arm.score.num and better & {arm.name, f"{arm.name}{TUNED}"}:
            arms_by_counts.setdefault((arm.collapsed, arm.score.num), []).append(arm.name)
    for (num, runs), names in arms_by_counts.items():
        yield (
            f"{num} of {runs} scored runs of {', '.join(names)} collapsed: a chance to collapse of up to "
            f"{100 * collapse_bound(num, runs):.0f} % is not excluded."
        )


def _where(comparison: Comparison) -> str:
    """What the differences over seeds hold for."""
    return "on other splits" if comparison.test_per_train else "on this test set"


def _num_shared(arm: Arm) -> int:
    return arm.difference.interval.num if arm.difference else 0
