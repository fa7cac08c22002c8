"""fp16 on a machine without a GPU: correct, but so slow that runs refuse it."""

from __future__ import annotations

import pytest

from dice_ray.training import precision


@pytest.fixture
def fp16_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "supported_by", lambda _: ("fp32", "bf16", "fp16"))
