"""The clock of the driver, Ray and the trials set back by an hour at random moments, but not the monotonic one."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tests.faults.sweeps import Sweep, survived_in_turn
from tests.faults.tries import Rows, Try

HOUR: Final = 3600
SOURCE: Final = Path(__file__).with_name("clock.c")


def set_back(folder: Path, tries: int) -> Iterator[Try]:
    """Again and again in one sweep, which goes on."""
    library = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    yield from survived_in_turn(folder, tries, _an_hour_back, partial(_with_own_clock, library), most=20)


def _with_own_clock(library: Path, folder: Path, scratch: Path) -> Sweep:
    offset = folder / "offset"
    offset.write_bytes(struct.pack("l", 0))
    return Sweep(folder, scratch, environment={"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)})


def _an_hour_back(sweep: Sweep, driver: subprocess.Popen[bytes]) -> None:
    with (sweep.folder / "offset").open("r+b") as offset:
        (before,) = struct.unpack("l", offset.read(8))
        offset.seek(0)
        offset.write(struct.pack("l", before - HOUR))
    sweep.wait(driver, 3)


ROWS: Final[Rows] = {"the clock set back by an hour": set_back}
