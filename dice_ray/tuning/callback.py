"""Ray Tune's callback, which passes the events of trials to a recorder, and ends Tune when it must stop.

Tune takes an exception of a callback for a failure of the trial and runs an ended trial again, or raises a TuneError of
its own (Ray 2.60). So the first one, as on a full disk, is noted (`Recorder.failure`) and ends Tune, and no later event
is recorded: the ledger and MLflow hold what they would hold if the driver had been killed at that moment.
"""

from __future__ import annotations

import math
import re
import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ray import tune
from ray.tune.experiment import Trial

from dice_ray.errors import DiceRayError, reason_of
from dice_ray.run.cluster import Cluster
from dice_ray.run.driver import Driver, Screen
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.trial import TrialResult

_OUT_OF_MEMORY: Final = "out of memory: "
"""How the reason of such a failure begins."""
_BY_ITSELF: Final = " of them by this trial itself"


class RecorderCallback(tune.Callback):
    """Passes Ray Tune's events to a recorder and its counts to a screen, and interrupts Tune when it must stop."""

    def __init__(self, recorder: Recorder, screen: Screen | None, driver: Driver, ray: Cluster) -> None:
        self._recorder, self._screen, self._ray = recorder, screen, ray
        self._is_stopped = driver.is_stopped
        self._max_seconds = math.inf if driver.max_hours is None else 3600 * driver.max_hours
        self._can_leave = ray.is_own or threading.current_thread() is not threading.main_thread()

    def __getstate__(self) -> dict[str, Any]:
        """Empty: the Tuner pickles its callbacks when it is made, and threads and terminals cannot be pickled."""
        return {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._record(lambda: self._recorder.started(TrialSpec(**trial.config)))

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: TrialResult, **info: Any
    ) -> None:
        self._record(lambda: self._recorder.reported(trial.config["id"], result))

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._record(lambda: self._recorder.ended(trial.config["id"], trial.last_result))

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        def lost() -> None:
            reason = _last_reason(_errors(trial))
            self._recorder.lost(TrialSpec(**trial.config), reason, is_final=not trial.should_recover())

        self._record(lost)

    def on_trial_recover(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        def given_up() -> None:
            if _is_hopeless(errors := _errors(trial)):
                self._recorder.given_up(trial.config["id"], _last_reason(errors))

        self._record(given_up)

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        counts = self._recorder.counts
        if self._screen is not None:
            self._screen.show(counts)
        is_over = counts.elapsed > self._max_seconds
        if self._is_stopped() or self._ray.lost or self._recorder.unready or self._recorder.failure or is_over:
            # Tune itself would wait for the running steps of all trials, which may take minutes. Their checkpoints are
            # on the disk, and our own Ray takes actors and placement groups along when it ends. Another one keeps them,
            # so there Tune must end by itself, as it does on this signal (SIGINT is ours: `cluster._QUIET`).
            if self._can_leave:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGUSR1)

    def _record(self, event: Callable[[], None]) -> None:
        if self._recorder.failure is not None:
            return
        try:
            event()
        except Exception as error:
            if not isinstance(error, DiceRayError | OSError):
                traceback.print_exc()
            self._recorder.failure = reason_of(error)
            if self._can_leave:
                raise KeyboardInterrupt from error
            raise  # so that Tune gives the trial no more work; where it goes on, `on_step_end` ends it


def _errors(trial: Trial) -> str:
    """What Tune has noted of a trial's failures."""
    return Path(trial.error_file).read_text(encoding="utf-8")


def _last_reason(errors: str) -> str:
    """The reason of the last failure in a trial's error file: the first line after the traceback's indented ones."""
    lines = [line for line in errors.rpartition("Failure # ")[2].splitlines()[1:] if line.strip()]
    reason = lines.pop()
    while lines and not lines[-1][0].isspace():
        reason = lines.pop()
    return reason


def memory_reason(message: str, actor_id: str) -> str:
    """The reason in one line, for the trial whose process has this id; Ray's message has about 40 lines."""
    memory = re.search(r"was ([\d.]+)GB used / ([\d.]+)GB limit", message)
    own = re.search(rf"Actor\({actor_id}\).*actual memory used=([\d.]+)GB", message)
    if memory is None or own is None:
        return f"{_OUT_OF_MEMORY}{message.partition(chr(10))[0]}"
    used, limit = memory.groups()
    # Without this trial there would have been room, or another one is the reason.
    whose = _BY_ITSELF if float(own[1]) > float(used) / 2 else " of them by this trial"
    return f"{_OUT_OF_MEMORY}Ray ended this trial when {used} of the machine's {limit} GB were in use, {own[1]}{whose}"


def _is_hopeless(errors: str) -> bool:
    """Whether a trial with these failures should not be tried again: it took most of the memory itself, or was killed
    for it twice.
    """
    return errors.count(_OUT_OF_MEMORY) > 1 or _BY_ITSELF in errors
