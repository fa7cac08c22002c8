"""What is to run: the settings of a sweep or a study, its trials or cells, and the configuration of each.

A plan holds layers, never a resolved configuration: preset, settings, then the settings that an arm was tuned to, then
the arm or trial itself. Defaults are filled once, after the last layer, so that an arm that chooses another loss does
not inherit the parameters of the loss below it. The seed is set on the resolved configuration: cells that differ in the
seed alone share one resolution, which takes some milliseconds and dominates the start of a large study.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import NEUTRAL_SECTIONS, RunConfig
from dice_ray.errors import ConfigError, ConflictError, Problem, RunError
from dice_ray.models.pretrained import digest
from dice_ray.settings import Flat, Nested, non_defaults
from dice_ray.tuning.ledger import TrialSpec

RESULTS_VERSION = 2
"""Raised when the numbers of a run change: cells of another version run again."""

AUTOMATIC = "this machine"
"""Origin of the layer with automatically chosen values, such as the precision; it is stored in plans."""


class Plan(BaseModel):
    """What a sweep and a study have in common.

    Attributes:
        name: Of the folder, of MLflow's experiment and of its parent run.
        layers: Preset and settings below the trials. Seed and launch settings of the preset are those of a single run;
            each trial gets its own seed.
        digest: Of the data; empty before they are read.
        trial_timeout: A trial that runs longer, in seconds, fails.
        seeds_option: The option of the command line that sets the seeds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    layers: tuple[Layer, ...]
    digest: str = ""
    trial_timeout: float | None = Field(None, gt=0)
    seeds_option: ClassVar[str]

    def config(self, trial: TrialSpec) -> RunConfig:
        """The configuration of one trial.

        Raises:
            ConfigError: It cannot run, or sets what is not a trial's to set.
        """
        layer = values_layer("trial" if trial.arm is None else f"arm {trial.arm}", trial.params)
        if problems := [*self._problems_of_seeds(layer, trial.variant), *_problems_of_shared(layer)]:
            raise ConfigError(problems)
        config = _resolve([*self.below(trial.variant), *self._tuned_layers(trial.arm), layer])
        for path in self.seeded(trial.variant):
            section, name = path.split(".")
            part = getattr(config, section).model_copy(update={name: trial.seed})
            config = config.model_copy(update={section: part})
        return config

    def base(self, variant: str | None = None) -> RunConfig:
        """The configuration below the trials, or below the cells of a variant.

        Raises:
            ConfigError: It cannot run, or the settings over the preset set the seed.
        """
        layers = self.below(variant)
        if problems := [problem for layer in layers[1:] for problem in self._problems_of_seeds(layer, variant)]:
            raise ConfigError(problems)
        return _resolve(layers)

    def below(self, variant: str | None) -> tuple[Layer, ...]:
        """The layers below the trials, or below the cells of a variant."""
        assert variant is None, "only studies have variants"
        return self.layers

    @property
    def digests(self) -> dict[str | None, str]:
        """The digest of the data of each variant; of the key None where there are no variants."""
        return {None: self.digest}

    def with_digests(self, digests: Mapping[str | None, str]) -> Self:
        """The same plan on data of these digests."""
        return self.model_copy(update={"digest": digests[None]})

    def bound_to(self, digests: Mapping[str | None, str]) -> Self:
        """The plan on data of these digests.

        Raises:
            RunError: It was made for other data.
        """
        for variant, stored in self.digests.items():
            if stored not in ("", current := digests.get(variant, stored)):
                which = "they" if variant is None else f"those of {variant}"
                raise RunError(
                    f"{self.name} must be resumed with the data that it was started on, and {which} were changed "
                    f"(digest {stored} then, {current} now): restore the old data, or choose another name"
                )
        return self.with_digests(digests)

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        """The paths that the seed of a trial sets."""
        return ("training.seed",)

    def _tuned_layers(self, arm: str | None) -> tuple[Layer, ...]:
        return ()

    def _problems_of_seeds(self, layer: Layer, variant: str | None) -> Iterator[Problem]:
        paths = _paths(layer.values)
        for path in self.seeded(variant):
            if path in paths:
                must = f"must not be set: {self.seeds_option} sets it for every trial"
                yield Problem(path, must, origin=layer.origin)


