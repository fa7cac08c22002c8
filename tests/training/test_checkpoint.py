"""Checkpoints: a killed run ends like an uninterrupted one; damaged and foreign files are refused by name."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from dice_ray.errors import RunError
from dice_ray.run import build, single
from dice_ray.training.checkpoint import Checkpoints
from tests.training.test_loop import small, timeless

WEIGHTS = {"weight": torch.zeros(2, 3)}


LEFT = ["best.pt", "config.yaml", "encoder", "last.pt", "metrics.pt", "task.json"]
"""The files of a finished run: two checkpoints, and nothing half written."""


def state(step: int, **values: Any) -> dict[str, Any]:
    parts = {"model": WEIGHTS, "optimizer": {}, "scaler": {}, "step": step, "history": [], "rng": [], "tally": {}}
    return parts | values


def _train_until(kill_at: int, folder: Path, settings: dict[str, Any]) -> None:
    """Train, and be killed at an event: an optimizer step, or the moment before or after a rename of a file."""
    events = itertools.count(1)
    rename = Path.replace

    def event(*_: Any) -> None:
        if next(events) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def renamed(self: Path, target: Path) -> Path:
        event()
        found = rename(self, target)
        event()
        return found

    register_optimizer_step_post_hook(event)
    Path.replace = renamed  # type: ignore[assignment,method-assign]
    evaluations = timeless(single.evaluations(small(**settings), folder))
    torch.save([each.metrics for each in evaluations], folder / "metrics.pt")


@pytest.mark.usefixtures("fp16_anywhere")
@pytest.mark.parametrize(("precision", "minutes"), [("fp16", 0), ("fp32", 10)])
def test_a_run_killed_at_any_moment_ends_like_an_uninterrupted_one(
    tmp_path: Path, minutes: int, precision: str
) -> None:
    settings = {"loss": "dice", "training.checkpoint_minutes": minutes, "training.precision": precision}
    build.prepare(small(**settings))  # a forked process has the data already
    whole = timeless(single.evaluations(small(**settings), tmp_path / "whole"))
    # The first two: before `config.yaml` gets its name, and before `task.json` does.
    moments = [1, 3, *(random.randint(1, 40) for _ in range(4))]
    exits = []
    for kill_at in [*moments, 10**9]:
        process = multiprocessing.get_context("fork").Process(
            target=_train_until, args=(kill_at, tmp_path / "killed", settings)
        )
        process.start()
        process.join()
        exits.append(process.exitcode)
    assert exits[0] == -signal.SIGKILL
    assert exits[-1] == 0
    assert torch.load(tmp_path / "killed/metrics.pt") == [each.metrics for each in whole], moments
    for name in ("last.pt", "best.pt"):
        killed, expected = (torch.load(tmp_path / run / name) for run in ("killed", "whole"))
        torch.testing.assert_close(killed["model"], expected["model"], rtol=0, atol=0, msg=f"{name}, {moments}")
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == LEFT


@pytest.mark.parametrize("fault", ["torn", "empty", "foreign", "another model"])
def test_the_previous_checkpoint_replaces_a_damaged_one(tmp_path: Path, fault: str) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.save_last(state(step), finished=False)
    path = tmp_path / "last.pt"
    if fault in ("torn", "empty"):
        path.write_bytes(path.read_bytes()[: 500 if fault == "torn" else 0])
    else:
        torch.save({"weights": 1} if fault == "foreign" else state(2, model={"weight": torch.zeros(3, 3)}), path)
    reason = {"foreign": "it lacks history, model", "another model": "but weight differs"}.get(fault, "")
    with pytest.warns(UserWarning, match=rf"last\.pt must be .*{reason}.*the run resumes from before\.pt"):
        found = checkpoints.last(WEIGHTS)
    assert found is not None
    assert found["step"] == 1
    (tmp_path / "before.pt").unlink()
    with pytest.raises(RunError, match=r"last\.pt must be"):
        checkpoints.last(WEIGHTS)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (state(1, tally=Path("an object")), "holds objects, which are not loaded as they can run code"),
        (state(1, model=[1]), "its `model` must be weights by their names"),
        (state(1, model={"weight": 3}), "its `model` must be weights by their names"),
        (
            b"\x80\x02cbuiltins\nexec\n(Vopen('ran', 'w')\ntR.",
            "File is not a zip file",
        ),
        (b"\x80\x00", "File is not a zip file"),
        (b"\x80\x02]q", "File is not a zip file"),
        (b"\x80\x02jabc", "File is not a zip file"),
    ],
)
def test_what_is_no_checkpoint_is_refused_and_runs_nothing(tmp_path: Path, content: Any, reason: str) -> None:
    """Finds an error of torch that passes as a traceback, its advice to load code, and code that is run."""
    if isinstance(content, bytes):
        (tmp_path / "best.pt").write_bytes(content)
    else:
        torch.save(content | {"decisions": {}}, tmp_path / "best.pt")
    with pytest.raises(RunError, match=r"best\.pt must be a whole checkpoint of dice_ray") as raised:
        Checkpoints(tmp_path).best()
    assert reason in str(raised.value)
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "ran").exists()


def test_an_error_of_the_disk_is_no_damage_and_a_damaged_file_has_advice_that_can_be_followed(tmp_path: Path) -> None:
    """A folder without permission was said to hold a damaged checkpoint, and a deleted run could not begin anew."""
    (tmp_path / "best.pt").mkdir()
    with pytest.raises(IsADirectoryError):
        Checkpoints(tmp_path).best()
    (tmp_path / "last.pt").write_bytes(b"")
    with pytest.raises(RunError, match=r"Restore it from a copy, or train again under another name$"):
        Checkpoints(tmp_path).last(WEIGHTS)
    # An archive whose table of contents begins before the file does.
    (tmp_path / "last.pt").write_bytes(b"PK\x05\x06" + bytes(8) + b"\xff\xff\xff\x7f\xff\xff\xff\x7f" + bytes(2))
    with pytest.raises(RunError, match="must be a whole checkpoint"):
        Checkpoints(tmp_path).last(WEIGHTS)


def test_a_run_with_a_truncated_checkpoint_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = timeless(single.evaluations(small(), tmp_path / "whole"))
    run = single.evaluations(small(), tmp_path / "torn")
    for _ in range(3):
        next(run)
    run.close()
    path = tmp_path / "torn/last.pt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.warns(UserWarning, match=r"last\.pt must be a whole checkpoint"):
        assert timeless(single.evaluations(small(), tmp_path / "torn")) == whole


def test_a_finished_run_deletes_its_previous_checkpoint_and_temporary_files(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    (tmp_path / "last.pt.77.tmp").write_text("half")
    assert checkpoints.last(WEIGHTS) is None
    checkpoints.save_last(state(1), finished=False)
    checkpoints.save_last(state(2), finished=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before.pt", "last.pt"]
    checkpoints.save_last(state(3), finished=True)
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_files_are_synchronised_before_they_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk, placed = set[tuple[int, ...]](), set[str]()
    fsync, rename = os.fsync, Path.replace

    def content_of(file: int | Path) -> tuple[int, ...]:
        found = os.fstat(file) if isinstance(file, int) else file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def synced(file: int) -> None:
        fsync(file)
        on_disk.add(content_of(file))

    def renamed(self: Path, target: Path) -> Path:
        assert content_of(self) in on_disk, target
        placed.add(target.name)
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    list(single.evaluations(small(), tmp_path / "run"))
    assert placed >= {"config.yaml", "task.json", "last.pt", "before.pt", "best.pt"}
    assert {file.name for file in (tmp_path / "run/encoder").iterdir()} >= {"config.json", "tokenizer.json"}
    assert all(content_of(file) in on_disk for file in (tmp_path / "run/encoder").iterdir())


def test_a_full_disk_is_an_error_of_the_system_and_leaves_nothing(tmp_path: Path) -> None:
    """Torch raises a RuntimeError about its file format: a traceback, and a trial that is not tried again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*best\.pt"):
            Checkpoints(tmp_path).save_best({"model": {"weight": torch.zeros(300, 300)}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
