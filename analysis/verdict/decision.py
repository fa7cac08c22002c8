"""What a comparison of arms over seeds shows: one decision, of which `over_seeds.py` forms all sentences.

It rests on the numbers in the table of the same comparison, so that no headline contradicts the table below it. A row
is compared if it shares `FEW_SEEDS` seeds with the baseline; the other rows are named, and do not keep those from being
compared. The winner is significantly better than every other compared arm, in the table too; it has the highest mean of
them, no run without a score, and exceeds the constant predictor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from analysis.comparison import CONSTANT, Arm, Comparison
from analysis.frames import states
from analysis.statistics.best_arm import TUNED, BestArm
from analysis.statistics.intervals import FEW_SEEDS, NO_SPREAD
from analysis.statistics.power import seeds_needed
from analysis.verdict.base import MoreSeeds

Outcome: TypeAlias = Literal["nothing", "all_collapsed", "too_few_seeds", "no_difference", "different", "winner"]
Obstacle: TypeAlias = Literal["no_shared_seed", "higher_mean", "not_significant", "failed_runs", "not_useful"]


@dataclass(frozen=True)
class Aim:
    """A difference that more seeds may show.

    Attributes:
        row: The row that is ahead of `rival`, or that differs from the baseline.
        rival: The row of another arm; None for the baseline.
        mean: The difference that was seen.
    """

    row: Arm
    rival: str | None
    mean: float


@dataclass(frozen=True)
class Decision:
    """What a comparison shows; rows are those of its table.

    Attributes:
        outcome: `nothing`: no row shares a seed with the baseline. `all_collapsed`: no run does more than predict one
            class. `too_few_seeds`: no row shares `FEW_SEEDS` seeds with the baseline. `no_difference`: no compared row
            differs significantly from the baseline. `different`: some do, and there is no winner.
        num_seeds: The fewest seeds that a compared row shares with the baseline; without one, the most of any row.
        most_seeds: The most seeds that a row shares with the baseline.
        compared: The rows that share enough seeds with the baseline.
        not_compared: Those that do not.
        different: The compared rows that differ significantly from the baseline.
        winner: The row that wins, and its lead over the closest row of another arm.
        wins_on_new_data: Whether it wins on new data too.
        obstacle: The reason why the leading row, `comparison.best`, does not win; None for a winner.
        rival: The row that has a higher mean than the leading one, of the obstacle `higher_mean`.
        more: The seeds that would answer the question; None if it is answered, or if seeds alone do not answer it.
        aim: The difference that these seeds would show; without them, the one that not even `MOST_SEEDS` would show.
    """

    comparison: Comparison
    outcome: Outcome
    num_seeds: int = 0
    most_seeds: int = 0
    compared: tuple[Arm, ...] = ()
    not_compared: tuple[Arm, ...] = ()
    different: tuple[Arm, ...] = ()
    winner: BestArm | None = None
    wins_on_new_data: bool = False
    obstacle: Obstacle | None = None
    rival: Arm | None = None
    more: MoreSeeds | None = None
    aim: Aim | None = None


def decide(comparison: Comparison) -> Decision:
    """Decide what a comparison shows."""
    scored = [arm for arm in comparison.arms if arm.name != CONSTANT and arm.score.num]
    shared = {arm.name: arm.difference.interval.num for arm in comparison.arms if arm.difference}
    most = max(shared.values(), default=0)
    if not most:
        return Decision(comparison, "nothing")
    if all(_is_constant(arm, comparison) for arm in scored):
        return Decision(comparison, "all_collapsed", most, most)
    not_compared = tuple(arm for arm in comparison.arms if arm.difference and shared[arm.name] < FEW_SEEDS)
    if most < FEW_SEEDS:
        best = max((arm for arm in comparison.arms if arm.difference), key=lambda arm: shared[arm.name])
        # Seeds without a score for one of the two are lost; cells that have not ended are run by the next command.
        cells = comparison.cells[states(comparison.cells) != "unfinished"]
        ended = [set(cells.loc[cells["arm"] == arm, "seed"]) for arm in (best.arm, comparison.baseline)]
        lacking = MoreSeeds(len(set.intersection(*ended)) - most + FEW_SEEDS)
        return Decision(comparison, "too_few_seeds", most, most, not_compared=not_compared, more=lacking)
    compared = tuple(arm for arm in scored if shared.get(arm.name, 0) >= FEW_SEEDS)
    different = tuple(arm for arm in compared if arm.difference and arm.difference.is_significant)
    obstacle, rival = _obstacle(comparison, compared)
    winner = comparison.best if different and not obstacle else None
    outcome: Outcome = "winner" if winner else "different" if different else "no_difference"
    in_table = _in_table(winner, comparison, compared) if winner else []
    is_open = obstacle == "not_significant" or not different
    more, aim = _more_seeds(comparison, compared) if is_open else (None, None)
    return Decision(
        comparison,
        outcome,
        min(shared[arm.name] for arm in compared),
        most,
        compared,
        not_compared,
        different,
        winner,
        bool(winner and winner.wins_on_new_data)
        and all(arm.new_data and arm.new_data.is_significant for arm in in_table),
        obstacle,
        rival,
        more,
        aim,
    )


def is_useful(arm: Arm, comparison: Comparison) -> bool:
    """Whether a row is better than the constant predictor, as far as that is stored."""
    return not (_is_constant(arm, comparison) or arm.score.mean <= _constant_score(comparison) + NO_SPREAD)


def _is_constant(arm: Arm, comparison: Comparison) -> bool:
    """Whether a row says no more than a predictor of one class: every run collapsed at .5, and no threshold helps."""
    row = next((row for row in comparison.arms if row.name == arm.arm), arm)
    has_collapsed = row.collapsed is not None and row.collapsed >= row.score.num > 0
    return has_collapsed and (row is arm or not arm.score.mean > _constant_score(comparison) + NO_SPREAD)


def _constant_score(comparison: Comparison) -> float:
    """The mean of the constant predictor; NaN if it is not stored."""
    return next((arm.score.mean for arm in comparison.arms if arm.name == CONSTANT), math.nan)


def _obstacle(comparison: Comparison, compared: tuple[Arm, ...]) -> tuple[Obstacle | None, Arm | None]:
    """The reason why the leading row does not win, and the row that has a higher mean; None if it wins."""
    best = comparison.best
    if best is None:
        return "no_shared_seed", None
    leader = next(arm for arm in comparison.arms if arm.name == best.name)
    rivals = [arm for arm in (*rows_of_baseline(comparison), *compared) if arm.arm != leader.arm]
    highest = max(rivals, key=lambda arm: arm.score.mean)
    if highest.score.mean > leader.score.mean + NO_SPREAD:
        return "higher_mean", highest
    in_table = _in_table(best, comparison, compared)
    if not best.wins or not all(arm.difference and arm.difference.is_significant for arm in in_table):
        return "not_significant", None
    if leader.failed:
        return "failed_runs", None
    return (None if is_useful(leader, comparison) else "not_useful"), None


def _in_table(best: BestArm, comparison: Comparison, compared: tuple[Arm, ...]) -> list[Arm]:
    """The rows whose p values in the table must tell the best row apart too: they are corrected over other tests."""
    leader = next(arm for arm in comparison.arms if arm.name == best.name)
    return (
        [leader]
        if leader.difference
        else [arm for arm in compared if arm.at_tuned_threshold == leader.at_tuned_threshold]
    )


def _more_seeds(comparison: Comparison, compared: tuple[Arm, ...]) -> tuple[MoreSeeds | None, Aim | None]:
    """The seeds that would show the lead of the best arm over each row that it does not beat yet, and that lead.

    If no arm is better than the baseline, and the baseline does not lead others that are worse, those that would show
    the difference, of those not shown, that takes the fewest. Without seeds, the difference that is too small; None if
    it has no spread, as that of arms with equal scores.
    """
    best = comparison.best
    shown = [arm.difference for arm in compared if arm.difference and arm.difference.is_significant]
    is_led = bool(shown) and best is not None and best.name.removesuffix(TUNED) == comparison.baseline

    def needed(by_seed: Sequence[float], num_tests: int) -> float:
        return seeds_needed(by_seed, max(num_tests, 1), comparison.test_per_train) or math.inf

    rival: str | None = None
    if best and best.open and (is_led or any(difference.is_ahead for difference in shown)):
        # Holm's correction tested the first of them that was not beaten at this level.
        num, rival = max((needed(by_seed, len(best.open)), name) for name, by_seed in best.open.items())
        row, by_seed = next(arm for arm in comparison.arms if arm.name == best.name), best.open[rival]
    else:
        num_by_arm = {
            arm: needed(arm.by_seed, comparison.num_tests)
            for arm in compared
            if arm.difference and not arm.difference.is_significant
        }
        if not num_by_arm:
            return None, None
        row = min(num_by_arm, key=lambda arm: (num_by_arm[arm], np.ptp(arm.by_seed) < NO_SPREAD))
        num, by_seed = num_by_arm[row], row.by_seed
    aim = Aim(row, rival, float(np.mean(by_seed)))
    if math.isinf(num):
        return None, aim if len(by_seed) > 1 and np.ptp(by_seed) >= NO_SPREAD else None
    arms = dict.fromkeys(name.removesuffix(TUNED) for name in (comparison.baseline, row.name, rival) if name)
    return MoreSeeds(int(num), tuple(arms)), aim


def rows_of_baseline(comparison: Comparison) -> list[Arm]:
    return [arm for arm in comparison.arms if arm.arm == comparison.baseline]
