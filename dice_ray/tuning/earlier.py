"""An earlier sweep that another plan starts from: of the same task and data, or its scores say nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError
from dice_ray.settings import differing_paths
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import Begun, History, Ledger
from dice_ray.tuning.plan import SweepPlan


@dataclass(frozen=True)
class Earlier:
    """What a sweep's folder holds: its plan, and its trials and reruns."""

    plan: SweepPlan
    history: History

    def trials(self) -> list[Begun]:
        """What was searched and ended."""
        searched = self.history.searched()
        return [begun for id_, begun in searched.begun.items() if id_ in searched.ended]

    def losses(self) -> Counter[str]:
        """How many trials each loss had."""
        return Counter(self.loss(trial) for trial in self.trials())

    def loss(self, trial: Begun) -> str:
        return self.plan.config(trial).loss.name


def sweep_in(folder: Path, config: RunConfig, digest: str) -> Earlier:
    """The sweep of a folder, for a plan of this configuration on the data of this digest.

    Raises:
        RunError: It is no sweep of the same task and data.
    """
    plan = plan_file.read(folder)
    if not isinstance(plan, SweepPlan):
        raise RunError(f"{folder} must hold a sweep to start from: it holds a study")
    paths = differing_paths(config, plan.base())
    if other := [path for path in paths if path.partition(".")[0] in ("task", "data")]:
        raise RunError(
            f"{folder} must hold a sweep of the same task and data, or its scores say nothing here; these differ: "
            f"{', '.join(other)}"
        )
    if plan.digest != digest:
        raise RunError(
            f"{folder} must hold a sweep of the same data, or its scores say nothing here: they were changed (digest "
            f"{plan.digest} then, {digest} now)"
        )
    return Earlier(plan, Ledger(folder / "ledger.jsonl"))
