"""A sweep: Optuna's suggestions over a space, with early stopping; then its best configurations with other seeds.

A trial's own score is optimistic, since the search selected it by that score: so the best trials can be run again with
other seeds, and are then ranked by these reruns alone (`ranking`).
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from dice_ray import user_code
from dice_ray.config.checks import unfit
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, InputError, UnknownNameError, shown
from dice_ray.metrics.catalogue import metric
from dice_ray.run import cluster
from dice_ray.run.build import prepare
from dice_ray.run.folder import LEDGER, WARM_START
from dice_ray.settings import Flat, differing_paths, flat
from dice_ray.tracking import schema
from dice_ray.tuning import samplers
from dice_ray.tuning.ledger import History, Ledger, TrialSpec, ledger_in
from dice_ray.tuning.plan import Plan, Schedule, quickest_and_slowest
from dice_ray.tuning.ranking import best_in, ranked_in
from dice_ray.tuning.samplers import signed_metric
from dice_ray.tuning.space import Space, check_suggested
from dice_ray.user_code import Address

if TYPE_CHECKING:
    from dice_ray.tuning.search import SweepSearcher

_FIRST_SEED: Final = 1001
"""Seeds of reruns start here, beyond those of studies: a study must not compare on seeds that a search selected by."""


class SweepPlan(Plan):
    """A search.

    Attributes:
        space: The address of a function of a trial: `module:function` or `file.py:function`.
        trials: Number of configurations to try.
        sampler: `tpe`, `random`, `brute_force`, `nsga2`, or the address of a function that makes an Optuna sampler.
        scheduler: Early stopping: `asha`, `median`, `none`, or the address of a function that makes an Optuna pruner.
        objectives: Metrics of dev to search for together, and `seconds` of training, which is minimised; empty for the
            task's own metric alone.
        seed: Seed of the sampler, and `training.seed` of every trial.
        seeds: Number of other seeds that the best configurations are run with after the search.
        top: Number of these configurations.
        points: Parameters of the first trials; a parameter that is missing is sampled.
        warm_start: Name of the sweep whose trials are known from the start.
    """

    split = "dev"
    seeds_option = "--seed"
    kind: Literal["sweep"] = "sweep"
    space: Address
    trials: int = Field(ge=1, le=1_000_000)
    sampler: Address = "tpe"
    scheduler: Address = "asha"
    objectives: tuple[str, ...] = ()
    # The seeds of its reruns are higher by 1001 and more, and must be seeds of a run too.
    seed: int = Field(0, ge=0, lt=2**31 - 10_000)
    seeds: int = Field(0, ge=0)
    top: int = Field(5, ge=1)
    points: tuple[Flat, ...] = ()
    warm_start: str | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of its trials."""
        return [f"{number:04d}" for number in range(1, self.trials + 1)]

    def check(self, folder: Path) -> list[str]:
        self.base()
        user_code.load(self.space)
        # The cells of a study of this name are no trials; storing the plan refuses them.
        history = ledger_in(folder).searched()
        check_suggested([spec for spec in history.specs.values() if spec.arm is None], Space(self.space), folder)
        samplers.sampler(self.sampler, self.seed)
        samplers.pruner(self.scheduler)
        self._check_objectives()
        self._check_space()
        return samplers.notes(self.sampler, self.space, max(1, len(self.objectives)))

    def schedule(self, ledger: Ledger, address: str | None) -> Schedule:
        from dice_ray.tuning.search import PruningScheduler

        folder = ledger.path.parent
        if (source := self.sweep_to_copy(folder)) is not None:
            # Renamed once it is complete: a copy that was interrupted must not count as taken over.
            unfinished = folder / f"{WARM_START}.tmp"
            shutil.copyfile(source / LEDGER, unfinished)
            unfinished.replace(folder / WARM_START)
        searched = ledger.searched()
        searcher = self._searcher(searched, folder)
        num_missing = self.trials - len(searched.outcomes)
        if num_missing and self.is_exhausted(ledger, address):
            searcher.ids[:], num_missing = searched.specs, 0
        # The counts on the screen include the reruns from the start, although their trials are not known yet.
        searcher.ids += self.placeholder_ids()
        return Schedule(
            searcher,
            num_missing,
            searcher.ids,
            PruningScheduler(searcher),
            then=lambda: self._missing_reruns(ledger, searcher.ids),
        )

    def remaining(self, ledger: Ledger, address: str | None) -> tuple[int, int]:
        num_ended = len(ledger.searched().outcomes)
        missing = self.trials - num_ended
        if missing and self.sampler == "brute_force":
            missing = self._num_untried(ledger, missing, address)
        if missing:
            missing += len(self.model_copy(update={"trials": num_ended + missing}).placeholder_ids())
        else:
            missing = len([spec for spec in self.reruns(ledger) if spec.id not in ledger.outcomes])
        return missing, len(ledger.outcomes)

    def samples(self, ledger: Ledger) -> list[RunConfig]:
        """The quickest and slowest among some that the space suggests."""
        searched = ledger.searched()
        searcher = self._searcher(searched, None)
        num_drawn = min(self.trials - len(searched.outcomes), 16)
        suggested = [searcher.suggest(f"sample {number}") for number in range(num_drawn)]
        specs = [TrialSpec(**each) for each in suggested if str(each) != searcher.FINISHED]
        configs = []
        for spec in specs or self.reruns(ledger):
            with suppress(ConfigError):
                configs.append(self.config(spec))
        return quickest_and_slowest(configs) or [self.base()]

    def grown(
        self, ledger: Ledger, address: str | None, more_trials: int, seeds: int | None, top: int | None
    ) -> SweepPlan:
        if more_trials and self.is_exhausted(ledger, address):
            raise InputError(f"{self.name} has tried all that its space holds: no trial can be added")
        more = {"seeds": self.seeds if seeds is None else seeds, "top": self.top if top is None else top}
        if top is not None and not more["seeds"]:
            raise InputError(f"--top must come with --seeds, since {self.name} runs no trial again, got {top}")
        if more["seeds"] < self.seeds or (self.seeds and more["top"] < self.top):
            planned, got = f"{self.seeds} and {self.top}", f"{more['seeds']} and {more['top']}"
            raise InputError(f"--seeds and --top must be at least those of {self.name}, {planned}, got {got}")
        return self.checked(**(dict(self) | {"trials": self.trials + more_trials, **more}))

    def changed(self, stored: SweepPlan) -> list[str]:
        """What keeps it from extending a stored plan by trials, seeds, or more of the best: each value then and now.

        The time limit of a trial may change, as in a study, and so may the places where settings are written. Encoders
        are compared by `check_encoders`.
        """
        changed = []
        for name in sorted(type(self).model_fields.keys() - {"trial_timeout", "encoders"}):
            then, now = getattr(stored, name), getattr(self, name)
            grows = name in ("trials", "seeds", "top") and now > then
            if now == then or grows or (name == "top" and not stored.seeds):
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
            # A default may depend on what a trial sets.
            elif was.model_dump(exclude_unset=True, warnings=False) != base.model_dump(
                exclude_unset=True, warnings=False
            ):
                changed.append("the same settings, with other defaults written out")
        return changed

    def parent_tags(self) -> dict[str, str]:
        objectives = {schema.OBJECTIVES: " ".join(map(signed_metric, self.objectives))} if self.objectives else {}
        return {schema.KIND: self.kind} | objectives

    def description(self, metric: str) -> str:
        by = ", ".join(self.objectives) or metric
        return (
            f"Sweep on {self.base().data_name}: a search of the space `{self.space}` with the sampler "
            f"`{self.sampler}`, by {by}. The run `{self.name}` has the best score and the summary; its children are "
            f"the trials. `dice-ray report {self.name}` writes the report."
        )

    def trial_tags(self, trial: TrialSpec) -> dict[str, str]:
        tags = {schema.KIND: "trial", schema.SEED: str(trial.seed), schema.SEARCHED: " ".join(trial.params)}
        rerun = {} if trial.rerun_of is None else {schema.KIND: "rerun", schema.RERUN_OF: trial.rerun_of}
        return tags | rerun

    @property
    def stops_early(self) -> bool:
        return self.scheduler != "none"

    @property
    def has_best(self) -> bool:
        return not self.objectives

    def kept_metrics(self) -> list[str]:
        return [f"dev/{name}" for name in self.objectives if name != "seconds"]

    def retained(self, history: History) -> set[str] | None:
        """The best trial, and those that may be run again.

        More seeds may be asked for whenever the reruns have ended, and make another of these trials the best. A search
        for several objectives has no best trial and keeps all.
        """
        if self.objectives:
            return None
        candidates = [spec.id for spec in self._best_to_rerun(history)]
        return {id_ for id_ in (best_in(history), *candidates) if id_ is not None}

    def num_kept(self, num_runs: int) -> int:
        return num_runs if self.objectives else 1 + min(self.top, self.trials)

    def rerun_seeds(self) -> range:
        """The seeds of the reruns of its best configurations."""
        return range(_FIRST_SEED + self.seed, _FIRST_SEED + self.seed + self.seeds)

    def reruns(self, history: History) -> list[TrialSpec]:
        """The reruns of the best trials of a search, all of one seed before the next seed."""
        return [
            TrialSpec(id=f"{best.id}-{seed}", params=best.params, seed=seed, rerun_of=best.id)
            for seed in self.rerun_seeds()
            for best in self._best_to_rerun(history)
        ]

    def placeholder_ids(self) -> list[str]:
        """Ids that stand for the reruns until the search has ended: only then their trials are known."""
        num_best = min(self.top, self.trials)
        return [f"best {rank} seed {seed}" for seed in self.rerun_seeds() for rank in range(num_best)]

    def _best_to_rerun(self, history: History) -> list[TrialSpec]:
        """The best trials so far, of different configurations, by their own scores."""
        best: list[TrialSpec] = []
        for trial in ranked_in(history.searched()):
            spec = history.specs[trial.id]
            if len(best) < self.top and spec.params not in [other.params for other in best]:
                best.append(spec)
        return best

    def _missing_reruns(self, history: History, ids: list[str]) -> list[TrialSpec]:
        """The reruns that are missing once the search has ended; their ids then replace the placeholders."""
        placeholders = self.placeholder_ids()
        searched = [id_ for id_ in ids if id_ not in placeholders]
        if any(id_ not in history.outcomes for id_ in searched):
            return []
        reruns = self.reruns(history)
        ids[:] = [*searched, *(spec.id for spec in reruns)]
        return [spec for spec in reruns if spec.id not in history.outcomes]

    def _searcher(self, history: History, folder: Path | None) -> SweepSearcher:
        """A searcher for what a history lacks; with a folder it also knows the trials that the sweep was started from.

        It suggests batch sizes of at most the rows that are trained on, and losses that fit the task: others fail.
        """
        from dice_ray.tuning.search import SweepSearcher

        known = None
        if folder is not None and self.warm_start is not None:
            source = self.sweep_to_copy(folder)
            known = Ledger(folder / WARM_START if source is None else source / LEDGER).searched()
        base = self.base()
        prepared = prepare(base)
        return SweepSearcher(self, history, known, len(prepared.train.rows), unfit(base, prepared.facts))

    def is_exhausted(self, ledger: Ledger, address: str | None) -> bool:
        """Whether a sweep by brute force has tried every configuration of its space."""
        history = ledger.searched()
        if self.sampler != "brute_force" or history.unfinished or not (history.outcomes or self.warm_start):
            return False
        return not self._num_untried(ledger, 1, address)

    def _num_untried(self, ledger: Ledger, most: int, address: str | None) -> int:
        """How many trials a sweep by brute force still suggests, at most so many."""
        cluster.prepare(address)
        # Asked of a searcher, since only the sampler knows the size of a space with conditional parameters.
        plan = self.model_copy(update={"trials": self.trials + most})  # all ids of its own may be taken
        searcher = plan._searcher(ledger.searched(), ledger.path.parent)
        suggested = (str(searcher.suggest(f"trial {number}")) for number in range(most))
        return len(list(takewhile(lambda each: each != searcher.FINISHED, suggested)))

    def sweep_to_copy(self, folder: Path) -> Path | None:
        """The folder of the sweep to start from, until its ledger has been copied: then it is not needed any more."""
        is_copied = self.warm_start is None or (folder / WARM_START).exists()
        return None if is_copied else folder.parent / str(self.warm_start)

    def _check_objectives(self) -> None:
        """Each objective must be a metric of the task on dev, and all must be possible together."""
        if not self.objectives:
            return
        if len(set(self.objectives)) < max(2, len(self.objectives)):
            raise InputError(
                f"there must be at least two objectives, all different, got {', '.join(self.objectives)}: a search for "
                "one metric is set by the score of its task, as task.sentence_pair.score"
            )
        if self.scheduler != "none":
            raise InputError(f"a search for several objectives must have the scheduler none, got {self.scheduler}")
        if self.seeds:
            raise InputError(
                "a search for several objectives must leave out --seeds: it has no best trials to run again"
            )
        base = self.base()
        prepared = prepare(base)
        few = [row for row in prepared.dev.rows if row["record"] < 64]
        names = prepared.task.metric_names(prepared.dev.records, few, prepared.tokenizer, base.model)
        known = [*(name for name in names if metric(name).is_score), "seconds"]
        for name in self.objectives:
            if name not in known:
                raise UnknownNameError("objective", name, known)

    def _check_space(self) -> None:
        """One of some trials drawn at random must have a valid configuration; else the problems of one are raised."""
        drawn = [*samplers.drawn_at_random(Space(self.space))]
        if not any(drawn):
            raise InputError(
                f"the space {self.space} must suggest parameters, as trial.suggest_float does, and has none"
            )
        for params in drawn:
            try:
                self.config(TrialSpec(id="drawn", params=params, seed=self.seed))
            except ConfigError as error:
                refused = error
            else:
                return
        raise refused
