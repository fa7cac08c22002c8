"""What is kept of trials that ended: of a sweep the checkpoints of the best, of a study that of every cell."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from dice_ray.trained import ENCODER
from dice_ray.training.checkpoint import BEST, RESUME_FILES
from dice_ray.tuning import reruns
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import StudyPlan, SweepPlan


def best(ledger: Ledger) -> str | None:
    """The trial or cell with the best score on dev, by the mean where the best ones ran again; a failed one is none."""
    return next((one.trial.id for one in reruns.ranking(ledger)), None)


def chosen(plan: SweepPlan, ledger: Ledger) -> set[str]:
    """The trials of a sweep whose checkpoints are kept: the best ones', and when they have run again the best one's.

    Whether or not more seeds are planned, they may be asked for later. Of several objectives no trial is the best.
    """
    if plan.objectives:
        return set(ledger.ended)
    again = reruns.cells(plan, ledger)
    ran_again = bool(again) and all(cell.id in ledger.ended for cell in again)
    candidates = [] if ran_again else [trial.id for trial in reruns.top(plan, ledger)]
    return {id_ for id_ in (best(ledger), *candidates) if id_ is not None}


def tidy(plan: SweepPlan | StudyPlan, ledger: Ledger, trials: Path, ids: Iterable[str]) -> set[str]:
    """Delete what no command reads any more of these trials, all of which ended.

    A sweep's loser is known by the ledger and by MLflow; a study's cell that failed is tried again where it was.

    Returns:
        The trials whose checkpoints may become losers' when the next one ends: none of a study.
    """
    if isinstance(plan, StudyPlan):
        for id_ in ids:
            if ledger.ended[id_].state != "failed":
                _delete(trials / id_, RESUME_FILES)
        return set()
    scored = chosen(plan, ledger)
    for id_ in ids:
        _delete(trials / id_, RESUME_FILES if id_ in scored else (*RESUME_FILES, BEST, ENCODER))
    return scored


def _delete(folder: Path, names: Iterable[str]) -> None:
    for path in (folder / name for name in names):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
