"""Hands trials to Ray Tune: Optuna's suggestions for a sweep, the cells themselves for a study.

Ray Tune asks the searcher for trials, tells it of results, and stops a trial where the scheduler says so. Two of its
habits shape this file (Ray 2.60): it reports every trial that did not raise as completed, also one that the scheduler
stopped or whose configuration failed, so `SweepSearcher` tells Optuna the true state; and it pickles the searcher after
each suggestion, so nothing here may hold a thread, a lock or a function without an address.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, cast

import optuna
from optuna.samplers._ga import BaseGASampler  # internal of Optuna 5
from optuna.trial import FixedTrial, TrialState
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.search.optuna import OptunaSearch

from dice_ray.metrics.catalogue import metric
from dice_ray.output import quiet
from dice_ray.run.cluster import Cluster
from dice_ray.settings import Flat
from dice_ray.tuning.ledger import History, TrialOutcome, TrialSpec
from dice_ray.tuning.resources import Demand
from dice_ray.tuning.samplers import (
    TRIAL_STATES,
    may_be_stopped,
    objective_values,
    pruner,
    replay,
    sampler,
)
from dice_ray.tuning.space import BATCH_SIZE, Space
from dice_ray.tuning.trial import SCORE, TrialResult

_ASK_SECONDS: Final = 1.0
"""How often the cluster is asked for its machines."""


class _SearchPlan(Protocol):
    """What a searcher is told of a sweep, by the attributes of `SweepPlan`."""

    @property
    def space(self) -> str: ...
    @property
    def objectives(self) -> tuple[str, ...]: ...
    @property
    def sampler(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def points(self) -> tuple[Flat, ...]: ...
    @property
    def ids(self) -> list[str]: ...


class SweepSearcher(OptunaSearch):
    """Optuna's suggestions for the trials of a plan that its ledger lacks.

    Trials that have ended, also those of a `known` history, are added to the Optuna study. Trials that have started and
    not ended are suggested first, under their own ids; then the points of the plan; then what the sampler suggests.
    Early stopping compares the trials of this sweep alone: the known ones may have been evaluated at other steps.

    Args:
        plan: The sweep.
        history: Its trials so far, without reruns.
        known: The trials of the sweep that it was started from.
        num_rows: Rows of the training split, at most as many as which a batch size is suggested.
        unfit: What does not fit the task, as in `Space`.

    Attributes:
        ids: Ids of all trials of the sweep: fewer than planned where the space is exhausted.
    """

    def __init__(
        self,
        plan: _SearchPlan,
        history: History,
        known: History | None = None,
        num_rows: int | None = None,
        unfit: frozenset[str] = frozenset(),
    ) -> None:
        # Earlier versions suggested losses that do not fit too, and Optuna takes one set of choices in a study.
        known = known or History()
        past_trials = [*known.specs.values(), *history.specs.values()]
        unfit -= {spec.params.get("loss") for spec in past_trials} | {point.get("loss") for point in plan.points}
        space = Space(plan.space, num_rows, unfit)
        self._objectives: tuple[str, ...] = plan.objectives
        # No trial must be drawn again, of this sweep or of the known ones, so the seed grows with their number.
        seed = plan.seed + len(past_trials)
        with quiet("optuna"):
            super().__init__(space, **_metric_and_mode(plan.objectives), sampler=sampler(plan.sampler, seed))
        assert self._ot_study is not None
        self._study: optuna.Study = self._ot_study
        may_be_stopped(self._study)
        num_known = sum(outcome.state == "done" for outcome in known.outcomes.values())
        self._study.pruner = pruner(plan.scheduler, num_known)
        self._seed_of_trials: int = plan.seed
        self.ids: list[str] = plan.ids
        self._new_ids: deque[str] = deque(id_ for id_ in plan.ids if id_ not in history.specs)
        self._resumed: deque[TrialSpec] = deque(history.unfinished)
        self._results: dict[str, dict[int, TrialResult]] = {}
        self._tries_each_once: bool = plan.sampler == "brute_force"
        for past in (known, history):
            for outcome in past.outcomes.values():
                spec = past.specs[outcome.id]
                # Earlier versions suggested larger batches too.
                fits = num_rows is None or spec.params.get(BATCH_SIZE, 0) <= num_rows
                self._add(outcome, spec, space if fits else replace(space, num_rows=None), is_own=past is history)
        for spec in self._resumed:
            self._study.enqueue_trial(spec.params)
        for params in plan.points[len(history.specs) :]:
            if num_rows is not None and params.get(BATCH_SIZE, 0) > num_rows:
                params = params | {BATCH_SIZE: num_rows}
            self._study.enqueue_trial(params)

    def suggest(self, trial_id: str) -> dict[str, Any]:
        params = super().suggest(trial_id) or {}
        number = self._ot_trials[trial_id].number
        if self._tries_each_once and any(
            trial.params == params for trial in self._study.get_trials(deepcopy=False)[:number]
        ):
            self._study.tell(self._ot_trials[trial_id], state=TrialState.FAIL)
            self.ids[:] = [id_ for id_ in self.ids if id_ not in self._new_ids]
            return cast(dict[str, Any], Searcher.FINISHED)
        self._results[trial_id] = {}
        if self._resumed:
            return self._resumed.popleft().model_dump()
        return TrialSpec(id=self._new_ids.popleft(), params=params, seed=self._seed_of_trials).model_dump()

    def report(self, trial_id: str, result: TrialResult) -> bool:
        """Report an evaluation to Optuna, once; returns whether the trial should be stopped early.

        A trial that was restarted reports its history again, which was judged when it was made: judged by what other
        trials have reached since, a trial could be stopped at a step that it has long passed.
        """
        results = self._results[trial_id]
        if "step" not in result or result["step"] in results:
            return False
        results[result["step"]] = result
        if self._objectives:  # Optuna takes no intermediate values of several objectives
            return False
        trial = self._ot_trials[trial_id]
        trial.report(result[SCORE], len(results))
        should_prune = trial.should_prune()  # also of the last evaluation, since the pruner notes the completed rungs
        return should_prune and not (result.get("finished") or result.get("is_past"))

    def on_trial_result(self, trial_id: str, result: TrialResult) -> None:
        """The scheduler has reported it."""

    def on_trial_complete(self, trial_id: str, result: TrialResult | None = None, error: bool = False) -> None:
        result = result or {}
        if not error:
            self.report(trial_id, result)  # the scheduler does not see the last result of a trial
        results = self._results.pop(trial_id)
        trial = self._ot_trials[trial_id]
        if error or "failure" in result or not results:
            self._study.tell(trial, state=TrialState.FAIL)
        elif result.get("finished"):
            curve = [(step, each[SCORE]) for step, each in results.items()]
            metrics = [_metrics(each) for each in results.values()]
            self._study.tell(trial, objective_values(self._objectives, curve, metrics))
        else:
            self._study.tell(trial, state=TrialState.PRUNED)

    def _add(self, outcome: TrialOutcome, spec: TrialSpec, space: Space, *, is_own: bool) -> None:
        """Add an ended trial to the Optuna study; one of this sweep as if this driver had run it."""
        fixed = FixedTrial(spec.params)
        space(fixed)
        is_done = outcome.state == "done"
        num_trials = len(self._study.get_trials(deepcopy=False))
        system_attrs = {}
        if isinstance(chosen := self._study.sampler, BaseGASampler) and is_done:
            # Internal of Optuna 5: a trial without a generation is never chosen as a parent.
            number = len(self._study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]))
            system_attrs = {chosen._get_generation_key(): number // (chosen.population_size or 1)}
        # Of the known trials only those that were stopped keep their curves: TPE reads them, and no pruner does.
        has_curve = not self._objectives and (is_own or not is_done)
        scores = [score for _, score in outcome.curve] if has_curve else []
        self._study.add_trial(
            optuna.trial.create_trial(
                params=fixed.params,
                distributions=fixed.distributions,
                state=TrialState.RUNNING,
                intermediate_values=dict(enumerate(scores, start=1)),
                system_attrs=system_attrs,
            )
        )
        if is_own:
            replay(self._study, scores)
        values = objective_values(self._objectives, outcome.curve, outcome.metrics) if is_done else None
        self._study.tell(num_trials, values, None if is_done else TRIAL_STATES[outcome.state])


class InOrder(FIFOScheduler):
    """Starts trials in the order of their suggestions, without looking at those that have ended.

    Tune's own goes through all trials twice at each event (Ray 2.60).
    """

    def __init__(self) -> None:
        super().__init__()
        self._unfinished: list[Trial] = []

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        # One that is tried again is added again, and comes last.
        self._unfinished = [other for other in self._unfinished if other is not trial] + [trial]

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        self._unfinished = [trial for trial in self._unfinished if not trial.is_finished()]
        return next((trial for trial in self._unfinished if trial.status == Trial.PENDING), None)


class PruningScheduler(InOrder):
    """Stops a trial as soon as the pruner of the searcher's Optuna study says so."""

    def __init__(self, searcher: SweepSearcher) -> None:
        super().__init__()
        self._searcher = searcher

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: TrialResult) -> str:
        # Tune does not hand a result to the searcher when the scheduler stops the trial, so it is reported here.
        should_prune = self._searcher.report(trial.trial_id, result)
        return TrialScheduler.STOP if should_prune else TrialScheduler.CONTINUE


