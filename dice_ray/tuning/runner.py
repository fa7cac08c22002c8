"""The one runner of sweeps and studies: the plan minus the ledger, in warm actors on Ray Tune."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import cluster, launch
from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
from dice_ray.tuning.demand import demand
from dice_ray.tuning.ledger import Begun, Ledger, driving
from dice_ray.tuning.plan import StudyPlan, SweepPlan
from dice_ray.tuning.plan_file import store

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

    from dice_ray.data.records import LoadReport
    from dice_ray.run.driver import Show
    from dice_ray.tuning.callback import Recorder
    from dice_ray.tuning.progress import Progress, Screen

LEFT_OUT = "left_out.json"
"""The artifact of a study that lists the arms which are not run on a variant, and why."""


@dataclass(frozen=True)
class Session:
    """A folder with its plan and ledger, driven by this process."""

    plan: SweepPlan | StudyPlan
    folder: Path
    ledger: Ledger
    writer: Writer
    screen: Screen | None
    loaded: dict[str | None, LoadReport]
    address: str | None
    num_cpus: int | None
    max_hours: float | None

    def fit(
        self,
        searcher: Searcher,
        scheduler: TrialScheduler | None,
        *,
        missing: int,
        ids: Collection[str],
        then: Callable[[], list[Begun]] = list,
    ) -> Progress:
        """Run the missing ones of these trials, and after them the cells that `then` tells; returns how far it came."""
        from dice_ray.tuning.callback import Recorder
        from dice_ray.tuning.searchers import CellSearcher

        stored = _stored(self.plan.name)
        if strangers := stored - self.ledger.begun.keys() - {self.plan.name}:
            raise RunError(
                f"MLflow's experiment {self.plan.name!r} must hold the runs of {self.folder} alone, and holds "
                f"{len(strangers)} that its ledger does not know: choose another name"
            )
        recorder = Recorder(self.plan, self.ledger, self.writer, ids)
        recorder.open(stored)
        self._tell_data()
        try:
            with ExitStack() as stack:
                ray = cache(lambda: stack.enter_context(self._started()))
                if missing:
                    self._run(ray(), searcher, scheduler, missing, recorder)
                if cells := then():
                    self._run(ray(), CellSearcher(cells), None, len(cells), recorder)
        finally:
            recorder.close()
        progress = recorder.progress
        if self.screen is not None:
            self.screen.show(progress)
        return progress

    def _started(self) -> AbstractContextManager[cluster.Cluster]:
        log = self.folder / "log.txt"
        return cluster.started(self.address, num_cpus=self.num_cpus, log=log, folder=self.folder)

    def _tell_data(self) -> None:
        """What was read, of each variant where there are several, and what is left out."""
        plan, told = self.plan, {variant: report.plain() for variant, report in self.loaded.items()}
        data = told if isinstance(plan, StudyPlan) and plan.variants else told[None]
        self.writer.text(plan.name, "data.json", json.dumps(data, ensure_ascii=False, indent=2))
        if isinstance(plan, StudyPlan) and (left_out := plan.left_out()):
            self.writer.text(plan.name, LEFT_OUT, json.dumps([asdict(each) for each in left_out], indent=2))

    def _run(
        self,
        ray: cluster.Cluster,
        searcher: Searcher,
        scheduler: TrialScheduler | None,
        missing: int,
        recorder: Recorder,
    ) -> None:
        from ray import tune

        from dice_ray.tuning.callback import RecorderCallback
        from dice_ray.tuning.searchers import CellSearcher
        from dice_ray.tuning.trial import Trial, Work

        needs = demand(self.plan.base())
        trainable = tune.with_parameters(Trial, work=Work(self.plan, self.folder.resolve()))
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": needs.own, "gpu": needs.own_gpus}),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=scheduler,
                num_samples=missing,
                max_concurrent_trials=needs.slots(ray.nodes),
                reuse_actors=True,
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name=type(searcher).__name__,
                storage_path=str(ray.scratch),
                callbacks=[RecorderCallback(recorder, self.screen, self.max_hours)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                failure_config=tune.FailureConfig(max_failures=2),  # a lost actor or node
                verbose=0,
            ),
        )
        tuner.fit()
        if again := recorder.again():
            self._run(ray, CellSearcher(again), None, len(again), recorder)


@contextmanager
def session(
    plan: SweepPlan | StudyPlan,
    folder: Path,
    *,
    address: str | None,
    num_cpus: int | None,
    max_hours: float | None = None,
    show: Show | None,
    notes: Sequence[str] = (),
) -> Iterator[Session]:
    """Drive a folder: its plan stored, its ledger read, Ray about to be imported, and all that speaks on the log."""
    cluster.prepare(address)
    digests: dict[str | None, str] = {}
    loaded: dict[str | None, LoadReport] = {}
    for variant in plan.digests:
        prepared = launch.prepare(plan.base(variant))  # the data's mistakes are told before anything starts
        digests[variant] = prepared.splits.digest
        scored = [prepared.test()] if isinstance(plan, StudyPlan) else []  # a search sees no test split
        loaded[variant] = prepared.report(prepared.train, prepared.dev, *scored)
    plan = plan.on(digests)
    with driving(folder) as ledger, cluster.quiet(folder / "log.txt") as terminal, ExitStack() as stack:
        plan = store(plan, folder)
        if show:
            of_variants = [f"{report}" if name is None else f"{name}: {report}" for name, report in loaded.items()]
            left_out = plan.left_out() if isinstance(plan, StudyPlan) else []
            terminal.writelines(f"{said}\n" for said in [*of_variants, *left_out, *notes])
        writer = stack.enter_context(Writer(plan.name, folder=folder))
        screen = stack.enter_context(show(terminal)) if show else None
        yield Session(plan, folder, ledger, writer, screen, loaded, address, num_cpus, max_hours)


def _stored(experiment: str) -> set[str]:
    """The ids of the runs that MLflow holds as ended; none where it holds or answers nothing."""
    try:
        runs = read(experiment)
    except (RunError, UnknownNameError):
        return set()
    return set(runs.loc[runs["status"].isin(("FINISHED", "FAILED")), "id"])
