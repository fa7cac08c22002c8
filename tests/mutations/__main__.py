"""Plants one fault after the other in a copy of the repository and runs the tests that should find it: a table, and as
the last line JSON.

Run as `python -m tests.mutations [WORD]`: with a word, only the faults whose file, text or tests hold it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutations.faults import FAULTS

REPOSITORY = Path(__file__).parents[2]
MARKERS = "not (browser or gpu or network or slow)"
VERDICTS = {0: "missed", 1: "found"}
"""By pytest's exit code; with any other one, no test was run, and the list must be mended."""
TIMEOUT = 120
"""Seconds for the tests of one fault."""


def copied(folder: Path) -> Path:
    """A copy of the repository's tracked files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    return folder


def run(copy: Path, scratch: Path, tests: Iterable[str], timeout: int | None = TIMEOUT) -> tuple[int | None, str]:
    """The exit code of pytest, None if the time was up, and its output."""
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        MARKERS,
        "--hypothesis-seed=0",
        f"--basetemp={scratch / 't'}",
    ]
    (scratch / "home").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "HOME": str(scratch / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that the tests started
            output, _ = process.communicate()
            return None, output
    return process.returncode, output


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    # Python takes bytecode for current if the source has the same size and second of modification.
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


word = sys.argv[1] if len(sys.argv) > 1 else ""
faults = [fault for fault in FAULTS if word in " ".join((fault.file, fault.old, fault.new, fault.tests))]
counts = Counter[str]()
with tempfile.TemporaryDirectory(prefix="dr-") as copy_name, tempfile.TemporaryDirectory(prefix="dr-") as scratch_name:
    copy, scratch = copied(Path(copy_name)), Path(scratch_name)
    start = time.monotonic()
    code, output = run(copy, scratch, dict.fromkeys(test for fault in faults for test in fault.tests.split()), None)
    if code != 0:
        sys.exit(f"{output}\nWithout a fault, the tests must pass.")
    print(f"no fault: all tests pass, {time.monotonic() - start:.0f} s\nmutation | tests | found/missed | seconds")
    for fault in faults:
        file, start = copy / fault.file, time.monotonic()
        original = file.read_text(encoding="utf-8")
        assert original.count(fault.old) == 1, f"{fault.file} must hold {fault.old!r} once"
        write(file, original.replace(fault.old, fault.new))
        code, output = run(copy, scratch, fault.tests.split())
        write(file, original)
        verdict = "timeout" if code is None else VERDICTS.get(code, f"pytest's exit code {code}")
        counts[verdict] += 1
        print(f"{fault} | {fault.tests} | {verdict} | {time.monotonic() - start:.0f}", flush=True)
        if verdict not in VERDICTS.values():
            print(output, file=sys.stderr)
print(json.dumps({"number": len(faults), "found": counts["found"], "missed": counts["missed"]}))
sys.exit(counts["found"] < len(faults))
