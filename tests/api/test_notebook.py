"""Progress in a notebook, in Jupyter's kernel."""

from __future__ import annotations

from pathlib import Path

from dice_ray.api.training import shown
from tests.docs.notebooks import displayed, printed, run

TRAIN = """
from dice_ray import train
train("synthetic_pairs", {"data.source.synthetic.size": 100, "training.epochs": 2}, name="shown", callbacks=[print])
None
"""
SEARCH = """
from dice_ray.api.notebook import NotebookScreen
from dice_ray.run.driver import RunningTrial, TrialCounts

with NotebookScreen(None) as screen:
    screen.show("Starting Ray ...")
    for done in range(3):
        running = RunningTrial("dice/3 <b>", 65.0, 40, 0.25, 0.5)
        screen.show(TrialCounts(1, done, 0, 0, 4, 0.5, {"loss": "dice"}, 1.0, seconds_left=61.0, trials=(running,)))
"""


def test_a_notebook_shows_the_progress_in_one_display_and_what_callbacks_print(tmp_path: Path) -> None:
    """Nothing else finds a run that is silent until its end, a display for each step, or names that break its HTML."""
    training, search = run([TRAIN, SEARCH], tmp_path)
    (html,) = displayed(training, "text/html")
    assert "100 train, 50 dev, 50 test records</pre>" in html
    assert '<progress value="6" max="6"></progress> 6 steps' in html
    assert "<div>epoch 1.92, step 6: train/loss" in html
    assert "step 6: train/loss" in displayed(training, "text/plain")[0]
    assert [line.partition(":")[0] for line in printed(training).splitlines()][-1] == "epoch 1.92, step 6"
    (html,) = displayed(search, "text/html")
    assert ">Starting Ray ...</pre>" in html
    assert '<progress value="2" max="4"></progress> 1 s: 2 finished' in html
    assert "about 0:01:01 left" in html
    assert "<td>dice/3 &lt;b&gt;</td><td>40</td><td>0.2500</td><td>0.5000</td>" in html


def test_a_script_shows_nothing() -> None:
    """Nothing else finds progress in the output of a program that did not ask for it."""
    assert shown(None, ()) is None
