"""A driver, a trial or a machine killed at a random moment: every trial once, MLflow equal to the ledger."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kill import KILLS


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dr-"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("what", KILLS)
def test_nothing_is_lost_and_nothing_doubled(what: str, tmp_path: Path, scratch: Path) -> None:
    kill = KILLS[what](tmp_path, scratch)
    assert not kill.faults(), kill.moment


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("what", KILLS)
@pytest.mark.parametrize("number", range(10))
def test_nor_at_ten_other_moments(what: str, number: int, tmp_path: Path, scratch: Path) -> None:
    test_nothing_is_lost_and_nothing_doubled(what, tmp_path, scratch)
