"""The words of a verdict over seeds: every sentence about which arm is better is formed here, of one decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from analysis.comparison import CONSTANT, Arm, Comparison
from analysis.frames import tag_values
from analysis.statistics.best_arm import arm_of
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.statistics.power import smallest_visible, visible_on_items
from analysis.verdict.base import Verdict
from analysis.verdict.decision import Decision, flaw, is_useful, open_arms
from dice_ray.errors import counted
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_ONE_SEARCH: Final = "ONE SEARCH FOR EACH ARM: this compares the settings that the searches found, not the losses"
_NOTHING_SHOWN: Final = ("nothing", "useless", "too_few_seeds")


def over_seeds(made: Decision) -> Verdict:
    """The verdict on a comparison of arms over seeds."""
    comparison, arms = made.comparison, [arm for arm in made.comparison.arms if arm.name != CONSTANT and arm.score.num]
    one_search, is_flawed = comparison.is_one_search, comparison.has_failed_control
    differing = [*_differing(comparison)]
    failed = ["CONTROL FAILED: no difference here is evidence about a loss"] * is_flawed
    warnings = [*[_ONE_SEARCH] * one_search, *failed, *differing]
    use = _arm_to_use(made)
    if made.recommended:
        use += " (the settings that its search found, not the loss)" * one_search
        use += " (no evidence about its loss: the control failed)" * is_flawed
        use += " (with its other settings)" * bool(differing)
    metrics = {
        (f"{comparison.metric}{part}", arm.name): value
        for arm in arms
        for part, value in (("", arm.score.mean), ("_low", arm.score.low), ("_high", arm.score.high))
        if not math.isnan(value)
    }
    best = comparison.best if made.outcome == "winner" else None
    # The warnings stand in the headline, so that no list of headlines shows the outcome without them.
    in_card = (
        ". ".join([*warnings, _headline(made)]),
        *(() if made.outcome in _NOTHING_SHOWN else _of_decision(made)),
    )
    what = "Are the settings found for an arm" if one_search else "Is an arm"  # settings do not stand for a loss
    what = "Are the settings of an arm" if differing else what
    return Verdict(
        place=comparison.place,
        metric=comparison.metric,
        outcome=made.outcome,
        question=f"{what} better than {comparison.baseline}?",
        use=use,
        sentences=(*in_card, *_sentences(made)),
        facts={
            "design": _design(comparison),
            "seeds": _seeds(made),
            "what matters": _care(made),
            "data": comparison.place,
            "metric": f"{comparison.metric}{comparison.where_scored}",
            "certainty": _certainty(made) if made.standings else "",
            "control": "; ".join(_controls(comparison)),
        },
        metrics=metrics,
        best=(best.name, metrics[comparison.metric, best.name]) if best else None,
        more=made.more,
        settle="no number of seeds: more test items, or runs that differ less from seed to seed"
        if made.is_beyond_seeds
        else "",
        cells=comparison.cells,
        num_in_card=len(in_card),
    )


def _headline(made: Decision) -> str:
    comparison, baseline = made.comparison, made.comparison.baseline
    worse = f"; worse: {_with_gains(made, lost)}" if (lost := made.standing("worse")) else ""
    if made.outcome == "nothing":
        failed = sum(arm.failed or 0 for arm in comparison.primary)
        listed = f" The report lists {counted(failed, 'run')} without a score." if failed else ""
        return f"Nothing to compare: no other arm has a score beside one of {baseline}.{listed}"
    if made.outcome == "useless":
        return (
            f"This says nothing about the arms: none is better than the {CONSTANT}. Change the training until "
            f"{baseline} is, then compare."
        )
    if made.outcome == "too_few_seeds":
        return (
            f"Too few seeds to say which arm is better: {counted(made.num_seeds, 'seed')}, and {FEW_SEEDS} are needed."
        )
    if made.outcome == "untested":
        constant = [arm for arm in made.standing("untested") if arm.difference and arm.difference.is_constant]
        return f"Not tested: the same difference from {baseline} with each seed, {_with_gains(made, constant)}{worse}."
    if made.outcome == "settled" and (equal := made.standing("equal")):
        every = "No arm matters: all are" if not worse else f"No better arm: {_names(equal)}"
        return f"{every} equal to {baseline} within {comparison.declared.care:g}{worse}."
    if made.outcome == "flawed":
        flaws = "; ".join(f"{_with_gains(made, [arm])}, but {flaw(arm, comparison)}" for arm in made.standing("better"))
        return f"No arm can be recommended: {flaws}{worse}."
    if not made.recommended:
        return f"No arm is shown to be better than {baseline}{_excluded(made)}{worse}."
    others = [arm for arm in made.standing("better") if arm not in made.recommended]
    also = f"; also better, but not to be used: {_with_gains(made, others)}" if others else ""
    lead = ""
    best = comparison.best
    if made.outcome == "winner" and best and len(made.standings) > 1:
        is_tight = arm_of(best.runner_up) != baseline
        gain = comparison.score_format.show(best.lead.gain.mean, "" if comparison.lower_is_better else "+")
        over = f" ({gain} {'below' if comparison.lower_is_better else 'over'} {best.runner_up})" * is_tight
        lead = f", and better than every other arm{over}"
    elif len(made.recommended) > 1:
        lead = ", and none of them shown to be the best"
    return f"Better than {baseline}{_where(made)}: {_with_gains(made, made.recommended)}{lead}{also}{worse}."


def _excluded(made: Decision) -> str:
    """The gain that no arm can have, as the end of a clause; empty if an arm could not be tested, or all are worse."""
    known = [arm.decisive for arm, _ in made.standings if arm.decisive]
    highest = max((0.0, *(each.gain.high for each in known)), key=lambda gain: (math.isnan(gain), gain))
    # To exclude a gain of a good part of all that is possible says nothing, and arms that are all worse are named.
    if not 0 < highest <= 0.1 * _bound(made):
        return ""
    return f", nor by more than {made.comparison.score_format.show_bound(highest)}{_where(made)}"


def _bound(made: Decision) -> float:
    """The largest gain that is possible: a cost can fall to 0."""
    comparison = made.comparison
    known = (arm.decisive.bound for arm, _ in made.standings if arm.decisive)
    return comparison.reference.score.mean if comparison.lower_is_better else next(known)


def _sentences(made: Decision) -> Iterator[str]:
    """What the headline rests on, and what it does not show."""
    comparison, baseline = made.comparison, made.comparison.baseline
    yield from (f"Control {text}." for text in _controls(comparison))
    if fixed := [arm for arm in comparison.primary if arm.is_fixed]:
        verb, its = ("has", "its") if len(fixed) == 1 else ("have", "their")
        yield (
            f"{_names(fixed)} {verb} one run: the interval of {its} score is over test items, and {its} own seeds are "
            "not covered."
        )
    if made.outcome in _NOTHING_SHOWN:
        return
    if care := comparison.care:
        better = made.standing("better")
        if barely := [arm for arm in better if not (arm.decisive and arm.decisive.gain.low > care)]:
            yield f"Better, but not shown to be by more than {comparison.declared.care:g}: {_names(barely)}."
        if no_worse := made.standing("no_worse"):
            yield f"No worse than {baseline} by more than {comparison.declared.care:g}: {_names(no_worse)}."
    if equal := made.standing("equal") if made.outcome != "settled" else []:
        yield f"Equal to {baseline} within {comparison.declared.care:g}: {_names(equal)}."
    here = [arm for arm in comparison.primary if arm.new_data and arm.difference and arm.difference.is_significant]
    if alone := [arm for arm in here if arm.new_data and not arm.new_data.is_significant]:
        yield f"On these test items only, not on new data, different from {baseline}: {_names(alone)}."
    if len(comparison.declared.looks) > 1:
        still, last = set(open_arms(comparison)), comparison.declared.looks[-1]
        given_up = [arm for arm in made.standing("open", "no_worse") if arm.arm not in still and arm.num_shared < last]
        if given_up := [arm for arm in given_up if not arm.is_fixed]:
            yield f"Run no further, since more seeds would hardly show a difference: {_names(given_up)}."
    compared = {arm.name for arm, _ in made.standings}
    if few := [arm for arm in comparison.primary if arm.difference and arm.name not in compared]:
        yield f"Not compared, with fewer than {FEW_SEEDS} seeds: {_names(few)}."
    yield from _of_power(made)
    yield from _of_collapse(made)


def _of_decision(made: Decision) -> Iterator[str]:
    """What the decision that is fitted on dev gains, and which arms are better without it only."""
    comparison, reference = made.comparison, made.comparison.reference
    decision, show = comparison.decision, comparison.score_format
    if not comparison.is_tuned or made.outcome == "untested":
        return
    plain = {arm.arm: arm.score.mean for arm in comparison.arms if not arm.is_primary and arm.name != CONSTANT}
    won = comparison.best.name if comparison.best and made.outcome == "winner" else ""
    used = made.recommended or (reference,) * is_useful(reference, comparison)
    name, texts = comparison.metric.rpartition("/")[2], []
    for arm in (arm for arm in used if (not won or arm.name == won) and arm.is_tuned):
        text = f"{arm.arm} {decision.words(arm.arm)}: {name} {show.in_words(arm.score.mean)}"
        text += f" ({decision.untuned_in_short}: {show.show(plain[arm.arm])})" if arm.arm in plain else ""
        if arm.arm in decision.missed:
            missed = f"missed in {decision.missed[arm.arm]} of {counted(arm.score.num, 'run')}"
            text += f", {decision.promised.replace('flagged', 'share flagged')} of {decision.limit} % {missed}"
        if arm.arm in decision.unused:
            runs = f"{decision.unused[arm.arm]} of {counted(arm.score.num, 'run')}"
            text += f"; for {runs}, `predict` uses it only with `--threshold tuned`: dev shows no clear gain"
        texts.append(text)
    if texts:
        yield f"Use {'; or '.join(texts)}."
    better = [arm.arm for arm in made.standing("better")]
    only = [
        arm
        for arm in comparison.better_untuned
        if arm not in better and catalogue.gain(comparison.metric, reference.score.mean - plain[arm]) >= 0
    ]
    if only:
        verb, fitted = "is" if len(only) == 1 else "are", decision.has_threshold
        yield (
            f"{_listed(only)} {verb} better {decision.untuned_in_short} only: "
            f"{'a tuned threshold' if fitted else 'a fitted decision'} gives {comparison.baseline} the same."
        )


def _of_power(made: Decision) -> Iterator[str]:
    """Which gains these seeds, and any number of seeds, can show."""
    comparison, num_tests = made.comparison, made.comparison.num_tests or 1
    known = [arm.decisive for arm, _ in made.standings if arm.decisive and not math.isnan(arm.decisive.p)]
    if not known or made.outcome == "winner":
        return
    visible = (smallest_visible(difference, num_tests) for difference in known)
    possible = [each for each in visible if each < _bound(made)]
    show = comparison.score_format.show
    low, high = (show(bound(possible)) if possible else "" for bound in (min, max))
    sizes = f"{low} to {high}" if low != high else low
    items = min(visible_on_items(difference, num_tests) for difference in known)
    floor = f"; more seeds on these test items, at least {show(items)}" if items else ""
    yield f"Smallest true difference shown with 80 % power: {sizes or 'none that is possible'}{floor}."


def _of_collapse(made: Decision) -> Iterator[str]:
    """How often arms collapse: a chance of 5 % is seldom seen in 10 runs."""
    comparison = made.comparison
    rows = [arm for arm in comparison.primary if arm.collapsed is not None and arm.score.num]
    for arm in rows:
        p = f" (p {arm.collapse_p:.2g} against {comparison.baseline})" if arm.collapse_p >= 0 else ""
        runs = counted(arm.score.num, "run")
        if arm.is_fixed:
            yield from [f"{arm.name} predicts one class only."] * bool(arm.collapsed)
        elif arm.collapsed:
            yield f"{arm.name} collapsed in {arm.collapsed} of {runs}{p}; differences are of the others."
        elif arm in made.recommended or (arm.arm == comparison.baseline and p):
            bound = 100 * (1 - ALPHA ** (1 / arm.score.num))  # exact, one-sided (Clopper and Pearson 1934)
            yield f"{arm.name} collapsed in none of {runs}: a chance of up to {bound:.0f} % is not excluded."


def _arm_to_use(made: Decision) -> str:
    """The arm to use, as far as the comparison shows one that is better than the constant predictor."""
    comparison, baseline = made.comparison, made.comparison.baseline
    if made.outcome == "winner" and comparison.best:
        return comparison.best.name
    if made.outcome in ("nothing", "too_few_seeds"):
        return "not known yet"
    if made.recommended:
        return " or ".join(arm.name for arm in made.recommended)
    row = comparison.reference
    if not is_useful(row, comparison):
        return f"no arm: {baseline} is not better than the {CONSTANT}"
    if made.outcome == "untested":
        return f"not known: {_names(made.standing('untested'))} cannot be tested"
    if made.outcome == "settled" and not made.standing("worse"):
        return f"{row.name}, or whichever is cheaper: they are equal within {comparison.declared.care:g}"
    reason = "can be recommended instead" if made.outcome == "flawed" else "is shown to be better"
    runs = counted(row.score.num, "run")
    caution = f"; but {row.collapsed} of its {runs} predict one class only" if row.collapsed else ""
    return f"{row.name}, since no arm {reason}{caution}"


def _names(rows: Sequence[Arm]) -> str:
    return _listed([arm.name for arm in rows])


def _listed(names: Sequence[str]) -> str:
    """The names, with semicolons between them where one has a comma itself."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _with_gains(made: Decision, rows: Sequence[Arm]) -> str:
    """The rows with their differences to the baseline and intervals."""
    comparison = made.comparison
    texts = []
    for arm in rows:
        if arm.decisive:
            text = comparison.score_format.show_difference(arm.decisive.interval)
            if arm.collapse_p <= ALPHA and not math.isnan(arm.decisive.p):  # the difference of the others may be none
                often = "more" if arm.collapses_more else "less"
                text = f"(collapses {often} often; {text} where neither does)"
            texts.append(f"{arm.name} {text}")
    return ", ".join(texts)


