"""Kills drivers at random moments and resumes them: a line a try, and as the last line JSON.

Run as `python -m tests.faults [TRIES]`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from dice_ray.tuning.ledger import Ledger
from tests.faults.kill import NUM_TRIALS, killed_and_resumed

tries = int(sys.argv[1]) if len(sys.argv) > 1 else 5
survived = lost = 0
for number in range(1, tries + 1):
    with tempfile.TemporaryDirectory(prefix="dr-") as folder, tempfile.TemporaryDirectory(prefix="dr-") as scratch:
        kill = killed_and_resumed(Path(folder), Path(scratch))
        missing = NUM_TRIALS - len(Ledger(kill.file).ended)
    survived += kill.code == 0 and missing == 0
    lost += missing
    print(f"{number}: {kill.moment}; resumed, {missing} of {NUM_TRIALS} trials lost", flush=True)
print(json.dumps({"tries": tries, "survived": survived, "lost": lost}))
