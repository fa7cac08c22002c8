"""The words of a verdict over seeds: every sentence about which arm is better is formed here, of one decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from analysis.comparison import CONSTANT, Arm, Comparison
from analysis.formats import on_place
from analysis.frames import tag_values
from analysis.statistics.best_arm import TUNED
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.statistics.power import MOST_SEEDS, collapse_bound, smallest_visible
from analysis.verdict.base import Verdict
from analysis.verdict.decision import Aim, Decision, is_useful, rows_of_baseline
from dice_ray.errors import counted
from dice_ray.tracking import schema

_ONE_SEARCH: Final = "ONE SEARCH FOR EACH ARM: this compares the settings that the searches found, not the losses"
_CONTROL_FAILED: Final = "CONTROL FAILED: no difference here is evidence about a loss"


def over_seeds(made: Decision) -> Verdict:
    """The verdict on a comparison of arms over seeds."""
    comparison, arms = made.comparison, [arm for arm in made.comparison.arms if arm.name != CONSTANT and arm.score.num]
    one_search, is_flawed = is_one_search(comparison), any(each.is_passed is False for each in comparison.controls)
    headline, *others = _sentences(made)
    warnings = [_ONE_SEARCH] * one_search + [_CONTROL_FAILED] * is_flawed
    use = _arm_to_use(made)
    if made.different:
        use += " (the settings that its search found, not the loss)" * one_search
        use += " (no evidence about its loss: the control failed)" * is_flawed
    scores = ((arm.name, {"": arm.score.mean, "_low": arm.score.low, "_high": arm.score.high}) for arm in arms)
    metrics = {(f"{comparison.metric}{part}", name): value for name, parts in scores for part, value in parts.items()}
    winner = ((arm.name, float(arm.score.mean)) for arm in arms if made.winner and arm.name == made.winner.name)
    return Verdict(
        place=comparison.place,
        metric=comparison.metric,
        outcome=made.outcome,
        # Settings that a search found do not stand for their losses.
        question=f"Can {'the settings of the tuned arms' if one_search else 'the arms'} be told apart?",
        use=use,
        # In the same sentence, so that no list of headlines shows the outcome without the warnings.
        sentences=(". ".join([*warnings, headline]), *others),
        facts={
            "design": _design(comparison),
            "winner": f"none: {_why_no_winner(made)}" if made.outcome == "different" else "",
            "data": comparison.place,
            "metric": comparison.metric,
            "seeds": str(made.num_seeds or ""),
            "certainty": _certainty(made) if made.compared else "",
            "control": "; ".join(_controls(comparison)),
        },
        metrics={name: value for name, value in metrics.items() if not math.isnan(value)},
        best=next(winner, None),
        more=made.more,
        settle="" if made.more or not made.aim else f"no study: not {_of_aim(made, made.aim)}",
        is_tested=made.num_seeds >= FEW_SEEDS,
        cells=comparison.cells,
    )


def _sentences(made: Decision) -> Iterator[str]:
    """The outcome, what it rests on, and what it does not show."""
    comparison, baseline, show = made.comparison, made.comparison.baseline, made.comparison.score_format.show
    scored = [arm for arm in comparison.arms if arm.name != CONSTANT and not arm.at_tuned_threshold]
    if made.outcome == "nothing":
        failed = sum(arm.failed or 0 for arm in scored)
        listed = f" The report lists {counted(failed, 'run')} without a score." if failed else ""
        yield f"Nothing to compare: no other arm has a score for a seed for which {baseline} has one.{listed}"
    elif made.outcome == "all_collapsed":
        yield (
            f"This says nothing about the arms: all {sum(arm.score.num for arm in scored)} runs with a score predict "
            f"one class only. Change the training until {baseline} is better than the {CONSTANT}, then compare."
        )
    elif made.outcome == "too_few_seeds":
        yield (
            f"Too few seeds to say which arm is better: {counted(made.num_seeds, 'seed')} shared with {baseline}, and "
            f"{FEW_SEEDS} are needed. Run {FEW_SEEDS - made.num_seeds} more."
        )
    elif made.outcome == "no_difference":
        fewest = "" if made.num_seeds == made.most_seeds else f"{made.num_seeds} to "
        seeds = f"{fewest}{counted(made.most_seeds, 'seed')}"
        yield f"No difference shown: over {seeds}, no arm differs significantly from {baseline}."
    elif made.outcome == "winner":
        yield _of_winner(made)
    yield from (f"Control {text}." for text in _controls(comparison))
    yield from _of_different(made)
    if constant := _constant(made):
        names = _with_differences(constant, show)
        yield f"The same difference from {baseline} with each seed, which cannot be tested: {names}."
    if made.outcome == "different":
        yield f"No winner: {_why_no_winner(made)}."
    if made.compared and made.not_compared:
        names = ", ".join(
            f"{arm.name} with {counted(arm.difference.interval.num, 'seed')}"
            for arm in made.not_compared
            if arm.difference
        )
        yield f"Not compared, with fewer than {FEW_SEEDS} seeds shared with {baseline}: {names}."
    yield _of_levels(comparison)
    yield from _of_power(made)
    yield from _of_collapse(made)


def _of_winner(made: Decision) -> str:
    best, comparison = made.winner, made.comparison
    assert best
    if comparison.test_per_train:
        where = _where(comparison)
    else:
        unknown = "not shown" if any(arm.new_data for arm in made.compared) else "not estimated"
        where = "on this test set" + (" and on new data" if made.wins_on_new_data else f", {unknown} on new data")
    among = "compared" if made.not_compared else "other"
    # The lead is the difference of two means of the table only if both rows ran on the same seeds.
    rows = {arm.name: arm for arm in comparison.arms}
    shared = best.difference.interval.num
    is_shared = {shared} == {rows[name].score.num for name in (best.name, best.runner_up)}
    over = "" if is_shared else f" on the {counted(shared, 'seed')} that both have"
    lead = comparison.score_format.show(best.difference.interval.mean, "+")
    untested = ", ".join(best.untested)
    return (
        f"Winner: {best.name}, significantly better than every {among} arm {where}; {lead} over {best.runner_up}{over}"
        f"{f' (not tested: the lead over {untested} is the same with each seed)' if untested else ''}."
    )


def _why_no_winner(made: Decision) -> str:
    best = made.comparison.best
    if best is None:
        return "no two compared arms share a seed"
    if made.rival:
        return f"{best.name} leads on the shared seeds, but {made.rival.name} has a higher mean over its own"
    if made.obstacle == "not_significant":
        lead = made.comparison.score_format.show(best.difference.interval.mean, "+")
        return f"{best.name} leads, {lead} over {best.runner_up}, but not significantly over every other arm"
    leader = next(arm for arm in made.comparison.arms if arm.name == best.name)
    runs = f"{leader.failed} of its {(leader.failed or 0) + leader.score.num} runs have no score"
    flaw = runs if made.obstacle == "failed_runs" else f"not better than the {CONSTANT}"
    return f"{best.name} is significantly better than every other arm, but {flaw}"


def _of_different(made: Decision) -> Iterator[str]:
    """Which compared rows differ significantly from the baseline, on this test set and on new data."""
    if not made.different:
        return
    baseline = made.comparison.baseline
    places_by_names: dict[str, list[str]] = {_better_and_worse(made, made.different): [_where(made.comparison)]}
    if any(arm.new_data for arm in made.compared):
        on_new_data = [arm for arm in made.different if arm.new_data and arm.new_data.is_significant]
        places_by_names.setdefault(_better_and_worse(made, on_new_data), []).append("on new data")
    for names, places in places_by_names.items():
        yield f"Significantly better than {baseline} {' and '.join(places)} (Holm p <= {ALPHA}): {names}."
    if at_half := _better_only_at_half(made):
        names = ", ".join(arm.name for arm in at_half)
        yield f"At thresholds tuned on dev, not significantly better than {baseline}: {names}."


def _better_and_worse(made: Decision, rows: Sequence[Arm]) -> str:
    show = made.comparison.score_format.show
    better = _better(rows)
    worse = [arm for arm in rows if arm not in better]
    return (_with_differences(better, show) or "no arm") + (
        f"; worse: {_with_differences(worse, show)}" if worse else ""
    )


def _of_levels(comparison: Comparison) -> str:
    """What is compared on how many seeds, and the scores of the baseline and the constant predictor."""
    show = comparison.score_format
    baseline = rows_of_baseline(comparison)[:1]
    levels = [f"{arm.name} has {show.show_interval(arm.score) or 'no score'}" for arm in baseline]
    levels += [f"the {CONSTANT} {show.show(arm.score.mean)}" for arm in comparison.arms if arm.name == CONSTANT]
    seeds = "".join(f", {counted(arm.score.num, 'seed')}" for arm in baseline if arm.score.num)
    return f"{show.heading(comparison.metric)}{on_place(comparison.place)}{seeds}: {', '.join(levels)}."


def _of_power(made: Decision) -> Iterator[str]:
    """Which differences these seeds can show, and how many would show the one that was seen."""
    num_tests, ratio = made.comparison.num_tests, made.comparison.test_per_train
    visible = [
        (smallest_visible(arm.by_seed, num_tests, ratio), arm.name, arm.difference.bound)
        for arm in made.compared
        if arm.difference and not math.isnan(arm.difference.p)
    ]
    if visible:
        (low, easiest, bound), (high, hardest, bound_of_hardest) = min(visible), max(visible)
        show = made.comparison.score_format.show
        # The spread of a few seeds of which one collapsed asks for differences that no score can have.
        least = f"{show(low)} for {easiest}" if low < bound else "none that is possible"
        largest = (
            f", {show(high)} for {hardest}" if high < bound_of_hardest else f"; none that is possible for {hardest}"
        )
        yield (
            f"Smallest true difference from {made.comparison.baseline} that so many seeds detect with 80 % power: "
            f"{least}{largest if hardest != easiest and low < bound else ''}."
        )
    if made.aim:
        yield f"{'About' if made.more else 'Not'} {_of_aim(made, made.aim)}."


def _of_aim(made: Decision, aim: Aim) -> str:
    """So many seeds, or even the most of all, and the difference that they would show."""
    show, seeds = made.comparison.score_format.show, made.more.num if made.more else f"even {MOST_SEEDS}"
    if aim.rival:
        shown = f"a lead as large as that of {aim.row.name} over {aim.rival}: {show(aim.mean)}"
    else:
        shown = f"a difference as large as that of {_with_differences([aim.row], show)}"
    return f"{seeds} seeds would show {shown}"


def _of_collapse(made: Decision) -> Iterator[str]:
    """How often the arms that are better may collapse: a chance of 5 % is seldom seen in 10 runs."""
    better = {arm.name for arm in _better(made.different)}
    better |= {made.winner.name} if made.winner else set()
    arms_by_counts: dict[tuple[int, int], list[str]] = {}
    for arm in made.comparison.arms:
        if arm.collapsed is not None and arm.score.num and better & {arm.name, f"{arm.name}{TUNED}"}:
            arms_by_counts.setdefault((arm.collapsed, arm.score.num), []).append(arm.name)
    for (num, runs), names in arms_by_counts.items():
        yield (
            f"{num} of {runs} scored runs of {', '.join(names)} collapsed: a chance to collapse of up to "
            f"{100 * collapse_bound(num, runs):.0f} % is not excluded."
        )


def _arm_to_use(made: Decision) -> str:
    """The arm to use, as far as the comparison shows one that is better than the constant predictor."""
    comparison = made.comparison
    if made.winner:
        return made.winner.name
    if made.outcome in ("nothing", "too_few_seeds"):
        return "not known yet"
    constant = [arm for arm in _constant(made) if is_useful(arm, comparison)]
    ahead = [arm for arm in constant if arm.difference and arm.difference.interval.mean > 0]
    if ahead and not made.different:
        return f"not known: {_names(ahead)} differs by the same with each seed, which cannot be tested"
    at_half = _better_only_at_half(made)
    better = [arm for arm in _better(made.different) if is_useful(arm, comparison)]
    if names := _names([arm for arm in better if arm not in at_half]):
        return names
    baseline = [row for row in rows_of_baseline(comparison) if is_useful(row, comparison)]
    if made.outcome == "all_collapsed" or not baseline:
        return _names(better) or f"no arm: {comparison.baseline} is not better than the {CONSTANT}"
    if at_half:
        instead = f";{comparison.at_threshold}, {names}" if (names := _names(better)) else ""
        return f"{baseline[-1].name}, since no arm is shown to be better at its tuned threshold{instead}"
    worse = " and some are worse" if len(_better(made.different)) < len(made.different) else ""
    row = baseline[0]
    num = max(each.collapsed or 0 for each in rows_of_baseline(comparison))
    caution = f"; but {num} of its {counted(row.score.num, 'run')} predict one class only at .5" if num else ""
    return f"{row.name}, since no arm is shown to be better{worse}{caution}"


def _constant(made: Decision) -> list[Arm]:
    """The compared rows that differ from the baseline by the same with each seed, of which no test says anything."""
    return [arm for arm in made.compared if arm.difference and arm.difference.is_constant]


def _better(rows: Sequence[Arm]) -> list[Arm]:
    """The rows that are ahead of the baseline, of those that differ from it significantly."""
    return [arm for arm in rows if arm.difference and arm.difference.is_ahead]


def _better_only_at_half(made: Decision) -> list[Arm]:
    """The rows that are better at .5, but not if each arm, the baseline too, has its threshold tuned on dev.

    A tuned threshold may do what their losses do.
    """
    better, tuned = _better(made.different), {arm.name for arm in made.compared if arm.at_tuned_threshold}
    tuned -= {arm.name for arm in better}
    return [arm for arm in better if f"{arm.name}{TUNED}" in tuned]


def _names(rows: Sequence[Arm]) -> str:
    """The arms, of which one with both its rows is named once, and the runs that failed."""
    plain = {arm.name: arm for arm in rows if not arm.at_tuned_threshold}
    tuned = [arm for arm in rows if arm.at_tuned_threshold and arm.arm not in plain]
    *others, last = [f"{arm.name}{_failures(arm)}" for arm in (*plain.values(), *tuned)] or [""]
    return f"{', '.join(others)}{' or ' if others else ''}{last}"


def _with_differences(rows: Sequence[Arm], show: Callable[[float, str], str]) -> str:
    """The rows with their differences from the baseline, and the runs that failed."""
    return ", ".join(
        f"{arm.name} {show(arm.difference.interval.mean, '+')}{_failures(arm)}" for arm in rows if arm.difference
    )


def _failures(arm: Arm) -> str:
    """How many runs of an arm, which its score leaves out, failed; empty for none."""
    return f" ({arm.failed} of {arm.failed + arm.score.num} runs without a score)" if arm.failed else ""


def _design(comparison: Comparison) -> str:
    """What was tuned, and so what the arms stand for."""
    cells = comparison.cells
    if shared := _shared_settings(comparison):
        own = tag_values(cells, schema.TUNED).groupby(cells["arm"]).last().dropna()
        searched = "; ".join(f"{arm}, {trial}" for arm, trial in own.items())
        return f"shared settings: searched once ({shared}), the same for all arms; " + (
            f"then the parameters of the loss alone ({searched})" if searched else "no loss has parameters searched"
        )
    if is_one_search(comparison):
        return f"tuned each: {_ONE_SEARCH}"
    return "as given: no search; each arm has the settings of its definition"


def _certainty(made: Decision) -> str:
    """What the intervals cover, and what they do not."""
    comparison = made.comparison
    drawn = "seeds and splits" if comparison.test_per_train else "seeds on this test set"
    if any(arm.new_data for arm in made.compared):
        drawn += " (and, in the columns on new data, other test items)"
    if _shared_settings(comparison):
        return (
            f"covers other {drawn}, with these shared settings; not another search, whose settings may favour another "
            "loss"
        )
    if is_one_search(comparison):
        return f"covers other {drawn}; not another search, which would find other settings for each tuned arm"
    return f"covers other {drawn}, with the settings of this study; not other settings"


def _controls(comparison: Comparison) -> Iterator[str]:
    """For each control of a tuned study, whether it passed, and what follows."""
    baseline, show = comparison.baseline, comparison.score_format.show_interval
    for control in comparison.controls:
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


def is_one_search(comparison: Comparison) -> bool:
    """Whether arms have all their settings from a search each: their difference may be that of the searches."""
    is_tuned = bool(tag_values(comparison.cells, schema.TUNED).notna().any())
    return is_tuned and not _shared_settings(comparison)


def _shared_settings(comparison: Comparison) -> str:
    """The trial whose settings all arms share; empty for none."""
    known = tag_values(comparison.cells, schema.SHARED).dropna()
    return str(known.iloc[-1]) if len(known) else ""


def _where(comparison: Comparison) -> str:
    """What the differences over seeds hold for."""
    return "on other splits" if comparison.test_per_train else "on this test set"
