"""What is to run: the settings of a sweep or a study, and of each of its trials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import NEUTRAL_SECTIONS, RunConfig
from dice_ray.errors import ConfigError, Problem, RunError, UnfitError
from dice_ray.models.pretrained import digest
from dice_ray.settings import Flat, Nested, decisive
from dice_ray.tuning.grid import LeftOut, grid
from dice_ray.tuning.ledger import Begun

RESULTS_VERSION = 2
"""Raised when the numbers of a run change: cells of another version run again."""


THIS_MACHINE = "this machine"
"""The origin of what no one wrote: what pays where a sweep or study was begun."""


class Plan(BaseModel):
    """What a sweep and a study have in common.

    Attributes:
        name: Of the folder, of MLflow's experiment and of its parent run.
        layers: What was written below the trials: preset and settings, never a resolved configuration. The first is
            the preset, whose seed and launch are those of a single run: the trials' own seeds are written over it.
        digest: Of the data; none before they are read.
        trial_timeout: After how many seconds a trial that is still running has failed.
        seeds_option: What gives the seeds on the command line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    layers: tuple[Layer, ...]
    digest: str = ""
    trial_timeout: float | None = Field(None, gt=0)
    seeds_option: ClassVar[str]

    def config(self, trial: Begun) -> RunConfig:
        """The configuration of one of its trials.

        Raises:
            ConfigError: It cannot run, or writes what is not a trial's to write.
        """
        layer = values_layer("trial" if trial.arm is None else f"arm {trial.arm}", trial.params)
        if problems := [*self._written_seeds(layer, trial.variant), *_written_aside(layer)]:
            raise ConfigError(problems)
        seed = values_layer("seed", dict.fromkeys(self.seeded(trial.variant), trial.seed))
        return resolve([*self.below(trial.variant), layer, seed])

    def base(self, variant: str | None = None) -> RunConfig:
        """The configuration below its trials, or below the cells of a variant.

        Raises:
            ConfigError: It cannot run, or the settings over the preset write the seed.
        """
        layers = self.below(variant)
        if problems := [problem for layer in layers[1:] for problem in self._written_seeds(layer, variant)]:
            raise ConfigError(problems)
        return resolve(layers)

    def below(self, variant: str | None) -> tuple[Layer, ...]:
        """What was written below the trials, or below the cells of a variant."""
        assert variant is None, "studies have variants"
        return self.layers

    @property
    def digests(self) -> dict[str | None, str]:
        """The digest of the data of each variant; of none, where there are no variants."""
        return {None: self.digest}

    def with_digests(self, digests: Mapping[str | None, str]) -> Self:
        """The same on data of these digests, whatever it was on before."""
        return self.model_copy(update={"digest": digests[None]})

    def on(self, digests: Mapping[str | None, str]) -> Self:
        """The plan on the data of these digests.

        Raises:
            RunError: It was made for other data.
        """
        for variant, then in self.digests.items():
            if then not in ("", now := digests.get(variant, then)):
                which = "they" if variant is None else f"those of {variant}"
                raise RunError(
                    f"{self.name} must go on with the data that it was begun on, and {which} were changed "
                    f"(digest {then} then, {now} now): bring the old data back, or choose another name"
                )
        return self.with_digests(digests)

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        """The paths that the seed of a trial is written to."""
        return ("training.seed",)

    def _written_seeds(self, layer: Layer, variant: str | None) -> Iterator[Problem]:
        written = _paths(layer.values)
        for path in self.seeded(variant):
            if path in written:
                must = f"must not be written: {self.seeds_option} gives it to every trial"
                yield Problem(path, must, origin=layer.origin)


class SweepPlan(Plan):
    """A search.

    Attributes:
        space: The address of a function of a trial: `module:function` or `file.py:function`.
        trials: How many.
        sampler: `tpe`, `random`, `brute_force`, `nsga2`, or the address of a function that makes one of a seed.
        scheduler: What stops trials early.
        objectives: What is searched for together, of the checkpoint kept: metrics of dev, and `seconds` of training,
            the fewer the better; none where it is the task's own metric alone.
        seed: Of the sampler, and `training.seed` of every trial.
        seeds: How many other seeds the best configurations run with when the search has ended.
        top: How many these are.
        points: What the first trials run; what a point does not say is sampled.
        warm_start: The sweep whose trials are known from the start.
    """

    seeds_option = "--seed"
    kind: Literal["sweep"] = "sweep"
    space: str
    trials: int = Field(ge=1)
    sampler: str = "tpe"
    scheduler: Literal["asha", "median", "none"] = "asha"
    objectives: tuple[str, ...] = ()
    seed: int = 0
    seeds: int = Field(0, ge=0)
    top: int = Field(5, ge=1)
    points: tuple[Flat, ...] = ()
    warm_start: str | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of its trials, whatever they will be."""
        return [f"{number:04d}" for number in range(1, self.trials + 1)]

    def extends(self, there: SweepPlan) -> bool:
        """Whether it is another one with more trials, or more seeds for more of the best."""
        grows = {"trials": there.trials, "seeds": there.seeds, "top": there.top}
        return all(getattr(self, name) >= least for name, least in grows.items()) and (
            self.model_copy(update=grows) == there
        )


class Variant(BaseModel):
    """What all arms of a study are run on: one of its data sets, encoders, or altered training sets.

    Attributes:
        layers: What was written below the arms, in place of the study's own layers.
        digest: Of the data; none before they are read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    layers: tuple[Layer, ...]
    digest: str = ""


