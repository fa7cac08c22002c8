"""The words of a verdict at equal tuning budget, of a study of drawn settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from analysis.budget import ArmAtBudget, AtBudget
from analysis.comparison import CONSTANT
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.statistics.power import smallest_visible
from analysis.statistics.variance import SETTINGS
from analysis.verdict.base import MoreSeeds, Verdict
from dice_ray.errors import counted

_COVERED: Final = "seeds and the draw of the search"
_NOT_COVERED: Final = "other test items, other data sets, other search spaces"
_SAME_SETTINGS: Final = "all arms have the same settings"


def equal_budget(study: AtBudget) -> Verdict:
    """The verdict on the arms of a study of drawn settings."""
    budget, is_search = study.budget, study.budget > 1
    settings = "".join([_SAME_SETTINGS, *(f"; {arm} its own {', '.join(own)} too" for arm, own in study.own.items())])
    more, settle = _to_settle(study)
    return Verdict(
        place=study.place,
        metric=study.metric,
        outcome=_outcome(study),
        question=f"Is an arm better than {study.baseline} at equal tuning budget?",
        use=_arm_to_use(study),
        sentences=(_headline(study), *_sentences(study)),
        facts={
            "data": study.place,
            "metric": study.metric,
            "design": f"tuned each, with the search repeated: {settings}" if is_search else settings,
            "budget": f"the best of {counted(budget, 'setting')} by dev, of {study.num_draws}" if is_search else "",
            "seeds": str(study.num_seeds or "") if study.is_crossed else "another one for each setting",
            "certainty": f"covers {_COVERED}; not {_NOT_COVERED}" if study.is_decided else "",
        },
        metrics={(f"{study.metric} best of {budget}", arm.name): arm.scores[budget - 1].mean for arm in study.arms},
        more=more,
        settle=settle,
    )


def _outcome(study: AtBudget) -> str:
    """Whether an arm is better: that some differ may be because they are worse."""
    if study.outcome != "different":
        return study.outcome
    better, _ = _better_and_worse(study)
    if not better:
        return "no_difference"
    return "better" if any(arm not in study.not_above_constant for arm in better) else "flawed"


def _to_settle(study: AtBudget) -> tuple[MoreSeeds | None, str]:
    """The runs that would answer an open question, or in words where no command asks for them."""
    if study.outcome == "too_few":
        if not study.is_crossed:
            return MoreSeeds(study.settings_needed, noun="setting"), ""
        if study.num_draws >= study.settings_needed:
            return MoreSeeds(FEW_SEEDS), ""
        needed = f"{study.settings_needed} settings and {FEW_SEEDS} seeds or more"
        return None, f"the same study with {'more settings' if _is_open_design(study) else needed}"
    is_open = study.outcome == "no_difference" and not study.is_crossed
    return MoreSeeds(2 * study.num_draws, noun="setting") if is_open else None, ""


def _is_open_design(study: AtBudget) -> bool:
    """Whether the runs do not show yet if all settings have the same seeds, which decides how many are needed."""
    return study.num_draws == study.num_seeds == 1 and study.is_crossed


def _headline(study: AtBudget) -> str:
    settings = counted(study.num_draws, "setting")
    if study.is_crossed:
        runs, needed = f"{settings} and {counted(study.num_seeds, 'seed')}", f" and {FEW_SEEDS} seeds"
    else:
        runs, needed = f"{settings} with a seed each", ""
    budget = f"At equal tuning budget (the best of {study.budget} by dev, over {runs})"
    if study.outcome == "nothing":
        return (
            f"Nothing to compare yet: no setting or seed has run with {study.baseline} and all other arms, or none of "
            "these runs has a score."
        )
    if study.outcome == "all_collapsed":
        return (
            f"This says nothing about the arms: all {sum(study.num_collapsed.values())} runs with a score predict one "
            "class only. Change the space until some settings train a better model."
        )
    if study.outcome == "too_few":
        needed = "" if _is_open_design(study) else f", and {study.settings_needed} settings{needed} are needed"
        return f"Too few runs to say which arm is better at equal tuning budget: {runs}{needed}."
    if study.outcome == "no_difference":
        return f"{budget}, no arm is shown to differ from {study.baseline}."
    show = study.score_format.show_difference
    named = {
        name: ", ".join(
            f"{arm.name} ({show(replace(arm.differences[study.budget].interval, low=math.nan))})" for arm in arms
        )
        for name, arms in zip(("better", "worse"), _better_and_worse(study), strict=True)
    }
    arms = "; ".join(f"{name}: {text}" for name, text in named.items() if text)
    return f"{budget}, arms differ significantly from {study.baseline} (Holm p <= {ALPHA}); {arms}."


def _sentences(study: AtBudget) -> Iterator[str]:
    """What the certainty covers, and what the test score depends on."""
    if study.without_score:
        yield f"Not compared, without any score: {', '.join(study.without_score)}."
    if study.outcome == "nothing":
        return
    if study.is_decided:
        yield f"This certainty covers {_COVERED}; it does not cover {_NOT_COVERED}."
        if study.constant and study.not_above_constant:
            level = study.score_format.show(study.constant.mean)
            names = ", ".join(arm.name for arm in study.not_above_constant)
            yield f"Not better than the {CONSTANT} ({level}): {names}."
    yield from _of_power(study)
    if any(deviation.mean for deviation in study.deviations.values()):
        show = study.score_format.show_interval
        named = {SETTINGS: f"{SETTINGS} ({study.varied[0]})"} if len(study.varied) == 1 else {}
        shown = ", ".join(f"{named.get(name, name)} {show(each)}" for name, each in study.deviations.items())
        yield (
            f"Standard deviations of {study.score_format.heading(study.metric)} of single runs: {shown}. The intervals "
            f"are about these arms and settings, not about others.{failed_in_variance(study)}"
        )
    if study.num_collapsed and study.outcome != "all_collapsed":
        yield f"Runs that predict one class only: {_with_counts(study.num_collapsed)}."
    if study.num_failed:
        counts = _with_counts(study.num_failed)
        yield f"Runs without a score, which a search chooses only where all its runs failed: {counts}."
    if study.num_left_out:
        runs = counted(study.num_left_out, "run")
        yield f"Left out: {runs} of settings or seeds that not all arms have run with yet."


def _of_power(study: AtBudget) -> Iterator[str]:
    """Which differences so many settings can show, where they show none."""
    if study.outcome != "no_difference":
        return
    found = [(arm.name, arm.differences[study.budget]) for arm in study.arms if arm.differences]
    tested = [(name, difference) for name, difference in found if not math.isnan(difference.p)]
    if not tested:
        return
    visible = [(smallest_visible(difference, len(tested)), name) for name, difference in tested]
    (low, easiest), (high, hardest) = min(visible), max(visible)
    show = study.score_format.show
    largest = f", {show(high)} for {hardest}" if len(tested) > 1 else ""
    half = "" if study.is_crossed or study.test_per_train else "; twice as many detect about two thirds of it"
    yield (
        f"Smallest true difference from {study.baseline} that so many settings detect with 80 % power: {show(low)} for "
        f"{easiest}{largest}{half}."
    )


def _arm_to_use(study: AtBudget) -> str:
    if study.outcome in ("nothing", "too_few"):
        return "not known yet"
    better, worse = _better_and_worse(study)
    not_useful = study.arms if study.outcome == "all_collapsed" else study.not_above_constant
    if names := " or ".join(arm.name for arm in better if arm not in not_useful):
        return names
    if study.baseline in [arm.name for arm in not_useful]:
        return f"no arm: {study.baseline} is not better than the {CONSTANT}"
    return f"{study.baseline}, since no arm is shown to be better{' and some are worse' if worse else ''}"


def _better_and_worse(study: AtBudget) -> tuple[list[ArmAtBudget], list[ArmAtBudget]]:
    better = [arm for arm in study.different if arm.differences[study.budget].is_ahead]
    return better, [arm for arm in study.different if arm not in better]


def failed_in_variance(study: AtBudget) -> str:
    """How runs without a score count in the variance, after a space; empty without such runs."""
    if not (num := sum(study.num_failed.values())):
        return ""
    runs = "The run without a score counts" if num == 1 else f"The {num} runs without a score count"
    return f" {runs} as no better than the constant predictor, which can be most of the variance."


def _with_counts(num_by_arm: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({num})" for name, num in num_by_arm.items())
