"""Where runs are: the folder of runs on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dice_ray.remote import RUNS, store_url

_DEFAULT: Final = "dice_ray_runs"


def runs_folder() -> Path:
    """The folder of runs: `$DICE_RAY_RUNS`, or `dice_ray_runs` in the working directory.

    If the variable is a URL, this folder has the plans and ledgers, and the checkpoints until they are in the store.
    """
    return Path(_DEFAULT if store_url() else os.environ.get(RUNS) or _DEFAULT).expanduser()
