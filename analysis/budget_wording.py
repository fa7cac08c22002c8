"""The verdict of a study at equal tuning budget, in sentences and as a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from analysis.budget import FEW_SETTINGS, ArmAtBudget, AtBudget, BudgetOutcome, at_budget
from analysis.comparison import CONSTANT
from analysis.decision import MoreSeeds, ToldApart
from analysis.formats import ScoreFormat
from analysis.frames import Findings
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.statistics.variance import SETTINGS
from analysis.verdict import Card, command_of
from dice_ray.errors import counted

COVERED: Final = "seeds and the draw of the search"
NOT_COVERED: Final = "other test items, other data sets, other search spaces"
SAME_SETTINGS: Final = "all arms have the same settings"
DESIGN: Final = f"tuned each, with the search repeated: {SAME_SETTINGS}"
QUESTION: Final = "Can the arms be told apart at equal tuning budget?"
ANSWERS: Final[dict[BudgetOutcome, ToldApart]] = {
    "nothing": "TOO FEW RUNS",
    "all_collapsed": "NO",
    "too_few": "TOO FEW RUNS",
    "no_difference": "NO",
    "different": "YES",
}


def format_at_budget(of: AtBudget) -> ScoreFormat:
    """How scores and differences are written."""
    return ScoreFormat.of(of.metric, (score.mean for arm in of.arms for score in arm.scores))


def headline_at_budget(of: AtBudget) -> str:
    """Whether the arms differ at equal tuning budget, in one sentence."""
    runs = f"{counted(of.num_draws, 'setting')} and {counted(of.num_seeds, 'seed')}"
    budget = f"At equal tuning budget (the best of {of.budget} by dev, over {runs})"
    if of.outcome == "nothing":
        return (
            f"Nothing to compare yet: no setting or seed has run with {of.baseline} and all other arms, or none of "
            "these runs has a score."
        )
    if of.outcome == "all_collapsed":
        return (
            f"This says nothing about the arms: all {sum(of.num_collapsed.values())} runs with a score predict one "
            "class only. Change the space until some settings train a better model."
        )
    if of.outcome == "too_few":
        return (
            f"Too few runs to say which arm is better at equal tuning budget: {runs}, and {FEW_SETTINGS} settings and "
            f"{FEW_SEEDS} seeds are needed."
        )
    if of.outcome == "no_difference":
        return f"{budget}, no arm is shown to differ from {of.baseline}."
    better, worse = _better_and_worse(of)
    parts = [f"{name}: {_with_differences(of, arms)}" for name, arms in (("better", better), ("worse", worse)) if arms]
    return f"{budget}, arms differ significantly from {of.baseline} (Holm p <= {ALPHA}); {'; '.join(parts)}."


def is_decided(of: AtBudget) -> bool:
    """Whether there is a verdict, which has a certainty."""
    return of.outcome in ("no_difference", "different")


def sentences_at_budget(of: AtBudget) -> Iterator[str]:
    """The headline, what its certainty covers, and what the test score depends on."""
    yield headline_at_budget(of)
    if of.without_score:
        yield f"Not compared, without any score: {', '.join(of.without_score)}."
    if of.outcome == "nothing":
        return
    if is_decided(of):
        yield f"This certainty covers {COVERED}; it does not cover {NOT_COVERED}."
        if of.constant and of.not_above_constant:
            level = format_at_budget(of).show(of.constant.mean)
            yield f"Not better than the {CONSTANT} ({level}): {_names(of.not_above_constant, ', ')}."
    if total := sum(of.variances.values()):
        names = {SETTINGS: f"{SETTINGS} ({of.varied[0]})"} if len(of.varied) == 1 else {}
        shares = ", ".join(
            f"{names.get(name, name)} {100 * variance / total:.0f} %{shown_bounds(of, name, 0)}"
            for name, variance in of.variances.items()
        )
        failed = f" {of_failed(num)}" if (num := sum(of.num_failed.values())) else ""
        yield f"Shares of the variance of {of.metric} of single runs: {shares}.{failed}"
    if of.num_collapsed and of.outcome != "all_collapsed":
        counts = ", ".join(f"{name} ({num})" for name, num in of.num_collapsed.items())
        yield f"Runs that predict one class only: {counts}."
    if of.num_failed:
        failed = ", ".join(f"{name} ({num})" for name, num in of.num_failed.items())
        yield f"Runs without a score, which a search chooses only where all its runs failed: {failed}."
    if of.num_left_out:
        yield f"Left out: {counted(of.num_left_out, 'run')} of settings or seeds that not all arms have run with yet."


def shown_bounds(of: AtBudget, name: str, digits: int) -> str:
    """The interval of a share in percent, after a space; empty without one."""
    if name not in of.share_bounds:
        return ""
    low, high = of.share_bounds[name]
    return f" [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def of_failed(num: int) -> str:
    """How runs without a score count in the variance."""
    runs = "The run without a score counts" if num == 1 else f"The {num} runs without a score count"
    return f"{runs} with at most the constant predictor's, which can be most of the variance."


def cards_at_budget(findings: Findings) -> tuple[Card, ...]:
    """A card for each data set and encoder of a study of drawn settings."""
    studied = at_budget(findings)
    return tuple(_card(each, each.place if len(studied) > 1 else "", findings) for each in studied)


def _card(of: AtBudget, name: str, findings: Findings) -> Card:
    facts = {
        "data": of.place,
        "metric": of.metric,
        "design": DESIGN if of.budget > 1 else SAME_SETTINGS,
        "budget": f"the best of {counted(of.budget, 'setting')} by dev, of {of.num_draws}" if of.budget > 1 else "",
        "seeds": str(of.num_seeds or ""),
        "certainty": f"covers {COVERED}; not {NOT_COVERED}" if is_decided(of) else "",
    }
    settle, is_command = _settle(of, findings)
    return Card(name, QUESTION, ANSWERS[of.outcome], _use(of), facts, settle, is_command)


def _use(of: AtBudget) -> str:
    if of.outcome in ("nothing", "too_few"):
        return "not known yet"
    better, worse = _better_and_worse(of)
    not_useful = of.arms if of.outcome == "all_collapsed" else of.not_above_constant
    if names := _names([arm for arm in better if arm not in not_useful], " or "):
        return names
    if of.baseline in [arm.name for arm in not_useful]:
        return f"no arm: {of.baseline} is not better than the {CONSTANT}"
    return f"{of.baseline}, since no arm is shown to be better{' and some are worse' if worse else ''}"


def _settle(of: AtBudget, findings: Findings) -> tuple[str, bool]:
    """What to run where there are too few runs, and whether it is a command."""
    if of.outcome != "too_few":
        return "", False
    if of.num_draws < FEW_SETTINGS:
        return f"the same study with {FEW_SETTINGS} SETTINGS and {FEW_SEEDS} seeds or more", False
    return command_of(MoreSeeds(FEW_SEEDS), findings)


def _better_and_worse(of: AtBudget) -> tuple[list[ArmAtBudget], list[ArmAtBudget]]:
    better = [arm for arm in of.different if arm.differences[of.budget].is_ahead]
    return better, [arm for arm in of.different if arm not in better]


def _names(arms: Sequence[ArmAtBudget], separator: str) -> str:
    return separator.join(arm.name for arm in arms)


def _with_differences(of: AtBudget, arms: Sequence[ArmAtBudget]) -> str:
    show = format_at_budget(of).show
    return ", ".join(f"{arm.name} ({show(arm.differences[of.budget].interval.mean, '+')})" for arm in arms)
