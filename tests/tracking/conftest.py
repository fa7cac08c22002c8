"""A store for each test: a copy of one that MLflow migrated once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dice_ray.tracking.writer import Writer


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with MLflow's tables."""
    file = tmp_path_factory.mktemp("migrated") / "mlflow.db"
    Writer("first", f"sqlite:///{file}").close()
    return file


@pytest.fixture
def uri(migrated: Path, tmp_path: Path) -> str:
    file = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(migrated)) as there, closing(sqlite3.connect(file)) as here:
        there.backup(here)
    return f"sqlite:///{file}"
