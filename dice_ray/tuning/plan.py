"""What is to run: the settings of a sweep or study, and the configuration of each of its trials.

A plan holds layers, never a resolved configuration: preset, settings, then the settings that an arm was tuned to, then
the arm or trial itself. Defaults are filled once, after the last layer, so that an arm that chooses another loss does
not inherit the parameters of the loss below it. The seed is set on the resolved configuration: cells that differ in the
seed alone share one resolution, which takes some milliseconds and dominates the start of a large study.

The addresses of the user's own code are made absolute; relative folders of data and encoders stay as they were written.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dice_ray.config.load import Layer, resolve, values_layer, writes
from dice_ray.config.schema import NEUTRAL_SECTIONS, RunConfig
from dice_ray.errors import ConfigError, InputError, Problem, RefusedError
from dice_ray.models import sources
from dice_ray.run.folder import check_digest
from dice_ray.settings import problems_of
from dice_ray.tuning.addresses import StoredLayer, targets_of
from dice_ray.tuning.ledger import History, Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.space import paths
from dice_ray.user_code import digest

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

AUTOMATIC = "this machine"
"""Origin of the layer with automatically chosen values, such as the precision; it is stored in plans."""


def _deciding_metric(config: RunConfig) -> str:
    """The metric that trials are compared by: the task's, or the address of an own one, and what is decided for it.

    A search of `decision.cost.false_negative` would find the lowest cost where errors cost least.
    """
    task = config.task
    metric = task.own_metric() or task.objective()
    decided = str(getattr(task, "decision", None) or "") if task.objective().endswith("_tuned") else ""
    return f"{metric} ({decided})" if decided else metric


def quickest_and_slowest(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Those with the fewest and the most steps for each data set, encoder and part of it that is trained."""
    groups: dict[tuple[str, str, str, str | int], list[RunConfig]] = {}
    for config in sorted(configs, key=lambda config: config.training.epochs / config.training.batch_size):
        trained = config.data_name, config.model.encoder, config.model.adapter.name, config.model.freeze
        groups.setdefault(trained, []).append(config)
    return [config for group in groups.values() for config in group[:: max(1, len(group) - 1)]]


@dataclass(frozen=True)
class Schedule:
    """The trials that a driver runs.

    Attributes:
        searcher: Suggests them.
        num_trials: How many, at most.
        ids: Ids of all trials of the plan, which the screen counts; the list may change while trials run.
        scheduler: Stops trials early.
        then: Trials to run after them; called when they have ended.
    """

    searcher: Searcher
    num_trials: int
    ids: list[str]
    scheduler: TrialScheduler | None = None
    then: Callable[[], list[TrialSpec]] = list


@dataclass(frozen=True)
class LeftOutArm:
    """An arm that does not fit the task or data of a variant, such as a loss that cannot take its link."""

    variant: str | None
    arm: str
    reason: str

    def __str__(self) -> str:
        on = "" if self.variant is None else f" on {self.variant}"
        return f"left out: {self.arm}{on}, because {self.reason}"


