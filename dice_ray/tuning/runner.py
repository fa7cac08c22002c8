"""The one runner of sweeps and studies: the plan minus the ledger, in reused actors on Ray Tune.

Resuming, adding trials and skipping finished cells are one act. The Tuner is always new: the searcher hands out what
the ledger lacks, and the recorder appends to the ledger. Ray is started only when there is something to run, and joined
late, so that errors of the plan and the data are reported before anything starts.
"""

from __future__ import annotations

import gc
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.data.records import LoadReport
from dice_ray.errors import RunError, UnknownNameError
from dice_ray.files import lock, write_atomically
from dice_ray.models.encoder import weight_bytes
from dice_ray.output import redirected
from dice_ray.run import cluster, doctor, object_store, ray_internals
from dice_ray.run.build import prepare
from dice_ray.run.driver import Driver, Screen, TrialCounts, announce, end_driver, watched
from dice_ray.run.folder import LOG, PLAN, TRIALS, WARM_START
from dice_ray.tracking import schema
from dice_ray.tracking.reader import ended
from dice_ray.tracking.writer import Writer
from dice_ray.tuning.earlier import check
from dice_ray.tuning.estimate import measured_share
from dice_ray.tuning.ledger import Ledger, ledger_in
from dice_ray.tuning.plan import Plan, Schedule
from dice_ray.tuning.plan_file import store
from dice_ray.tuning.resources import disk_needed, shared

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

    from dice_ray.config.schema import RunConfig
    from dice_ray.tuning.recorder import Recorder


def run(plan: Plan, folder: Path, driver: Driver) -> TrialCounts:
    """Run the trials of a plan that its folder's ledger lacks.

    Returns:
        The counts, unfinished after Ctrl-C and at the end of `Driver.max_hours`.

    Raises:
        DiceRayError: Another driver is at work, or the plan cannot run. A trial's own failure is in the ledger.
    """
    notes = check(plan, folder, driver.address)
    with _session(plan, folder, driver, notes) as session:
        return session.run(session.plan.schedule(session.ledger, driver.address))


