"""What a comparison of arms over seeds shows: one decision, of which `over_seeds.py` forms all sentences.

It rests on the numbers in the table of the same comparison, so that no headline contradicts the table below it. Claims
rest on the difference on new data where that is known, at the declared threshold. An arm is recommended if it is better
than the baseline and the constant predictor, every run of it has a score, and it collapses no more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from analysis.comparison import CONSTANT, Arm, Comparison
from analysis.frames import states
from analysis.statistics.intervals import ALPHA, FEW_SEEDS, NO_SPREAD
from analysis.statistics.power import is_futile, seeds_needed
from analysis.verdict.base import MoreSeeds
from dice_ray.metrics import catalogue

_Outcome: TypeAlias = Literal[
    "nothing", "useless", "too_few_seeds", "untested", "not_yet", "open", "settled", "flawed", "better", "winner"
]
_Standing: TypeAlias = Literal["better", "equal", "no_worse", "worse", "open", "untested"]
"""How an arm stands to the baseline; `equal` and `no_worse` need a smallest difference that matters."""


@dataclass(frozen=True)
class Decision:
    """What a comparison shows.

    Attributes:
        outcome: `nothing`: no arm shares a seed with the baseline. `useless`: no arm is better than the constant
            predictor. `too_few_seeds`: no arm has `FEW_SEEDS` seeds. `untested`: an arm is ahead by the same with each
            seed, and no test can judge that. `not_yet`: open, and looks are left. `open`: no arm is shown to be better.
            `settled`: every arm is equal to the baseline within what matters, or worse. `flawed`: only arms that cannot
            be recommended are better. `better`: one or more can. `winner`: one of them is better than every other arm.
        num_seeds: The fewest seeds that a compared arm has; without one, the most of any arm.
        standings: The compared arms.
        recommended: The arms that are better and can be used.
        more: The seeds that would answer the question; None if it is answered, or no number is known that would.
        is_beyond_seeds: Whether no number of seeds would show the smallest difference that matters.
    """

    comparison: Comparison
    outcome: _Outcome
    num_seeds: int = 0
    standings: tuple[tuple[Arm, _Standing], ...] = ()
    recommended: tuple[Arm, ...] = ()
    more: MoreSeeds | None = None
    is_beyond_seeds: bool = False

    def standing(self, *standings: _Standing) -> list[Arm]:
        """The compared arms that stand so to the baseline."""
        return [arm for arm, each in self.standings if each in standings]


def decide(comparison: Comparison) -> Decision:
    """Decide what a comparison shows."""
    rows = [arm for arm in comparison.primary if arm.score.num]
    num_by_arm = {arm.name: arm.num_shared for arm in rows if arm.difference}
    if not (most := max(num_by_arm.values(), default=0)):
        return Decision(comparison, "nothing")
    if not any(is_useful(arm, comparison) for arm in rows):
        return Decision(comparison, "useless", most)
    has_looks = len(comparison.declared.looks) > 1
    enough = [arm for arm in rows if num_by_arm.get(arm.name, 0) >= FEW_SEEDS]
    if not enough:
        lacking = MoreSeeds(None if has_looks else _lacking(comparison, most))
        return Decision(comparison, "too_few_seeds", most, more=lacking)
    standings = tuple((arm, _standing(arm, comparison)) for arm in enough)
    better = [arm for arm, standing in standings if standing == "better"]
    recommended = tuple(arm for arm in better if not flaw(arm, comparison))
    best = comparison.best
    is_won = bool(best and best.wins and best.name in [arm.name for arm in recommended])
    kinds = {standing for _, standing in standings}
    is_ahead = any(
        arm.difference and arm.difference.is_constant and arm.difference.gain.mean > 0
        for arm, standing in standings
        if standing == "untested"
    )
    outcome: _Outcome
    if recommended:
        outcome = "winner" if is_won else "better"
    elif better:
        outcome = "flawed"
    elif is_ahead:
        outcome = "untested"
    elif kinds <= {"equal", "worse"}:
        outcome = "settled"
    else:
        outcome = "not_yet" if open_arms(comparison) else "open"
    num_seeds = min(num_by_arm[arm.name] for arm in enough)
    made = Decision(comparison, outcome, num_seeds, standings, recommended)
    if outcome == "not_yet":
        return replace(made, more=MoreSeeds())
    return _planned(made) if outcome == "open" and comparison.care else made


def open_arms(comparison: Comparison) -> list[str]:
    """The arms of a study in looks that must run up to the next one; empty if all are settled or no look is left."""
    if len(looks := comparison.declared.looks) < 2:
        return []
    names = []
    for arm in comparison.primary:
        if (found := arm.decisive) is None or arm.is_fixed:  # which no further seed of the study is run of
            continue
        is_last = found.looks is not None and found.looks.reached >= looks[-1]
        is_settled = found.interval.num >= FEW_SEEDS and (
            _standing(arm, comparison) in ("better", "worse", "equal") or is_futile(found, comparison.num_tests or 1)
        )
        if not is_last and not is_settled:
            names.append(arm.arm)
    return names


def is_useful(arm: Arm, comparison: Comparison) -> bool:
    """Whether a row is better than the constant predictor, if that is stored, and has a run that did not collapse."""
    level = next((row.score.mean for row in comparison.arms if row.name == CONSTANT), math.nan)
    gain = catalogue.gain(comparison.metric, arm.score.mean - level)
    has_collapsed = arm.collapsed is not None and arm.collapsed >= arm.score.num > 0
    return not has_collapsed and not gain <= NO_SPREAD


def flaw(arm: Arm, comparison: Comparison) -> str:
    """Why an arm is not recommended even if it is better; empty if it may be."""
    if arm.failed:
        return f"{arm.failed} of its {arm.failed + arm.score.num} runs have no score"
    if not is_useful(arm, comparison):
        return f"it is not better than the {CONSTANT}"
    if arm.collapses_more:
        return f"{arm.collapsed} of its {arm.score.num} runs predict one class only"
    return ""


def _standing(arm: Arm, comparison: Comparison) -> _Standing:
    found, care = arm.decisive, comparison.care
    if arm.collapse_p <= ALPHA:
        return "worse" if arm.collapses_more else "better"
    if found is None or found.interval.num < FEW_SEEDS or math.isnan(found.p):
        # Two arms with the very same scores are equal.
        is_same = found is not None and found.interval.num >= FEW_SEEDS and abs(found.interval.mean) < NO_SPREAD
        return "equal" if is_same and care else "untested"
    if -care < found.gain.low and found.gain.high < care:
        return "equal"
    if found.is_significant:
        return "better" if found.is_ahead else "worse"
    return "no_worse" if care and found.gain.low > -care else "open"


def _lacking(comparison: Comparison, most: int) -> int:
    """How many seeds give some arm as many as a comparison needs."""
    compared = [arm for arm in comparison.primary if arm.difference]
    best = max(compared, key=lambda arm: (arm.num_shared, not arm.is_fixed))
    # Seeds without a score for one of the two are lost; cells that have not ended are run by the next command.
    cells = comparison.cells[states(comparison.cells) != "unfinished"]
    arms = (comparison.baseline, *[best.arm] * (not best.is_fixed))
    ended = [set(cells.loc[cells["arm"] == arm, "seed"]) for arm in arms]
    return len(set.intersection(*ended)) - most + FEW_SEEDS


def _planned(made: Decision) -> Decision:
    """The same with the seeds that would show the smallest difference that matters, of the arm that takes the most."""
    comparison, arms = made.comparison, made.standing("open", "no_worse")
    num_tests, looks = comparison.num_tests or 1, comparison.declared.looks
    planned = [
        seeds_needed(arm.decisive, comparison.care, num_tests, comparison.test_per_train, looks)
        for arm in arms
        if arm.decisive
    ]
    known = [num for num in planned if num]
    if len(known) < len(planned):
        return replace(made, is_beyond_seeds=True)
    now = max((arm.difference.interval.num for arm in arms if arm.difference), default=0)
    if max(known, default=0) <= now:  # so many would have shown it in most studies
        return made
    names = (comparison.baseline, *(arm.arm for arm in arms if not arm.is_fixed))
    return replace(made, more=MoreSeeds(max(known), names))
