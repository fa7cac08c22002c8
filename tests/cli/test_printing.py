"""Output that commands share: JSON that every parser takes."""

from __future__ import annotations

import json
import math

import pytest

from dice_ray.cli.printing import print_json


def test_numbers_that_json_lacks_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"score": math.nan, "bounds": (-math.inf, 0.5)})
    assert json.loads(capsys.readouterr().out) == {"score": None, "bounds": [None, 0.5]}
