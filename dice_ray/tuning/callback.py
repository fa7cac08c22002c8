"""Notes what trials do: in the ledger first, then in MLflow, then on the screen."""

from __future__ import annotations

import math
import signal
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from dice_ray import launch, trained
from dice_ray.config.load import as_yaml
from dice_ray.config.schema import RunConfig
from dice_ray.data.sources import describe
from dice_ray.errors import DiceRayError
from dice_ray.settings import Flat, flat, nested
from dice_ray.tracking import schema, surroundings
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import kept, objectives, plan_file
from dice_ray.tuning.ledger import Begun, Ended, Ledger
from dice_ray.tuning.plan import RESULTS_VERSION, StudyPlan, SweepPlan
from dice_ray.tuning.progress import Progress, Screen
from dice_ray.tuning.trial import SCORE, Result


class Recorder:
    """Notes each event of trials once."""

    def __init__(self, plan: SweepPlan | StudyPlan, ledger: Ledger, writer: Writer, ids: Collection[str]) -> None:
        self._plan, self._ledger, self._writer, self._ids = plan, ledger, writer, ids
        self._config = plan.base()
        self._trials = ledger.path.parent / "trials"
        self._made_with = surroundings.tags()
        self._objectives = plan.objectives if isinstance(plan, SweepPlan) else ()
        self._since = time.monotonic()
        self._running: dict[str, list[tuple[int, float, dict[str, float]]]] = {}
        self._again: list[Begun] = []
        self._kept = kept.chosen(plan, ledger) if isinstance(plan, SweepPlan) else set()
        self._best: tuple[float, Flat] | None = None
        for ended in ledger.ended.values():
            self._compare(ledger.begun[ended.id], ended.score)

    @property
    def progress(self) -> Progress:
        states = Counter(self._ledger.ended[id_].state for id_ in self._ids if id_ in self._ledger.ended)
        score, params = self._best or (None, {})
        return Progress(
            running=len(self._running),
            done=states["done"],
            failed=states["failed"],
            pruned=states["pruned"],
            total=len(self._ids),
            best_score=score,
            best_params=params,
            elapsed=time.monotonic() - self._since,
        )

    def open(self, stored: Collection[str]) -> None:
        """Open the parent run, and send what ended in the ledger and is not stored as ended."""
        plan = self._plan
        tags = {
            schema.KIND: plan.kind,
            schema.METRIC: launch.objective(self._config, "dev" if isinstance(plan, SweepPlan) else "test"),
            schema.RESULTS_VERSION: str(RESULTS_VERSION),
        }
        if isinstance(plan, StudyPlan):
            tags[schema.BASELINE] = plan.baseline
        if named := self._objectives:
            tags[schema.OBJECTIVES] = " ".join(objectives.signed(name) for name in named)
        params = plan.model_dump(mode="json", exclude={"name", "kind", "layers", "arms", "variants"})
        self._writer.open(plan.name, name=plan.name, params=params, tags=tags | self._made_with)
        self._writer.text(plan.name, "plan.yaml", plan_file.as_yaml(plan))
        for variant, digest in plan.digests.items():
            if digest:
                self._tell_data(plan.name, plan.base(variant), digest)
        for ended in self._ledger.ended.values():
            if ended.id not in stored:
                self._open_run(self._ledger.begun[ended.id])
                for (step, _), metrics in zip(ended.curve, ended.metrics, strict=True):
                    self._writer.metrics(ended.id, step, metrics)
                self._end_run(ended)

    def begin(self, trial: Begun) -> None:
        """A trial begins, or begins again: it then tells its history again."""
        is_retried = trial.id in self._ledger.ended
        if trial not in self._ledger.open:
            self._ledger.append(trial)
        self._running[trial.id] = []
        self._open_run(trial)
        if is_retried:
            self._writer.tags(trial.id, {schema.FAILURE: ""})

    def result(self, id_: str, result: Result) -> None:
        if "failure" in result:
            return
        self._running[id_].append((result["step"], result[SCORE], result["metrics"]))
        self._writer.metrics(id_, result["step"], result["metrics"])
        self._compare(self._ledger.begun[id_], result[SCORE])

    def end(self, id_: str, result: Result, error: str | None = None) -> None:
        told = self._running.pop(id_)
        failure = error or result.get("failure")
        ended = Ended(
            id=id_,
            state="failed" if failure else "done" if result.get("finished") else "pruned",
            curve=tuple((step, score) for step, score, _ in told),
            metrics=tuple(metrics for *_, metrics in told),
            test=result.get("test", {}),
            failure=failure,
        )
        self._ledger.append(ended)
        self._writer.tags(id_, result.get("hardware", {}))
        self._end_run(ended)
        self._kept = kept.tidy(self._plan, self._ledger, self._trials, {id_} | self._kept)

    def lose(self, trial: Begun, reason: str, *, is_over: bool = True) -> None:
        """Ray gave a trial up, maybe before it had a process to begin in; one that is not over is run again."""
        if trial.id not in self._running:
            self.begin(trial)
        if is_over:
            self.end(trial.id, {}, reason)
        else:
            self._again.append(trial)

    def again(self) -> list[Begun]:
        """The trials to run again, told once: none where others have not ended, as after Ctrl-C."""
        if self._running.keys() != {trial.id for trial in self._again}:
            return []
        again, self._again = self._again, []
        return again

    def close(self) -> None:
        """End the runs that are still open: what is not finished can be resumed."""
        for id_ in self._running:
            self._writer.end(id_, "KILLED")
        kept.tidy(self._plan, self._ledger, self._trials, self._ledger.ended)
        self._writer.end(self._plan.name, "FINISHED" if self.progress.is_finished else "KILLED")

    def _compare(self, trial: Begun, score: float | None) -> None:
        is_better = score is not None and (self._best is None or score > self._best[0])
        if score is not None and is_better and trial.rerun_of is None:
            self._best = score, trial.params

    def _open_run(self, trial: Begun) -> None:
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
            if isinstance(self._plan, StudyPlan) and trial.arm in self._plan.tuned:
                tags[schema.TUNED] = self._plan.tuned[trial.arm]
        try:
            config = self._plan.config(trial)
            params, written = flat(config), as_yaml(config)
            tags |= config.tags()
            name = name if trial.arm else f"{name} {config.loss.name}"
        except DiceRayError:  # it ends as failed, and says why
            params, written = trial.params, None
        self._writer.open(trial.id, name=name, params=params, tags=tags | self._made_with, parent=self._plan.name)
        if written is not None:
            self._writer.text(trial.id, trained.CONFIG, written)

    def _end_run(self, ended: Ended) -> None:
        tags: dict[str, str] = {schema.STATE: ended.state}
        if ended.failure is not None:
            tags[schema.FAILURE] = ended.failure
        if ended.score is not None:
            objective = launch.objective(self._config)
            _, checkpoint = max(zip(ended.curve, ended.metrics, strict=True), key=lambda told: told[0][1])
            several = [objectives.metric(name) for name in self._objectives if name != objectives.SECONDS]
            best = {schema.best_metric(objective): ended.score}
            best |= {schema.kept_metric(metric): checkpoint[metric] for metric in several if metric in checkpoint}
            self._writer.metrics(ended.id, ended.curve[-1][0], best | ended.test)
            if digest := trained.stored_digest(self._trials / ended.id):
                self._tell_data(ended.id, self._plan.config(self._ledger.begun[ended.id]), digest)
            for file in (self._trials / ended.id / "test").glob("*.csv") if ended.test else ():
                self._writer.text(ended.id, f"test/{file.name}", file.read_text(encoding="utf-8"))
            if ended.test:
                objective, checkpoint = launch.objective(self._config, "test"), ended.test
            tags[schema.COLLAPSED] = "true" if checkpoint.get(schema.collapsed_metric(objective)) else "false"
        self._writer.tags(ended.id, tags)
        self._writer.end(ended.id, "FAILED" if ended.state == "failed" else "FINISHED")

    def _tell_data(self, id_: str, config: RunConfig, digest: str) -> None:
        source = config.data.source
        self._writer.data(id_, describe(config.data), digest, source.name, nested(source))