def _care(made: Decision) -> str:
    """The smallest difference that matters, or what may be one."""
    comparison = made.comparison
    if comparison.care:
        return f"differences of more than {comparison.declared.care:g} (declared)"
    score = comparison.reference.score
    half = (score.high - score.low) / 2 if made.standings else math.nan
    if math.isnan(half) or comparison.declared.compared_by:
        return ""
    if comparison.score_format.percent and half > 0.05:  # a baseline that learns with some seeds only
        return "not declared: --care, in a new study"
    size = float(f"{(100 if comparison.score_format.percent else 1) * half:.1g}")
    return f"not declared; in a new study, --care {size:g}: the score of {comparison.baseline} itself is as uncertain"


def _seeds(made: Decision) -> str:
    looks, num = made.comparison.declared.looks, made.num_seeds
    if not num:
        return ""
    most = max((arm.num_shared for arm, _ in made.standings), default=num)
    nums = f"{num}" if num == most else f"{num} to {most}"
    if len(looks) > 1 and most <= looks[-1]:
        return f"{nums}, compared after {', '.join(map(str, looks))}, declared before the first run"
    if looks and most > looks[-1]:
        declared = f"{looks[-1]} of them" if num == most else f"beyond the {looks[-1]}"
        return f"{nums}, {declared} declared: judged by e-values, which hold whenever one stops"
    if not looks:
        return nums
    return f"{nums}{f' of {looks[-1]}' if num < looks[-1] else ''}, declared before the first run"


