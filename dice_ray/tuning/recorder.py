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

import time
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property

from dice_ray.config.load import as_yaml
from dice_ray.errors import DiceRayError
from dice_ray.run import store
from dice_ray.run.build import objective
from dice_ray.run.driver import TrialCounts
from dice_ray.run.folder import GIVEN_UP, TRIALS, stored_digest, write_atomically
from dice_ray.run.ray_train import remove_leftover_group
from dice_ray.settings import Flat, flat
from dice_ray.tracking import environment, schema
from dice_ray.tracking.run_record import RunRecord
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import parent_run
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.parent_run import record_data
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.progress import best_arm, name_while_running, running_trial, seconds_left
from dice_ray.tuning.ranking import clean_up, retained
from dice_ray.tuning.samplers import SECONDS, metric_of
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.trial import SCORE, UNREADY, TrialResult


class Recorder:
    """Records each event of the trials of a plan.

    Args:
        plan: The sweep or study.
        ledger: Of its folder.
        writer: Of its experiment.
        ids: Of all its trials; the collection may shrink while the sweep runs.
    """

    def __init__(self, plan: SweepPlan | StudyPlan, ledger: Ledger, writer: Writer, ids: Collection[str]) -> None:
        self._plan, self._ledger, self._writer, self._ids = plan, ledger, writer, ids
        self._config = plan.base()
        self._trials = ledger.path.parent / TRIALS
        self._environment = environment.tags()
        self._objectives = plan.objectives if isinstance(plan, SweepPlan) else ()
        self._start = time.monotonic()
        self.recount()
        self._num_ended = 0  # by this driver, each attempt of a trial counted
        self._first_start: float | None = None
        self._started: dict[str, float] = {}
        self._running: dict[str, list[tuple[int, float, dict[str, float]]]] = {}
        self._records: dict[str, RunRecord] = {}
        self._to_resubmit: list[TrialSpec] = []
        self._retained = retained(plan, ledger) if isinstance(plan, SweepPlan) else set()
        self._find_best()
        self.unready: str | None = None
        """Why a machine that has joined later cannot run trials."""
        self.failure: str | None = None
        """Why an event could not be recorded; the callback sets it, and records no later event."""

    @property
    def counts(self) -> TrialCounts:
        """How many trials are in which state, the best score so far, and what runs."""
        score, params = self._best or (None, {})
        arm, num_seeds = "", 0
        if isinstance(self._plan, StudyPlan):
            score, arm, num_seeds = self._best_arm or (None, "", 0)
            params = {}
        now = time.monotonic()
        num_ended = self._states.total()
        since_first = now - (self._first_start or now)  # Ray may have taken longer to start than a trial
        specs = self._ledger.specs
        return TrialCounts(
            running=len(self._running),
            done=self._states["done"],
            failed=self._states["failed"],
            pruned=self._states["pruned"],
            total=len(self._ids),
            best_score=score,
            best_params=params,
            elapsed=now - self._start,
            best_arm=arm,
            num_seeds=num_seeds,
            seconds_left=seconds_left(self._num_ended, len(self._ids) - num_ended, since_first),
            trials=tuple(
                running_trial(name_while_running(specs[id_]), evaluations, now - self._started[id_])
                for id_, evaluations in self._running.items()
            ),
        )

    @cached_property
    def _best_arm(self) -> tuple[float, str, int] | None:
        """The best arm of a study; kept until the next cell ends."""
        assert isinstance(self._plan, StudyPlan), "a sweep has no arms"
        return best_arm(self._ledger, self._ids, self._plan.controls)

    def recount(self) -> None:
        """Count the ended trials of `ids`, which has changed; between two calls each event changes the counts."""
        outcomes = self._ledger.outcomes
        self._states = Counter[str](outcomes[id_].state for id_ in self._ids if id_ in outcomes)

    def open(self, stored: Collection[str], tags: Mapping[str, str] | None = None) -> None:
        """Open the parent run, and send MLflow the ended trials that it lacks.

        Args:
            stored: Ids of the runs that MLflow holds as ended.
            tags: The user's, of the parent run.
        """
        parent_run.opened(self._plan, self._writer, self._environment | environment.active_run() | dict(tags or {}))
        for outcome in self._ledger.outcomes.values():
            if outcome.id not in stored:
                record = self._open_run(self._ledger.specs[outcome.id])
                for (step, _), metrics in zip(outcome.curve, outcome.metrics, strict=True):
                    record.evaluated(step, metrics)
                self._end_run(outcome, {})

    def started(self, trial: TrialSpec) -> None:
        """A trial starts, or starts again and will report its history again."""
        if has_failed_before := trial.id in self._ledger.outcomes:
            self._states[self._ledger.outcomes[trial.id].state] -= 1
        if not self._ledger.is_running(trial.id):
            self._ledger.append(trial)
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
        self._ledger.append(outcome)
        self._states[outcome.state] += 1
        self._num_ended += 1
        if outcome.state == "failed":  # its evaluations do not count any more
            self._find_best()
        self.__dict__.pop("_best_arm", None)
        self._end_run(outcome, result.get("tags", {}))
        self._retained = clean_up(self._plan, self._ledger, self._trials, {id_} | self._retained)

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
        store.send(folder)  # the machine that starts it again may be another one

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
        clean_up(self._plan, self._ledger, self._trials, self._ledger.outcomes)
        counts = self.counts
        ended: schema.Status = "FAILED" if counts.failed == counts.total else "FINISHED"
        self._writer.end(self._plan.name, ended if counts.is_finished else "KILLED")

    def _find_best(self) -> None:
        self._best: tuple[float, Flat] | None = None
        for id_, outcome in self._ledger.outcomes.items():
            self._compare(self._ledger.specs[id_], outcome.score)
        for id_, evaluations in self._running.items():
            for _, score, _ in evaluations:
                self._compare(self._ledger.specs[id_], score)

    def _compare(self, trial: TrialSpec, score: float | None) -> None:
        is_better = score is not None and (self._best is None or score > self._best[0])
        if score is not None and is_better and trial.rerun_of is None:
            self._best = score, trial.params

    def _open_run(self, trial: TrialSpec) -> RunRecord:
        tags = {schema.KIND: "trial", schema.SEED: str(trial.seed), schema.SEARCHED: " ".join(trial.params)}
        name = trial.id
        if trial.rerun_of is not None:
            tags |= {schema.KIND: "rerun", schema.RERUN_OF: trial.rerun_of}
            name = f"{trial.rerun_of} seed {trial.seed}"
        if trial.arm is not None:
            tags = {schema.KIND: "cell", schema.SEED: str(trial.seed), schema.ARM: trial.arm}
            name = f"{trial.arm} seed {trial.seed}"
            if trial.variant is not None:
                tags[schema.VARIANT] = trial.variant
                name = f"{trial.variant}: {name}"
            if isinstance(self._plan, StudyPlan):
                origins = {
                    schema.SHARED: self._plan.shared,
                    schema.TUNED: self._plan.tuned.get(trial.arm),
                    schema.CONTROL: self._plan.controls.get(trial.arm),
                }
                tags |= {tag: origin for tag, origin in origins.items() if origin}
        try:
            config = self._plan.config(trial)
            params, config_yaml = flat(config), as_yaml(config)
            tags |= config.tags()
            name = name if trial.arm else f"{name} {config.loss.name}"
        except DiceRayError:  # the trial fails with this error, which is recorded then
            params, config_yaml = trial.params, None
        record = self._records[trial.id] = RunRecord(self._writer, trial.id)
        record.opened(name, params, tags | self._environment, config_yaml, parent=self._plan.name)
        return record

    def _end_run(self, outcome: TrialOutcome, tags: dict[str, str]) -> None:
        record, folder = self._records.pop(outcome.id), self._trials / outcome.id
        store.fetch(folder, checkpoints=False)
        if outcome.curve and (digest := stored_digest(folder)):
            record_data(record, self._plan.config(self._ledger.specs[outcome.id]), digest)
        failure = {} if outcome.failure is None else {schema.FAILURE: outcome.failure}
        counts = (folder / "test").glob("*.csv") if outcome.test else ()
        kept = [metric_of(name) for name in self._objectives if name != SECONDS]
        record.ended(
            "FAILED" if outcome.state == "failed" else "FINISHED",
            objective=objective(self._config),
            curve=outcome.curve,
            metrics=[dict.fromkeys(kept, 0.0) | each for each in outcome.metrics],  # as `objective_values`
            kept=kept,
            test=outcome.test,
            tags=tags | {schema.STATE: outcome.state} | failure,
            texts={f"test/{file.name}": file.read_text(encoding="utf-8") for file in counts},
        )
