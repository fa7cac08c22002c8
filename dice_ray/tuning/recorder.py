"""Records what trials do: in the ledger first, then in MLflow, then on the screen.

`Recorder` has one method for each event in the life of a trial; `callback.py` translates Ray Tune's events into them.
The order of the three records is an invariant: after a crash the ledger holds everything that MLflow holds, and `open`
sends MLflow what it lacks.

Ray's events race (Ray 2.60), so the methods accept more than one order:

- An actor that is lost is retried: the trial starts again without having ended, and reports its history again. Metrics
  in MLflow are unique by run, metric and step, and the recorder takes the second history in place of the first.
- A trial may be given up before it has a process to start in (`lost` without `started`). Tune does so at once when a
  warm actor dies while it is prepared for its next trial, however often a trial may be retried. Such a trial is run
  again after the others (`to_resubmit`).
- Inside `on_trial_complete` Tune still counts the trial as running; so the counts are read from the ledger.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

from dice_ray.config.load import as_yaml
from dice_ray.errors import DiceRayError
from dice_ray.files import write_atomically
from dice_ray.metrics.catalogue import best_evaluation, gain
from dice_ray.run import object_store
from dice_ray.run.build import objective
from dice_ray.run.driver import RunningTrial, TrialCounts
from dice_ray.run.folder import ENCODER, GIVEN_UP, LEDGER, TRIALS, stored_digest
from dice_ray.run.ray_train import remove_leftover_group
from dice_ray.settings import Flat, flat
from dice_ray.tracking import schema
from dice_ray.tracking.record import RunRecord, active_run_tag, environment_tags
from dice_ray.tracking.writer import Writer
from dice_ray.training.checkpoint import BEST, RESUME_FILES
from dice_ray.tuning import plan_file
from dice_ray.tuning.cells import RESULTS_VERSION
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan import Plan
from dice_ray.tuning.trial import SCORE, UNREADY, TrialResult


class Recorder:
    """Records each event of the trials of a plan; the collection of their ids may shrink while a sweep runs."""

    def __init__(self, plan: Plan, ledger: Ledger, writer: Writer, ids: Collection[str]) -> None:
        self._plan, self._ledger, self._writer, self._ids = plan, ledger, writer, ids
        self._config = plan.base()
        self._objective = objective(self._config)
        self._trials = ledger.path.parent / TRIALS
        self._environment = environment_tags()
        self._start = time.monotonic()
        self.recount()
        self._num_ended = 0  # by this driver, each attempt of a trial counted
        self._first_start = self._last_end = 0.0  # Ray may take longer to start than a trial
        self._started: dict[str, float] = {}
        self._running: dict[str, list[tuple[int, float, dict[str, float]]]] = {}
        self._records: dict[str, RunRecord] = {}
        self._to_resubmit: list[TrialSpec] = []
        self._retained = plan.retained(ledger) or set()
        self._find_best()
        self.unready: str | None = None
        """Why a machine that has joined later cannot run trials."""
        self.failure: str | None = None
        """Why an event could not be recorded; the callback sets it, and records no later event."""

    @property
    def counts(self) -> TrialCounts:
        """How many trials are in which state, the best score so far, and what runs."""
        score, params = self._best or (None, {})
        score, arm, num_seeds = self._best_arm or (score, "", 0)
        now = time.monotonic()
        seconds_left = None
        if self._num_ended:  # from the last end on, the trials that are left end as often as the others
            seconds_each = (self._last_end - self._first_start) / self._num_ended
            num_left = len(self._ids) - self._states.total()
            seconds_left = max(0.0, self._last_end + num_left * seconds_each - now)
        return TrialCounts(
            running=len(self._running),
            done=self._states["done"],
            failed=self._states["failed"],
            pruned=self._states["pruned"],
            total=len(self._ids),
            best_score=None if score is None else gain(self._objective, score),
            best_params=params,
            elapsed=now - self._start,
            best_arm=arm,
            num_seeds=num_seeds,
            seconds_left=seconds_left,
            trials=tuple(self._running_trial(id_, now) for id_ in self._running),
        )

    def _running_trial(self, id_: str, now: float) -> RunningTrial:
        trial, seconds = self._ledger.specs[id_], now - self._started[id_]
        name = trial.name if trial.arm is not None else f"{trial.name} {trial.params.get('loss', '')}".strip()
        if not self._running[id_]:
            return RunningTrial(name, seconds)
        step, score, metrics = self._running[id_][-1]
        return RunningTrial(name, seconds, step, metrics.get("train/loss"), gain(self._objective, score))

    @cached_property
    def _best_arm(self) -> tuple[float, str, int] | None:
        """The best arm of a study; kept until the next cell ends."""
        return self._plan.best_arm(self._ledger, self._ids)

    def recount(self) -> None:
        """Count the ended trials of `ids`, which has changed; between two calls each event changes the counts."""
        outcomes = self._ledger.outcomes
        self._states = Counter[str](outcomes[id_].state for id_ in self._ids if id_ in outcomes)

    def open(self, stored: Collection[str], tags: Mapping[str, str] | None = None) -> None:
        """Open the parent run with the user's tags, and send MLflow the ended trials that are not stored there."""
        self._open_parent(self._environment | active_run_tag() | dict(tags or {}))
        for spec, outcome in self._ledger.ended:  # in the order of their start, by which equal trials are ranked
            if outcome.id not in stored:
                record = self._open_run(spec)
                for (step, _), metrics in zip(outcome.curve, outcome.metrics, strict=True):
                    record.evaluated(step, metrics)
                self._end_run(outcome, {})

    def started(self, trial: TrialSpec) -> None:
        """A trial starts, or starts again and will report its history again."""
        if has_failed_before := trial.id in self._ledger.outcomes:
            self._states[self._ledger.outcomes[trial.id].state] -= 1
        if not self._ledger.is_running(trial.id):
            self._append(trial)
        self._running[trial.id], self._started[trial.id] = [], time.monotonic()
        self._first_start = self._first_start or self._started[trial.id]
        self._open_run(trial)
        if has_failed_before:
            self._writer.tags(trial.id, {schema.FAILURE: ""})

    def reported(self, id_: str, result: TrialResult) -> None:
        """A trial was evaluated; the report of a failure is left to `ended`."""
        if "failure" in result:
            return
        if UNREADY in result:
            self.unready = result[UNREADY]
            return
        self._running[id_].append((result["step"], result[SCORE], result["metrics"]))
        self._records[id_].evaluated(result["step"], result["metrics"])
        self._compare(self._ledger.specs[id_], result[SCORE])

    def ended(self, id_: str, result: TrialResult, error: str | None = None) -> None:
        """A trial was done, stopped early, or failed."""
        if UNREADY in result:
            return
        evaluations = self._running.pop(id_)
        del self._started[id_]
        failure = error or result.get("failure")
        outcome = TrialOutcome(
            id=id_,
            state="failed" if failure else "done" if result.get("finished") else "pruned",
            curve=tuple((step, score) for step, score, _ in evaluations),
            metrics=tuple(metrics for *_, metrics in evaluations),
            test=result.get("test", {}),
            failure=failure,
        )
        self._append(outcome)
        self._states[outcome.state] += 1
        self._num_ended += 1
        self._last_end = time.monotonic()
        if outcome.state == "failed":  # its evaluations do not count any more
            self._find_best()
        self.__dict__.pop("_best_arm", None)
        self._end_run(outcome, result.get("tags", {}))
        self._retained = _clean_up(self._plan, self._ledger, self._trials, {id_} | self._retained)

    def lost(self, trial: TrialSpec, reason: str, *, is_final: bool = True) -> None:
        """Ray gave up a trial, perhaps before it started; one that was lost without its own fault is run again."""
        if trial.id not in self._running:
            self.started(trial)
        if is_final:
            remove_leftover_group(self._trials / trial.id)  # no other attempt does
            self.ended(trial.id, {}, reason)
        else:
            self._to_resubmit.append(trial)

    def given_up(self, id_: str, reason: str) -> None:
        """A trial was lost by its own fault: it fails for this reason when Ray starts it again."""
        folder = self._trials / id_
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / GIVEN_UP, reason)
        object_store.send(folder)  # the machine that starts it again may be another one

    def to_resubmit(self) -> list[TrialSpec]:
        """Lost trials to submit again; empty while other trials have not ended, as after Ctrl-C."""
        if self._running.keys() != {trial.id for trial in self._to_resubmit}:
            return []
        trials, self._to_resubmit = self._to_resubmit, []
        return trials

    def close(self) -> None:
        """End the runs that are still open as KILLED: they can be resumed. The parent failed if all of its runs did.

        After a failure all of this is left to the writer and the next driver: the disk may still be full.
        """
        if self.failure is not None:
            return
        for id_ in self._running:
            self._writer.end(id_, "KILLED")
        _clean_up(self._plan, self._ledger, self._trials, self._ledger.outcomes)
        counts = self.counts
        ended: schema.Status = "FAILED" if counts.failed == counts.total else "FINISHED"
        self._writer.end(self._plan.name, ended if counts.is_finished else "KILLED")

    def _append(self, event: TrialSpec | TrialOutcome) -> None:
        self._ledger.append(event)
        object_store.send_driven(self._ledger.path.parent, LEDGER)

    def _find_best(self) -> None:
        self._best: tuple[float, Flat] | None = None
        for id_, outcome in self._ledger.outcomes.items():
            self._compare(self._ledger.specs[id_], outcome.score)
        for id_, evaluations in self._running.items():
            for _, score, _ in evaluations:
                self._compare(self._ledger.specs[id_], score)

    def _compare(self, trial: TrialSpec, score: float | None) -> None:
        is_better = score is not None and (self._best is None or score > self._best[0])
        # A rerun stands for the trial that it repeats, and a cell for its arm.
        if score is not None and is_better and trial.rerun_of is None and trial.arm is None:
            self._best = score, trial.params

    def _open_parent(self, more_tags: Mapping[str, str]) -> None:
        """Open the parent run, or resume it, and describe its experiment."""
        plan, writer = self._plan, self._writer
        metric = objective(self._config, plan.split)
        tags = plan.parent_tags() | {schema.METRIC: metric, schema.RESULTS_VERSION: str(RESULTS_VERSION)}
        left_out = {"name", "kind", "layers", "arms", "variants", "tuned_settings", "controls", "code", "command"}
        left_out |= {"asked", "shared_settings", "extra", "space", "spaces"}
        parent = RunRecord(writer, plan.name)
        parent.opened(plan.name, plan.model_dump(mode="json", exclude=left_out), {**tags, **more_tags})
        writer.describe(plan.name, plan.description(metric))
        # A report names the command that reruns all that it shows, not only what was asked for last.
        writer.text(plan.name, schema.PLAN_FILE, plan_file.as_yaml(plan.whole()))
        for variant, digest in plan.digests.items():
            if digest:
                config = plan.base(variant)
                parent.data(config.data_name, digest, config.data.source)

    def _open_run(self, trial: TrialSpec) -> RunRecord:
        tags = self._plan.trial_tags(trial)
        try:
            config = self._plan.config(trial)
            params, config_yaml = flat(config), as_yaml(config)
            tags |= config.tags()
        except DiceRayError:  # the trial fails with this error, which is recorded then
            params, config_yaml = trial.params, None
        record = self._records[trial.id] = RunRecord(self._writer, trial.id)
        name = f"{self._plan.name}/{trial.name}"  # as commands take it
        record.opened(name, params, tags | self._environment, config_yaml, parent=self._plan.name)
        return record

    def _end_run(self, outcome: TrialOutcome, tags: dict[str, str]) -> None:
        record, folder = self._records.pop(outcome.id), self._trials / outcome.id
        object_store.fetch(folder, checkpoints=False)
        if outcome.curve and (digest := stored_digest(folder)):
            config = self._plan.config(self._ledger.specs[outcome.id])
            record.data(config.data_name, digest, config.data.source)
        failure = {} if outcome.failure is None else {schema.FAILURE: outcome.failure}
        counts = (folder / "test").glob("*.csv") if outcome.test else ()
        kept = self._plan.kept_metrics()
        best: tuple[int, dict[str, float]] | None = None
        if outcome.curve:
            index = best_evaluation([score for _, score in outcome.curve], outcome.metrics)
            # As `samplers.objective_values`.
            best = outcome.curve[index][0], dict.fromkeys(kept, 0.0) | outcome.metrics[index]
        record.ended(
            "FAILED" if outcome.state == "failed" else "FINISHED",
            objective=self._objective,
            best=best,
            kept=kept,
            test=outcome.test,
            tags=tags | {schema.STATE: outcome.state} | failure,
            texts={f"test/{file.name}": file.read_text(encoding="utf-8") for file in counts},
        )


def _clean_up(plan: Plan, ledger: Ledger, trials: Path, ids: Collection[str]) -> set[str]:
    """Delete the files of these ended trials that no command reads any more.

    A trial that will be tried again in its folder, as a failed cell of a study, keeps all of its files.

    Returns:
        The trials whose checkpoints are kept and may go when the next trial ends; none where all checkpoints are kept.
    """
    # Among these trials as among all: ranking thousands would take longer than ending a trial.
    kept = plan.retained(ledger.with_reruns(ids))
    for id_ in ids:
        if plan.is_final(ledger.outcomes[id_]):
            is_kept = kept is None or id_ in kept
            _delete(trials / id_, RESUME_FILES if is_kept else (*RESUME_FILES, BEST, ENCODER))
    return kept or set()


def _delete(folder: Path, names: Collection[str]) -> None:
    if folder.is_symlink():  # what it points to may be no folder of a trial
        return
    object_store.delete(folder, names)
    for path in (folder / name for name in names):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
