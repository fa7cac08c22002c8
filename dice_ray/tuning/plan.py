"""What is to run: the settings of a sweep or a study, kept beside its ledger, and what its trials demand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, Problem, RunError
from dice_ray.settings import Flat, Nested, merge
from dice_ray.tuning.ledger import Begun

RESULTS_VERSION = 1
"""Raised when the numbers of a run change: cells of another version run again."""


class Plan(BaseModel):
    """What a sweep and a study have in common.

    Attributes:
        name: Of the folder, of MLflow's experiment and of its parent run.
        layers: What was written below the trials: preset and settings, never a resolved configuration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    layers: tuple[Layer, ...]

    def config(self, trial: Begun) -> RunConfig:
        """The configuration of one of its trials."""
        origin = "trial" if trial.arm is None else f"arm {trial.arm}"
        return resolve([*self.layers, values_layer(origin, trial.params | {"training.seed": trial.seed})])


class SweepPlan(Plan):
    """A search.

    Attributes:
        space: The address of a function of a trial: `module:function` or `file.py:function`.
        trials: How many.
        seed: Of the sampler, and `training.seed` of every trial.
    """

    kind: Literal["sweep"] = "sweep"
    space: str
    trials: int = Field(ge=1)
    sampler: Literal["tpe"] = "tpe"
    scheduler: Literal["asha", "none"] = "asha"
    seed: int = 0

    @property
    def ids(self) -> list[str]:
        """The ids of its trials, whatever they will be."""
        return [f"{number:04d}" for number in range(1, self.trials + 1)]


class StudyPlan(Plan):
    """A comparison of arms.

    Attributes:
        arms: What each arm writes over the layers, by path.
        baseline: The arm that the others are compared to.
        seeds: `training.seed` of the cells of each arm.
        digest: Of the data.
    """

    kind: Literal["study"] = "study"
    arms: dict[str, Flat]
    baseline: str
    seeds: tuple[int, ...] = Field(min_length=1)
    digest: str = ""

    def cells(self) -> list[Begun]:
        """Arms by seeds, all arms of a seed before the next seed.

        Raises:
            ConfigError: An arm cannot run, or writes what another one writes.
        """
        problems: list[Problem] = []
        written: dict[str, str] = {}
        for arm, values in self.arms.items():
            try:
                self.config(Begun(id="", params=values, seed=self.seeds[0], arm=arm))
            except ConfigError as error:
                problems += error.problems
            same = written.setdefault(self._identity(values, self.seeds[0]), arm)
            if same != arm:
                problems.append(Problem(f"arms.{arm}", f"must differ from arm {same}", json.dumps(values)))
        if self.baseline not in self.arms:
            problems.append(Problem("baseline", "must be an arm", self.baseline, known=tuple(self.arms)))
        if problems:
            raise ConfigError(problems)
        return [
            Begun(id=self._identity(values, seed), params=values, seed=seed, arm=arm)
            for seed in self.seeds
            for arm, values in self.arms.items()
        ]

    def _identity(self, values: Flat, seed: int) -> str:
        """What decides the numbers of a cell; where it runs does not."""
        written = _written([*self.layers, values_layer("arm", values | {"training.seed": seed})])
        parts = json.dumps([written, self.digest, RESULTS_VERSION], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:12]


_PLAN: TypeAdapter[SweepPlan | StudyPlan] = TypeAdapter(Annotated[SweepPlan | StudyPlan, Field(discriminator="kind")])


def store(plan: SweepPlan | StudyPlan, folder: Path) -> None:
    """Write `plan.yaml`; a sweep's stays as it is, a study's may grow by arms and seeds.

    Raises:
        RunError: The folder holds another plan.
    """
    path = folder / "plan.yaml"
    if path.exists() and not _continues(plan, there := read(folder)):
        raise RunError(
            f"{path} must hold this plan, and holds another {there.kind} of that name: go on with that one, or choose "
            "another name"
        )
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(as_yaml(plan), encoding="utf-8")
    unfinished.replace(path)


def read(folder: Path) -> SweepPlan | StudyPlan:
    """The plan of a sweep's or a study's folder."""
    path = folder / "plan.yaml"
    if not path.exists():
        raise RunError(f"{folder} must hold the plan of a sweep or study: there is no {path.name}")
    try:
        return _PLAN.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise RunError(f"{path} must be a plan that dice_ray wrote: {' '.join(str(error).split())}") from error


def as_yaml(plan: SweepPlan | StudyPlan) -> str:
    """The plan as it is stored and shown."""
    values: dict[str, Any] = plan.model_dump(mode="json")
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return text


def _continues(plan: SweepPlan | StudyPlan, there: SweepPlan | StudyPlan) -> bool:
    """Whether the folder of one plan can go on with the other: an arm's name means the same in both."""
    if not (isinstance(plan, StudyPlan) and isinstance(there, StudyPlan)):
        return plan == there
    shared = plan.arms.keys() & there.arms.keys()
    return (_written(plan.layers), plan.digest) == (_written(there.layers), there.digest) and all(
        plan.arms[arm] == there.arms[arm] for arm in shared
    )


def _written(layers: Sequence[Layer]) -> Nested:
    """What layers wrote together, but for where it runs."""
    written: Nested = reduce(lambda below, layer: merge(RunConfig, below, layer.values), layers, {})
    return {section: values for section, values in written.items() if section != "launch"}


@dataclass(frozen=True)
class Demand:
    """The CPUs of one trial: its own, and those of its Ray Train workers."""

    own: int
    workers: int

    def slots(self, cpus: int) -> int:
        """How many trials fit at once.

        Raises:
            RunError: Not one.
        """
        if cpus < self.own + self.workers:
            raise RunError(
                f"a trial must find its {self.own + self.workers} CPUs (launch.workers x launch.threads), got {cpus}"
            )
        return cpus // (self.own + self.workers)


def demand(config: RunConfig) -> Demand:
    """What a trial of this configuration demands."""
    launch = config.launch
    if launch.workers == 1 and launch.how == "auto":
        return Demand(launch.threads, 0)
    return Demand(1, launch.workers * launch.threads)