class RecorderCallback(tune.Callback):
    """Hands Ray Tune's events to a recorder, and its progress to a screen; ends all when the time is up."""

    def __init__(self, recorder: Recorder, screen: Screen | None, max_hours: float | None = None) -> None:
        self._recorder, self._screen = recorder, screen
        self._seconds_left = math.inf if max_hours is None else 3600 * max_hours

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its callbacks, and threads and terminals stay here."""
        return {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._recorder.begin(Begun(**trial.config))

    def on_trial_result(self, iteration: int, trials: list[Trial], trial: Trial, result: Result, **info: Any) -> None:
        self._recorder.result(trial.config["id"], result)

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._recorder.end(trial.config["id"], trial.last_result)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        noted = Path(trial.error_file).read_text(encoding="utf-8")
        # Tune gives up at once what is lost while a warm actor gets ready for it, however often it may be tried.
        self._recorder.lose(Begun(**trial.config), _why(noted), is_over=not trial.should_recover())

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        progress = self._recorder.progress
        if self._screen is not None:
            self._screen.show(progress)
        if progress.elapsed > self._seconds_left:
            self._seconds_left = math.inf
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C: Tune ends cleanly, and its trials stay open


def _why(noted: str) -> str:
    """The reason of the last failure of those that Ray noted of a trial: the first line below its indented ones."""
    lines = [line for line in noted.rpartition("Failure # ")[2].splitlines()[1:] if line.strip()]
    reason = lines.pop()
    while lines and not lines[-1][0].isspace():
        reason = lines.pop()
    return reason
