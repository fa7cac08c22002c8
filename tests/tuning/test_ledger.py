"""The ledger: what was noted is read again, a torn last line is dropped, other damage is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dice_ray.errors import RunError
from dice_ray.files import sealed
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec

FOCAL = TrialSpec(id="0001", params={"loss": "focal", "loss.focal.gamma": 2.5}, seed=3)
DICE = TrialSpec(id="0002", params={"loss": "dice"}, seed=3, arm="dice")
END = TrialOutcome(id="0001", state="done", curve=((10, 0.25), (20, 0.5)), metrics=({"dev/f1": 0.25}, {"dev/f1": 0.5}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    for event in (FOCAL, DICE, END):
        ledger.append(event)
    return path


def test_what_was_noted_is_read_again(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.specs == {"0001": FOCAL, "0002": DICE}
    assert ledger.outcomes == {"0001": END}
    assert ledger.unfinished == [DICE]
    assert END.score == 0.5


def test_the_score_is_that_of_the_best_evaluation() -> None:
    assert TrialOutcome(id="0001", state="done", curve=((10, 0.25), (20, 0.5), (30, 0.125))).score == 0.5
    assert TrialOutcome(id="0001", state="failed").score is None


def test_an_event_is_on_the_disk_when_append_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_size))
    Ledger(path).append(TrialOutcome(id="0002", state="failed"))
    assert synced == [path.stat().st_size]


def test_an_event_that_a_full_disk_refuses_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds an outcome that the disk lacks, and zeros in the place of a line that was never written."""
    ledger, content = Ledger(path), path.read_bytes()

    def full(number: int) -> None:
        os.truncate(number, os.fstat(number).st_size - 20)  # the last bytes found no place
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for event in (TrialOutcome(id="0002", state="failed"), FOCAL.model_copy(update={"id": "0003"})):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                ledger.append(event)
    assert (ledger.specs, ledger.outcomes) == ({"0001": FOCAL, "0002": DICE}, {"0001": END})
    ledger.append(TrialOutcome(id="0002", state="failed"))
    assert path.read_bytes().startswith(content)
    assert Ledger(path).outcomes == ledger.outcomes
    assert not Ledger(path).unfinished


def test_a_torn_last_line_is_dropped_and_written_over(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(whole[:-1].rindex(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:size])
        ledger = Ledger(path)
        assert ledger.unfinished == [FOCAL, DICE]
        ledger.append(END)
        assert path.read_bytes() == whole


def test_nothing_of_a_torn_line_stays(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    shorter = TrialOutcome(id="0002", state="failed")
    Ledger(path).append(shorter)
    assert Ledger(path).outcomes == {"0002": shorter}
    assert path.read_text().count("\n") == 3


def test_a_ledger_without_checksums_is_read(path: Path) -> None:
    """Of an earlier version of dice_ray."""
    path.write_text("".join(f"{event.model_dump_json()}\n" for event in (FOCAL, DICE, END)))
    assert Ledger(path).unfinished == [DICE]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{torn in the middle", "line 2"),
        ('{"event": "begin", "id": "0009", "seed": 0}', "line 2"),
        ('{"event": "end", "id": "0009", "state": "done"}', "0009 must have started"),
        (FOCAL.model_dump_json(), "0001 has started already"),
        ("", "line 2"),
        (
            FOCAL.model_copy(update={"id": "../../mine"}).model_dump_json(),
            "must be a name of a folder, got '../../mine'",
        ),
        ("[" * 100_000, "line 2"),
        (sealed(FOCAL.model_dump_json()).replace("2.5", "3.5"), "its checksum must be"),
    ],
)
def test_other_damage_names_its_line(path: Path, line: str, said: str) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(RunError, match=r"ledger.jsonl, line 2") as error:
        Ledger(path)
    assert said in str(error.value)


def test_a_failed_cell_may_begin_again(path: Path) -> None:
    ledger = Ledger(path)
    ledger.append(TrialOutcome(id="0002", state="failed", failure="no memory"))
    ledger.append(DICE)
    assert Ledger(path).unfinished == [DICE]