def _design(comparison: Comparison) -> str:
    """What was tuned, and so what the arms stand for."""
    cells = comparison.cells
    if shared := comparison.shared_settings:
        own = tag_values(cells, schema.TUNED).groupby(cells["arm"]).last().dropna()
        searched = "; ".join(f"{arm}, {trial}" for arm, trial in own.items())
        return f"shared settings: searched once ({shared}), the same for all arms; " + (
            f"then the parameters of the loss alone ({searched})" if searched else "no loss has parameters searched"
        )
    if comparison.is_one_search:
        return f"tuned each: {_ONE_SEARCH}"
    if comparison.declared.compared_by:
        return "as found: runs that other programs made; what they share and how they were chosen is not known"
    return "as given: no search; each arm has the settings of its definition"


def _certainty(made: Decision) -> str:
    """What the intervals cover, and what they do not."""
    comparison = made.comparison
    if comparison.test_per_train:
        drawn = "seeds and splits"
    else:
        drawn = "seeds and other test items" if _is_on_new_data(made) else "seeds on this test set"
    if comparison.shared_settings:
        return (
            f"covers other {drawn}, with these shared settings; not another search, whose settings may favour another "
            "loss"
        )
    if comparison.is_one_search:
        return f"covers other {drawn}; not another search, which would find other settings for each tuned arm"
    of = "these runs" if comparison.declared.compared_by else "this study"
    return f"covers other {drawn}, with the settings of {of}; not other settings"


