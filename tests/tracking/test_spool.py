"""The next writer in the folder of a killed process sends what is left, once, and ends the runs that are open."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dice_ray.errors import BusyError, RunError
from dice_ray.files import sealed
from dice_ray.tracking import writer as writing
from dice_ray.tracking.entries import End, Model, Open, Points, RunEntry, Tags, as_line
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.spool import Spool, unsent_spools
from dice_ray.tracking.writer import Writer

KILLED = """
import os, signal, sys, time
from pathlib import Path
from dice_ray.tracking import writer as writing
writing.SECONDS = float(sys.argv[2])
writer = writing.Writer("killed", folder=Path("run"))
writer.open("sweep", name="sweep", params={}, tags={})
for key in ("a", "b"):
    writer.open(key, name=key, params={"lr": 1}, tags={}, parent="sweep")
    for step in range(5):
        writer.metrics(key, step, {"dev/f1": step / 10})
writer.text("a", "config.yaml", "a: 1")
writer.end("a", "FINISHED")
time.sleep(float(sys.argv[1]))
writer.metrics("b", 5, {"dev/f1": 0.5})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("wait", "every"), [(0.0, 30.0), (3.0, 0.1)], ids=["before it was sent", "after"])
def test_a_killed_process_loses_nothing(uri: str, tmp_path: Path, wait: float, every: float) -> None:
    environment = os.environ | {"MLFLOW_TRACKING_URI": uri}
    command = [sys.executable, "-c", KILLED, str(wait), str(every)]
    assert subprocess.run(command, env=environment, timeout=100, check=False).returncode == -signal.SIGKILL
    (spool,) = unsent_spools(tmp_path)
    assert (spool.experiment, spool.store) == ("killed", uri)
    Writer("killed", uri, tmp_path / "run").close()
    assert list(unsent_spools(tmp_path)) == []
    rows = read("killed", uri).set_index("id")
    assert rows["status"].to_dict() == {"sweep": "KILLED", "a": "FINISHED", "b": "KILLED"}
    assert rows["parent"].dropna().to_dict() == {"a": "sweep", "b": "sweep"}
    points = curves("killed", uri)
    assert {key: list(of_run["step"]) for key, of_run in points.groupby("id")} == {
        "a": list(range(5)),
        "b": list(range(6)),
    }
    assert len(list(tmp_path.rglob("artifacts/config.yaml"))) == 1


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file of this process can become larger during the block: a write stores what fits, and the next one raises."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_torn_line(tmp_path: Path) -> None:
    """All that waited was lost: the next process took the file for a damaged one."""
    spool = Spool(tmp_path, "a", "sqlite:////a.db")
    before, long, after = (Tags("a", {"x": value}) for value in ("before", 10_000 * "long", "after"))
    spool.add(before)
    size = spool.path.stat().st_size
    with full_at(size + 2):
        for write in (lambda: spool.add(long), spool.mark_sent):
            with pytest.raises(OSError, match="File too large"):
                write()
    assert spool.path.stat().st_size == size
    spool.add(after)
    spool.close(is_sent=False)
    again = Spool(tmp_path, "a", "sqlite:////a.db")
    again.close(is_sent=True)
    assert again.unsent == [before, after]


