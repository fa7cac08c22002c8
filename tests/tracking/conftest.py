"""A store for each test: a copy of one that MLflow migrated once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.tracking.writer import Writer
from tests.tracking.stores import copied


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with MLflow's tables."""
    file = tmp_path_factory.mktemp("migrated") / "mlflow.db"
    Writer("first", f"sqlite:///{file}").close()
    return file


@pytest.fixture
def uri(migrated: Path, tmp_path: Path) -> str:
    return copied(migrated, tmp_path)
