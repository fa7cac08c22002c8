"""What is to run: the settings of a sweep or study, and the configuration of each of its trials.

A plan holds layers, never a resolved configuration: preset, settings, then the settings that an arm was tuned to, then
the arm or trial itself. Defaults are filled once, after the last layer, so that an arm that chooses another loss does
not inherit the parameters of the loss below it. The seed is set on the resolved configuration: cells that differ in the
seed alone share one resolution, which takes some milliseconds and dominates the start of a large study.

The addresses of the user's own code are absolute from the start, since trials run in other processes and a plan may be
resumed from another folder. Relative folders of data and encoders stay as they were written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import NEUTRAL_SECTIONS, RunConfig
from dice_ray.errors import ConfigError, InputError, Problem, RunError, shown
from dice_ray.losses.custom import CustomConfig
from dice_ray.models import sources
from dice_ray.run.folder import check_digest
from dice_ray.settings import Flat, Nested, differing_paths, flat, problems_of
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.user_code import Address, absolute, digest

RESULTS_VERSION = 3
"""Raised when the numbers of a run change: cells of another version run again."""

AUTOMATIC = "this machine"
"""Origin of the layer with automatically chosen values, such as the precision; it is stored in plans."""

TARGETS: Final = ("loss.custom.target", "task.sentence_pair.score", "task.text_classification.score")
"""The paths of the addresses of a custom loss and of an own metric."""

SEED_LIMIT: Final = 2**31 - 10_000
"""Seeds of sweeps are below it: those of the reruns are higher by 1001 and more, and must be seeds of a run too."""

FOLDER: Final = "data.source.files.folder"
"""The path of the folder of the data's files: plans of the same digest have the same content in any folder."""


def targets_of(config: RunConfig) -> list[str]:
    """The addresses of the custom loss and of the own metric of a configuration."""
    loss = config.loss.target if isinstance(config.loss, CustomConfig) else None
    return [target for target in (loss, config.task.own_metric()) if target is not None]


def deciding_metric(config: RunConfig) -> str:
    """The metric that trials are compared by: the name of the task's, or the address of an own one."""
    return config.task.own_metric() or config.task.objective()


