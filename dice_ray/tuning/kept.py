"""What is kept of trials that ended: of a sweep the best one's checkpoint, of a study that of every cell."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from dice_ray.trained import BEST, ENCODER
from dice_ray.training.checkpoint import GOING_ON
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import StudyPlan, SweepPlan


def best(ledger: Ledger) -> str | None:
    """The trial with the best score on dev, the first of equals; a failed one is none."""
    scores = {id_: ended.score for id_, ended in ledger.ended.items() if ended.state != "failed"}
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
        for name in GOING_ON if is_cell or id_ == winner else (*GOING_ON, BEST, ENCODER):
            path = trials / id_ / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
