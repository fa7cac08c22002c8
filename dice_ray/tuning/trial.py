"""A warm actor that runs one trial after the other: imports, data and weights stay."""

from __future__ import annotations

import math
import os
import platform
import threading
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from ray import tune
from ray.exceptions import RayError

from dice_ray import launch
from dice_ray.errors import DiceRayError, RunError, first_line
from dice_ray.tracking import surroundings
from dice_ray.tuning.ledger import Begun
from dice_ray.tuning.plan import StudyPlan, SweepPlan

SCORE = "score"
"""The metric that searcher and scheduler read of a result, always maximised."""

Result: TypeAlias = dict[str, Any]
"""What a trial reports: `score`, `step`, `metrics`, `hardware`, `finished`, `failure`; at the end of a cell `test`."""


@dataclass(frozen=True)
class Work:
    """What all trials of an actor have in common."""

    plan: SweepPlan | StudyPlan
    folder: Path


class Trial(tune.Trainable):
    """One evaluation a step; its checkpoints are the run's own, in its own folder, and Ray is told of none."""

    def setup(self, config: dict[str, Any], work: Work | None = None) -> None:
        assert work is not None, "given by tune.with_parameters"
        torch.set_num_interop_threads(1)
        self._work = work
        self._results = _results(work, Begun(**config))

    def step(self) -> Result:
        return next(self._results)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._results.close()
        self._results = _results(self._work, Begun(**new_config))
        return True

    def cleanup(self) -> None:
        self._results.close()


def _results(work: Work, trial: Begun) -> Generator[Result, None, None]:
    """Every evaluation of a trial as a result; an error of its settings is a result too, and spares the actor."""
    folder = work.folder / "trials" / trial.id
    try:
        if not work.folder.is_dir():
            raise RunError(f"{platform.node()} must see {work.folder}, the folder of all trials, and does not")
        with _at_most(work.plan.trial_timeout, folder):
            config = work.plan.config(trial)
            objective = launch.objective(config)
            if isinstance(work.plan, StudyPlan):
                launch.prepare(config).test()  # what cannot be scored is not trained first
            for told in launch.start(config, folder):
                result = {SCORE: told.metrics[objective], "step": told.step, "metrics": told.metrics}
                if told.finished and isinstance(work.plan, StudyPlan):
                    result["test"] = launch.evaluate(config, folder, "test")
                result |= {"hardware": surroundings.hardware()}
                yield {**result, "finished": told.finished, "done": told.finished}
    except DiceRayError as error:
        yield _failed(str(error))
    except Exception as error:
        if isinstance(error, RayError | torch.AcceleratorError | OSError):
            raise  # a machine may be the reason: Ray tries the trial again, in another process
        traceback.print_exc()
        yield _failed(f"{type(error).__name__}: {first_line(error)}")


def _failed(reason: str) -> Result:
    return {SCORE: math.nan, "failure": reason, "done": True}


@contextmanager
def _at_most(seconds: float | None, folder: Path) -> Iterator[None]:
    """Ends this process when the time is up, wherever it hangs; when Ray tries the trial again, it has failed.

    Raises:
        RunError: The time was up before.
    """
    late = folder / "late"
    if late.exists():
        reason = late.read_text()
        late.unlink()
        raise RunError(reason)

    if seconds is None:
        yield
        return

    def end() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        late.write_text(f"a trial must end within {seconds:g} s (--trial-timeout), and was still running")
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
