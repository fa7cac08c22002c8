"""System metrics: measured between evaluations, stored with them where asked for, and not at all otherwise."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Generator
from types import SimpleNamespace

import pytest
import torch

import dice_ray
from dice_ray.errors import RefusedError
from dice_ray.run import system
from dice_ray.training.loop import Evaluation, StepProgress
from tests.api.test_api import QUICK

NAMES = {"cpu_utilization_percentage", "system_memory_usage_megabytes", "system_memory_usage_percentage"}


def test_an_evaluation_has_the_means_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds means over the whole run, evaluations before a resumption that are altered, and a thread that stays."""
    monkeypatch.setattr(system, "_SECONDS", 0.001)
    now = {"x": 9.0}
    monkeypatch.setattr(system, "_sample", lambda device: dict(now))
    closed = []

    def events() -> Generator[Evaluation | StepProgress]:
        try:
            yield Evaluation(1, 0.1, {}, False, is_past=True)
            now["x"] = 9.0
            yield Evaluation(2, 0.2, {"dev/f1": 0.5}, False)
            now["x"] = 1.0
            time.sleep(0.2)
            yield Evaluation(3, 0.3, {}, True)
        finally:
            closed.append(True)

    measured = system.measured(events(), torch.device("cpu"))
    past, first, second = (next(measured) for _ in range(3))
    measured.close()
    assert (past.metrics, first.metrics) == ({}, {"dev/f1": 0.5, "system/x": 9.0})  # type: ignore[union-attr]
    assert second.metrics["system/x"] < 2  # type: ignore[union-attr]
    assert closed
    assert "dice_ray.system" not in {thread.name for thread in threading.enumerate()}


def test_a_gpu_has_its_memory_and_utilization(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds free memory in place of the memory in use, and a machine without nvidia-ml-py that cannot train."""
    cuda = SimpleNamespace(mem_get_info=lambda device: (6_000_000, 8_000_000), utilization=lambda device: 80)
    monkeypatch.setattr(torch, "cuda", cuda)
    found = system._sample(torch.device("cuda", 1))
    assert {name: value for name, value in found.items() if name.startswith("gpu")} == {
        "gpu_1_memory_usage_megabytes": 2.0,
        "gpu_1_memory_usage_percentage": 25.0,
        "gpu_1_utilization_percentage": 80.0,
    }
    monkeypatch.setattr(cuda, "utilization", lambda device: importlib.import_module("no_pynvml"))
    assert "gpu_1_utilization_percentage" not in system._sample(torch.device("cuda", 1))


def test_a_run_stores_them_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds metrics that nobody asked for, and a setting that nothing reads."""
    for name, asked in (("with", {"tracking.system": True}), ("without", {})):
        dice_ray.train("synthetic_pairs", {**QUICK, **asked}, name=name)
    frame = dice_ray.api.Result("with", "train").frame.set_index("id").filter(like="metrics.system/")
    assert set(frame) == {f"metrics.system/{name}" for name in NAMES}
    assert frame.loc["with"].gt(0).all()
    assert frame.loc["without"].isna().all()
    monkeypatch.setattr(system, "find_spec", lambda name: None)
    with pytest.raises(RefusedError, match="pip install psutil"):
        dice_ray.train("synthetic_pairs", {**QUICK, "tracking.system": True}, name="refused")