def test_a_full_disk_does_not_stop_what_mlflow_can_take(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread ended at the first mark that it could not write, and the command failed at its end for that."""
    monkeypatch.setattr(writing, "_SECONDS", 0.05)
    fails, failed = {"add": False, "mark_sent": True}, []

    def failing(name: str) -> Any:
        real = getattr(Spool, name)

        def call(self: Spool, *entries: RunEntry) -> None:
            if fails[name]:
                failed.append(name)
                raise OSError(28, "No space left on device")
            real(self, *entries)

        return call

    for name in fails:
        monkeypatch.setattr(Spool, name, failing(name))
    with Writer("train", uri, tmp_path / "run") as writer:
        writer.open("mine", name="mine", params={}, tags={})
        while not failed:
            time.sleep(0.01)
        fails["add"] = True
        with pytest.raises(OSError, match="No space left"):
            writer.metrics("mine", 1, {"dev/f1": 0.5})
    assert failed.count("add") == 2, "the end of the run too"
    assert read("train", uri)[["status", "metrics.dev/f1"]].to_numpy().tolist() == [["KILLED", 0.5]]
    assert list(unsent_spools(tmp_path)) == []


def test_a_run_that_was_left_open_can_be_resumed(uri: str, tmp_path: Path) -> None:
    spool = Spool(tmp_path, "train", uri)
    spool.add(Open("mine", "mine", {}, {}, None, 1000))
    spool.close(is_sent=False)
    with Writer("train", uri, tmp_path) as writer:
        writer.open("mine", name="mine", params={}, tags={})
        writer.metrics("mine", 1, {"dev/f1": 0.5})
        writer.end("mine", "FINISHED")
    assert read("train", uri)["status"].tolist() == ["FINISHED"]


def test_a_copy_of_a_killed_runs_folder_does_not_end_the_run_that_has_finished(uri: str, tmp_path: Path) -> None:
    """Its spool says that the run is open, and would end it as KILLED."""
    spool = Spool(tmp_path / "run", "train", uri)
    spool.add(Open("mine", "mine", {}, {}, None, 1000))
    spool.close(is_sent=False)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with Writer("train", uri, tmp_path / "run") as writer:
        writer.open("mine", name="mine", params={}, tags={})
        writer.end("mine", "FINISHED")
    Writer("train", uri, tmp_path / "copy").close()
    assert read("train", uri)["status"].tolist() == ["FINISHED"]


def test_above_the_mark_only_open_runs_are_read_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", "sqlite:////a.db")
    opened = Open("still", "still", {}, {}, None, 1)
    for entry in (opened, Open("over", "over", {}, {}, None, 1), Points("still", ()), End("over", "FINISHED", 2)):
        spool.add(entry)
    spool.mark_sent()
    spool.add(Tags("still", {"x": "größer"}))
    spool.close(is_sent=False)
    with spool.path.open("ab") as file:
        file.write(b'{"entry": "Tags", "key": "torn')
    os.utime(spool.path, (1000.5, 1000.5))
    again = Spool(tmp_path, "a", "sqlite:////a.db")
    unsent = [opened, Tags("still", {"x": "größer"})]
    assert again.unsent == [*unsent, End("still", "KILLED", 1000500)], "ended at the time of its last line"
    again.add(Tags("still", {"more": "y"}))
    again.close(is_sent=False)
    third = Spool(tmp_path, "a", "sqlite:////a.db")
    assert third.unsent[:3] == [*unsent, Tags("still", {"more": "y"})], "the torn line was cut off"
    third.close(is_sent=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_first_line_is_torn_holds_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a", "sqlite:////a.db")
    spool.close(is_sent=False)
    assert len(list(unsent_spools(tmp_path))) == 1
    spool.path.write_text('{"experiment": "a", "sto')
    assert list(unsent_spools(tmp_path)) == []
    again = Spool(tmp_path, "a", "sqlite:////a.db")
    assert again.unsent == []
    again.close(is_sent=False)
    assert [spool.experiment for spool in unsent_spools(tmp_path)] == ["a"]


def test_a_folder_has_one_writer_and_each_store_a_file(tmp_path: Path) -> None:
    first = Spool(tmp_path, "a", "http://me:secret@127.0.0.1:1")
    with pytest.raises(BusyError, match=r"another one, such as `dice-ray runs`, is sending them now"):
        Spool(tmp_path, "a", "http://me:secret@127.0.0.1:1")
    other = Spool(tmp_path, "a", "http://127.0.0.1:2")
    assert other.path != first.path
    first.add(Tags("a", {"x": "y"}))
    first.close(is_sent=False)
    other.close(is_sent=True)
    (spool,) = unsent_spools(tmp_path)
    assert spool.store == "http://***@127.0.0.1:1"
    assert not spool.is_of_this_store
    assert "secret" not in first.path.read_text()


@pytest.mark.parametrize(
    "line",
    [
        b"[1, 2]",
        b'"entry"',
        b'{"entry": "Tags", "key": ["a"], "tags": {}}',
        b'{"entry": "Points", "key": "a", "points": [{"metric": "m", "value": "high", "step": 1, "at": 1}]}',
        b'{"entry": "Tags", "key": "\xff", "tags": {}}',
        b"[" * 100_000,
        sealed(as_line(Tags("a", {"x": "y"}))).encode().replace(b"y", b"z"),
    ],
)
def test_a_damaged_line_is_refused_with_the_file_s_name(line: bytes, tmp_path: Path) -> None:
    """Finds a traceback in place of the file's name, at the line or when its entry is sent."""
    spool = Spool(tmp_path, "a", "sqlite:////a.db")
    spool.close(is_sent=False)
    head = spool.path.read_bytes()
    spool.path.write_bytes(head + line + b"\n")
    with pytest.raises(RunError, match=r"unsent-.*\.jsonl must hold the entries .* but is damaged"):
        Spool(tmp_path, "a", "sqlite:////a.db")
    for first in (line, head.replace(b"a.db", b"b.db").rstrip()):
        spool.path.write_bytes(first + b"\n" + head)
        with pytest.raises(RunError, match=r"unsent-.*\.jsonl must hold the entries .* but is damaged"):
            list(unsent_spools(tmp_path))


def test_a_model_outside_of_the_folder_is_neither_sent_nor_deleted(tmp_path: Path) -> None:
    for where, is_inside in ((tmp_path / "run/model", True), (tmp_path / "photos", False)):
        where.mkdir(parents=True)
        spool = Spool(tmp_path / "run", "a", "sqlite:////a.db")
        spool.add(Model("a", str(where), "mine"))
        spool.close(is_sent=False)
        if is_inside:
            again = Spool(tmp_path / "run", "a", "sqlite:////a.db")
            again.close(is_sent=False)
            assert again.unsent == [Model("a", str(where), "mine")]
        else:
            with pytest.raises(RunError, match=r"the model .*photos lies outside of .*run"):
                Spool(tmp_path / "run", "a", "sqlite:////a.db")


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    """Texts of the data wait in it, and other users of the machine could read them."""
    before = os.umask(0)
    try:
        spool = Spool(tmp_path, "a", "http://127.0.0.1:1")
    finally:
        os.umask(before)
    spool.close(is_sent=False)
    assert spool.path.stat().st_mode & 0o777 == 0o600


def test_entries_that_were_never_sent_are_read_once(tmp_path: Path) -> None:
    entries: list[RunEntry] = [
        Open("sweep", "sweep", {}, {}, None, 1),
        Open("a", "a", {}, {}, "sweep", 1),
        End("a", "FINISHED", 2),
    ]
    spool = Spool(tmp_path, "a", "sqlite:////a.db")
    for entry in entries:
        spool.add(entry)
    spool.close(is_sent=False)
    again = Spool(tmp_path, "a", "sqlite:////a.db")
    assert again.unsent[:-1] == entries
    again.close(is_sent=True)
