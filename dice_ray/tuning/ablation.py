"""A study: arms by seeds on each variant, each cell once."""

from __future__ import annotations

from pathlib import Path

from dice_ray.run.driver import Driver, TrialCounts
from dice_ray.tuning.ledger import missing_cells
from dice_ray.tuning.runner import session
from dice_ray.tuning.study import StudyPlan


def run(plan: StudyPlan, folder: Path, driver: Driver) -> TrialCounts:
    """Run the cells of a plan that its folder's ledger does not hold as done; a cell that failed is tried again.

    Raises:
        DiceRayError: Another driver is at work, or an arm cannot run. A cell's own failure is in the ledger.
    """
    plan.grid()  # raises before any data are read
    with session(plan, folder, driver) as work:
        from dice_ray.tuning.search import CellSearcher

        assert isinstance(work.plan, StudyPlan)
        # The stored plan knows the folders that the ids of earlier cells hold.
        cells = plan.model_copy(update={"folders": work.plan.folders}).grid().cells
        missing = missing_cells(cells, work.ledger)
        return work.run(CellSearcher(missing), len(missing), ids=[cell.id for cell in cells])