def _differing(comparison: Comparison) -> Iterator[str]:
    """The warning that arms of runs that other programs made differ in more than what is compared."""
    known = tag_values(comparison.cells, schema.DIFFERING).dropna()
    if len(known):
        column = comparison.declared.compared_by
        alone = "losses" if column.rpartition(".")[2] == "loss" else f"{column} alone"
        yield f"ARMS DIFFER IN {known.iloc[0]} TOO: this compares settings, not {alone}"


def _controls(comparison: Comparison) -> Iterator[str]:
    """For each control, whether it passed, and what follows."""
    baseline, show = comparison.baseline, comparison.score_format.show_interval
    for control in comparison.controls:
        is_same = control.arm == baseline
        what = "with other seeds" if control.has_own_seeds else "with equal class weights"
        name = f"{baseline} {what if is_same else f'with the other settings found for {control.arm}'}"
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


def _where(made: Decision) -> str:
    """What the claims hold for."""
    if made.comparison.test_per_train:
        return " on other splits"
    return " on new data" if _is_on_new_data(made) else " on this test set"


def _is_on_new_data(made: Decision) -> bool:
    """Whether the difference on new data is known of each arm that is tested."""
    tested = [arm for arm, _ in made.standings if arm.decisive and not math.isnan(arm.decisive.p)]
    return bool(tested) and all(arm.new_data for arm in tested)
