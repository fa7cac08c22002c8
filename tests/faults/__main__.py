"""Kills drivers at random moments and resumes them: a line a try, and as the last line JSON.

Run as `python -m tests.faults [TRIES]`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.faults.kill import NUM_TRIALS, killed_and_resumed

tries = int(sys.argv[1]) if len(sys.argv) > 1 else 5
survived = lost = 0
for number in range(1, tries + 1):
    with tempfile.TemporaryDirectory(prefix="dr-") as folder, tempfile.TemporaryDirectory(prefix="dr-") as scratch:
        kill = killed_and_resumed(Path(folder), Path(scratch))
        failed = kill.lost
    survived += kill.code == 0 and not failed
    lost += len(failed)
    print(f"{number}: {kill.moment}; resumed, {len(failed)} of {NUM_TRIALS} trials lost or doubled", flush=True)
print(json.dumps({"tries": tries, "survived": survived, "lost": lost}))