class SweepPlan(Plan):
    """A search.

    Attributes:
        space: The address of a function of a trial: `module:function` or `file.py:function`.
        trials: Number of configurations to try.
        sampler: `tpe`, `random`, `brute_force`, `nsga2`, or the address of a function that makes an Optuna sampler.
        scheduler: Early stopping: `asha`, `median`, `none`, or the address of a function that makes an Optuna pruner.
        objectives: Metrics of dev to search for together, and `seconds` of training, which is minimised; empty for the
            task's own metric alone.
        seed: Of the sampler, and `training.seed` of every trial.
        seeds: Number of other seeds that the best configurations are run with after the search.
        top: Number of these configurations.
        points: Parameters of the first trials; a parameter that is missing is sampled.
        warm_start: Name of the sweep whose trials are known from the start.
    """

    seeds_option = "--seed"
    kind: Literal["sweep"] = "sweep"
    space: str
    trials: int = Field(ge=1)
    sampler: str = "tpe"
    scheduler: str = "asha"
    objectives: tuple[str, ...] = ()
    seed: int = 0
    seeds: int = Field(0, ge=0)
    top: int = Field(5, ge=1)
    points: tuple[Flat, ...] = ()
    warm_start: str | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of its trials."""
        return [f"{number:04d}" for number in range(1, self.trials + 1)]

    def extends(self, stored: SweepPlan) -> bool:
        """Whether it is the stored plan, or that one with more trials, more seeds, or more of the best."""
        grows = {"trials": stored.trials, "seeds": stored.seeds, "top": stored.top}
        return all(getattr(self, name) >= least for name, least in grows.items()) and (
            self.model_copy(update=grows) == stored
        )


class Variant(BaseModel):
    """A data set, encoder or altered training set that all arms of a study are run on.

    Attributes:
        layers: The layers below the arms, in place of the study's own.
        digest: Of the data; empty before they are read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    layers: tuple[Layer, ...]
    digest: str = ""


@dataclass(frozen=True)
class LeftOutArm:
    """An arm that does not go with the task or data of a variant, such as a loss that cannot take its link."""

    variant: str | None
    arm: str
    reason: str

    def __str__(self) -> str:
        on = "" if self.variant is None else f" on {self.variant}"
        return f"left out: {self.arm}{on}, because {self.reason}"


@dataclass(frozen=True)
class Grid:
    """The cells of a study, all of a seed before the next seed, and the arms that are left out of a variant."""

    cells: list[TrialSpec]
    left_out: list[LeftOutArm]


class StudyPlan(Plan):
    """A comparison of arms, on one data set and encoder or on several variants.

    Attributes:
        arms: The settings of each arm, by path.
        baseline: The arm that the others are compared to.
        seeds: `training.seed` of the cells of each arm, and where a test split is drawn, `data.split_seed` too.
        variants: By name; empty where the arms are run on the layers alone.
        encoders: Digest of the content of each encoder that lies in a folder, by its name.
        tuned: For an arm that was tuned: the trial that its settings were taken from, as text.
        tuned_settings: The settings of that trial, by path: a layer below the arm.
    """

    seeds_option = "--seeds"
    kind: Literal["study"] = "study"
    arms: dict[str, Flat]
    baseline: str
    seeds: tuple[int, ...] = Field(min_length=1)
    variants: dict[str, Variant] = {}
    encoders: dict[str, str] = {}
    tuned: dict[str, str] = {}
    tuned_settings: dict[str, Flat] = {}

    def below(self, variant: str | None) -> tuple[Layer, ...]:
        return self.layers if variant is None else self.variants[variant].layers

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        sections = (layer.values.get("data") for layer in self.below(variant))
        shares = [data["test_share"] for data in sections if isinstance(data, Mapping) and "test_share" in data]
        is_drawn = bool(shares) and shares[-1] is not None
        return ("training.seed", "data.split_seed") if is_drawn else ("training.seed",)

    def _tuned_layers(self, arm: str | None) -> tuple[Layer, ...]:
        if arm not in self.tuned_settings:
            return ()
        return (values_layer(f"tuned arm {arm}", self.tuned_settings[arm]),)

    @property
    def digests(self) -> dict[str | None, str]:
        if not self.variants:
            return {None: self.digest}
        return {name: variant.digest for name, variant in self.variants.items()}

    def with_digests(self, digests: Mapping[str | None, str]) -> StudyPlan:
        if not self.variants:
            return self.model_copy(update={"digest": digests.get(None, self.digest)})
        variants = {
            name: variant.model_copy(update={"digest": digests.get(name, variant.digest)})
            for name, variant in self.variants.items()
        }
        return self.model_copy(update={"variants": variants})

    def with_encoders(self) -> StudyPlan:
        """The same plan, bound to the content of the folders of its encoders.

        Raises:
            ConfigError: An arm cannot run, or is the same as another one.
        """
        cells = {(cell.variant, cell.arm): cell for cell in self.grid().cells}  # seeds share an encoder
        digests = {name: digest(name) for name in sorted({self.config(cell).model.encoder for cell in cells.values()})}
        return self.model_copy(update={"encoders": {name: content for name, content in digests.items() if content}})

    def grid(self) -> Grid:
        """Variants by arms by seeds; an arm that does not go with a variant is left out of it.

        Raises:
            ConfigError: An arm or a variant cannot run, two arms are the same, or the baseline is left out.
        """
        problems = [*_problems_of_variants(self)]
        for arm, values in self.arms.items():
            problems += _problems_of_values(arm, values)
        if self.baseline not in self.arms:
            problems.append(Problem("baseline", "must be an arm", self.baseline, known=tuple(self.arms)))
        names: dict[str, str] = {}
        fitting, left_out = list[tuple[str | None, str]](), list[LeftOutArm]()
        for variant, arm in product(self.digests, self.arms):
            # Any seed shows whether two arms are the same, and a name without it is what users call the arm.
            name = self._cell(arm, 0, variant).name.rpartition("/")[0]
            try:
                first = names.setdefault(self.identity(arm, self.seeds[0], variant), name)
            except ConflictError as error:
                left_out.append(LeftOutArm(variant, arm, "; ".join(map(str, error.problems))))
                problems += error.problems if arm == self.baseline else ()
            except ConfigError as error:
                problems += error.problems
            else:
                fitting.append((variant, arm))
                if first != name:
                    kind, of_kind = ("arms", "arm ") if variant is None else ("variants", "")
                    problems.append(
                        Problem(f"{kind}.{name}", f"must differ from {of_kind}{first}", repr(self.arms[arm]))
                    )
        if problems:
            raise ConfigError(list(dict.fromkeys(problems)))
        cells = [
            self._cell(arm, seed, variant).model_copy(update={"id": self.identity(arm, seed, variant)})
            for seed in self.seeds
            for variant, arm in fitting
        ]
        return Grid(cells, left_out)

    def identity(self, arm: str, seed: int, variant: str | None = None) -> str:
        """The id of a cell: a digest of the configuration that decides its numbers.

        It does not depend on where the cell runs, on how a value is written, or on whether a default is written out.
        `RESULTS_VERSION` must change with a default.
        """
        return self._identity(self.config(self._cell(arm, seed, variant)), variant)

    def continues(self, stored: StudyPlan) -> bool:
        """Whether the arms and variants that both plans name are the same, so that one can extend the other."""
        if bool(self.variants) != bool(stored.variants):
            return False
        return all(
            self._meaning(variant, arm) == stored._meaning(variant, arm)
            for variant in self.digests.keys() & stored.digests.keys()
            for arm in [None, *(self.arms.keys() & stored.arms.keys())]
        )

    def merged_with(self, stored: StudyPlan) -> StudyPlan:
        """This plan with the arms, variants and seeds that only the stored one has."""
        seeds = tuple(dict.fromkeys([*stored.seeds, *self.seeds]))
        names = ("arms", "variants", "encoders", "tuned", "tuned_settings")
        merged = {name: getattr(stored, name) | getattr(self, name) for name in names}
        return self.model_copy(update={**merged, "seeds": seeds})

    def _cell(self, arm: str, seed: int, variant: str | None) -> TrialSpec:
        return TrialSpec(id="", params=self.arms[arm], seed=seed, arm=arm, variant=variant)

    def _meaning(self, variant: str | None, arm: str | None) -> str:
        """The identity of an arm on a variant, or of the layers below the arms; of an arm left out, the reason."""
        try:
            if arm is None:
                return self._identity(self.base(variant), variant)
            return self.identity(arm, 0, variant)
        except ConflictError as error:
            return str(error)

    def _identity(self, config: RunConfig, variant: str | None) -> str:
        values = {
            path: value
            for path, value in non_defaults(config).items()
            if path.partition(".")[0] not in NEUTRAL_SECTIONS
        }
        content = self.digests[variant] + self.encoders.get(config.model.encoder, "")
        parts = json.dumps([values, content, RESULTS_VERSION], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:12]


