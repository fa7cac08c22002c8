"""The records of the figures of searched settings, and what is drawn of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure as Canvas

from analysis.figures.settings import _NUM_SETTINGS, _shown_number, _Slices, slices
from analysis.frames import Findings
from tests.analysis.frames import study, sweep


def trial(score: float | None, loss: str = "dice", **columns: Any) -> dict[str, Any]:
    params = {f"params.{path.replace('__', '.')}": value for path, value in columns.items() if path != "state"}
    searched = " ".join(["loss", *(path.removeprefix("params.") for path in params)])
    shared = {"params.loss": loss, "metrics.dev/best_f1": score, "tags.searched": searched}
    return shared | params | {name: value for name, value in columns.items() if name == "state"}


def conditional() -> Findings:
    return sweep(
        [
            trial(0.5, lr=1e-5, loss__dice__gamma=1.0, schedule="linear"),
            trial(None, lr=2e-5, loss__dice__gamma=2.0, schedule="linear"),
            trial(0.9, "focal", lr=1e-3, loss__focal__gamma=3.0, schedule="cosine"),
            trial(0.7, lr=1e-4, loss__dice__gamma=4.0, schedule="cosine", state="pruned"),
        ]
    )


def drawn(figure: _Slices) -> Canvas:
    canvas = Canvas()
    figure.draw(canvas)
    return canvas


def test_trials_are_ranked_and_a_setting_of_one_loss_has_the_trials_of_that_loss() -> None:
    """Finds values beside the score of another trial, failed trials, and settings that only one trial searched."""
    (figure,) = slices(conditional())
    assert isinstance(figure, _Slices)
    assert [(each.number, each.score, each.loss) for each in figure.trials] == [
        (3, 0.9, "focal"),
        (4, 0.7, "dice"),
        (1, 0.5, "dice"),
    ]
    assert {setting.path: setting.values for setting in figure.settings} == {
        "lr": (1e-3, 1e-4, 1e-5),
        "loss.dice.gamma": (None, 4.0, 1.0),
        "schedule": ("cosine", "cosine", "linear"),
    }
    assert figure.alt == (
        "The score by each searched setting: the best of 3 trials has dev/f1 (%) 90.00 with loss focal, lr 0.001, "
        "schedule cosine."
    )
    panels = {axes.get_title(loc="left"): axes for axes in drawn(figure).axes}
    assert [panels[path].get_xscale() for path in ("lr", "loss.dice.gamma", "schedule")] == ["log", "linear", "linear"]
    ticks = [label.get_text() for label in panels["schedule"].get_xticklabels()]
    assert ticks == ["cosine", "linear"]
    points = [xy for of_loss in panels["loss.dice.gamma"].collections for xy in of_loss.get_offsets().tolist()]  # type: ignore[union-attr]
    assert sorted(points) == [[1.0, 0.5], [4.0, 0.7]]


def test_of_many_settings_the_most_searched_are_drawn_and_the_others_named() -> None:
    """Finds figures that grow without end, and settings left out without a word."""
    many: dict[str, Any] = {f"p{number:02d}": number for number in range(_NUM_SETTINGS)}
    doubled: dict[str, Any] = {name: 2 * number for name, number in many.items()}
    others: dict[str, Any] = dict.fromkeys(many, 5)
    trials = [trial(0.6, rare=1, **many), trial(0.5, rare=2, **doubled), trial(0.4, **others)]
    (figure,) = slices(sweep(trials))
    assert isinstance(figure, _Slices)
    assert [setting.path for setting in figure.settings] == list(many)
    assert figure.caption.endswith("Left out, searched by fewer trials: rare.")


def test_without_two_scored_trials_or_a_setting_that_varies_there_is_no_figure() -> None:
    assert [*slices(sweep([trial(0.5, lr=1.0), trial(None, lr=2.0)]))] == []
    assert [*slices(sweep([trial(0.5, lr=1.0), trial(0.6, lr=1.0)]))] == []
    several = replace(conditional(), frame=conditional().frame.assign(**{"tags.objectives": "dev/recall -dev/loss"}))
    assert [*slices(several)] == [], "no trial is the best one"
    assert [*slices(sweep([])), *slices(study([{"arm": "plain", "seed": 1}]))] == []
    assert len([*slices(sweep([trial(0.5, lr=1.0), trial(0.5, lr=2.0)]))]) == 1


def test_ticks_are_written_in_few_letters() -> None:
    """Finds 3.0000000000000004e-05 below an axis, and zeros that touch the next tick."""
    assert [_shown_number(value) for value in (0.0, 0.001, 0.00003, 2.5e-5, 3e-5 + 4e-21, 300.0)] == [
        *("0", "0.001", "3e-5", "2.5e-5", "3e-5", "300"),
    ]
