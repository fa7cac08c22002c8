"""A driver killed at a random moment and resumed: every trial once, MLflow equal to the ledger."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice_ray.tracking.reader import curves, read
from dice_ray.tuning.ledger import Ledger
from tests.faults.kill import NUM_TRIALS, killed_and_resumed


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dr-"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.ray
def test_a_killed_sweep_is_resumed(tmp_path: Path, scratch: Path) -> None:
    kill = killed_and_resumed(tmp_path, scratch)
    assert len(kill.before.ended) < NUM_TRIALS, kill.moment
    assert kill.code == 0, kill.moment
    assert not kill.lost, kill.moment
    ledger = Ledger(kill.file)
    assert sorted(ledger.ended) == [f"{number:04d}" for number in range(1, NUM_TRIALS + 1)]
    assert kill.before.begun.items() <= ledger.begun.items()
    assert kill.before.ended.items() <= ledger.ended.items()

    runs = read("sweep")
    assert sorted(runs.loc[runs["kind"] == "trial", "id"]) == sorted(ledger.ended)
    assert set(runs["status"]) == {"FINISHED"}
    points = curves("sweep")
    scores = points[points["metric"] == "dev/f1"]
    stored = {id_: tuple(zip(of["step"], of["value"], strict=True)) for id_, of in scores.groupby("id")}
    assert stored == {id_: ended.curve for id_, ended in ledger.ended.items()}
