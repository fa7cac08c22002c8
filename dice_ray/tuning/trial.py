"""The Ray actor that runs one trial after the other.

A new actor takes 3.5 s to import torch and transformers and then loads data and weights; one that is reused takes 0.5 s
to the first step of its next trial (`reuse_actors`, `reset_config`). An actor whose trial raises is lost. So an error
that the configuration causes is reported as a result, with a `failure`; only errors that the machine may have caused
are raised, and Ray then tries the trial again in another process.

A trial writes its own checkpoints, into its own folder; Ray does not manage them.
"""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
from ray import tune
from ray.exceptions import RayError

from dice_ray.errors import DiceRayError, RunError, reason_of
from dice_ray.files import write_atomically
from dice_ray.metrics.catalogue import gain
from dice_ray.run import cluster, doctor, object_store, single
from dice_ray.run.build import class_weights, objective, prepare
from dice_ray.run.doctor import Admission
from dice_ray.run.folder import GIVEN_UP, TRIALS
from dice_ray.run.ray_train import remove_leftover_group
from dice_ray.tracking.record import hardware_tags
from dice_ray.training.memory import is_out_of_memory
from dice_ray.tuning.addresses import targets_of
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.tuning.plan import Plan

SCORE = "score"
"""The gain of the objective in a result, which searcher and scheduler read; it is maximised."""

UNREADY = "unready"
"""In a result: why no trial can run on the machine, so that the driver ends. The trial has not begun."""

TrialResult: TypeAlias = dict[str, Any]
"""A trial's report: `score`, `step`, `metrics`, `is_past`, `tags`, `finished`, `done`; at a cell's end `test`.

Of a trial that fails `score`, `failure`, `done`; of one that cannot begin `score`, `unready`, `done`.
"""


@dataclass(frozen=True)
class Work:
    """What all trials have in common.

    Attributes:
        threads: Those of a worker.
        gpus: Those of a worker; without any, trials see none.
        surroundings: The environment of the driver.
        admission: What must hold of machines that join while trials run.
    """

    plan: Plan
    folder: Path
    threads: int
    gpus: float
    surroundings: Mapping[str, str] = field(default_factory=cluster.surroundings)
    admission: Admission | None = None


class TrialActor(tune.Trainable):
    """Runs a trial, one evaluation a step."""

    def setup(self, config: dict[str, Any], work: Work | None = None) -> None:
        assert work is not None, "given by tune.with_parameters"
        self._work, self._unready = work, doctor.problem(work.admission, work.surroundings, work.folder)
        if not self._unready:
            cluster.enter(work.surroundings)
            cluster.hide_unasked_gpus(work.gpus)
        torch.set_num_interop_threads(1)
        self._results = self._begun(config)

    def step(self) -> TrialResult:
        return next(self._results)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._results.close()
        self._results = self._begun(new_config)
        return True

    def _begun(self, config: dict[str, Any]) -> Generator[TrialResult, None, None]:
        if self._unready:
            return (each for each in [{SCORE: math.nan, UNREADY: self._unready, "done": True}])
        return _results(self._work, TrialSpec(**config))

    def cleanup(self) -> None:
        self._results.close()


def _results(work: Work, trial: TrialSpec) -> Generator[TrialResult, None, None]:
    """A result for every evaluation of a trial."""
    folder = work.folder / TRIALS / trial.id
    is_sent = True
    try:
        object_store.fetch(folder)
        remove_leftover_group(folder)  # also of a trial that is given up: the next one would wait for its CPUs
        _check_not_given_up(folder)
        with _time_limit(work.plan.trial_timeout, folder):
            config = work.plan.config(trial).with_threads(work.threads)
            work.plan.check_code(targets_of(config))
            metric = objective(config)
            if work.plan.split == "test":
                prepare(config).test()  # raises before the training where the test split cannot be scored
            tags = hardware_tags() | class_weights(config)
            for evaluation in single.evaluations(config, folder):
                result: TrialResult = {SCORE: gain(metric, evaluation.metrics[metric]), "step": evaluation.step}
                result |= {"metrics": evaluation.metrics, "is_past": evaluation.is_past}
                if evaluation.finished and work.plan.split == "test":
                    result["test"] = single.score(config, folder, "test")
                yield {**result, "tags": tags, "finished": evaluation.finished, "done": evaluation.finished}
    except Exception as error:
        if isinstance(error, RayError | torch.AcceleratorError | OSError) or is_out_of_memory(error):
            is_sent = not isinstance(error, OSError)  # one of the store, which may lack the last checkpoint
            raise  # the machine may be the reason: Ray tries the trial again
        if not isinstance(error, DiceRayError):
            traceback.print_exc()
        yield {SCORE: math.nan, "failure": reason_of(error), "done": True}
    finally:
        if is_sent:
            object_store.drop_checkpoints(folder)


def _check_not_given_up(folder: Path) -> None:
    """Raise a RunError for a trial that was killed for its time or its memory: it fails when Ray tries it again."""
    if (file := folder / GIVEN_UP).exists():
        reason = file.read_text(encoding="utf-8")
        file.unlink()  # a cell that failed may be run again
        object_store.delete(folder, [GIVEN_UP])
        raise RunError(reason)


@contextmanager
def _time_limit(seconds: float | None, folder: Path) -> Iterator[None]:
    """Kill this process after the time limit, wherever it hangs. When Ray tries the trial again, it fails."""
    if seconds is None:
        yield
        return

    def kill() -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            reason = f"a trial must end within {seconds:g} s (--trial-timeout), and was still running"
            write_atomically(folder / GIVEN_UP, reason)
            object_store.send(folder)
        finally:  # also where the reason cannot be stored: Ray then tries the trial again
            os._exit(1)

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
