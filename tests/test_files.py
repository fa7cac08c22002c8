"""Files are replaced as a whole, also by a machine that loses power; locks; secrets in URLs."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from dice_ray import files
from dice_ray.errors import InputError, RunError
from dice_ray.files import check_output, lock, store_url, without_password, write_atomically, write_output


def test_a_folder_that_cannot_be_written_is_an_error_in_words(tmp_path: Path) -> None:
    """It was the error of the system, about a file named `lock` that the user does not know."""
    (tmp_path / "file").touch()
    message = "file/run must be a folder that can be written: Not a directory"
    with pytest.raises(RunError, match=message), lock(tmp_path / "file" / "run"):
        pass


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, rename = tmp_path / "config.yaml", Path.replace
    file.write_text("old")
    events: list[str] = []

    def renamed(self: Path, target: Path) -> Path:
        events.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(
        os, "fsync", lambda number: events.append(f"{os.fstat(number).st_size} bytes, {file.read_text()}")
    )
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomically(file, "newer")
    assert events == ["5 bytes, old", "renamed"]
    assert file.read_text() == "newer"


def test_processes_may_store_a_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds an unfinished file of one name for all, which is gone when the second process renames it."""
    file, flush = tmp_path / "config.yaml", files.sync

    def of_another_process(unfinished: Path) -> None:
        monkeypatch.setattr(files, "sync", flush)
        monkeypatch.setattr(os, "getpid", lambda: 0)
        write_atomically(file, "of the other one")
        flush(unfinished)

    monkeypatch.setattr(files, "sync", of_another_process)
    write_atomically(file, "of this one")
    assert file.read_text() == "of this one"
    assert list(tmp_path.iterdir()) == [file]


def test_an_output_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out, other = tmp_path / "out.tsv", tmp_path / "out.tsv.new"
    out.write_text("before")
    out.chmod(0o640)
    other.write_text("of the user")
    (tmp_path / "link.tsv").symlink_to(out)
    with pytest.raises(UnicodeEncodeError):
        write_output(out, "half of it \ud800")
    assert out.read_text() == "before"
    write_output(tmp_path / "link.tsv", "after")
    assert (out.read_text(), out.stat().st_mode & 0o777) == ("after", 0o640)
    assert (tmp_path / "link.tsv").is_symlink()
    assert other.read_text() == "of the user"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.tsv", "out.tsv", "out.tsv.new"]


def test_an_output_may_be_a_pipe(tmp_path: Path) -> None:
    """Renaming a file over a pipe would delete the pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_output(pipe)
    write_output(pipe, "to the pipe")
    assert os.read(reader, 100) == b"to the pipe"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("url", ["://", "s3://", "http://127.0.0.1/runs", "9a://b"])
def test_what_is_no_store_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_RUNS", url)
    with pytest.raises(InputError, match=f"DICE_RAY_RUNS must be a folder, or the URL of a store .*, got {url}$"):
        store_url()
    monkeypatch.setenv("DICE_RAY_RUNS", "s3://bucket")
    assert store_url() == "s3://bucket"


def test_a_folder_of_runs_whose_name_is_not_utf8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow and the ledger cannot name what is in it, which showed after training."""
    monkeypatch.setenv("DICE_RAY_RUNS", "caf\udce9")
    with pytest.raises(InputError, match=r"DICE_RAY_RUNS must be text in UTF-8, got 'caf\\udce9'"):
        files.runs_folder()


def test_a_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its library would retry for 15 minutes, deaf to Ctrl-C."""
    monkeypatch.setattr(files, "_ANSWER_SECONDS", 0.2)
    with pytest.raises(OSError, match=r"nothing answers at gs://no-bucket/runs: it must answer within 0.2 s"):
        files.opened("gs://no-bucket/runs")
    with pytest.raises(
        InputError, match="ftp9://host/runs: no installed package knows this kind of URL: Protocol not known"
    ):
        files.opened("ftp9://host/runs")


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The system names no file where a write fails, and Python's text begins with [Errno 28]."""
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setenv("DICE_RAY_RUNS", str(tmp_path / "runs"))
    free = {tmp_path: 0}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free.get(path, 1 << 30)))
    assert files.disk_error(error) == f"No space left on device: {tmp_path}"
    assert files.disk_error(FileNotFoundError(errno.ENOENT, "", "a.txt")) == "No such file or directory: a.txt"
    assert files.disk_error(OSError("it must answer")) == "it must answer"


def test_no_password_is_shown() -> None:
    assert "secret" not in without_password("mysql://me:secret@host:1/runs")
    assert "cret" not in without_password("mysql://me:se@cret@host:1/runs")
    assert without_password("'s3://AKIA:abc/SECRET@bucket/x', b@c") == "'s3://***@bucket/x', b@c"
    assert without_password("from s3://bucket/a@b to a@b") == "from s3://bucket/a@b to a@b"
    assert "secret" not in without_password("cannot reach 'https://host/a?api_token=secret&Password=secret'")
    assert without_password("sqlite:////a/b@c.db") == "sqlite:////a/b@c.db"
