"""What is kept of trials that ended: of a sweep the checkpoints of the best, of a study that of every cell."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from dice_ray.trained import BEST, ENCODER
from dice_ray.training.checkpoint import GOING_ON
from dice_ray.tuning.ledger import Begun, Ledger
from dice_ray.tuning.plan import StudyPlan, SweepPlan
from dice_ray.tuning.reruns import ranking


def best(ledger: Ledger) -> str | None:
    """The best run on dev, the first of equals; a failed one is none.

    Where trials of a sweep ran again with other seeds, it is one of the configuration with the best mean.
    """
    scores = {id_: ended.score for id_, ended in ledger.ended.items() if ended.state != "failed"}
    if again := {ledger.begun[id_].rerun_of for id_ in scores} - {None}:
        first = next(one.trial.id for one in ranking(ledger) if one.trial.id in again)
        scores = {id_: score for id_, score in scores.items() if ledger.begun[id_].rerun_of == first}
    return max((id_ for id_ in scores if scores[id_] is not None), key=lambda id_: scores[id_] or 0.0, default=None)


def tidy(plan: SweepPlan | StudyPlan, ledger: Ledger, trials: Path, ids: Iterable[str]) -> None:
    """Delete what no command reads any more of these trials, all of which ended.

    A sweep's loser is known by the ledger and by MLflow; a study's cell that failed is tried again where it was.
    """
    winner = best(ledger)
    for id_ in ids:
        is_cell = isinstance(plan, StudyPlan)
        if is_cell and ledger.ended[id_].state == "failed":
            continue
        whole = id_ == winner or keeps_weights(plan, ledger.begun[id_])
        for name in GOING_ON if whole else (*GOING_ON, BEST, ENCODER):
            path = trials / id_ / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def keeps_weights(plan: SweepPlan | StudyPlan, run: Begun) -> bool:
    """Whether a run's best checkpoint stays in any case: of several objectives, each trial may be on the front."""
    return isinstance(plan, StudyPlan) or run.rerun_of is not None or bool(plan.objectives)
