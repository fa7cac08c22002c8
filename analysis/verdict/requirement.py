"""Whether the verdicts of an experiment meet what a gate in CI requires."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.statistics.intervals import ALPHA
from analysis.verdict import verdicts
from analysis.verdict.base import Verdict
from analysis.verdict.decision import Decision, decide
from dice_ray.errors import InputError

_Answer: TypeAlias = Literal["yes", "no", "cannot say"]
_STATUS: Final[dict[_Answer, int]] = {"yes": 0, "no": 1, "cannot say": 3}
_BY_CARD: Final[dict[str, _Answer]] = {"YES": "yes", "NO": "no"}
_UNDECIDED: Final = ("nothing", "useless", "too_few_seeds", "not_yet")
"""Outcomes of a comparison in which no arm can be judged, or not yet."""


@dataclass(frozen=True)
class Ruling:
    """Whether a requirement is met.

    Attributes:
        status: 0 if it is, 1 if not, 3 if the runs cannot say.
        sentences: What decides, for each place.
    """

    status: int
    sentences: tuple[str, ...]


def ruling(findings: Findings, requirement: str) -> Ruling:
    """Whether a requirement is met; on several data sets, on each of them.

    Args:
        findings: The study or comparison.
        requirement: `better`, `different`, or `not-worse:0.5` with a margin in points of the metric; without one it is
            what the study declared to matter.

    Raises:
        InputError: There is no such requirement, or the experiment has no arms that can be asked this.
    """
    kind, margin = _parsed(requirement)
    made, compared = verdicts(findings), comparisons(findings)
    if not made:
        raise InputError("a requirement must be of a study or a comparison, and this experiment compares no arms")
    if kind != "better" and not compared:
        raise InputError(f"a study of drawn settings can be required to be better alone, got {kind}")
    if kind == "not-worse" and not (margin or compared[0].declared.care):
        raise InputError("not-worse must have a margin, as not-worse:0.5, where the study declared none by --care")
    decisions: list[Decision | None] = [*map(decide, compared)]
    decisions = decisions or [None] * len(made)  # of drawn settings
    found: list[_Answer] = []
    sentences = []
    for verdict, decision in zip(made, decisions, strict=True):
        answer, why = _answer(kind, margin, verdict, decision)
        found.append(answer)
        sentences.append((f"On {verdict.place}: " if len(made) > 1 else "") + f"{kind}: {answer}. {why}")
    worst: _Answer = "no" if "no" in found else "cannot say" if "cannot say" in found else "yes"
    return Ruling(_STATUS[worst], tuple(sentences))


def _parsed(text: str) -> tuple[str, float | None]:
    """The kind of a requirement and its margin, if it has one."""
    kind, colon, margin = text.partition(":")
    try:
        size = float(margin) if colon else None
    except ValueError:
        size = math.nan
    if text not in ("better", "different") and (kind != "not-worse" or not (size is None or 0 < size < math.inf)):
        raise InputError(
            "a requirement must be better, different, not-worse or not-worse:MARGIN, with a margin above 0 in "
            f"points of the metric, got {text!r}"
        )
    return kind, size


def _answer(kind: str, margin: float | None, verdict: Verdict, decision: Decision | None) -> tuple[_Answer, str]:
    """The answer on one place, and the sentence that decides."""
    has_failed_control = decision is not None and decision.comparison.has_failed_control
    if has_failed_control or (kind != "better" and verdict.outcome in _UNDECIDED):
        return "cannot say", verdict.headline
    if kind == "better" or decision is None:
        return _BY_CARD.get(verdict.answer, "cannot say"), verdict.headline
    if kind == "different":
        is_shown = bool(decision.standing("better", "worse"))
        return "yes" if is_shown else "cannot say" if verdict.outcome == "untested" else "no", verdict.headline
    return _not_worse(margin, decision)


def _not_worse(margin: float | None, made: Decision) -> tuple[_Answer, str]:
    comparison = made.comparison
    points = margin or comparison.declared.care
    size = points / (100 if comparison.score_format.percent else 1)
    lowest = {arm.name: arm.decisive.gain.low if arm.decisive else math.nan for arm, _ in made.standings}
    others = [arm for arm in comparison.primary if arm.arm != comparison.baseline]
    if untested := [arm.name for arm in others if math.isnan(lowest.get(arm.name, math.nan))]:
        return "cannot say", f"Not tested: {', '.join(untested)}."
    if collapsing := [arm for arm in others if arm.collapses_more]:
        counts = ", ".join(f"{arm.name} ({arm.collapsed} of {arm.score.num})" for arm in collapsing)
        return (
            "no" if any(arm.collapse_p <= ALPHA for arm in collapsing) else "cannot say",
            f"More runs than of {comparison.baseline} predict one class only, and differences are of the others: "
            f"{counts}.",
        )
    show = comparison.score_format.show_difference
    worse = [arm for arm in others if lowest[arm.name] <= -size]
    if not worse and (failing := [f"{arm.name} ({arm.failed})" for arm in others if arm.failed]):
        return "cannot say", f"Runs have no score, and differences are of the others: {', '.join(failing)}."
    listed = ", ".join(f"{arm.name} {show(arm.decisive.interval)}" for arm in worse or others if arm.decisive)
    shown = "Not shown to be" if worse else "Each arm is shown to be"
    return "no" if worse else "yes", f"{shown} less than {points:g} worse than {comparison.baseline}: {listed}."
