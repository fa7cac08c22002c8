"""Trials that Ray's memory monitor kills: the sweep goes on, and the trial fails with its reason or is tried again."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
import torch

from dice_ray.config.load import Layer
from dice_ray.run.driver import Driver, Event, TrialCounts
from dice_ray.tuning import runner
from dice_ray.tuning.callback import _is_hopeless, _last_reason, memory_reason
from dice_ray.tuning.sweep import SweepPlan
from tests.processes import TRIAL, titled
from tests.tuning.trials import Screen

SPACES = Path(__file__).with_name("spaces.py")
MESSAGE = """2 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 127.0.0.1) \
was 22.35GB used / 23.54GB limit (0.95)
Considered workers: [
Selected to kill: (Actor(aa01): job ID=01, lease ID=00, task name=A.__init__, pid=1, actual memory used=14.06GB, worker)
Selected to kill: (Actor(bb02): job ID=01, lease ID=00, task name=A.__init__, pid=2, actual memory used=1.25GB, worker)
]"""


def test_the_reason_is_one_line_with_the_memory_of_the_trial_itself() -> None:
    """Ray kills several processes at once: the memory of another trial is not this trial's."""
    most, little = memory_reason(MESSAGE, "aa01"), memory_reason(MESSAGE, "bb02")
    assert most.endswith("22.35 of the machine's 23.54 GB were in use, 14.06 of them by this trial itself")
    assert little.endswith("1.25 of them by this trial")
    assert memory_reason("other words\nof another Ray", "aa01") == "out of memory: other words"


def test_only_a_trial_whose_memory_others_took_is_tried_again_and_only_once() -> None:
    """One that needs too much would otherwise be trained three times for nothing."""
    most, little = (f"Failure # 1\n{memory_reason(MESSAGE, id_)}\n" for id_ in ("aa01", "bb02"))
    assert _is_hopeless(most)
    assert not _is_hopeless(little)
    assert _is_hopeless(little + little)
    assert not _is_hopeless("Failure # 1\nthe actor died\n" + little)


def test_the_reason_is_that_of_the_last_failure() -> None:
    died = "The actor died.\n\tpid: 7\n\n\tip: 127.0.0.1\nIts process ended.\nAnd so on."
    raised = 'ray::train()\n  File "loss.py", line 7\n    read()\nOSError: no space left\nFailure of a disk'
    errors = {
        "Too little memory.\nAdvice.": "Too little memory.",
        died: "Its process ended.",
        raised: "OSError: no space left",
    }
    noted = ""
    for number, (error, reason) in enumerate(errors.items(), 1):
        noted += f"Failure # {number} (occurred at 2026-01-01_00-00-00)\n{error}\n"
        assert _last_reason(noted) == reason


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next Ray kills a trial at 3 GiB more than twice the memory that this machine uses now."""
    memory = psutil.virtual_memory()
    used = memory.total - memory.available
    threshold = (2 * used + 3 * 2**30) / memory.total
    assert threshold < 0.9, "the machine has too little free memory for this test"
    monkeypatch.setenv("RAY_memory_usage_threshold", f"{threshold:.4f}")


class Greedy(Screen):
    """Takes the memory of the machine until the first trial has been killed."""

    killed: psutil.Process | None = None

    def show(self, state: Event) -> None:
        if self.killed is None and isinstance(state, TrialCounts) and state.running and (trials := titled(*TRIAL)):
            (self.killed,) = trials
            taken: list[torch.Tensor] = []
            while self.killed.is_running() and self.killed.status() != psutil.STATUS_ZOMBIE:
                if len(taken) < 64:
                    taken.append(torch.ones(2**26))
                time.sleep(0.05)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("limit")
def test_a_trial_whose_memory_another_program_took_is_tried_again(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    """It would be lost, although it fits. One that takes too much itself: a row of `tests/faults`."""
    screen = Greedy()
    plan = SweepPlan(name="pushed", layers=layers, space=f"{SPACES}:two_rates", trials=1, scheduler="none")
    counts = runner.run(plan, tmp_path / "pushed", Driver(num_cpus=1, show=screen.on))
    assert screen.killed is not None
    assert "out of memory" in (tmp_path / "pushed" / "log.txt").read_text(), "the trial was not killed"
    assert (counts.done, counts.failed) == (1, 0)
