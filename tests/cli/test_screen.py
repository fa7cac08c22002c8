"""What the terminal shows of a run: plain lines in a pipe, one line that is redrawn on a terminal."""

from __future__ import annotations

import io

import pytest

from dice_ray.cli.screen import ProgressScreen, TrainScreen, step_line
from dice_ray.training.loop import Evaluation, StepProgress
from dice_ray.tuning.progress import Progress as TrialProgress

EVALUATION = Evaluation(10, 0.5, {"train/loss": 0.5, "dev/accuracy": 0.75, "dev/collapsed": 0.0}, finished=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(step: int) -> StepProgress:
    return StepProgress(step, 100, step / 50, 0.25, 1e-4, 1000 * step, 0.1, 500.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is; the test sets it."""
    now = [100.0]
    monkeypatch.setattr("dice_ray.cli.screen.time.monotonic", lambda: now[0])
    return now


def test_in_a_pipe_a_line_comes_every_ten_seconds_and_at_each_evaluation(clock: list[float]) -> None:
    pipe = io.StringIO()
    with TrainScreen(pipe) as shown:
        for step in range(1, 31):
            shown.update(at(step))
            if step == 10:
                shown.evaluated(EVALUATION)
            clock[0] += 1
    assert pipe.getvalue().splitlines() == [
        "epoch 0.50  step 10  train/loss 0.5000  dev/accuracy 0.7500",
        "epoch 0.22  step 11/100  loss 0.2500  dev/accuracy 0.7500  1000 tokens/s  1:29 left",
        "epoch 0.42  step 21/100  loss 0.2500  dev/accuracy 0.7500  1000 tokens/s  1:19 left",
    ]


def test_on_a_terminal_the_evaluations_stay_and_the_last_line_goes() -> None:
    terminal = Terminal()
    with TrainScreen(terminal) as shown:
        shown.update(at(1))
        shown.evaluated(EVALUATION)
        shown.update(at(2))
    said = terminal.getvalue()
    assert "epoch 0.50  step 10  train/loss 0.5000" in said
    assert "step 2/100" in said
    assert said.rstrip().endswith("\x1b[2K")  # the last line is cleared


def test_without_a_second_step_no_speed_is_claimed() -> None:
    assert step_line(at(1), "", 0.0, 0.0) == "epoch 0.02  step 1/100  loss 0.2500"
    assert step_line(at(1), "dev/f1 0.5000", 999.6, 61.4).endswith("dev/f1 0.5000  1000 tokens/s  1:01 left")


@pytest.mark.parametrize("terminal", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_settings_are_shown_as_they_are(terminal: io.StringIO) -> None:
    state = TrialProgress(0, 1, 0, 0, 1, 0.5, {"loss": "[/x]"}, 1.0)
    with ProgressScreen(terminal) as shown:
        shown.update(state)
    assert "loss=[/x]" in terminal.getvalue()