def _with_absolute_target(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings, nested or by path, with the addresses of a custom loss and an own metric made absolute."""
    located = dict(values)
    for key, value in values.items():
        if isinstance(value, Mapping):
            located[key] = _with_absolute_target(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" in TARGETS and isinstance(value, str):
            located[key] = absolute(value)
    return located


StoredValues: TypeAlias = Annotated[Flat, AfterValidator(_with_absolute_target)]
StoredLayer: TypeAlias = Annotated[
    Layer, AfterValidator(lambda layer: replace(layer, values=_with_absolute_target(layer.values)))
]


class Plan(BaseModel):
    """What a sweep and a study have in common.

    Attributes:
        name: Of the folder, of MLflow's experiment and of its parent run.
        layers: Preset and settings below the trials. The preset's seed is replaced by each trial's.
        digest: Of the data; empty before they are read.
        code: Digest of the source of each custom loss and own metric, by its address.
        encoders: Digest of the content of each encoder that lies in a folder, by its name; empty in a sweep of an older
            version. An encoder that a space searches is not among them.
        trial_timeout: A trial that runs longer, in seconds, fails.
        seeds_option: The option of the command line that sets the seeds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    layers: tuple[StoredLayer, ...]
    digest: str = ""
    code: dict[str, str] = Field(default_factory=dict)
    encoders: dict[str, str] = Field(default_factory=dict)
    trial_timeout: float | None = Field(None, gt=0)
    seeds_option: ClassVar[str]

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """A plan of these values.

        Raises:
            ConfigError: They are invalid.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise ConfigError(problems_of(error, cls)) from None

    @property
    def origins(self) -> str:
        """The preset and what was written over it, for messages."""
        return " and ".join(layer.origin for layer in self.layers if layer.values and layer.origin != AUTOMATIC)

    def config(self, trial: TrialSpec) -> RunConfig:
        """The configuration of one trial.

        Raises:
            ConfigError: It cannot run, or sets what a trial must not set.
            InputError: It is of a variant that the plan does not have, as in a ledger of another study.
        """
        if trial.variant is not None and trial.variant not in self.digests:
            known = ", ".join(repr(name) for name in self.digests if name is not None) or "none"
            must = f"its variant must be one of the plan of {self.name}"
            raise InputError(f"trial {trial.id}: {must}, got {trial.variant!r}; known: {known}")
        layer = values_layer("trial" if trial.arm is None else f"arm {trial.arm}", trial.params)
        if problems := [*self._problems_of_seeds(layer, trial.variant), *_problems_of_shared(layer)]:
            raise ConfigError(problems)
        config = _resolve([*self.below(trial.variant), *self._tuned_layers(trial.arm), layer])
        if (metric := deciding_metric(config)) != (expected := deciding_metric(self.base(trial.variant))):
            must = f"must keep the metric that all trials are compared by, {expected}"
            raise ConfigError([Problem("task", must, metric, origin=layer.origin)])
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
        return self.layers

    @property
    def digests(self) -> dict[str | None, str]:
        """The digest of the data of each variant; of the key None where there are no variants."""
        return {None: self.digest}

    def with_digests(self, digests: Mapping[str | None, str]) -> Self:
        """The same plan on data of these digests."""
        return self.model_copy(update={"digest": digests.get(None, self.digest)})

    def bound_to(self, digests: Mapping[str | None, str]) -> Self:
        """The plan on data of these digests.

        Raises:
            RunError: It was made for other data.
        """
        for variant, stored in self.digests.items():
            if stored:
                subject = self.name if variant is None else f"{self.name} on {variant}"
                check_digest(stored, digests.get(variant, stored), subject, "choose another name")
        return self.with_digests(digests)

    def with_code(self, configs: Iterable[RunConfig]) -> Self:
        """The same plan, bound to the source of the custom losses and own metrics of these configurations.

        Raises:
            InputError: One cannot be loaded.
        """
        targets = {target for config in configs for target in targets_of(config)}
        return self.model_copy(update={"code": {target: digest(target) for target in sorted(targets)}})

    def check_code(self, targets: Iterable[str]) -> None:
        """The custom losses and own metrics at these addresses must be those that the plan was made with.

        Raises:
            RunError: The source of one was changed.
            InputError: One cannot be loaded.
        """
        for target in targets:
            if (stored := self.code.get(target)) is not None and stored != (current := digest(target)):
                raise RunError(
                    f"{self.name} must be resumed with the code that it was started with, and {target} was changed "
                    f"(digest {stored} then, {current} now): restore its file, or choose another name"
                )

    def with_encoders(self, configs: Iterable[RunConfig]) -> Self:
        """The same plan, bound to the content of the folders of the encoders of these configurations."""
        digests = {name: sources.digest(name) for name in sorted({config.model.encoder for config in configs})}
        return self.model_copy(update={"encoders": {name: content for name, content in digests.items() if content}})

    def check_encoders(self, names: Iterable[str]) -> None:
        """The encoders of these names must be those that the plan was made with.

        Raises:
            RunError: The files of one were changed.
        """
        for name in names:
            stored = self.encoders.get(name)
            if stored is not None and stored != (current := sources.digest(name)):
                raise RunError(
                    f"{self.name} must be resumed with the encoder that it was started with, and {name} was changed "
                    f"(digest {stored} then, {current or 'no folder'} now): restore its files, or choose another name"
                )

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        """The paths that the seed of a trial sets."""
        return ("training.seed",)

    def _tuned_layers(self, arm: str | None) -> tuple[Layer, ...]:
        return ()

    def _problems_of_seeds(self, layer: Layer, variant: str | None) -> Iterator[Problem]:
        written = paths(layer.values)
        for path in self.seeded(variant):
            if path in written:
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
    space: Address
    trials: int = Field(ge=1)
    sampler: Address = "tpe"
    scheduler: Address = "asha"
    objectives: tuple[str, ...] = ()
    seed: int = Field(0, ge=0, lt=SEED_LIMIT)
    seeds: int = Field(0, ge=0)
    top: int = Field(5, ge=1)
    points: tuple[Flat, ...] = ()
    warm_start: str | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of its trials."""
        return [f"{number:04d}" for number in range(1, self.trials + 1)]

    def changed(self, stored: SweepPlan) -> list[str]:
        """What keeps it from extending a stored plan by trials, seeds, or more of the best: each value then and now.

        The time limit of a trial may change, as in a study, and so may the places where settings are written. Encoders
        are compared by `check_encoders`.
        """
        changed = []
        for name in sorted(type(self).model_fields.keys() - {"trial_timeout", "encoders"}):
            then, now = getattr(stored, name), getattr(self, name)
            if now == then or (name in ("trials", "seeds", "top") and now > then):
                continue
            if name != "layers":
                changed.append(f"{name} {shown(then)} then, {shown(now)} now")
                continue
            was, base = stored.base(), self.base()
            if differing := differing_paths(was, base):
                before, after = flat(was), flat(base)
                changed += [
                    f"{each} {shown(before.get(each))} then, {shown(after.get(each))} now" for each in differing
                ]
            elif _written(was) != _written(base):  # a default may depend on what a trial sets
                changed.append("the same settings, with other defaults written out")
        return changed


def _written(config: RunConfig) -> Nested:
    """The values that were written, without the defaults of those left out."""
    return config.model_dump(exclude_unset=True, warnings=False)


def _resolve(layers: Sequence[Layer]) -> RunConfig:
    return _resolved(json.dumps([(layer.origin, layer.values) for layer in layers], default=repr))


@lru_cache(maxsize=4096)
def _resolved(layers: str) -> RunConfig:
    """Resolved once in a process: the grid, the comparison with a stored plan and the trials share it."""
    return resolve([Layer(origin, values) for origin, values in json.loads(layers)])


def _problems_of_shared(layer: Layer) -> Iterator[Problem]:
    """What all trials must share, and so a trial must not set."""
    for path in paths(layer.values):
        if (section := path.partition(".")[0]) in NEUTRAL_SECTIONS:
            must = f"must not be set: {section} belongs to the preset or --set, all trials share it"
            yield Problem(path, must, origin=layer.origin)
        if path == "data.test_share":
            yield Problem(path, "must not be set: all trials are scored on one test split", origin=layer.origin)


def paths(values: Nested, prefix: str = "") -> list[str]:
    """Each path that a layer sets."""
    found = []
    for key, value in values.items():
        inner = paths(dict(value), f"{prefix}{key}.") if isinstance(value, Mapping) else []
        found += inner or [f"{prefix}{key}"]
    return found