class AsManyAsFit(ConcurrencyLimiter):
    """Limits the trials that run or wait to those for which the cluster has machines, and some that wait for more."""

    def __init__(self, searcher: Searcher, needs: Demand, ray: Cluster) -> None:
        self._needs, self._ray, self._asked = needs, ray, time.monotonic()
        super().__init__(searcher, max_concurrent=needs.most_at_once(ray.nodes, is_fixed=ray.is_fixed))

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        if time.monotonic() - self._asked >= _ASK_SECONDS:
            nodes, self._asked = self._ray.nodes_now(), time.monotonic()
            self.max_concurrent = self._needs.most_at_once(nodes, is_fixed=self._ray.is_fixed)
        suggestion: dict[str, Any] | None = super().suggest(trial_id)
        return suggestion


class CellSearcher(Searcher):
    """Hands out cells, one after the other."""

    def __init__(self, cells: Iterable[TrialSpec]) -> None:
        super().__init__(metric=SCORE, mode="max")
        self._cells = deque(cells)

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        return self._cells.popleft().model_dump() if self._cells else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Cells do not depend on each other."""

    def save(self, checkpoint_path: str) -> None:
        """The ledger is the record that is resumed from."""

    def restore(self, checkpoint_path: str) -> None:
        """A Tuner is never restored."""


def _metrics(result: TrialResult) -> dict[str, float]:
    """The metrics of a result, nested as the trial reports it, or flat as Tune hands it to a searcher."""
    nested: dict[str, float] = result.get("metrics", {})
    flat = {name.removeprefix("metrics/"): value for name, value in result.items() if name.startswith("metrics/")}
    return nested | flat


def _metric_and_mode(objectives: Sequence[str]) -> dict[str, Any]:
    if not objectives:
        return {"metric": SCORE, "mode": "max"}
    # Ray looks for its metrics in every result, and a failure has none but the score. `objective_values`
    # gives Optuna the real values.
    modes = ["min" if metric(name).is_minimised else "max" for name in objectives]
    return {"metric": [SCORE] * len(objectives), "mode": modes}
