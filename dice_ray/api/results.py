"""The results of a run, sweep or study: its folder, its runs in MLflow, its best, and its report."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dice_ray.api import library
from dice_ray.api.reports import findings, report, stored_comparison
from dice_ray.errors import InputError, RefusedError, RunError, ShadowedError, UnknownNameError, shortened
from dice_ray.files import runs_folder

if TYPE_CHECKING:
    import pandas as pd

    from analysis.figures.base import Figure
    from analysis.frames import Findings
    from analysis.report import Report
    from analysis.verdict.base import MoreSeeds, Verdict
    from dice_ray.run.rehearsal import Rehearsal
    from dice_ray.run.signals import Stop
    from dice_ray.tuning.estimate import Estimate


@dataclass(frozen=True)
class DryRun:
    """What `train` would do, from its first steps; `config` is YAML, with all defaults."""

    config: str
    folder: Path
    rehearsal: Rehearsal


@dataclass(frozen=True, repr=False)
class Result:
    """The results of a run, sweep or study: its folder, and its runs in MLflow.

    Attributes:
        name: Of its folder.
        experiment: In MLflow.
        is_finished: False where it was interrupted or `max_hours` were over; `resume` continues it.
        trained: The score of a run trained alone.
        is_study: Whether it is that of a finished study, which has a verdict.
        has_test: Whether the data of a run trained alone have a test split.
        estimate: What a sweep or study would take; of a dry run alone.
        rehearsal: What a run trained alone would do; of a dry run alone.
    """

    name: str
    experiment: str
    is_finished: bool = True
    trained: Best | None = None
    is_study: bool = False
    has_test: bool = False
    estimate: Estimate | None = None
    rehearsal: DryRun | None = None

    @property
    def folder(self) -> Path:
        """Its folder in that of all runs."""
        return runs_folder() / self.name

    @property
    def can_be_resumed(self) -> bool:
        """Whether anything is stored that `resume` continues."""
        from dice_ray.run.folder import can_be_resumed

        return can_be_resumed(self.folder)

    @property
    def log(self) -> Path:
        """The output of Ray, Optuna, MLflow and transformers."""
        from dice_ray.run.folder import LOG

        return self.folder / LOG

    @property
    def waiting(self) -> Path | None:
        """The file of records that MLflow lacks, if it was away; `send_waiting` sends it, as does `dice-ray runs`."""
        from dice_ray.tracking.spool import unsent_spools

        spools = unsent_spools(self.folder) if self.folder.is_dir() else ()
        return next((left.file for left in spools if left.is_of_this_store), None)

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each run of its experiment, with parameters, tags and last metrics.

        The columns are `id`, `parent` (the id of its sweep or study) and `name`; `kind`: run, sweep, trial, rerun,
        study or cell; `arm` and `seed`; `state`: done, pruned or failed, missing while it runs; `status`: that of
        MLflow; `start` and `end`; `artifacts`: the address of their folder. Then `params.PATH`: each setting,
        `metrics.NAME`: the last value of each metric (`metrics.dev/best_f1`: at the retained checkpoint), and
        `tags.NAME`, without our prefix.
        """
        from dice_ray.tracking.reader import read

        stored = stored_comparison(self.name)
        return read(self.experiment) if stored is None else stored

    @property
    def best(self) -> Best:
        """The run, the best trial of the sweep, or the winner of the study.

        Raises:
            RunError: Nothing has a score, or the study has no winner or is on several data sets.
        """
        return self.trained or _best_of(self.name, self.findings)

    @cached_property
    def findings(self) -> Findings:
        """What MLflow holds of its experiment, read once."""
        return findings(self.experiment)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What a finished study shows on each data set, encoder and variant; empty if MLflow lacks results."""
        if not self.is_study or self.waiting:
            return ()
        library.folder_of("analysis")
        from analysis.verdict import verdicts

        try:
            return verdicts(self.findings)
        except (RunError, UnknownNameError):
            return ()

    @property
    def headlines(self) -> tuple[str, ...]:
        """The outcome of each verdict in one sentence, as the report has it."""
        made = self.verdicts
        return tuple(f"On {each.place}: {each.headline}" if len(made) > 1 else each.headline for each in made)

    @property
    def more_seeds(self) -> MoreSeeds | None:
        """The seeds that would answer the question of a study, on each of its data sets; None if it is answered."""
        asked = [each.more for each in self.verdicts if each.more]
        if not asked:
            return None
        arms = dict.fromkeys(arm for more in asked for arm in more.arms) if all(more.arms for more in asked) else ()
        return replace(max(asked, key=lambda more: more.num or 0), arms=tuple(arms))

    @property
    def next_study(self) -> list[str]:
        """The words of the command that would answer the question of a study; empty if it is answered."""
        from dice_ray.tuning import plan_file
        from dice_ray.tuning.study import StudyPlan

        if not (more := self.more_seeds):
            return []
        plan = plan_file.read(self.folder)
        return more.words(plan.command) if isinstance(plan, StudyPlan) and plan.command else []

    def report(self) -> Report:
        """The report of its experiment."""
        return report(self.experiment)

    def figure(self, name: str | None = None) -> Figure:
        """A figure of its report by its name, by default the first one; a notebook displays it.

        Raises:
            UnknownNameError: There is no figure of that name.
        """
        figures = {figure.name: figure for figure in self.report().figures}
        if name is None and figures:
            return next(iter(figures.values()))
        if name is None or name not in figures:
            raise UnknownNameError(f"figure of {self.name}", name or "", figures)
        return figures[name]

    def __repr__(self) -> str:
        """Its name, its outcome as far as MLflow has it, and its folder."""
        dry = self.estimate if self.rehearsal is None else self.rehearsal.rehearsal
        if dry is not None:
            return f"{self.name}: a dry run; the whole takes about {dry.seconds:.0f} s"
        if not self.is_finished:
            return f"{self.name}: not finished, dice_ray.resume({self.name!r}) continues it"
        try:
            lines = self.headlines or (self.best.line,)
        except (RunError, UnknownNameError, InputError) as error:
            lines = (str(error),)
        return "\n".join([f"{self.name}: {' '.join(lines)}", f"in {self.folder}"])

    def _repr_html_(self) -> str | None:
        """Summary and tables of its report, for a notebook; None where it has none, as for a dry run."""
        if self.estimate or self.rehearsal:
            return None
        try:
            return self.report()._repr_html_()
        except (RunError, UnknownNameError, InputError, ShadowedError):
            return None  # MLflow is away or has no such run yet, or a package of the user's own is in the way


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or a closed terminal ended a run, sweep or study; what it had done is stored.

    Attributes:
        result: Of what was interrupted.
        status: The exit status of its command, 130, 143 or 129.
    """

    def __init__(self, result: Result, number: int) -> None:
        self.result, self.status = result, 128 + number
        how = f"`dice-ray resume {result.name}` continues it" if result.can_be_resumed else "nothing was stored yet"
        super().__init__(f"{result.name} was interrupted: {how}")


