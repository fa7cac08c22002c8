"""Functions of the user that are called while something runs."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

import dice_ray
from dice_ray.api.training import shown
from dice_ray.run.driver import TrialCounts
from dice_ray.training.loop import Evaluation

QUICK = {"data.source.synthetic.size": 100, "training.epochs": 1, "training.evaluations": 2}


def test_each_evaluation_of_a_run_is_called_with_and_printed_where_the_user_sees_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events: list[object] = []
    run = dice_ray.train("synthetic_pairs", QUICK, name="called", callbacks=[events.append, print])
    evaluations = [event for event in events if isinstance(event, Evaluation)]
    assert len(evaluations) == len(events) == 2
    assert max(event.metrics["dev/f1"] for event in evaluations) == run.best.score
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"epoch {event.epoch:.2f}, step {event.step}" for event in evaluations
    ]
    assert "epoch" not in Path(run.log).read_text()


def test_the_counts_of_a_sweep_come_once_when_a_trial_has_ended() -> None:
    """A resumed sweep begins with the counts of earlier drivers, of which a failed trial starts again, and shows the
    same counts many times a second.
    """
    called: list[object] = []
    show = shown(None, [called.append])
    assert show is not None
    resumed = TrialCounts(0, 2, 0, 0, 5, 0.5, {"loss": "dice"}, 1.0)
    ended, failed = replace(resumed, done=3), replace(resumed, done=3, failed=1)
    with show(io.StringIO()) as screen:
        again = replace(resumed, failed=1)
        for counts in (again, resumed, replace(resumed, running=1), ended, ended, "a line", failed, failed):
            screen.show(counts)
    assert called == [ended, failed]
    assert str(failed) == "1 s: 3 finished, 0 stopped early, 1 failed of 5; best 0.5000 with {'loss': 'dice'}"
    of_study = replace(failed, best_params={}, best_arm="dice", num_seeds=2)
    assert str(of_study).endswith("best 0.5000 of dice, mean of 2 seeds")
