"""What hands trials to Ray Tune: Optuna for a sweep, the cells themselves for a study."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, cast

import optuna
from optuna.samplers._ga import BaseGASampler
from optuna.trial import FixedTrial, TrialState
from ray.tune.search import Searcher
from ray.tune.search.optuna import OptunaSearch

from dice_ray.tuning import objectives
from dice_ray.tuning.ledger import Begun, Ended, History
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.samplers import BRUTE_FORCE, quiet_optuna, sampler
from dice_ray.tuning.space import Space
from dice_ray.tuning.trial import SCORE, Result

_STATES = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


class SweepSearcher(OptunaSearch):
    """Optuna's suggestions for a plan minus its ledger.

    Trials that ended are known to the study, as are those of a `known` ledger; those that began are suggested first,
    again under their own id, then the points of the plan. What Ray takes for completed is told as what it was: failed,
    stopped by the scheduler, or done with its best score.

    Attributes:
        ids: Of all trials that there are: fewer than planned where nothing is left to try.
    """

    def __init__(self, plan: SweepPlan, ledger: History, known: History | None = None) -> None:
        # Sampling goes on: the same seed again would suggest the first trials again.
        seed = plan.seed + len(ledger.begun)
        space = Space(plan.space)
        self._objectives: tuple[str, ...] = plan.objectives
        with quiet_optuna():
            super().__init__(space, **_aim(plan.objectives), sampler=sampler(plan.sampler, seed))
        assert self._ot_study is not None
        self._study: optuna.Study = self._ot_study
        self._seed_of_trials: int = plan.seed
        self.ids: list[str] = plan.ids
        self._new_ids: deque[str] = deque(id_ for id_ in plan.ids if id_ not in ledger.begun)
        self._again: deque[Begun] = deque(ledger.open)
        self._told: dict[str, dict[int, Result]] = {}
        self._tries_each_once: bool = plan.sampler == BRUTE_FORCE
        for told in (known, ledger):
            for ended in told.ended.values() if told is not None else ():
                self._study.add_trial(self._ended_trial(ended, told.begun[ended.id], space))
        for params in [*(begun.params for begun in self._again), *plan.points[len(ledger.begun) :]]:
            self._study.enqueue_trial(params)

    def suggest(self, trial_id: str) -> dict[str, Any]:
        params = super().suggest(trial_id) or {}
        if self._tries_each_once and any(
            trial.params == params for trial in self._study.trials[: self._ot_trials[trial_id].number]
        ):
            self._study.tell(self._ot_trials[trial_id], state=TrialState.FAIL)
            self.ids[:] = [id_ for id_ in self.ids if id_ not in self._new_ids]
            return cast(dict[str, Any], Searcher.FINISHED)
        self._told[trial_id] = {}
        if self._again:
            return self._again.popleft().model_dump()
        return Begun(id=self._new_ids.popleft(), params=params, seed=self._seed_of_trials).model_dump()

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        told = self._told[trial_id]
        if "step" in result and result["step"] not in told:
            told[result["step"]] = result
            if not self._objectives:  # with several, Optuna takes no values in between
                self._ot_trials[trial_id].report(result[SCORE], result["step"])

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        result = result or {}
        if not error:
            self.on_trial_result(trial_id, result)  # the scheduler keeps back the one at which it stops
        told = self._told.pop(trial_id)
        trial = self._ot_trials[trial_id]
        if error or "failure" in result or not told:
            self._study.tell(trial, state=TrialState.FAIL)
        elif result.get("finished"):
            curve = [(step, each[SCORE]) for step, each in told.items()]
            self._study.tell(trial, self._values(curve, [_metrics(each) for each in told.values()]))
        else:
            self._study.tell(trial, state=TrialState.PRUNED)

    def _values(self, curve: Sequence[tuple[int, float]], metrics: Sequence[dict[str, float]]) -> list[float]:
        if self._objectives:
            return objectives.values(self._objectives, curve, metrics)
        return [max(score for _, score in curve)]

    def _ended_trial(self, ended: Ended, begun: Begun, space: Space) -> optuna.trial.FrozenTrial:
        """A trial of an earlier driver, as the study would hold it."""
        fixed = FixedTrial(begun.params)
        space(fixed)
        is_done = ended.state == "done"
        system_attrs = {}
        if isinstance(chosen := self._study.sampler, BaseGASampler) and is_done:
            # An internal of Optuna 5: trials that carry no generation are none's parents.
            number = len(self._study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]))
            system_attrs = {chosen._get_generation_key(): number // (chosen.population_size or 1)}
        return optuna.trial.create_trial(
            params=fixed.params,
            distributions=fixed.distributions,
            values=self._values(ended.curve, ended.metrics) if is_done else None,
            state=_STATES[ended.state],
            intermediate_values={} if self._objectives else dict(ended.curve),
            system_attrs=system_attrs,
        )


class CellSearcher(Searcher):
    """Hands out cells, one after the other."""

    def __init__(self, cells: Iterable[Begun]) -> None:
        super().__init__(metric=SCORE, mode="max")
        self._cells = deque(cells)

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        return self._cells.popleft().model_dump() if self._cells else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Cells do not depend on each other."""

    def save(self, checkpoint_path: str) -> None:
        """The ledger is what is kept."""

    def restore(self, checkpoint_path: str) -> None:
        """A Tuner is never restored."""


def _metrics(result: Result) -> dict[str, float]:
    """Of a result as Ray hands it to a searcher: flat."""
    return {name.removeprefix("metrics/"): value for name, value in result.items() if name.startswith("metrics/")}


def _aim(several: Sequence[str]) -> dict[str, Any]:
    """What Ray's searcher is to maximise or minimise."""
    if not several:
        return {"metric": SCORE, "mode": "max"}
    # Ray looks for its metrics in every result, and a failure has none but this one; the values are told by us.
    return {"metric": [SCORE] * len(several), "mode": [objectives.mode(name) for name in several]}
