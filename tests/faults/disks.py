"""Disks that are full from a random moment on, freed after seconds or not: one clear error, and nothing is lost.

Each try is a whole run of `dice-ray train`, and the disk of its folder, cache, store or temporary files is one of a few
MiB. Only `a sweep's folder` is that of a sweep on Ray, where the ledger is on the disk that is full.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from tests.faults import lone
from tests.faults.sweeps import Sweep, checked, killed_in_turn
from tests.faults.tries import Rows, Try

SIZE: Final = 64
"""MiB of each disk."""


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A file system of its own at the folder, within the namespace of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """A file that leaves no byte of the disk free."""
    file = folder / "filling"
    with suppress(OSError), file.open("wb", buffering=0) as filling:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while filling.write(b"\0" * size):
                    pass
    return file


def full(where: str, is_freed: bool, folder: Path, tries: int) -> Iterator[Try]:
    """Runs whose disk is full from a random moment on, for 3 s or until the run has ended."""
    for _ in range(tries):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            yield checked(partial(_full_once, where, is_freed, folder, Path(own)))


def _full_once(where: str, is_freed: bool, above: Path, folder: Path) -> Try:
    places = {place: folder / place for place in ("dice_ray_runs", "cache", "store", "tmp")}
    for place in places.values():
        place.mkdir()
    faults: list[str] = []
    with disk(places[where]):
        store = lone.new_store(above, places["store"])
        environment = {
            "DICE_RAY_CACHE": str(places["cache"]),
            "MLFLOW_TRACKING_URI": store,
            "TMPDIR": str(places["tmp"]),
        }
        with lone.driver(folder, *lone.TRAIN, **environment) as driver:
            moment = driver.random_moment()
            filling = fill(places[where])
            start = time.monotonic()
            if is_freed:
                driver.process.join(3)
                filling.unlink()
            code = driver.wait()
            seconds = time.monotonic() - start
        if "Traceback" in driver.messages:
            faults.append(f"a traceback: {driver.messages[-300:]}")
        elif code and "space left" not in driver.messages and "disk" not in driver.messages:
            faults.append(f"exit {code} without a word of the disk: {driver.messages[-300:]}")
        filling.unlink(missing_ok=True)
        lone.must_end(folder, lone.TRAIN, faults, **environment)
        return lone.checked(moment, seconds if code else None, store, faults)


def sweep_full(folder: Path, tries: int) -> Iterator[Try]:
    """The driver ends, or its trials fail with the reason; when the disk is freed, the sweep is resumed."""
    with tempfile.TemporaryDirectory(dir=folder) as small, disk(Path(small)):

        def make(own: Path, scratch: Path) -> Sweep:
            (runs := Path(small) / own.name).mkdir()
            (own / "dice_ray_runs").symlink_to(runs)
            return Sweep(own, scratch)

        yield from killed_in_turn(folder, tries, disk_filled, make, in_startup=False)


def disk_filled(sweep: Sweep, driver: subprocess.Popen[bytes]) -> float | None:
    """Seconds until the driver has ended; None where it has waited until the disk was freed, after 20 s at most."""
    filling = fill(sweep.path.parent.resolve())
    start = time.monotonic()
    try:
        with suppress(subprocess.TimeoutExpired):
            driver.wait(20)
        seconds = time.monotonic() - start if driver.poll() is not None else None
        assert "Traceback" not in sweep.messages, f"a traceback: {sweep.messages[-300:]}"
        if seconds is not None and driver.returncode:
            assert "space" in sweep.messages, f"the message must say that the disk is full: {sweep.messages[-300:]}"
    finally:
        filling.unlink()
    if seconds is None:
        driver.terminate()
        driver.wait(60)
    return seconds


ROWS: Final[Rows] = {
    f"the disk of {what} full, {'freed after 3 s' if is_freed else 'not freed'}": partial(full, where, is_freed)
    for where, what in {
        "dice_ray_runs": "the run",
        "cache": "the cache",
        "store": "MLflow's store",
        "tmp": "temporary files",
    }.items()
    for is_freed in (True, False)
} | {"the disk of a sweep full, not freed": sweep_full}
