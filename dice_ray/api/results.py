"""The results of a run, sweep or study: its folder, its runs in MLflow, and its report."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import shipped
from dice_ray.api.best import Best, best_of
from dice_ray.api.reports import findings, report
from dice_ray.errors import InputError, RunError, ShadowedError, UnknownNameError
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
    """What `train` would do, from its first steps.

    Attributes:
        config: The configuration as YAML, with all defaults.
        folder: Of the run.
    """

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
        """One row for each run of its experiment, with parameters, tags and last metrics."""
        from dice_ray.tracking.reader import read

        return read(self.experiment)

    @property
    def best(self) -> Best:
        """The run, the best trial of the sweep, or the winner of the study.

        Raises:
            RunError: Nothing has a score, or the study has no winner or is on several data sets.
        """
        return self.trained or best_of(self.name, self.findings)

    @cached_property
    def findings(self) -> Findings:
        """What MLflow holds of its experiment, read once."""
        return findings(self.experiment)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What a finished study shows on each data set, encoder and variant; empty if MLflow lacks results."""
        if not self.is_study or self.waiting:
            return ()
        shipped.folder_of("analysis")
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
        from analysis.verdict.base import MoreSeeds

        arms = dict.fromkeys(arm for more in asked for arm in more.arms) if all(more.arms for more in asked) else ()
        return MoreSeeds(max(more.num for more in asked), tuple(arms))

    @property
    def next_study(self) -> list[str]:
        """The words of the command that would answer the question of a study; empty if it is answered."""
        from dice_ray.tuning import plan_file

        if not (more := self.more_seeds):
            return []
        command = plan_file.read(self.folder).growing_command
        return more.words(command) if command else []

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
    """Let a run, sweep or study end by Ctrl-C, SIGTERM or SIGHUP such that it can be resumed.

    Raises:
        Interrupted: It was interrupted.
    """
    from dice_ray.run.signals import stop_on_signals

    with stop_on_signals() as stop:
        try:
            yield stop
        except KeyboardInterrupt as error:
            raise Interrupted(Result(name, experiment, is_finished=False), stop.signal or signal.SIGINT) from error
