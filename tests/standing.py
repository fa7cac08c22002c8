"""A folder of its own for a test, or for a fixture that several tests share, without the settings of the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def standing(folder: Path) -> Iterator[None]:
    """The working directory, until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("MLFLOW_TRACKING_URI", "RAY_ADDRESS"):
            patch.delenv(name, raising=False)
        yield
