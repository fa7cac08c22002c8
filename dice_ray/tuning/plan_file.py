"""`plan.yaml`, the plan of a sweep or study beside its ledger: written, read, and grown by what is asked for later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from dice_ray.errors import Problem, RunError
from dice_ray.settings import problems_of
from dice_ray.trained import write_whole
from dice_ray.tuning.plan import Plan, StudyPlan, SweepPlan

NUM_SHOWN: Final = 5
"""So many problems of a plan are told."""


def store(plan: SweepPlan | StudyPlan, folder: Path) -> SweepPlan | StudyPlan:
    """Write `plan.yaml`: what `grown` makes of the plan, which is returned; raises what that raises."""
    plan = grown(plan, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "plan.yaml", as_yaml(plan))
    return plan


def grown(plan: SweepPlan | StudyPlan, folder: Path) -> SweepPlan | StudyPlan:
    """The plan, over one that the folder holds, which grows by trials or arms, by variants and by seeds.

    Raises:
        RunError: The folder holds another plan, or this one for other data.
        ConfigError: An arm runs what a stored one of another name runs.
    """
    path = folder / "plan.yaml"
    if not path.exists() and ((folder / "config.yaml").exists() or (folder / "best.pt").exists()):
        raise RunError(f"{folder} holds a run trained alone: choose another --name")
    if path.exists():
        there = read(folder)
        there_now = there.with_digests(plan.digests)
        if isinstance(plan, StudyPlan) and isinstance(there_now, StudyPlan) and plan.continues(there_now):
            there.on(plan.digests)
            plan = plan.over(there_now)
            plan.cells()
        elif plan == there_now or (
            isinstance(plan, SweepPlan) and isinstance(there_now, SweepPlan) and plan.extends(there_now)
        ):
            there.on(plan.digests)
        else:
            raise RunError(
                f"{path} must hold this plan, and holds another {there.kind} of that name (of {_origins(there)}): go "
                "on with that one, or choose another --name"
            )
    return plan


def _origins(plan: Plan) -> str:
    return " and ".join(layer.origin for layer in plan.layers)


def read(folder: Path) -> SweepPlan | StudyPlan:
    """The plan of a sweep's or a study's folder.

    Raises:
        RunError: There is none, or it was edited so that it is none, or another version wrote it.
    """
    path = folder / "plan.yaml"
    if not path.exists():
        raise RunError(f"{folder} must hold the plan of a sweep or study: there is no {path.name}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _no_plan(path, [f"it must be YAML in UTF-8: {' '.join(str(error).split())}"]) from error
    kind = values.get("kind") if isinstance(values, dict) else None
    if kind not in ("sweep", "study"):
        raise _no_plan(path, [Problem("kind", "must be sweep or study", repr(kind))])
    model = SweepPlan if kind == "sweep" else StudyPlan
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _no_plan(path, problems_of(error, model)) from error


def _no_plan(path: Path, problems: Sequence[object]) -> RunError:
    more = len(problems) - NUM_SHOWN
    told = [*map(str, problems[:NUM_SHOWN]), *([f"and {more} more"] if more > 0 else [])]
    return RunError(
        f"{path} must be a plan as this version of dice_ray writes it: mend it, or choose another --name\n"
        + "\n".join(f"  {line}" for line in told)
    )


def as_yaml(plan: SweepPlan | StudyPlan) -> str:
    """The plan as it is stored and shown."""
    values: dict[str, Any] = plan.model_dump(mode="json")
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return text
