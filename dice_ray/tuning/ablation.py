"""A study: arms by seeds, each cell once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.run.driver import Show
from dice_ray.tuning.ledger import Begun, History
from dice_ray.tuning.plan import StudyPlan
from dice_ray.tuning.runner import session

if TYPE_CHECKING:
    from dice_ray.tuning.progress import Progress


def run(
    plan: StudyPlan,
    folder: Path,
    *,
    address: str | None = None,
    num_cpus: int | None = None,
    max_hours: float | None = None,
    show: Show | None = None,
) -> Progress:
    """Run the cells that the study's ledger does not hold as done; a failed one is tried again.

    Args:
        plan: The arms and seeds.
        folder: Where plan, ledger, log and the cells' folders are; a folder begun before is gone on with.
        address: Of a Ray cluster to join.
        num_cpus: CPUs of a Ray of our own.
        max_hours: After which the study stops, to be gone on with later.
        show: Makes the live screen.

    Raises:
        DiceRayError: Another driver is at work, or an arm cannot run; a cell's own failure is in the ledger.
    """
    cells = plan.cells()
    with session(plan, folder, address=address, num_cpus=num_cpus, max_hours=max_hours, show=show) as driver:
        from dice_ray.tuning.searchers import CellSearcher

        left = missing(cells, driver.ledger)
        return driver.fit(CellSearcher(left), None, missing=len(left), ids=[cell.id for cell in cells])


def missing(cells: Sequence[Begun], history: History) -> list[Begun]:
    """The cells that a ledger does not hold as done."""
    ended = history.ended
    return [cell for cell in cells if cell.id not in ended or ended[cell.id].state == "failed"]
