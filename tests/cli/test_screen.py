"""The screen of a run, sweep or study: plain lines in a pipe, a display that is redrawn on a terminal."""

from __future__ import annotations

import io

import pytest

from dice_ray.cli.screen import TerminalScreen, _counts_line, _running_table, _step_line
from dice_ray.run.driver import RunningTrial, TrialCounts
from dice_ray.training.loop import Evaluation, StepProgress

EVALUATION = Evaluation(10, 0.5, {"train/loss": 0.5, "dev/accuracy": 0.75, "dev/collapsed": 0.0}, finished=False)
CLEAR_LINE = "\x1b[2K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def after(step: int) -> StepProgress:
    return StepProgress(step, 100, step / 50, 0.25, 1e-4, 1000 * step, 0.1, 500.0)


def counts(*, running: int, done: int) -> TrialCounts:
    return TrialCounts(running, done, 0, 0, 2, 0.5, {"loss": "[/x]", "training.lr": 2.0}, 1.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The current time of the screen, for the test to set."""
    now = [100.0]
    monkeypatch.setattr("dice_ray.cli.screen.time.monotonic", lambda: now[0])
    return now


def test_a_pipe_gets_a_line_every_ten_seconds_and_one_per_evaluation(clock: list[float]) -> None:
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        for step in range(1, 31):
            screen.show(after(step))
            if step == 10:
                screen.show(EVALUATION)
            clock[0] += 1
    assert pipe.getvalue().splitlines() == [
        "epoch 0.50  step 10  train/loss 0.5000  dev/accuracy 0.7500",
        "epoch 0.22  step 11/100  loss 0.2500  dev/accuracy 0.7500  1000 tokens/s  1:29 left",
        "epoch 0.42  step 21/100  loss 0.2500  dev/accuracy 0.7500  1000 tokens/s  1:19 left",
    ]


def test_on_a_terminal_evaluations_stay_and_the_last_line_is_cleared() -> None:
    terminal = Terminal()
    with TerminalScreen(terminal) as screen:
        screen.show(after(1))
        screen.show(EVALUATION)
        screen.show(after(2))
    output = terminal.getvalue()
    assert "epoch 0.50  step 10  train/loss 0.5000" in output
    assert "step 2/100" in output
    assert output.rstrip().endswith(CLEAR_LINE)


def test_no_speed_is_shown_before_the_second_step() -> None:
    assert _step_line(after(1), "", 0.0, 0.0) == "epoch 0.02  step 1/100  loss 0.2500"
    assert _step_line(after(1), "dev/f1 0.5000", 999.6, 61.4).endswith("dev/f1 0.5000  1000 tokens/s  1:01 left")


def test_what_no_evaluation_changes_is_shown_once() -> None:
    """Nothing else finds the constant predictor's scores in each of the lines of a long run, or that of a cost left
    out.
    """
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        screen.show(Evaluation(5, 0.5, {"dev/cost_tuned": 840.0, "dev/constant_cost": 920.0}, finished=False))
    assert pipe.getvalue() == "epoch 0.50  step 5  dev/cost_tuned 840.0000  dev/constant_cost 920.0000\n"
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        for step in (10, 20):
            screen.show(Evaluation(step, 1.0, {"dev/f1": 0.5, "dev/constant_f1": 0.1}, finished=False))
    assert pipe.getvalue().splitlines() == [
        "epoch 1.00  step 10  dev/f1 0.5000  dev/constant_f1 0.1000",
        "epoch 1.00  step 20  dev/f1 0.5000",
    ]


def test_the_metric_that_decides_is_shown_first_and_is_the_score() -> None:
    """With `score=f2` no line had it, and dev/f1 was shown as the score."""
    pipe = io.StringIO()
    metrics = {"dev/saved": 240.0, "dev/collapsed": 0.0, "dev/f1": 0.5, "dev/recall": 0.25}
    with TerminalScreen(pipe) as screen:
        screen.show(Evaluation(10, 1.0, {"train/loss": 0.5} | metrics, finished=False))
        assert screen._score == "dev/saved 240.0000"
    assert pipe.getvalue() == (
        "epoch 1.00  step 10  train/loss 0.5000  dev/saved 240.0000  dev/f1 0.5000  dev/recall 0.2500\n"
    )


def test_a_decision_that_decides_is_shown_first_and_named_where_it_is_not_used() -> None:
    """The line said of a cost that `f1_tuned` was not used."""
    pipe = io.StringIO()
    metrics = {"dev/cost_tuned": 300.0, "dev/f1": 0.0, "dev/f1_tuned": 0.25, "dev/threshold": 0.1}
    with TerminalScreen(pipe) as screen:
        screen.show(Evaluation(10, 0.5, metrics | {"dev/threshold_support": 2.0, "dev/threshold_used": 0.5}, False))
        assert screen._score == "dev/cost_tuned 300.0000"
    assert " ".join(pipe.getvalue().split()) == (
        "epoch 0.50 step 10 dev/cost_tuned 300.0000 dev/f1 0.0000 dev/f1_tuned 0.2500 (cost_tuned: threshold of 2 "
        "positives, predictions use 0.5)"
    )


def test_a_run_that_predicts_one_class_is_marked() -> None:
    """Where a fitted decision decides, the mark must not say that its predictions are of one class."""
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        screen.show(Evaluation(10, 0.5, {"dev/f1": 0.0, "dev/collapsed": 1.0}, finished=True))
        screen.show(Evaluation(10, 0.5, {"dev/f1_tuned": 0.5, "dev/collapsed": 1.0}, finished=True))
    assert pipe.getvalue().splitlines() == [
        "epoch 0.50  step 10  dev/f1 0.0000  (predicts one class only)",
        "epoch 0.50  step 10  dev/f1_tuned 0.5000  (untuned, predicts one class only)",
    ]


def test_a_tuned_f1_that_predictions_will_not_have_is_marked() -> None:
    """With 2 positives in dev, f1_tuned jumps between 0.08 and 1.00."""
    tuned = {"dev/f1": 0.0, "dev/f1_tuned": 1.0, "dev/threshold": 0.1, "dev/threshold_support": 2.0}
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        screen.show(Evaluation(10, 0.5, tuned | {"dev/threshold_used": 0.5}, finished=True))
        screen.show(Evaluation(10, 0.5, tuned | {"dev/threshold_used": 0.1}, finished=True))
        screen.show(Evaluation(10, 0.5, tuned, finished=True))
    line = "epoch 0.50  step 10  dev/f1 0.0000  dev/f1_tuned 1.0000"
    mark = "    (f1_tuned: threshold of 2 positives, predictions use 0.5)"
    assert pipe.getvalue().splitlines() == [line, mark, line, line]


def test_a_pipe_gets_a_line_whenever_a_trial_has_ended_and_every_minute(clock: list[float]) -> None:
    """Finds a log of long runs that says "0 running", as when Ray started, until the first run has ended."""
    pipe = io.StringIO()
    with TerminalScreen(pipe) as screen:
        for running, done, seconds in ((0, 0, 1), (1, 0, 59), (2, 0, 1), (1, 1, 1), (1, 1, 1), (0, 2, 1)):
            screen.show(counts(running=running, done=done))
            clock[0] += seconds
    best = "best 0.5000 loss=[/x] training.lr=2"
    assert pipe.getvalue().splitlines() == [
        f"    1 s  0 finished, 0 stopped early, 0 failed, 0 running of 2; {best}",
        f"    1 s  0 finished, 0 stopped early, 0 failed, 2 running of 2; {best}",
        f"    1 s  1 finished, 0 stopped early, 0 failed, 1 running of 2; {best}",
        f"    1 s  2 finished, 0 stopped early, 0 failed, 0 running of 2; {best}",
    ]


def test_the_best_of_a_study_is_a_mean_and_each_running_trial_has_a_row() -> None:
    running = (RunningTrial("dice/3", 65.0, 40, 0.25, 0.5), RunningTrial("focal/1", 2.0))
    studied = TrialCounts(2, 4, 0, 0, 8, 0.625, {}, 30.0, "dice", 2, 61.0, running)
    line = "   30 s  4 finished, 0 stopped early, 0 failed, 2 running of 8, about 1:01 left; "
    line += "best 0.6250 dice, mean of 2 seeds"
    assert _counts_line(studied) == line
    rows = [line.split() for line in _running_table(running).splitlines()]
    assert rows[1:] == [["dice/3", "40", "0.2500", "0.5000", "1:05"], ["focal/1", "0:02"]]
    terminal = Terminal()
    with TerminalScreen(terminal) as screen:
        screen.show("1:100: 2,000 train records")
        screen.show(studied)
    assert "1:100: 2,000 train records\n" in terminal.getvalue()  # and no picture for ":100:"
    assert "dice/3" in terminal.getvalue()


def test_the_table_of_trials_stays_on_a_terminal_with_settings_as_they_are() -> None:
    terminal = Terminal()
    with TerminalScreen(terminal) as screen:
        screen.show(counts(running=1, done=0))
    output = terminal.getvalue()
    assert "loss=[/x]" in output
    assert CLEAR_LINE not in output[output.rindex("loss=[/x]") :]
