"""What a rehearsal measures."""

from __future__ import annotations

import sys

import pytest

from dice_ray.run.rehearsal import peak_memory


def test_peak_memory_is_in_bytes_on_each_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ru_maxrss` counts KiB on Linux and bytes on macOS."""
    monkeypatch.setattr(sys, "platform", "linux")
    on_linux = peak_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert peak_memory() == pytest.approx(on_linux / 1024, rel=0.5)
