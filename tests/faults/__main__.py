"""The table of faults: many at random moments, what survived them, and what was lost or doubled; the last line is JSON.

Run as `python -m tests.faults [--tries N] [--only ROW ...] [--jobs N] [--anew]`. Each try is appended to a file, so
that a table that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.cluster.machines import why_not
from tests.faults import clock, disks, folders, kills, networks, stores, torn, user_code
from tests.faults.tries import Rows, Try

RESULTS: Final = Path(".faults_cache/tries.jsonl")
ROWS: Final[Rows] = {
    name: row
    for part in (kills, networks, disks, torn, stores, folders, user_code, clock)
    for name, row in part.ROWS.items()
}
MOUNTING: Final = frozenset(name for part in (disks, folders) for name in part.ROWS)
"""Rows that mount file systems, in a namespace of their own: nothing of them is seen, or left, outside."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--tries", type=int, default=20, help="of each row (20)")
    parser.add_argument("--only", nargs="+", metavar="ROW", default=[], help="rows whose names hold one of these texts")
    parser.add_argument("--jobs", type=int, default=2, help="rows at once (2)")
    parser.add_argument("--anew", action="store_true", help="forget the tries of an earlier call")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of all tries")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a driver below `nohup` would ignore it
    if options.row:
        make(options.row, options.tries, options.results)
        return 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    if options.anew:
        options.results.unlink(missing_ok=True)
    asked = [name for name in ROWS if any(text in name for text in options.only or [""])]
    reasons = {name: why_not() for name in networks.ROWS}
    if not options.only:
        reasons |= dict.fromkeys(networks.LONG, "20 tries take hours: name it with --only")
    names = [name for name in asked if not reasons.get(name)]
    for name in set(asked) - set(names):
        print(f"{name}: skipped: {reasons[name]}")
    if not names:
        return 0
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda name: tried(name, options.tries, options.results), names))
    tries = {name: [each for row, each in stored(options.results) if row == name] for name in names}
    print(table(tries))
    rows = {name: figures(each) for name, each in tries.items()}
    print(json.dumps({"rows": rows}))
    return int(any(row["survived"] < max(row["tries"], options.tries) for row in rows.values()))


def tried(name: str, tries: int, results: Path) -> None:
    """Make the tries that a row lacks, in a process of its own."""
    done = sum(row == name for row, _ in stored(results))
    if done >= tries:
        return
    print(f"{time.strftime('%H:%M:%S')} {name}: {tries - done} tries", flush=True)
    options = ["--row", name, "--tries", str(tries - done), "--results", str(results)]
    command = [sys.executable, "-m", "tests.faults", *options]
    if name in MOUNTING:
        command = ["unshare", "--user", "--map-root-user", "--mount", *command]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stderr=errors, start_new_session=True) as process,
    ):
        try:
            code = process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        errors.seek(0)
        if code:
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            append(results, name, [Try("the row itself", faults=(f"it ended with {code}: {last[:300]}",))])
    print(f"{time.strftime('%H:%M:%S')} {name}: done", flush=True)


def make(name: str, tries: int, results: Path) -> None:
    """Make tries of one row in this process."""
    with tempfile.TemporaryDirectory(prefix="dr-faults-") as folder:
        for each in ROWS[name](Path(folder), tries):
            append(results, name, [each])


def append(results: Path, name: str, tries: Iterable[Try]) -> None:
    with results.open("a") as file:
        for each in tries:
            file.write(json.dumps({"row": name, **asdict(each)}) + "\n")


def stored(results: Path) -> list[tuple[str, Try]]:
    if not results.exists():
        return []
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return [(line.pop("row"), Try(**{**line, "faults": tuple(line["faults"])})) for line in lines]


def figures(tries: Sequence[Try]) -> dict[str, Any]:
    seconds = [each.seconds for each in tries if each.seconds is not None]
    return {
        "tries": len(tries),
        "survived": sum(each.survived for each in tries),
        "lost": sum(each.lost for each in tries),
        "doubled": sum(each.doubled for each in tries),
        "seconds_median": round(statistics.median(seconds), 1) if seconds else None,
        "seconds_most": round(max(seconds), 1) if seconds else None,
    }


def table(tries: dict[str, list[Try]]) -> str:
    """The rows, and below them what has gone wrong, in words."""
    width = max(map(len, tries))
    lines = [f"{'fault':{width}}  tries  survived  lost  doubled  seconds to notice: median, most"]
    for name, each in tries.items():
        row = figures(each)
        seconds = "" if row["seconds_most"] is None else f"{row['seconds_median']:.1f}, {row['seconds_most']:.1f}"
        lines.append(
            f"{name:{width}}  {row['tries']:5}  {row['survived']:8}  {row['lost']:4}  {row['doubled']:7}  {seconds}"
        )
    for name, each in tries.items():
        lines += [f"{name}: {one.moment}: {'; '.join(one.faults)}" for one in each if not one.survived]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
