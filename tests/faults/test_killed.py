"""A driver, a trial or a machine killed at a random moment: every trial once, MLflow equal to the ledger.

`make test-faults` tries more moments.
"""

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
