"""The MLflow experiment of a plan: the runs that it holds already must all be those of the plan's folder."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from dice_ray.errors import RunError, UnknownNameError
from dice_ray.run.folder import TRIALS
from dice_ray.tracking.reader import ended
from dice_ray.tuning.ledger import History
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.study import StudyPlan


def ended_runs(plan: SweepPlan | StudyPlan, folder: Path, ledger: History) -> set[str]:
    """The ids of the runs that MLflow holds as ended; empty where it holds nothing or does not answer.

    Raises:
        RunError: Some are not of this folder.
    """
    try:
        stored = ended(plan.name)
    except (RunError, UnknownNameError):
        return set()
    if strange := strangers(plan, stored, ledger):
        first = ", ".join(sorted(strange)[:3]) + (", ..." if len(strange) > 3 else "")
        raise RunError(
            f"MLflow's experiment {plan.name!r} must hold the runs of {folder} alone, and holds {len(strange)} that "
            f"its ledger does not know ({first}): choose another name, or give the folder that has them its name back. "
            "If they are not needed any more, or their lines were deleted from the ledger, delete them in MLflow and "
            f"their folders in {folder / TRIALS}"
        )
    return stored


def strangers(plan: SweepPlan | StudyPlan, stored: Set[str], ledger: History) -> Set[str]:
    """The runs in MLflow's experiment that are not of a plan's folder.

    A cell of a study that the ledger does not know is none of them: its id is a digest of its settings, so it is run
    again with the same settings. A trial of a sweep is one: only the ledger has its settings, and a new trial of its id
    would be mixed in MLflow with its old parameters and metrics. If the ledger knows none of the runs, all belong to
    another folder.

    Args:
        plan: Of the folder.
        stored: Ids of the runs that MLflow holds as ended, the parent perhaps among them.
        ledger: Of the folder.
    """
    runs = stored - {plan.name}
    unknown = runs - ledger.specs.keys()
    if isinstance(plan, StudyPlan) and unknown < runs:
        return unknown - {cell.id for cell in plan.model_copy(update={"asked": None}).grid().cells}
    return unknown