@dataclass(frozen=True)
class _Session:
    """The folder of a plan with its ledger, which this process drives."""

    plan: Plan
    folder: Path
    ledger: Ledger
    writer: Writer
    screen: Screen | None
    loaded: dict[str | None, LoadReport]
    driver: Driver
    end: Callable[[str], None]
    """Ends this process with a message, and its runs in MLflow if that answers."""

    def run(self, schedule: Schedule) -> TrialCounts:
        """Run trials, and after them the ones that `Schedule.then` returns."""
        from dice_ray.tuning.recorder import Recorder
        from dice_ray.tuning.search import CellSearcher

        stored, num_trials = self._ended_runs(), schedule.num_trials
        recorder = Recorder(self.plan, self.ledger, self.writer, schedule.ids)
        recorder.open(stored, self.driver.tags)
        self._record_data()
        lost: str | None = None
        try:
            with ExitStack() as stack:
                log, address = self.folder / LOG, self.driver.address
                started = cluster.started(address, num_cpus=self.driver.num_cpus, log=log)

                @cache
                def ray() -> cluster.Cluster:
                    announce(self.screen, address)
                    joined = stack.enter_context(started)
                    if not joined.is_own:
                        stack.enter_context(watched(joined, self._end_without_head))
                    doctor.check(joined, lambda: self._needs(joined, num_trials))
                    if self.plan.base().launch.min_workers:
                        ray_internals.start_coordinator()
                    return joined

                @cache
                def auto_gpus() -> float:
                    show = self.screen.show if self.screen else print
                    return measured_share(self.plan, self.folder, ray().nodes, show)

                has_ended = not num_trials or self._tune(
                    ray(), auto_gpus(), schedule.searcher, num_trials, recorder, schedule.scheduler
                )
                specs = schedule.then() if has_ended else []
                recorder.recount()  # placeholders in `ids` may have become reruns, of which some have ended before
                if specs:
                    self._tune(ray(), auto_gpus(), CellSearcher(specs), len(specs), recorder)
                lost = ray().lost if ray.cache_info().currsize else None
        finally:
            recorder.close()
        if recorder.failure is not None:
            raise RunError(
                f"{self.plan.name} was stopped where it could not record a trial or delete its files: "
                f"{recorder.failure}. Fix this, and `dice-ray resume {self.plan.name}` continues"
            )
        if recorder.unready is not None:
            raise RunError(
                f"a machine that joins the cluster must be ready for trials:\n  {recorder.unready}\n"
                f"Fix it or remove it from the cluster; `dice-ray resume {self.plan.name}` then continues"
            )
        if lost is not None:
            raise RunError(
                f"Ray must run until {self.plan.name} has ended, and its process {lost} was killed, as when "
                f"the machine has too little memory: `dice-ray resume {self.plan.name}` goes on from there"
            )
        counts = recorder.counts
        if self.screen is not None:
            self.screen.show(counts)
        return counts

    def _ended_runs(self) -> set[str]:
        """The ids of the runs that MLflow holds as ended; empty where it holds nothing or does not answer.

        Raises:
            RunError: Some are not of this folder.
        """
        try:
            stored = ended(self.plan.name)
        except (RunError, UnknownNameError):
            return set()
        if strange := self.plan.strangers(stored, self.ledger):
            first = ", ".join(sorted(strange)[:3]) + (", ..." if len(strange) > 3 else "")
            raise RunError(
                f"MLflow's experiment {self.plan.name!r} must hold the runs of {self.folder} alone, and holds "
                f"{len(strange)} that its ledger does not know ({first}): choose another name, or give the folder that "
                "has them its name back. If they are not needed any more, or their lines were deleted from the ledger, "
                f"delete them in MLflow and their folders in {self.folder / TRIALS}"
            )
        return stored

    @property
    def _configs(self) -> tuple[RunConfig, ...]:
        """One for each variant that is asked for, of which data and encoder are needed."""
        return tuple(self.plan.base(variant) for variant in self.loaded)

    def _needs(self, ray: cluster.Cluster, num_trials: int) -> doctor.Needs:
        """What the trials need on every machine."""
        configs = self._configs
        at_once = min(num_trials, shared(configs[0], ray.nodes, num_trials).slots(ray.nodes))
        weights = max(weight_bytes(config.model, prepare(config).tokenizer) for config in configs)
        return doctor.Needs(self.folder, configs, disk_needed(self.plan.num_kept(num_trials), at_once, weights))

    def _end_without_head(self) -> None:
        self.end(
            "dice-ray: the head of the Ray cluster does not answer any more. To continue, on this cluster or another:\n"
            f"  dice-ray resume {self.plan.name} --address HOST:PORT"
        )

    def _record_data(self) -> None:
        """Store with the parent run what was read for each variant, warnings of few items, and the arms left out."""
        plan, file = self.plan, self.folder / schema.DATA_FILE
        reports: dict[str | None, LoadReport] = {}
        if None not in plan.digests:
            # Also for the variants of earlier calls, whose cells the report shows beside those of this one.
            earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            reports = {variant: LoadReport.of(report) for variant, report in earlier.items()}
        reports |= self.loaded
        plain = {variant: report.plain() for variant, report in reports.items()}
        content = json.dumps(plain.get(None, plain), ensure_ascii=False, indent=2)
        write_atomically(file, content)
        self.writer.text(plan.name, schema.DATA_FILE, content)
        if few := _once_each({variant: report.few_items() or "" for variant, report in reports.items()}):
            self.writer.tags(plan.name, {schema.FEW_ITEMS: "\n".join(few)})
        if left_out := plan.left_out():
            text = json.dumps([asdict(each) for each in left_out], indent=2)
            self.writer.text(plan.name, schema.LEFT_OUT_FILE, text)

    def _tune(
        self,
        ray: cluster.Cluster,
        auto_gpus: float,
        searcher: Searcher,
        num_trials: int,
        recorder: Recorder,
        scheduler: TrialScheduler | None = None,
    ) -> bool:
        """Run trials; False if they were interrupted."""
        from ray import tune

        from dice_ray.tuning.callback import RecorderCallback, memory_reason
        from dice_ray.tuning.search import AsManyAsFit, CellSearcher, InOrder
        from dice_ray.tuning.trial import TrialActor, Work

        needs = shared(self.plan.base(), ray.nodes, num_trials, auto_gpus)
        admission = doctor.admission(ray, self._configs)
        work = Work(self.plan, self.folder.resolve(), needs.threads, needs.gpus, admission=admission)
        trainable = tune.with_parameters(TrialActor, work=work)
        tuner = tune.Tuner(
            tune.with_resources(trainable, needs.own),
            tune_config=tune.TuneConfig(
                search_alg=AsManyAsFit(searcher, needs, ray),
                scheduler=scheduler or InOrder(),
                num_samples=num_trials,
                reuse_actors=True,  # 0.5 s to the next trial's first step, not 3.5 s
                # By default Tune names the folder after all parameters.
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name=type(searcher).__name__,
                storage_path=str(ray.scratch),
                callbacks=[RecorderCallback(recorder, self.screen, self.driver, ray)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),  # trials write their own
                failure_config=tune.FailureConfig(max_failures=2),  # of an actor or a node
                verbose=0,  # the recorder's screen shows progress
                # In a notebook Tune's own one clears what the cell displays, even if it then reports nothing.
                progress_reporter=tune.CLIReporter(),
            ),
        )
        # Tune warns of each trial that has no file of its own with the results: they are in the ledger.
        logging.getLogger("ray.tune.analysis.experiment_analysis").setLevel(logging.ERROR)
        # The garbage collector would go through all that is imported by now again and again: .02 s for each trial.
        gc.collect()
        gc.freeze()
        try:
            with (
                ray_internals.out_of_memory_ends_a_trial_alone(memory_reason),
                ray_internals.starting_actors_kept(),
            ):
                tuner.fit()
        except KeyboardInterrupt:  # its frames hold handles of actors, which must be freed before Ray is shut down
            return False
        except Exception:
            if recorder.failure is None:  # else Tune's own error about what the recorder has raised
                raise
        finally:
            gc.unfreeze()
        if recorder.failure is not None:
            return False
        # With a new Tuner: in this one Tune has given the lost trials up for good.
        if lost := recorder.to_resubmit():
            return self._tune(ray, auto_gpus, CellSearcher(lost), len(lost), recorder)
        return True


