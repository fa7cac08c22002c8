"""What a rehearsal measures."""

from __future__ import annotations

import sys

import pytest

from dice_ray.api.presets import layers_of
from dice_ray.config.load import resolve
from dice_ray.run.rehearsal import _NUM_STEPS, _peak_memory, rehearse
from dice_ray.training.checkpoint import Checkpoints


def test_steps_of_an_elastic_run_are_timed_without_its_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[bool] = []
    monkeypatch.setattr(Checkpoints, "save_last", lambda *_, **__: saved.append(True))
    settings = {"launch.workers": 3, "launch.min_workers": 2, "training.evaluations": 20, "training.batch_size": 8}
    layers = layers_of("synthetic_pairs", {**settings, "data.source.synthetic.size": 200})
    rehearsal = rehearse(resolve(layers))
    assert (rehearsal.num_evaluations, rehearsal.num_timed) == (20, _NUM_STEPS - 1)
    assert not saved


def test_peak_memory_is_in_bytes_on_each_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ru_maxrss` counts KiB on Linux and bytes on macOS."""
    monkeypatch.setattr(sys, "platform", "linux")
    on_linux = _peak_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _peak_memory() == pytest.approx(on_linux / 1024, rel=0.5)
