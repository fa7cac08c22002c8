"""`plan.yaml`, the plan of a sweep or study beside its ledger: written, read, and extended by a later call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import ValidationError

from dice_ray.config.load import NotYamlError, parse_yaml
from dice_ray.errors import Problem, RefusedError, RunError, UnknownNameError, shown
from dice_ray.files import sealed_text, unsealed_text, write_atomically
from dice_ray.run.folder import PLAN, check_no_comparison, holds_plan, holds_run
from dice_ray.settings import problems_of
from dice_ray.tuning.plan import Plan
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

_PlanT = TypeVar("_PlanT", bound=Plan)


def store(plan: _PlanT, folder: Path) -> _PlanT:
    """Write `plan.yaml`: the plan that `extended` returns; raises what that raises."""
    plan = extended(plan, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN, sealed_text(as_yaml(plan)))
    return plan


def extended(plan: _PlanT, folder: Path) -> _PlanT:
    """The plan, merged with the one that the folder holds, which it may extend by trials, arms, variants or seeds.

    Raises:
        RunError: The folder holds another plan, or this one for other data or for another encoder.
        ConfigError: An arm is the same as a stored arm of another name.
    """
    if not holds_plan(folder):
        if holds_run(folder):
            raise RefusedError(f"{folder} holds a run trained alone: choose another --name")
        check_no_comparison(folder)
        return plan
    stored = read(folder)
    stored.check_encoders(plan.encoders)
    changed: list[str] = []
    if type(stored) is type(plan):
        plan = plan.moved_from(cast(_PlanT, stored))
        same_data = cast(_PlanT, stored.with_digests(plan.digests))
        if not (changed := plan.changed(same_data)):
            stored.bound_to(plan.digests)
            return plan.merged_with(same_data)
    raise RefusedError(
        f"{folder / PLAN} must hold this plan, and holds another {stored.kind} of that name "
        f"({'; changed: '.join([f'of {stored.origins}', *changed])}): resume that one, or choose another --name"
    )


def read(folder: Path) -> SweepPlan | StudyPlan:
    """The plan in a sweep's or study's folder.

    Raises:
        UnknownNameError: There is none.
        RunError: It was damaged or edited, or another version wrote it.
    """
    path = folder / PLAN
    if not path.exists():
        known = sorted(each.parent.name for each in folder.parent.glob(f"*/{PLAN}"))
        raise UnknownNameError("sweep or study", folder.name, known)
    try:
        content = path.read_text(encoding="utf-8")
        values = parse_yaml(content)
    except (NotYamlError, UnicodeDecodeError) as error:
        raise _not_a_plan(path, [f"it must be YAML in UTF-8: {' '.join(str(error).split())}"]) from error
    kind = values.get("kind") if isinstance(values, dict) else None
    if kind not in ("sweep", "study"):
        raise _not_a_plan(path, [Problem("kind", "must be sweep or study", shown(kind))])
    model = SweepPlan if kind == "sweep" else StudyPlan
    try:
        plan = model.model_validate(values)
        # Fails for half of a surrogate pair, which YAML can escape and no file can hold.
        json.dumps(plan.model_dump(), ensure_ascii=False, default=str).encode()
    except ValidationError as error:
        raise _not_a_plan(path, problems_of(error, model)) from error
    except ValueError as error:
        raise _not_a_plan(path, ["it must be text without half of a surrogate pair"]) from error
    try:
        unsealed_text(content)
    except ValueError as error:
        raise RunError(
            f"{path} must be as dice_ray wrote it, and was damaged or edited: {error}. Restore it from a copy, or from "
            "the files of its run in MLflow; if you have edited it, delete its first line, which is the checksum"
        ) from error
    return plan


def read_sweep(folder: Path, purpose: str) -> SweepPlan:
    """The plan in a sweep's folder, read for this purpose; a RefusedError names it where the folder holds a study."""
    plan = read(folder)
    if not isinstance(plan, SweepPlan):
        raise RefusedError(f"{folder} must hold a sweep {purpose}: it holds a {plan.kind}")
    return plan


def _not_a_plan(path: Path, problems: Sequence[object]) -> RunError:
    num_more = len(problems) - 5
    shown = [*map(str, problems[:5]), *([f"and {num_more} more"] if num_more > 0 else [])]
    return RunError(
        f"{path} must be a plan as this version of dice_ray writes it: correct it, or choose another --name\n"
        + "\n".join(f"  {line}" for line in shown)
    )


def as_yaml(plan: Plan) -> str:
    """The plan as it is stored and shown."""
    text: str = yaml.safe_dump(plan.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return text