class Plan(BaseModel):
    """What a sweep and a study have in common; `SweepPlan` and `StudyPlan` say the rest of themselves.

    Attributes:
        name: The name of the folder, of MLflow's experiment and of its parent run.
        layers: Preset and settings below the trials. The preset's seed is replaced by each trial's.
        digest: Digest of the data; empty before they are read.
        code: Digest of the source of each custom loss and own metric, by its address.
        encoders: Digest of the content of each encoder that lies in a folder, by its name; empty in a sweep of an older
            version. An encoder that a space searches is not among them.
        trial_timeout: A trial that runs longer, in seconds, fails.
        split: The split that its runs are compared on: a search never reads the test split.
        seeds_option: The option of the command line that sets the seeds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    layers: tuple[StoredLayer, ...]
    digest: str = ""
    code: dict[str, str] = Field(default_factory=dict)
    encoders: dict[str, str] = Field(default_factory=dict)
    trial_timeout: float | None = Field(None, gt=0)
    split: ClassVar[Literal["dev", "test"]]
    seeds_option: ClassVar[str]

    @abstractmethod
    def check(self, folder: Path) -> list[str]:
        """Check that it can run in a folder, before any data are read; returns notes for the user."""

    @abstractmethod
    def schedule(self, ledger: Ledger, address: str | None) -> Schedule:
        """The trials that the ledger lacks, for a driver that has locked its folder and joins the Ray cluster there."""

    @abstractmethod
    def remaining(self, ledger: Ledger, address: str | None) -> tuple[int, int]:
        """How many trials the ledger lacks, at most, and how many of the plan have ended."""

    @abstractmethod
    def samples(self, ledger: Ledger) -> list[RunConfig]:
        """Configurations that the ledger lacks, the quickest and the slowest among them, to run their first steps."""

    @abstractmethod
    def grown(self, ledger: Ledger, address: str | None, more_trials: int, seeds: int | None, top: int | None) -> Self:
        """The plan with more trials, or with these numbers of rerun seeds and of configurations to rerun.

        An InputError where it cannot have them.
        """

    @abstractmethod
    def changed(self, stored: Self) -> list[str]:
        """What keeps it from extending a stored plan: each value then and now."""

    def moved_from(self, stored: Self) -> Self:
        """The same plan; a study keeps the ids that its cells had before the data were moved."""
        return self

    def merged_with(self, stored: Self) -> Self:
        """The plan with what only the stored one has, which `changed` allows it to extend."""
        return self

    def whole(self) -> Self:
        """The plan with all that earlier calls have asked for."""
        return self

    @abstractmethod
    def parent_tags(self) -> dict[str, str]:
        """The tags of the parent run in MLflow, apart from the metric."""

    @abstractmethod
    def description(self, metric: str) -> str:
        """The description of the experiment, in Markdown; without numbers, since a sweep or study may grow."""

    @abstractmethod
    def trial_tags(self, trial: TrialSpec) -> dict[str, str]:
        """The tags of the run of a trial in MLflow, apart from those of its configuration."""

    def left_out(self) -> list[LeftOutArm]:
        """The arms of a study that do not fit a variant."""
        return []

    def strangers(self, stored: Set[str], ledger: History) -> Set[str]:
        """Those of the runs that MLflow's experiment holds as ended that are not of the folder of this ledger."""
        return stored - {self.name} - ledger.specs.keys()

    @property
    def stops_early(self) -> bool:
        """Whether trials may be stopped early."""
        return False

    @property
    def has_best(self) -> bool:
        """Whether one of its runs is the best on dev, and not a trade-off between several objectives."""
        return True

    def best_arm(self, history: History, ids: Collection[str]) -> tuple[float, str, int] | None:
        """The highest mean of an arm over its ended cells, the arm, and their number; None for a sweep, which compares
        trials, and on several variants.
        """
        return None

    def kept_metrics(self) -> list[str]:
        """Metrics to store at the retained checkpoint of a run, beside the one that decides."""
        return []

    def is_final(self, outcome: TrialOutcome) -> bool:
        """Whether a trial with this outcome is not run again."""
        return True

    def retained(self, history: History) -> set[str] | None:
        """The ended trials of a history whose checkpoints are kept; None where all are."""
        return None

    def num_kept(self, num_runs: int) -> int:
        """How many of these runs keep their checkpoints."""
        return num_runs

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """A plan of these values; a ConfigError where they are invalid."""
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
        if (metric := _deciding_metric(config)) != (expected := _deciding_metric(self.base(trial.variant))):
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
        """The plan on data of these digests; a RefusedError where it was made for other data."""
        for variant, stored in self.digests.items():
            if stored:
                subject = self.name if variant is None else f"{self.name} on {variant}"
                check_digest(stored, digests.get(variant, stored), subject, "choose another name")
        return self.with_digests(digests)

    def with_contents(self) -> Self:
        """The same plan, bound to the source of its custom losses and own metrics, and to the content of the folders of
        its encoders.

        Raises:
            ConfigError: An arm cannot run, or is the same as another one.
            InputError: A custom loss or own metric cannot be loaded.
        """
        configs = self._configs().values()
        targets = sorted({target for config in configs for target in targets_of(config)})
        encoders = {name: sources.digest(name) for name in sorted({config.model.encoder for config in configs})}
        code = {target: digest(target) for target in targets}
        return self.model_copy(
            update={"code": code, "encoders": {name: each for name, each in encoders.items() if each}}
        )

    def _configs(self) -> dict[tuple[str | None, str | None], RunConfig]:
        """By variant and arm, the configurations whose own code and encoders are those of the plan."""
        return {(None, None): self.base()}

    def check_code(self, targets: Iterable[str]) -> None:
        """Raise a RefusedError where a custom loss or own metric is not the one that the plan was made with."""
        for target in targets:
            if (stored := self.code.get(target)) is not None and stored != (current := digest(target)):
                raise RefusedError(
                    f"{self.name} must be resumed with the code that it was started with, and {target} was changed "
                    f"(digest {stored} then, {current} now): restore its file, or choose another name"
                )

    def check_encoders(self, names: Iterable[str]) -> None:
        """Raise a RefusedError where an encoder has other files than the plan was made with."""
        for name in names:
            stored = self.encoders.get(name)
            if stored is not None and stored != (current := sources.digest(name)):
                raise RefusedError(
                    f"{self.name} must be resumed with the encoder that it was started with, and {name} was changed "
                    f"(digest {stored} then, {current or 'no folder'} now): restore its files, or choose another name"
                )

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        """The paths that the seed of a trial sets."""
        return ("training.seed",)

    def _tuned_layers(self, arm: str | None) -> tuple[Layer, ...]:
        return ()

    def _problems_of_variants(self) -> Iterator[Problem]:
        """Variants that cannot run, or set what the driver reads from the layers below all of them."""
        bases: dict[str | None, RunConfig] = {}
        for variant in dict.fromkeys((None, *self.digests)):
            try:
                bases[variant] = self.base(variant)
            except ConfigError as error:
                yield from error.problems
        if (shared := bases.pop(None, None)) is None:
            return
        for variant, base in bases.items():
            for path, value, expected in (
                ("launch", base.launch, shared.launch),
                ("metric", _deciding_metric(base), _deciding_metric(shared)),
            ):
                if value != expected:
                    must = f"must have the {path} of the layers below all variants, {expected}"
                    yield Problem(f"variants.{variant}", must, str(value))

    def _problems_of_seeds(self, layer: Layer, variant: str | None) -> Iterator[Problem]:
        written = paths(layer.values)
        for path in self.seeded(variant):
            if path in written:
                must = f"must not be set: {self.seeds_option} sets it for every trial"
                yield Problem(path, must, origin=layer.origin)


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
        if path in ("data.test_share", "data.groups", "data.time"):
            yield Problem(path, "must not be set: all trials are scored on one test split", origin=layer.origin)
    if writes(layer.values, ("data", "imbalance", "few_positives")):
        must = "must not be set: each seed draws positives, the same for all trials"
        yield Problem("data.imbalance.few_positives", must, origin=layer.origin)
