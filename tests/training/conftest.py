"""Half of the bits on a machine without a GPU: slow there, so that a run is refused, but right."""

from __future__ import annotations

import pytest

from dice_ray.training import precision


@pytest.fixture
def fp16_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "supported_by", lambda _: ("fp32", "bf16", "fp16"))
