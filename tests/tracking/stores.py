"""Stores for tests: a copy of a migrated one, a study in it, and a port to serve it on."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer


def copied(migrated: Path, folder: Path) -> str:
    """The URI of a copy of a store in a folder."""
    file = folder / "mlflow.db"
    with closing(sqlite3.connect(migrated)) as source, closing(sqlite3.connect(file)) as target:
        source.backup(target)
    return f"sqlite:///{file}"


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fill(uri: str, experiment: str = "study") -> None:
    """Store a study of four cells: two done, one failed, and one that did not end."""
    writer = Writer(experiment, uri)
    tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.BASELINE: "ce"}
    writer.open("study", name="the study", params={}, tags=tags)
    for seed, (arm, state) in enumerate([("ce", "done"), ("dice", "done"), ("dice", "failed"), ("focal", None)]):
        key = f"c{seed}"
        params = {"loss": arm, "training.lr": 0.1, "training.seed": seed, "mining": None if seed else 0.5}
        tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed), "mine": "12e5"}
        writer.open(key, name=key, params=params, tags=tags, parent="study")
        for step in range(3):
            writer.metrics(key, step, {"dev/f1": step / 7, "train/loss": float("nan") if step else 1.0})
        if state == "failed":
            writer.tags(key, {schema.FAILURE: "the loss must be finite,\ngot nan"})
        if state is not None:
            writer.tags(key, {schema.STATE: state})
            writer.end(key, "FAILED" if state == "failed" else "FINISHED")
    writer.end("study", "FINISHED")
    writer.close()
