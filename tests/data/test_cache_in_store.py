"""Cache entries in the store of runs: what one machine has read and encoded, the others copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data import cache
from dice_ray.data.arrow import ArrowWriter, Rows, batch_of_rows
from tests.machines import machine_apart, machines, of_driver
from tests.object_store import CREDENTIALS, requests, s3

PRESET = """
task: {sentence_pair: {positive: "1"}}
data:
  source:
    files:
      folder: URL
      train: train.tsv
      reader: {tables: {quoting: false, columns: {pair: {first: a, second: b, label: y}}}}
training: {epochs: 1}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DICE_RAY_RUNS", f"file://{tmp_path}/store")
    return tmp_path / "store" / ".cache"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it to stand on a machine of this name, which has a cache of its own."""
    return lambda name: monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / name))


def written(times: list[str], kind: str = "rows") -> cache._CacheEntry:
    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        times.append(kind)
        with ArrowWriter(folder / "train.arrow") as file:
            file.write(batch_of_rows([{"number": 1}, {"number": 2}]))
        return {"train": 2}, {}

    return cache.get_or_write(kind, {}, {"data": "x"}, write)


def test_what_one_machine_has_written_another_one_copies(store: Path, machine: Any) -> None:
    """Finds a machine that encodes again, and one whose entry was written before there was a store."""
    times: list[str] = []
    machine("one")
    assert [row["number"] for row in Rows(written(times).tables["train"])] == [1, 2]
    shutil.rmtree(store)
    written(times)
    machine("two")
    assert [row["number"] for row in Rows(written(times).tables["train"])] == [1, 2]
    assert times == ["rows"]
    assert [entry.rows for entry in cache.list_entries()] == [{"train": 2}]


@pytest.mark.parametrize("lost", ["entry.json", "train.arrow"])
def test_a_copy_that_is_not_whole_is_not_used_and_is_replaced(store: Path, machine: Any, lost: str) -> None:
    """Finds the copy of a machine that was killed while it sent it."""
    times: list[str] = []
    machine("one")
    name = written(times).folder.name
    whole = (store / name / lost).read_bytes()
    (store / name / lost).write_bytes(whole[:-9])
    machine("two")
    written(times)
    assert times == ["rows", "rows"]
    assert (store / name / lost).read_bytes() == whole
    (store / name / lost).unlink()
    machine("three")
    written(times)
    assert times == ["rows"] * 3
    assert {file.name for file in (store / name).iterdir()} == {"entry.json", "train.arrow"}
    machine("four")
    written(times)
    assert times == ["rows"] * 3


def test_files_that_were_fetched_are_not_sent(store: Path, machine: Any) -> None:
    """Finds data at a URL that are copied to another store."""
    machine("one")
    written([], "files")
    assert not store.exists()


@pytest.mark.ray
@pytest.mark.slow
def test_data_are_read_and_encoded_once_and_reach_each_machine_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds a trial that fetches or encodes what its machine has, and a machine that encodes what the driver has."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DICE_RAY_CACHE")  # it would be the same on all machines
    path = os.pathsep.join(sys.path)
    caches = {name: tmp_path / name for name in ("driver", "first", "second", "third")}
    lines = ["a\tb\ty", *(f"a{number}\tb{number}\t{number % 2}" for number in range(300))]
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, s3(tmp_path) as runs, ExitStack() as stack:
        from dice_ray.files import joined, opened

        data = runs.replace("/runs?", "/data?")
        filesystem, file = opened(joined(data, "train.tsv"))
        with filesystem.open_output_stream(file) as there:
            there.write("\n".join(lines).encode())
        Path("mine.yaml").write_text(PRESET.replace("URL", data))
        monkeypatch.setenv("XDG_CACHE_HOME", str(caches["first"]))  # of two of Ray's nodes: trials on one machine
        two = stack.enter_context(machines(Path(scratch)))
        for name in ("second", "third"):
            (Path(scratch) / name).mkdir()
            own = str(caches[name])
            stack.enter_context(machine_apart(two, Path(scratch) / name, [], PYTHONPATH=path, XDG_CACHE_HOME=own))
        words = [
            "tune",
            "mine.yaml",
            "--trials",
            "12",
            "--scheduler",
            "none",
            "--name",
            "search",
            "--address",
            two.address,
        ]
        done = subprocess.run(
            [sys.executable, "-c", "from dice_ray.cli.app import main; main()", *words],
            env=of_driver(two.environment)
            | {"PYTHONPATH": path, "DICE_RAY_RUNS": runs, "XDG_CACHE_HOME": str(caches["driver"])},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    log = tmp_path / "s3.log"
    held = {name: sorted(each.name for each in (folder / "dice_ray").iterdir()) for name, folder in caches.items()}
    files, *encoded = held["driver"]
    assert re.match("files-", files)
    assert {name: held[name] for name in ("first", "second", "third")} == dict.fromkeys(
        ("first", "second", "third"), encoded
    )
    assert requests(log, "GET", "/data/train.tsv") == 1
    for entry in encoded:
        assert requests(log, "GET", f"/runs/.cache/{entry}/entry.json") == 3
        assert requests(log, "GET", f"/runs/.cache/{entry}/train.arrow") == 3