@contextmanager
def _session(plan: Plan, folder: Path, driver: Driver, notes: Sequence[str]) -> Iterator[_Session]:
    """Drive a folder until the end of the block: data loaded, ledger read, output in the log, plan stored."""
    cluster.prepare(driver.address)  # before anything below imports Ray
    plan.check_code(plan.code)
    digests: dict[str | None, str] = {}
    loaded: dict[str | None, LoadReport] = {}
    for variant in plan.digests:
        prepared = prepare(plan.base(variant))
        digests[variant] = prepared.splits.digest
        test = [prepared.test()] if plan.split == "test" else []  # a search never reads the test split
        loaded[variant] = prepared.report(prepared.train, prepared.dev, *test)
    plan = plan.bound_to(digests)
    with (
        lock(folder),
        os.fdopen(os.dup(2), "w") as stderr,
        redirected(folder / LOG) as terminal,
        ExitStack() as stack,
        ExitStack() as screens,
    ):
        ledger = ledger_in(folder)
        plan = store(plan, folder)
        object_store.send_driven(folder, WARM_START, PLAN)
        writer = stack.enter_context(Writer(plan.name, folder=folder))
        screen = screens.enter_context(driver.show(terminal)) if driver.show else None
        if screen:
            reports = _once_each({variant: str(report) for variant, report in loaded.items()})
            for line in [*reports, *map(str, plan.left_out()), *notes, *driver.notes]:
                screen.show(line)

        end = partial(end_driver, stderr=stderr, screens=screens, writer=writer)
        yield _Session(plan, folder, ledger, writer, screen, loaded, driver, end)


def _once_each(texts: Mapping[str | None, str]) -> list[str]:
    """The lines of these texts, each text once; where texts differ, behind the names of the variants that have it."""
    variants: dict[str, list[str]] = {}
    for variant, text in texts.items():
        variants.setdefault(text, []).append(variant or "")
    lines = [(line, ", ".join(variants[text])) for text in variants for line in text.splitlines()]
    return [line if len(variants) == 1 or line.startswith(" ") else f"{names}: {line}" for line, names in lines]