@contextmanager
def interruptible(name: str, experiment: str) -> Iterator[Stop]:
    """Let a run, sweep or study end by Ctrl-C, SIGTERM or SIGHUP such that it can be resumed: by `Interrupted`."""
    from dice_ray.run.signals import stop_on_signals

    with stop_on_signals() as stop:
        try:
            yield stop
        except KeyboardInterrupt as error:
            raise Interrupted(Result(name, experiment, is_finished=False), stop.signal or signal.SIGINT) from error


_ONE_CLASS: Final = (
    "predicts one class only: try more epochs (training.epochs), another rate (training.lr), model.head_bias=prior "
    "or another loss"
)


@dataclass(frozen=True)
class Best:
    """The best run, trial or arm.

    Attributes:
        name: The run's, as `predict` and `evaluate` take it, or the arm's.
        metric: Of a sweep and a run on dev, of a study on test.
        score: The best value; the mean of an arm, and of a trial that was run again with other seeds.
        settings: The parameters that the search chose, None for `null`; empty for a run and an arm.
        is_collapsed: Whether the model, without a fitted decision, predicts one class only.
        threshold: Of a run whose score is at the threshold fitted on dev, and whose predictions use it.
    """

    name: str
    metric: str
    score: float
    settings: dict[str, Any] = field(default_factory=dict)
    is_collapsed: bool = False
    threshold: float | None = None

    @property
    def line(self) -> str:
        """One line of text."""
        settings = ", ".join(f"{path} {shortened(value)}" for path, value in self.settings.items())
        at = "" if self.threshold is None else f" (threshold {self.threshold:.2g})"
        line = f"{self.name} has {self.metric} {self.score:.4f}{at}{f' with {settings}' if settings else ''}."
        if not self.is_collapsed:
            return line
        if not self.metric.endswith("_tuned"):
            return f"{line} It {_ONE_CLASS}; a threshold tuned on dev may already help."
        if self.threshold == 0.5:
            return f"{line} It {_ONE_CLASS}."
        if self.threshold is None:
            return f"{line} Untuned, it {_ONE_CLASS}."
        return f"{line} At .5 it predicts one class only; predictions use the threshold fitted on dev."


def _best_of(name: str, found: Findings) -> Best:
    """The best trial of a sweep, or the winner of a study."""
    from analysis.frames import has_objectives
    from analysis.sweep import best_trial
    from analysis.verdict import verdicts

    if made := verdicts(found):
        if len(made) > 1:
            places = ", ".join(each.place for each in made)
            raise RefusedError(
                f"the best arm must be that of one data set, and {name} compares on {places}: see its report"
            )
        (verdict,) = made
        if verdict.best is None:
            raise RefusedError(f"the best arm must be a winner, and {name} has none: {verdict.headline}")
        arm, score = verdict.best
        return Best(arm, verdict.metric, score)
    trial = best_trial(found)
    if trial is None:
        if has_objectives(found.frame):
            raise RefusedError(f"{name} searched for several objectives, and has no best trial: see its Pareto front")
        raise RefusedError(f"the best trial must have a score, and no trial of {name} has one")
    # The frame holds NumPy's numbers, which JSON and YAML do not take.
    settings = {path: value.item() if hasattr(value, "item") else value for path, value in trial.settings.items()}
    return Best(f"{name}/{trial.id}", trial.metric, trial.score, settings, trial.is_collapsed)