def _resolve(layers: Sequence[Layer]) -> RunConfig:
    return _resolved(json.dumps([(layer.origin, layer.values) for layer in layers], default=repr))


@lru_cache(maxsize=4096)
def _resolved(layers: str) -> RunConfig:
    """Resolved once in a process: the grid, the comparison with a stored plan and the trials share it."""
    return resolve([Layer(origin, values) for origin, values in json.loads(layers)])


def _problems_of_shared(layer: Layer) -> Iterator[Problem]:
    """What all trials must share, and so a trial must not set."""
    for path in _paths(layer.values):
        if (section := path.partition(".")[0]) in NEUTRAL_SECTIONS:
            must = f"must not be set: {section} belongs to the preset or --set, all trials share it"
            yield Problem(path, must, origin=layer.origin)
        if path == "data.test_share":
            yield Problem(path, "must not be set: all trials are scored on one test split", origin=layer.origin)


def _problems_of_variants(plan: StudyPlan) -> Iterator[Problem]:
    """Variants that cannot run, or cannot be compared with the first one."""
    bases: dict[str | None, RunConfig] = {}
    for variant in plan.digests:
        try:
            bases[variant] = plan.base(variant)
        except ConfigError as error:
            yield from error.problems
    first = next(iter(bases), None)
    for variant, base in bases.items():
        for path, value, expected in (
            ("launch", base.launch, bases[first].launch),
            ("metric", base.task.objective(), bases[first].task.objective()),
        ):
            if value != expected:
                yield Problem(f"variants.{variant}", f"must have the {path} of {first}, {expected}", str(value))


def _problems_of_values(arm: str, values: Flat) -> Iterator[Problem]:
    """Values of an arm that cannot be stored in a plan."""
    for path, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            yield Problem(path, "must be a number, text, list or mapping of such", f"{value!r:.60}", f"arm {arm}")


def _paths(values: Nested, prefix: str = "") -> list[str]:
    """Each path that a layer sets."""
    paths = []
    for key, value in values.items():
        inner = _paths(dict(value), f"{prefix}{key}.") if isinstance(value, Mapping) else []
        paths += inner or [f"{prefix}{key}"]
    return paths
