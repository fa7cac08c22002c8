"""A study: arms by seeds on each variant, each cell once, by the identity that `cells` gives it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from itertools import product
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator

from dice_ray.config.load import Layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.data.sources import FilesConfig
from dice_ray.errors import ConfigError, ConflictError, InputError, Problem
from dice_ray.run.folder import check_digest
from dice_ray.settings import Flat, non_defaults
from dice_ray.tracking import schema
from dice_ray.tuning.addresses import StoredValues
from dice_ray.tuning.cells import AGAIN, OTHER_SEEDS, Asked, Grid, Variant, VariantsAre, identity, problems_of_values
from dice_ray.tuning.ledger import History, Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan import LeftOutArm, Plan, Schedule, quickest_and_slowest
from dice_ray.tuning.ranking import best_arm


class StudyPlan(Plan):
    """A comparison of arms, on one data set and encoder or on several variants.

    Attributes:
        arms: The settings of each arm, by path.
        baseline: The arm that the others are compared to.
        seeds: `training.seed` of the cells of each arm, and where a test split or few positives are drawn,
            `data.split_seed` too.
        variants: By name; empty where the arms are run on the layers alone.
        variants_are: Whether each variant has a result of its own, or all of them are draws of one search.
        budget: The number of drawn settings of which the best by dev is compared; None for a third of them.
        space: Address of the search space that settings were drawn from, as a record; empty without one.
        spaces: Those of the spaces of parameters that a single arm has, by arm.
        folders: For each variant whose files lie in another folder than when the study was started, that first folder:
            the ids of its cells hold it. Its name is empty where there are no variants.
        extra: Digest of the file of further training records that an arm has, by the arm and the variant.
        shared: The trial whose settings, apart from those of its loss, all arms have, as text; empty for none.
        shared_settings: These settings, by path: a layer above the preset.
        tuned: For an arm that was tuned: the trial that its settings were taken from, as text.
        tuned_settings: The settings of that trial, by path: a layer below the arm.
        controls: The name of each control with that of the arm that it is the control of, as in `schema.CONTROL`.
        looks: The numbers of seeds after which the arms are compared: one if their number is fixed, several if arms
            stop once they are settled, and none in a study of an older version. Those of the first call hold.
        care: The smallest difference that matters to the user, in points of the metric; 0 for none.
        threshold: At which the arms are compared, where the task tunes one; empty in a study of an older version.
        command: The command that runs it, without its seeds; empty for a study of an older version.
        asked: What was asked for last, of a study that earlier calls have made larger; None for all of it.
    """

    split = "test"
    seeds_option = "--seeds"
    kind: Literal["study"] = "study"
    arms: dict[str, StoredValues]
    baseline: str
    seeds: tuple[int, ...] = Field(min_length=1)
    variants: dict[str, Variant] = Field(default_factory=dict)
    variants_are: VariantsAre = "data"
    budget: int | None = None
    space: str = ""
    spaces: dict[str, str] = Field(default_factory=dict)
    folders: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, str] = Field(default_factory=dict)
    shared: str = ""
    shared_settings: StoredValues = Field(default_factory=dict)
    tuned: dict[str, str] = Field(default_factory=dict)
    tuned_settings: dict[str, StoredValues] = Field(default_factory=dict)
    controls: dict[str, str] = Field(default_factory=dict)
    looks: tuple[int, ...] = ()
    care: float = 0.0
    threshold: Literal["", "tuned", "untuned"] = ""
    command: str = ""
    asked: Asked | None = None

    @field_validator("seeds")
    @classmethod
    def _differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("must be different seeds: one that is counted twice would make a difference look certain")
        return seeds

    def check(self, folder: Path) -> list[str]:
        for key, now in self._extra_digests().items():  # of the whole grid: raises where an arm cannot run
            subject = f"{self.name}, whose {key} has data.source.files.extra,"
            check_digest(self.extra.get(key, now), now, subject, "choose another name")
        return []

    def schedule(self, ledger: Ledger, address: str | None) -> Schedule:
        from dice_ray.tuning.search import CellSearcher

        cells = self.grid().cells
        missing = self._missing(cells, ledger)
        return Schedule(CellSearcher(missing), len(missing), [cell.id for cell in cells])

    def remaining(self, ledger: Ledger, address: str | None) -> tuple[int, int]:
        cells = self.grid().cells
        num_missing = len(self._missing(cells, ledger))
        return num_missing, len(cells) - num_missing

    def samples(self, ledger: Ledger) -> list[RunConfig]:
        """Those of all cells that are missing; of drawn settings, which all take other times, a few."""
        configs = [self.config(cell) for cell in self._missing(self.grid().cells, ledger)]
        return quickest_and_slowest(configs) if self.variants_are == "settings" else configs

    def grown(
        self, ledger: Ledger, address: str | None, more_trials: int, seeds: int | None, top: int | None
    ) -> StudyPlan:
        if more_trials or seeds or top:
            grows = "it grows by arms, variants and seeds"
            raise InputError(f"{self.name} is a study, which has no trials to add: {grows}")
        return self

    def parent_tags(self) -> dict[str, str]:
        tags = {schema.KIND: self.kind, schema.BASELINE: self.baseline, schema.VARIANTS_ARE: self.variants_are}
        optional = {
            schema.LOOKS: " ".join(map(str, self.looks)),
            schema.CARE: f"{self.care:g}" if self.care else "",
            schema.THRESHOLD: self.threshold,
            schema.BUDGET: str(self.budget or ""),
            schema.COMMAND: self.command,
        }
        return tags | {tag: value for tag, value in optional.items() if value}

    def description(self, metric: str) -> str:
        data = ", ".join(dict.fromkeys(self.base(variant).data_name for variant in self.digests))
        return (
            f"Ablation study on {data}: arms compared with `{self.baseline}` over the same seeds, by {metric}. The run "
            f"`{self.name}` has the score of each arm and the verdict; its children are the runs of each arm and seed. "
            f"`dice-ray report {self.name}` writes the report."
        )

    def trial_tags(self, trial: TrialSpec) -> dict[str, str]:
        assert trial.arm is not None, "a study has cells"
        optional = {
            schema.VARIANT: trial.variant,
            schema.SHARED: self.shared,
            schema.TUNED: self.tuned.get(trial.arm),
            schema.CONTROL: self.controls.get(trial.arm),
        }
        tags = {schema.KIND: "cell", schema.SEED: str(trial.seed), schema.ARM: trial.arm}
        return tags | {tag: value for tag, value in optional.items() if value}

    def left_out(self) -> list[LeftOutArm]:
        return self.grid().left_out

    def strangers(self, stored: Set[str], ledger: History) -> Set[str]:
        """As for every plan, but a cell that the ledger does not know is none of them: its id is a digest of its
        settings, so it is run again with the same settings. A trial of a sweep is one: only the ledger has its
        settings, and a new trial of its id would be mixed in MLflow with its old parameters and metrics. If the ledger
        knows none of the runs, all belong to another folder.
        """
        unknown = super().strangers(stored, ledger)
        is_other_folder = unknown == stored - {self.name}
        return unknown if is_other_folder else unknown - {cell.id for cell in self.whole().grid().cells}

    def best_arm(self, history: History, ids: Collection[str]) -> tuple[float, str, int] | None:
        return best_arm(history, ids, self.controls)

    def is_final(self, outcome: TrialOutcome) -> bool:
        return outcome.state != "failed"

    def whole(self) -> StudyPlan:
        return self.model_copy(update={"asked": None})

    def _missing(self, cells: Sequence[TrialSpec], history: History) -> list[TrialSpec]:
        """The cells that a history does not hold as done."""
        outcomes = history.outcomes
        return [cell for cell in cells if cell.id not in outcomes or not self.is_final(outcomes[cell.id])]

    def below(self, variant: str | None) -> tuple[Layer, ...]:
        return self.layers if variant is None else self.variants[variant].layers

    def seeded(self, variant: str | None) -> tuple[str, ...]:
        sections = (layer.values.get("data") for layer in self.below(variant))
        data = {key: value for section in sections if isinstance(section, Mapping) for key, value in section.items()}
        has_own_test = data.get("test_share") is not None and data.get("time") is None
        is_drawn = has_own_test or "few_positives" in (data.get("imbalance") or "")
        return ("training.seed", "data.split_seed") if is_drawn else ("training.seed",)

    def _tuned_layers(self, arm: str | None) -> tuple[Layer, ...]:
        if arm not in self.tuned_settings:
            return ()
        return (values_layer(f"tuned arm {arm}", self.tuned_settings[arm]),)

    @property
    def digests(self) -> dict[str | None, str]:
        return {name: variant.digest for name, variant in self.variants.items()} or super().digests

    def with_digests(self, digests: Mapping[str | None, str]) -> StudyPlan:
        variants = {
            name: variant.model_copy(update={"digest": digests.get(name, variant.digest)})
            for name, variant in self.variants.items()
        }
        return super().with_digests(digests).model_copy(update={"variants": variants})

    def _configs(self) -> dict[tuple[str | None, str | None], RunConfig]:
        # Seeds share an encoder, a loss and the files.
        return {(cell.variant, cell.arm): self.config(cell) for cell in self.grid().cells}

    def with_contents(self) -> Self:
        return super().with_contents().model_copy(update={"extra": self._extra_digests()})

    def _extra_digests(self) -> dict[str, str]:
        return {
            _extra_key(arm, variant): source.extra_digest()
            for (variant, arm), config in self._configs().items()
            if isinstance(source := config.data.source, FilesConfig) and source.extra is not None
        }

    def grid(self) -> Grid:
        """The cells that were asked for; an arm that does not fit a variant is left out of it.

        Raises:
            ConfigError: An arm or a variant cannot run, two arms are the same, or the baseline is left out.
        """
        problems = [*self._problems_of_variants()]
        for arm, values in self.arms.items():
            problems += problems_of_values(arm, values)
        if self.baseline not in self.arms:
            problems.append(Problem("baseline", "must be an arm", self.baseline, known=tuple(self.arms)))
        names: dict[str, str] = {}
        ids, left_out = dict[tuple[str | None, str], dict[int, str]](), list[LeftOutArm]()
        for variant, arm in product(self.digests, self.arms):
            # Any seed shows whether two arms are the same, and a name without it is what users call the arm.
            name = self._cell(arm, 0, variant).name.rpartition("/")[0]
            try:
                by_seed = ids[variant, arm] = self._ids(arm, variant, self._seeds_of(arm, variant))
            except ConflictError as error:
                left_out.append(LeftOutArm(variant, arm, "; ".join(map(str, error.problems))))
                problems += error.problems if arm == self.baseline else ()
            except ConfigError as error:
                problems += error.problems
            else:
                if (first := names.setdefault(next(iter(by_seed.values())), name)) != name:
                    kind, noun = ("arms", "arm ") if variant is None else ("variants", "")
                    problems.append(Problem(f"{kind}.{name}", f"must differ from {noun}{first}", repr(self.arms[arm])))
        if problems:
            raise ConfigError(list(dict.fromkeys(problems)))
        cells = [
            self._cell(arm, own, variant).model_copy(update={"id": by_seed[own]})
            for seed in self.seeds
            for (variant, arm), by_seed in ids.items()
            for own in [seed + OTHER_SEEDS * (arm == AGAIN)]
            if own in by_seed
        ]
        return Grid([cell for cell in cells if self.asked is None or cell in self.asked], left_out)

    def identity(self, arm: str, seed: int, variant: str | None = None) -> str:
        """The id of a cell: a digest of the configuration that decides its numbers.

        It does not depend on where the cell runs, on how a value is written, or on whether a default is written out.
        It holds the folder of the files, in a study that goes on in another folder the first one (`moved_from`).
        `RESULTS_VERSION` must change with a default.
        """
        return self._ids(arm, variant, [seed])[seed]

    def changed(self, stored: StudyPlan) -> list[str]:
        """What both plans name and mean differently."""
        if (then := stored._variants_in_words) != (now := self._variants_in_words):
            return [f"{then} then, {now} now"]
        changed = []
        if stored.controls and stored.baseline != self.baseline:
            changed.append(f"baseline {stored.baseline} then, which has a control, {self.baseline} now")
        for name in ("looks", "care", "threshold", "budget"):
            then, now = getattr(stored, name), getattr(self, name)
            is_given = len(now) > 1 if name == "looks" else now
            # An older study has no threshold or budget; fewer seeds than a claim needs were no look at anything.
            is_free = (name in ("threshold", "budget") and not then) or (name == "looks" and _is_no_look(then))
            if is_given and now != then and not is_free:
                changed.append(f"{name} {then or 'none'} then, {now} now, which holds from the first run on")
        for variant in [variant for variant in self.digests if variant in stored.digests]:
            # Where the settings below the arms differ, most arms do too: their lines would repeat it.
            for arm in [None, *(arm for arm in self.arms if arm in stored.arms)]:
                if self._meaning(variant, arm) != stored._meaning(variant, arm):
                    what = "the settings below the arms" if arm is None else f"arm {arm}"
                    changed.append(f"{what} on {variant}" if variant else what)
                    if arm is None:
                        break
        return changed

    @property
    def _variants_in_words(self) -> str:
        if not self.variants:
            return "one data set and encoder"
        if self.variants_are == "data":
            return "several data sets, encoders or training sets"
        has_one_seed = any(variant.seed is not None for variant in self.variants.values())
        return "drawn settings with one seed each" if has_one_seed else "drawn settings"

    def moved_from(self, stored: StudyPlan) -> StudyPlan:
        """The same plan; where a stored one has the same data in another folder, its cells have the ids that they had.

        Ids without the folder would not be those of the cells that earlier versions have run.
        """
        folders = {}
        for variant in self.digests.keys() & stored.digests.keys():
            now, first = self._folder(variant), stored.folders.get(variant or "", stored._folder(variant))
            is_same_data = self.digests[variant] == stored.digests[variant] != ""
            if is_same_data and now is not None and first is not None and now != first:
                folders[variant or ""] = first
        return self.model_copy(update={"folders": self.folders | folders})

    def merged_with(self, stored: StudyPlan) -> StudyPlan:
        """This plan with the arms, variants and seeds that only the stored one has, which are not asked for.

        Raises:
            ConfigError: An arm is the same as a stored arm of another name.
        """
        seeds = tuple(dict.fromkeys([*stored.seeds, *self.seeds]))
        # Shared settings are a whole, which another call does not add to.
        by_name = {name: own for name, own in self if isinstance(own, dict) and name != "shared_settings"}
        merged = {name: getattr(stored, name) | own for name, own in by_name.items()}
        for name in self.variants.keys() & stored.variants.keys():  # arms that are not asked for keep what they drew
            arms = stored.variants[name].arms | self.variants[name].arms
            merged["variants"][name] = self.variants[name].model_copy(update={"arms": arms})
        asked = self.asked or self.asked_for_all()
        declared = {name: getattr(stored, name) for name in ("looks", "care", "threshold")}
        declared["budget"] = stored.budget or self.budget
        if _is_no_look(stored.looks):
            declared["looks"] = self.looks
        plan = self.model_copy(update={**merged, **declared, "seeds": seeds, "asked": None})
        plan = plan if asked == plan.asked_for_all() else plan.model_copy(update={"asked": asked})
        plan.grid()
        return plan

    def asked_for_all(self) -> Asked:
        return Asked(
            arms=tuple(sorted(self.arms)), seeds=tuple(sorted(self.seeds)), variants=tuple(sorted(self.variants))
        )

    def _cell(self, arm: str, seed: int, variant: str | None) -> TrialSpec:
        drawn = {} if variant is None else self.variants[variant].arms.get(arm, {})
        return TrialSpec(id="", params=self.arms[arm] | drawn, seed=seed, arm=arm, variant=variant)

    def _seeds_of(self, arm: str, variant: str | None) -> tuple[int, ...]:
        seed = None if variant is None else self.variants[variant].seed
        seeds = self.seeds if seed is None else (seed,)
        return tuple(seed + OTHER_SEEDS for seed in seeds) if arm == AGAIN else seeds

    def _folder(self, variant: str | None) -> str | None:
        """The folder of the files of a variant; None without files, or where only its arms make a whole."""
        try:
            source = self.base(variant).data.source
        except ConflictError:
            return None
        return source.folder if isinstance(source, FilesConfig) else None

    def _with_first_folder(self, config: RunConfig, variant: str | None) -> RunConfig:
        """A configuration with the folder that the files had when the study was started."""
        first, source = self.folders.get(variant or ""), config.data.source
        # An arm with a folder of its own reads other files than those that the digest is of.
        if first is None or not isinstance(source, FilesConfig) or source.folder != self._folder(variant):
            return config
        data = config.data.model_copy(update={"source": source.model_copy(update={"folder": first})})
        return config.model_copy(update={"data": data})

    def _meaning(self, variant: str | None, arm: str | None) -> str:
        """The identity of an arm on a variant, or of the layers below the arms; of an arm left out, the reason."""
        try:
            if arm is None:
                base = self._with_first_folder(self.base(variant), variant)
                return self._digest(non_defaults(base), base, variant)
            return self.identity(arm, 0, variant)
        except ConflictError as error:
            return str(error)

    def _ids(self, arm: str, variant: str | None, seeds: Sequence[int]) -> dict[int, str]:
        """The ids of an arm's cells by seed; its configuration is compared with the defaults once for all seeds."""
        config = self._with_first_folder(self.config(self._cell(arm, seeds[0], variant)), variant)
        extra, values, defaults = self.extra.get(_extra_key(arm, variant), ""), non_defaults(config), {}
        for path in self.seeded(variant):
            section, name = path.split(".")
            defaults[path] = type(getattr(config, section)).model_fields[name].default
            values.pop(path, None)
        ids = {}
        for seed in seeds:
            with_seed = values | {path: seed for path, default in defaults.items() if seed != default}
            ids[seed] = self._digest(with_seed, config, variant, extra)
        return ids

    def _digest(self, values: Flat, config: RunConfig, variant: str | None, extra: str = "") -> str:
        content = self.digests[variant] + self.encoders.get(config.model.encoder, "") + extra
        return identity(values, self.code, content)


def _extra_key(arm: str | None, variant: str | None) -> str:
    return f"arm {arm}" if variant is None else f"arm {arm} on {variant}"


def _is_no_look(looks: tuple[int, ...]) -> bool:
    """Whether a fixed number of seeds was declared that is too small for any claim about arms, which needs five."""
    return len(looks) == 1 and looks[0] < 5
