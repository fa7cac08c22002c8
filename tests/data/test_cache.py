"""The cache: an entry is complete or not used, while other processes write, damage, die or clear."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dice_ray.cli.app import app
from dice_ray.data import cache
from dice_ray.data.arrow import ArrowWriter, Rows, batch_of_rows
from dice_ray.data.reading import store_splits
from dice_ray.data.sources import DataConfig, load
from dice_ray.errors import DataError

WRITER = """
import errno, fcntl, os, sys, time
from pathlib import Path
from dice_ray.data import cache
from dice_ray.data.arrow import ArrowWriter, Rows, batch_of_rows

def write(folder):
    with ArrowWriter(folder / "train.arrow") as file:
        file.write(batch_of_rows([{"number": 1}, {"number": 2}]))
        print("writing", flush=True)
        cache.folder().with_name(f"writing-{os.getpid()}").touch()
        while len(list(cache.folder().parent.glob("writing-*"))) < int(sys.argv[1]):
            time.sleep(0.01)
    return {"train": 2}, {"writer": os.getpid()}

if "without locks" in sys.argv:
    def flock(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl.flock = flock
entry = cache.get_or_write("rows", {"of": "the test"}, {"data": "x"}, write)
print(entry.holds["writer"], [row["number"] for row in Rows(entry.tables["train"])])
"""


@pytest.fixture(autouse=True)
def _an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / "cache"))


def writer(num_writers: int, *how: str) -> subprocess.Popen[str]:
    """A process that writes an entry and, with its draft open, waits until this many writers have come as far."""
    return subprocess.Popen([sys.executable, "-c", WRITER, str(num_writers), *how], stdout=subprocess.PIPE, text=True)


def written(times: list[str], key: str = "a") -> cache._CacheEntry:
    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        times.append(key)
        with ArrowWriter(folder / "train.arrow") as file:
            file.write(batch_of_rows([{"name": f"{key}{number}", "ids": [number] * 500} for number in range(40)]))
        return {"train": 40}, {"key": key}

    return cache.get_or_write("rows", {"key": key}, {"data": key, "task": "tagging"}, write)


def names(entry: cache._CacheEntry) -> list[str]:
    return [row["name"] for row in Rows(entry.tables["train"])]


def test_an_entry_is_written_once_and_opened_again() -> None:
    times: list[str] = []
    first, again, other = written(times), written(times), written(times, "b")
    assert times == ["a", "b"]
    assert first.folder == again.folder != other.folder
    assert names(again) == [f"a{number}" for number in range(40)]
    assert again.holds == {"key": "a"}


def test_writers_of_one_entry_wait_for_each_other() -> None:
    """Finds trials that start together and each encode the same data."""
    processes = [writer(1) for _ in range(3)]
    outputs = [process.communicate(timeout=200)[0].splitlines() for process in processes]
    assert sorted(map(len, outputs)) == [1, 1, 2]
    assert len({lines[-1] for lines in outputs}) == 1
    assert [place.name.partition("-")[0] for place in cache.folder().iterdir()] == ["rows"]


def test_concurrent_writers_agree_on_one_entry_where_a_disk_knows_no_locks() -> None:
    processes = [writer(3, "without locks") for _ in range(3)]
    outputs = [process.communicate(timeout=200)[0].splitlines() for process in processes]
    assert all(lines[0] == "writing" for lines in outputs)
    assert {lines[-1] for lines in outputs} == {outputs[0][-1]}
    assert outputs[0][-1].endswith("[1, 2]")
    assert int(outputs[0][-1].split()[0]) in {process.pid for process in processes}
    assert [place.name.partition("-")[0] for place in cache.folder().iterdir()] == ["rows"]


def test_a_draft_that_could_not_be_locked_is_not_deleted_by_writers_that_have_locks() -> None:
    process = writer(2, "without locks")
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    written([])
    cache.clear()
    cache.folder().with_name("writing-here").touch()
    assert process.communicate(timeout=200)[0] == f"{process.pid} [1, 2]\n"


def test_the_draft_of_a_killed_writer_is_not_used_and_is_deleted() -> None:
    process = writer(1_000_000)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    (draft,) = cache.folder().glob("draft-*")
    assert cache.list_entries() == []
    times: list[str] = []
    written(times)
    assert draft.exists(), "the draft of a living writer must stay"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert draft.exists()
    assert [len(one.rows) for one in cache.list_entries()] == [1]
    again = writer(1)
    assert again.communicate(timeout=200)[0].splitlines() == ["writing", f"{again.pid} [1, 2]"]
    assert not draft.exists()


def truncated(entry: Path, other: Path) -> None:
    os.truncate(entry / "train.arrow", 4000)


def changed_in_the_middle(entry: Path, other: Path) -> None:
    content = bytearray((entry / "train.arrow").read_bytes())
    content[len(content) // 2] ^= 1
    (entry / "train.arrow").write_bytes(content)


def without_its_file(entry: Path, other: Path) -> None:
    (entry / "train.arrow").unlink()


def with_a_truncated_manifest(entry: Path, other: Path) -> None:
    os.truncate(entry / "entry.json", 60)


def with_an_edited_manifest(entry: Path, other: Path) -> None:
    file = entry / "entry.json"
    file.write_text(file.read_text().replace('"rows": {"train": 40}', '"rows": {"train": 41}'))


def of_another_key(entry: Path, other: Path) -> None:
    shutil.rmtree(entry)
    shutil.copytree(other, entry)


def a_file(entry: Path, other: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("no folder")


@pytest.mark.parametrize(
    "damage",
    [
        *(truncated, changed_in_the_middle, without_its_file, with_a_truncated_manifest, with_an_edited_manifest),
        *(of_another_key, a_file),
    ],
)
def test_a_damaged_or_foreign_entry_is_replaced(damage: Callable[[Path, Path], None]) -> None:
    times: list[str] = []
    first, other = written(times), written(times, "b")
    damage(first.folder, other.folder)
    assert names(written(times)) == [f"a{number}" for number in range(40)]
    assert times == ["a", "b", "a"]
    assert names(written(times)) == [f"a{number}" for number in range(40)]
    assert times == ["a", "b", "a"]


def test_another_version_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[str] = []
    written(times)
    monkeypatch.setattr(cache, "_VERSION", cache._VERSION + 1)
    written(times)
    assert times == ["a", "a"]
    assert len(cache.list_entries()) == 2


def test_a_failed_writer_leaves_nothing() -> None:
    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        (folder / "train.arrow").write_text("half")
        raise DataError("a bad row")

    with pytest.raises(DataError, match="a bad row"):
        cache.get_or_write("rows", {}, {}, write)
    assert list(cache.folder().iterdir()) == []


def test_entries_are_listed_and_cleared_and_open_ones_stay_readable() -> None:
    times: list[str] = []
    first, second = written(times), written(times, "b")
    long_ago = time.time() - 1000
    os.utime(second.folder / "entry.json", (long_ago, long_ago))
    (cache.folder() / "mine.txt").write_text("no entry")
    listed = cache.list_entries()
    assert [one.name for one in listed] == [first.folder.name, second.folder.name]
    assert (listed[0].kind, listed[0].about, listed[0].rows) == (
        "rows",
        {"data": "a", "task": "tagging"},
        {"train": 40},
    )
    assert listed[0].size == sum(file.stat().st_size for file in first.folder.iterdir())
    written(times, "b")
    assert [one.name for one in cache.list_entries()] == [second.folder.name, first.folder.name]
    rows = Rows(first.tables["train"])
    assert rows[1]["name"] == "a1"
    assert cache.clear() == 2
    assert [file.name for file in cache.folder().iterdir()] == ["mine.txt"]
    assert rows[39]["name"] == "a39"
    assert names(first)[0] == "a0"
    assert cache.clear() == 0


def test_entries_that_were_used_lately_stay() -> None:
    old, new = written([], "old"), written([], "new")
    os.utime(old.folder / "entry.json", (time.time() - 3 * 86400,) * 2)
    CliRunner().invoke(app, ["cache", "--clear", "--older-than", "4d"])
    assert len(cache.list_entries()) == 2
    assert "Cleared 1 " in CliRunner().invoke(app, ["cache", "--clear", "--older-than", "2d"]).output
    assert [entry.name for entry in cache.list_entries()] == [new.folder.name]


def test_the_folder_is_private_and_set_by_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DICE_RAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    written([])
    assert cache.folder() == tmp_path / "xdg" / "dice_ray"
    assert cache.folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "dice_ray"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"the cache must be a folder .* got .*file .*set DICE_RAY_CACHE"):
        written([])


def sentences(folder: Path, tag: str) -> DataConfig:
    """A corpus whose tags stand in a second file."""
    (folder / "sentences.txt").write_text("\n".join(f"Ann came{number}" for number in range(20)))
    (folder / "tags.txt").write_text("\n".join([f"{tag} O"] * 20))
    files = {"folder": str(folder), "train": "sentences.txt", "reader": "parallel"}
    return DataConfig.model_validate({"source": {"files": files}})


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(sentences(tmp_path, "B-PER"))
    assert first.train[0].tags == ("B-PER", "O")
    assert len(cache.list_entries()) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert load(sentences(elsewhere, "B-PER")) == first
    assert len(cache.list_entries()) == 1
    assert load(sentences(tmp_path, "B-LOC")).train[0].tags == ("B-LOC", "O")
    assert len(cache.list_entries()) == 2
    config = sentences(tmp_path, "B-LOC")
    assert load(config.model_copy(update={"split_seed": 1})).dev != load(config).dev
    assert len(cache.list_entries()) == 3
    monkeypatch.setattr("dice_ray.data.sources.store_splits", None)
    assert load(config).train[0].tags == ("B-LOC", "O")


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = sentences(tmp_path, "B-PER")

    def disturbed(*arguments: Any) -> Any:
        (tmp_path / "tags.txt").write_text("\n".join(["B-ORG O"] * 20))
        return store_splits(*arguments)

    monkeypatch.setattr("dice_ray.data.sources.store_splits", disturbed)
    with pytest.raises(DataError, match="must not change while they are read"):
        load(config)
    assert cache.list_entries() == []


def test_the_command_lists_and_clears_entries(tmp_path: Path) -> None:
    load(sentences(tmp_path, "B-PER"))

    def output(*options: str) -> str:
        result = CliRunner().invoke(app, ["cache", *options], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    assert f"{tmp_path.name}: train 18, dev 2\n1 entries" in output()
    listed = json.loads(output("--json"))
    assert listed["folder"] == str(cache.folder())
    assert [entry["rows"] for entry in listed["entries"]] == [{"train": 18, "dev": 2}]
    assert output("--clear") == f"Cleared 1 entries from {cache.folder()}.\n"
    assert json.loads(output("--clear", "--json"))["cleared"] == 0
    assert output() == f"0 entries, 0.0 MB, in {cache.folder()}\n"