class StudyPlan(Plan):
    """A comparison of arms, on one thing or on several variants.

    Attributes:
        arms: What each arm writes over the layers, by path.
        baseline: The arm that the others are compared to.
        seeds: `training.seed` of the cells of each arm, and where a test split is drawn, `data.split_seed` too.
        variants: What the arms are run on, by name; none where that is the layers alone.
        encoders: Of the content of each encoder that lies in a folder, by its name.
        tuned: The trial that an arm has its settings of, in words; no arm that was not tuned.
    """

    seeds_option = "--seeds"
    kind: Literal["study"] = "study"
    arms: dict[str, Flat]
    baseline: str
    seeds: tuple[int, ...] = Field(min_length=1)
    variants: dict[str, Variant] = {}
    encoders: dict[str, str] = {}
    tuned: dict[str, str] = {}

    def below(self, variant: str | None) -> tuple[Layer, ...]:
        return self.layers if variant is None else self.variants[variant].layers

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        sections = (layer.values.get("data") for layer in self.below(variant))
        shares = [data["test_share"] for data in sections if isinstance(data, Mapping) and "test_share" in data]
        is_drawn = bool(shares) and shares[-1] is not None
        return ("training.seed", "data.split_seed") if is_drawn else ("training.seed",)

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
        """The same, bound to what the folders of its encoders hold now.

        Raises:
            ConfigError: An arm cannot run, or runs what another one runs.
        """
        names = {self.config(cell).model.encoder for cell in self.cells()}
        found = {name: digest(name) for name in sorted(names)}
        return self.model_copy(update={"encoders": {name: content for name, content in found.items() if content}})

    def cells(self) -> list[Begun]:
        """Variants by arms by seeds, all of a seed before the next seed; what does not go together is left out.

        Raises:
            ConfigError: An arm cannot run, or runs what another one runs.
        """
        return grid(self)[0]

    def left_out(self) -> list[LeftOut]:
        """The arms that are not run on a variant, and why.

        Raises:
            ConfigError: An arm cannot run, or runs what another one runs.
        """
        return grid(self)[1]

    def identity(self, arm: str, seed: int, variant: str | None = None) -> str:
        """What decides the numbers of a cell: its configuration, but for where it runs and for defaults.

        However a value is written, and whether it is written or a default: the same configuration is the same cell.
        Where a default changes, `RESULTS_VERSION` does.
        """
        cell = Begun(id="", params=self.arms[arm], seed=seed, arm=arm, variant=variant)
        return self._identity(self.config(cell), variant)

    def continues(self, there: StudyPlan) -> bool:
        """Whether it can go on where another one was: names of arms and variants mean the same in both."""
        if bool(self.variants) != bool(there.variants):
            return False
        return all(
            self._meant(variant, arm) == there._meant(variant, arm)
            for variant in self.digests.keys() & there.digests.keys()
            for arm in [None, *(self.arms.keys() & there.arms.keys())]
        )

    def over(self, there: StudyPlan) -> StudyPlan:
        """Both as one: this one with the arms, variants and seeds that only the other one has."""
        seeds = tuple(dict.fromkeys([*there.seeds, *self.seeds]))
        names = ("arms", "variants", "encoders", "tuned")
        merged = {name: getattr(there, name) | getattr(self, name) for name in names}
        return self.model_copy(update={**merged, "seeds": seeds})

    def _meant(self, variant: str | None, arm: str | None) -> str:
        """The identity of an arm on a variant, or of what lies below its arms; why there is none, if it is left out."""
        try:
            if arm is None:
                return self._identity(self.base(variant), variant)
            return self.identity(arm, 0, variant)
        except UnfitError as error:
            return str(error)

    def _identity(self, config: RunConfig, variant: str | None) -> str:
        written = {
            path: value for path, value in decisive(config).items() if path.partition(".")[0] not in NEUTRAL_SECTIONS
        }
        content = self.digests[variant] + self.encoders.get(config.model.encoder, "")
        parts = json.dumps([written, content, RESULTS_VERSION], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:12]


def _written_aside(layer: Layer) -> Iterator[Problem]:
    for path in _paths(layer.values):
        if (section := path.partition(".")[0]) in NEUTRAL_SECTIONS:
            must = f"must not be written: {section} belongs to the preset or --set, all trials share it"
            yield Problem(path, must, origin=layer.origin)
        if path == "data.test_share":
            yield Problem(path, "must not be written: all trials are scored on one test split", origin=layer.origin)


def _paths(values: Nested, prefix: str = "") -> list[str]:
    """Each path that a layer writes."""
    found = []
    for key, value in values.items():
        inner = _paths(dict(value), f"{prefix}{key}.") if isinstance(value, Mapping) else []
        found += inner or [f"{prefix}{key}"]
    return found
