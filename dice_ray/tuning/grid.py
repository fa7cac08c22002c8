"""The cells of a study: variants by arms by seeds, what cannot run said at once, what does not go together left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, ConflictError, Problem
from dice_ray.settings import Flat
from dice_ray.tuning.ledger import Begun

if TYPE_CHECKING:
    from dice_ray.tuning.plan import StudyPlan


@dataclass(frozen=True)
class LeftOut:
    """An arm that does not go with the task or data of a variant, such as a loss that cannot take its link."""

    variant: str | None
    arm: str
    reason: str

    def __str__(self) -> str:
        on = "" if self.variant is None else f" on {self.variant}"
        return f"left out: {self.arm}{on}, as {self.reason}"


def grid(plan: StudyPlan) -> tuple[list[Begun], list[LeftOut]]:
    """The cells of a study, all of a seed before the next seed, and what is left out.

    Raises:
        ConfigError: An arm or a variant cannot run, two cells are the same, or the baseline is left out.
    """
    problems = [*_problems_of_variants(plan)]
    for arm, values in plan.arms.items():
        problems += _not_plain(arm, values)
    if plan.baseline not in plan.arms:
        problems.append(Problem("baseline", "must be an arm", plan.baseline, known=tuple(plan.arms)))
    identities: dict[str, str] = {}
    fitting, left_out = list[tuple[str | None, str]](), list[LeftOut]()
    for variant, arm in product(plan.digests, plan.arms):
        called = Begun(id="", params={}, seed=0, arm=arm, variant=variant).called.rpartition("/")[0]
        try:
            same = identities.setdefault(plan.identity(arm, plan.seeds[0], variant), called)
        except ConflictError as error:
            left_out.append(LeftOut(variant, arm, "; ".join(map(str, error.problems))))
            problems += error.problems if arm == plan.baseline else ()
        except ConfigError as error:
            problems += error.problems
        else:
            fitting.append((variant, arm))
            if same != called:
                kind, of_kind = ("arms", "arm ") if variant is None else ("variants", "")
                must = f"must differ from {of_kind}{same}"
                problems.append(Problem(f"{kind}.{called}", must, repr(plan.arms[arm])))
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    cells = [
        Begun(id=plan.identity(arm, seed, variant), params=plan.arms[arm], seed=seed, arm=arm, variant=variant)
        for seed in plan.seeds
        for variant, arm in fitting
    ]
    return cells, left_out


def _problems_of_variants(plan: StudyPlan) -> Iterator[Problem]:
    """What keeps a variant from being run, or variants from being compared."""
    bases: dict[str | None, RunConfig] = {}
    for variant in plan.digests:
        try:
            bases[variant] = plan.base(variant)
        except ConfigError as error:
            yield from error.problems
    first = next(iter(bases), None)
    for variant, base in bases.items():
        for path, theirs, ours in (
            ("launch", base.launch, bases[first].launch),
            ("metric", base.task.objective(), bases[first].task.objective()),
        ):
            if theirs != ours:
                yield Problem(f"variants.{variant}", f"must have the {path} of {first}, {ours}", str(theirs))


def _not_plain(arm: str, values: Flat) -> Iterator[Problem]:
    """What of an arm cannot be stored."""
    for path, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            yield Problem(path, "must be a number, text, list or mapping of such", f"{value!r:.60}", f"arm {arm}")
