"""What hands trials to Ray Tune: Optuna for a sweep, the cells themselves for a study."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import optuna
from optuna.trial import FixedTrial, TrialState
from ray.tune.search import Searcher
from ray.tune.search.optuna import OptunaSearch

from dice_ray.tuning.ledger import Begun, Ended, Ledger
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.samplers import BRUTE_FORCE, sampler
from dice_ray.tuning.space import Space
from dice_ray.tuning.trial import SCORE

_STATES = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Optuna announces a new study on the stderr of its import, which may be a notebook's."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


class SweepSearcher(OptunaSearch):
    """Optuna's suggestions for a plan minus its ledger.

    Trials that ended are known to the study, as are those of a `known` ledger; those that began are suggested first,
    again under their own id, then the points of the plan. What Ray takes for completed is told as what it was: failed,
    stopped by the scheduler, or done with its best score.

    Attributes:
        ids: Of all trials that there are: fewer than planned where nothing is left to try.
    """

    def __init__(self, plan: SweepPlan, ledger: Ledger, known: Ledger | None = None) -> None:
        # Sampling goes on: the same seed again would suggest the first trials again.
        seed = plan.seed + len(ledger.begun)
        space = Space(plan.space)
        with _quiet_optuna():
            super().__init__(space, metric=SCORE, mode="max", sampler=sampler(plan.sampler, seed))
        assert self._ot_study is not None
        self._study: optuna.Study = self._ot_study
        self._seed_of_trials: int = plan.seed
        self.ids: list[str] = plan.ids
        self._new_ids: deque[str] = deque(id_ for id_ in plan.ids if id_ not in ledger.begun)
        self._again: deque[Begun] = deque(ledger.open)
        self._curves: dict[str, dict[int, float]] = {}
        self._tries_each_once: bool = plan.sampler == BRUTE_FORCE
        for told in (known, ledger):
            for ended in told.ended.values() if told is not None else ():
                self._study.add_trial(_as_told(ended, told.begun[ended.id], space))
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
        self._curves[trial_id] = {}
        if self._again:
            return self._again.popleft().model_dump()
        return Begun(id=self._new_ids.popleft(), params=params, seed=self._seed_of_trials).model_dump()

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        curve, trial = self._curves[trial_id], self._ot_trials[trial_id]
        if "step" in result and result["step"] not in curve:
            trial.report(result[SCORE], result["step"])
            curve[result["step"]] = result[SCORE]

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        result = result or {}
        if not error:
            self.on_trial_result(trial_id, result)  # the scheduler keeps back the one at which it stops
        scores = self._curves.pop(trial_id).values()
        trial = self._ot_trials[trial_id]
        if error or "failure" in result or not scores:
            self._study.tell(trial, state=TrialState.FAIL)
        elif result.get("finished"):
            self._study.tell(trial, max(scores))
        else:
            self._study.tell(trial, state=TrialState.PRUNED)


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


def _as_told(ended: Ended, begun: Begun, space: Space) -> optuna.trial.FrozenTrial:
    fixed = FixedTrial(begun.params)
    space(fixed)
    return optuna.trial.create_trial(
        params=fixed.params,
        distributions=fixed.distributions,
        value=ended.score if ended.state == "done" else None,
        state=_STATES[ended.state],
        intermediate_values=dict(ended.curve),
    )
