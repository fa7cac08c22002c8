"""Arms with the settings that sweeps found best for their losses, so that tuned is compared to tuned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray.errors import ConfigError, Problem, RunError
from dice_ray.settings import Flat
from dice_ray.tuning.earlier import Earlier, sweep_in
from dice_ray.tuning.ledger import Begun
from dice_ray.tuning.plan import StudyPlan
from dice_ray.tuning.reruns import ranking


@dataclass(frozen=True)
class _Best:
    """The best trial of a loss."""

    score: float
    params: Flat
    said: str


def tuned(plan: StudyPlan, sweeps: Sequence[Path]) -> StudyPlan:
    """The plan with each arm over what the best trial of its own loss searched; what an arm writes itself stays.

    Raises:
        RunError: A folder holds no sweep of the same task, data and encoder, or one on a seed of the study.
        ConfigError: No sweep has a trial with a score for the loss of an arm, or an arm cannot run.
    """
    base = plan.base()
    found = [sweep_in(folder, base, plan.digest) for folder in sweeps]
    for earlier in found:
        _check(earlier, plan)
    best = _best(found)
    losses = {arm: _loss(plan, arm) for arm in plan.arms}
    if lacking := {arm: loss for arm, loss in losses.items() if loss not in best}:
        must = "must be of a loss that a sweep has a trial of"
        raise ConfigError([Problem(f"arms.{arm}", must, loss, known=tuple(best)) for arm, loss in lacking.items()])
    arms = {arm: {**best[losses[arm]].params, **values} for arm, values in plan.arms.items()}
    return plan.model_copy(update={"arms": arms, "tuned": {arm: best[loss].said for arm, loss in losses.items()}})


def _best(sweeps: Sequence[Earlier]) -> dict[str, _Best]:
    """The best trial of each loss; one that was run again counts by the mean of its reruns."""
    nums = sum((each.losses() for each in sweeps), Counter[str]())
    best: dict[str, _Best] = {}
    for earlier in sweeps:
        for one in ranking(earlier.history):
            loss = earlier.loss(one.trial)
            if loss not in best or one.mean > best[loss].score:
                said = f"{earlier.plan.name} {one.trial.id}, best of {nums[loss]}"
                best[loss] = _Best(one.mean, one.trial.params, said)
    return best


def _loss(plan: StudyPlan, arm: str) -> str:
    return plan.config(Begun(id="", params=plan.arms[arm], seed=plan.seeds[0], arm=arm)).loss.name


def _check(earlier: Earlier, plan: StudyPlan) -> None:
    """Whether a sweep's settings say something about the arms, and nothing about their seeds."""
    name, theirs, ours = earlier.plan.name, earlier.plan.base().model.encoder, plan.base().model.encoder
    if theirs != ours:
        raise RunError(f"the sweep {name} must be of the study's encoder {ours!r} to tune its arms, got {theirs!r}")
    if earlier.plan.seed in plan.seeds:
        raise RunError(
            f"a study must compare on other seeds than its arms were tuned on, got seed {earlier.plan.seed} of {name}"
        )
