"""What `dice-ray submit` refuses before anything is asked; jobs themselves are in `tests/run/test_jobs.py`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dice_ray.cli.app import app


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing argument 'COMMAND'"),
        ("-- report search", "a job must be one of train, tune, ablate, resume, got 'report'"),
        ("-- tune", "give a preset; to continue a sweep, submit `resume NAME`"),
        ("-- tune mrpc --trails 3", "No such option: --trails"),
        ("tune mrpc --trials 0", "Invalid value for '--trials'"),
        ("-- resume", "Missing argument 'name'"),
        ("-- tune mrpc --address head:6379", "leave out its own --address"),
    ],
)
def test_a_command_that_cannot_be_submitted_is_a_wrong_usage(words: str, told: str) -> None:
    """Also its options, which would otherwise be found wrong on the cluster, where nobody looks."""
    result = CliRunner().invoke(app, ["submit", *words.split()])
    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())
