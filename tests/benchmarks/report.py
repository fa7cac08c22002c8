"""Reading 10,000 runs of 30 parameters and 10 metrics beside MLflow's search: seconds and peak memory, each alone."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer

NUM_RUNS = 10_000
NUM_PARAMS = 30
NUM_METRICS = 10
EXPERIMENT = "sweep"
LOSSES = ("cross_entropy", "dice", "focal", "tversky")
GOAL_SECONDS = 5.0
GOAL_MIB = 1024


def fill(file: Path, num_runs: int) -> None:
    """A sweep of so many trials in MLflow's own tables, its first one through our writer."""
    uri = f"sqlite:///{file}"
    with Writer(EXPERIMENT, uri) as writer:
        writer.open(EXPERIMENT, name=EXPERIMENT, params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        writer.end(EXPERIMENT, "FINISHED")
    with closing(sqlite3.connect(file)) as database, database:
        (parent,) = database.execute("select run_uuid from runs").fetchone()
        uuids = [f"{number:032x}" for number in range(1, num_runs)]
        copied = [
            each[1] for each in database.execute("pragma table_info(runs)") if each[1] not in ("run_uuid", "name")
        ]
        columns = ", ".join(copied)
        database.executemany(
            f"insert into runs (run_uuid, name, {columns}) select ?, ?, {columns} from runs where run_uuid = ?",
            ((uuid, f"{number:05d}", parent) for number, uuid in enumerate(uuids)),
        )
        for table, rows in (("tags", tags), ("params", params)):
            values = ((key, value, uuid) for number, uuid in enumerate(uuids) for key, value in rows(number, parent))
            database.executemany(f"insert into {table} (key, value, run_uuid) values (?, ?, ?)", values)
        names = [f"dev/metric_{number}" for number in range(NUM_METRICS - 1)] + ["dev/f1"]
        database.executemany(
            "insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) values (?, ?, 0, 1, 0, ?)",
            ((name, number * 7919 % 10007 / 10007, uuid) for number, uuid in enumerate(uuids) for name in names),
        )


def tags(number: int, parent: str) -> Iterator[tuple[str, str]]:
    yield schema.ID, f"{number:05d}"
    yield schema.KIND, "trial"
    yield schema.STATE, "done"
    yield schema.SEED, "0"
    yield schema.LOSS, LOSSES[number % len(LOSSES)]
    yield schema.SEARCHED, "loss training.lr"
    yield schema.PARENT, parent


def params(number: int, parent: str) -> Iterator[tuple[str, str]]:
    yield "loss", LOSSES[number % len(LOSSES)]
    yield "training.lr", str((number * 31 % 997 + 1) * 1e-5)
    for index in range(NUM_PARAMS - 2):
        yield f"section.setting_{index}", str(number * index % 13) if index % 2 else f"choice {number % 5}"


def ours(uri: str) -> int:
    from dice_ray.tracking.reader import read

    return len(read(EXPERIMENT, uri))


def mlflow(uri: str) -> int:
    from dice_ray.tracking.store import quiet

    quiet()
    import mlflow

    mlflow.set_tracking_uri(uri)
    return len(mlflow.search_runs(experiment_names=[EXPERIMENT], max_results=2 * NUM_RUNS))


READERS: dict[str, Callable[[str], int]] = {"ours": ours, "mlflow": mlflow}


def peak_memory() -> int:
    """Bytes, of this process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def measured(name: str, uri: str) -> dict[str, float]:
    """Of three processes, imports included: wall and processor seconds of the fastest, peak MiB of the largest."""
    command = [sys.executable, "-m", __spec__.name, "--reader", name, "--uri", uri]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3)]
    assert all(run["runs"] == NUM_RUNS for run in runs), runs
    least = {what: min(run[what] for run in runs) for what in ("seconds", "cpu_seconds")}
    return least | {"mib": max(run["bytes"] for run in runs) / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", choices=READERS)
    parser.add_argument("--uri")
    given = parser.parse_args()
    if given.reader:
        began, worked = time.perf_counter(), time.process_time()
        num = READERS[given.reader](given.uri)
        spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}
        print(json.dumps({"runs": num, "bytes": peak_memory()} | spent))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mlflow.db"
        fill(file, NUM_RUNS)
        results = {name: measured(name, f"sqlite:///{file}") for name in READERS}
    print(f"{NUM_RUNS} runs of {NUM_PARAMS} parameters and {NUM_METRICS} metrics, from a local database")
    print(f"{'':20}{'seconds':>10}{'of CPU':>10}{'peak MiB':>10}")
    for name, result in results.items():
        print(f"{name:20}{result['seconds']:10.2f}{result['cpu_seconds']:10.2f}{result['mib']:10.0f}")
    print(f"goal of our reader: {GOAL_SECONDS} s and {GOAL_MIB} MiB")
    figures = {f"{name}_{what}": round(value, 2) for name, result in results.items() for what, value in result.items()}
    is_met = results["ours"]["seconds"] <= GOAL_SECONDS and results["ours"]["mib"] <= GOAL_MIB
    print(json.dumps(figures | {"is_met": is_met}))


if __name__ == "__main__":
    main()
