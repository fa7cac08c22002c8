"""Kills drivers, trials and machines at random moments: a line a try, and as the last line JSON.

Run as `python -m tests.faults [TRIES]`, so many of each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from dice_ray.errors import first_line
from tests.faults.kill import KILLS

tries = int(sys.argv[1]) if len(sys.argv) > 1 else 5
survived = dict.fromkeys(KILLS, 0)
for what, killed in KILLS.items():
    for number in range(1, tries + 1):
        with tempfile.TemporaryDirectory(prefix="dr-") as folder, tempfile.TemporaryDirectory(prefix="dr-") as scratch:
            try:
                kill = killed(Path(folder), Path(scratch))
                moment, faults = kill.moment, kill.faults()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                moment, faults = what, [first_line(error)]
        survived[what] += not faults
        print(f"{number}: {moment}: {'; '.join(faults) or 'nothing lost, nothing doubled'}", flush=True)
print(json.dumps({"tries": tries, "survived": survived}))
sys.exit(min(survived.values()) < tries)
