"""One try of each row of the table; `make test-faults` makes 20. And the table itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.machines import why_not
from tests.faults import networks, torn
from tests.faults.__main__ import ROWS, append, figures, stored, table
from tests.faults.tries import Try, sharing

NO_RAY = frozenset(torn.ROWS)


@pytest.mark.parametrize("name", torn.ROWS)
def test_damage_is_never_read_as_other_values(name: str, tmp_path: Path) -> None:
    """Finds a reader that raises anything but its own error, or returns what was not written."""
    damaged = list(torn.ROWS[name](tmp_path, 60))
    assert not [each for each in damaged if not each.survived]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in ROWS if name not in NO_RAY])
def test_one_try(name: str, tmp_path: Path) -> None:
    if name in networks.ROWS and why_not():
        pytest.skip(why_not())
    file = tmp_path / "tries.jsonl"
    command = [sys.executable, "-m", "tests.faults", "--tries", "1", "--only", name, "--results", str(file)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_table_counts_what_a_sweep_has_lost_once_and_lets_none_of_its_tries_survive(tmp_path: Path) -> None:
    file = tmp_path / "tries.jsonl"
    append(file, "kill", sharing([Try("early", 2.0), Try("late", 4.0)], Try("", lost=3)))
    append(file, "other", [Try("once", None)])
    found = {name: [each for row, each in stored(file) if row == name] for name in ("kill", "other")}
    assert (figures(found["kill"])["survived"], figures(found["kill"])["lost"]) == (0, 3)
    assert figures(found["other"]) == {"tries": 1, "survived": 1, "lost": 0, "doubled": 0} | dict.fromkeys(
        ("seconds_median", "seconds_most")
    )
    lines = table(found).splitlines()
    assert lines[1].split() == ["kill", "2", "0", "3", "0", "3.0,", "4.0"]
    assert lines[3:] == [f"kill: {moment}: their sweep has lost 3 and doubled 0" for moment in ("early", "late")]
