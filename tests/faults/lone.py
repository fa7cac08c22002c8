"""Runs of `dice-ray train`, each in a process that is forked from one which has imported all that it needs."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from dice_ray.tracking.reader import curves, read
from tests.faults.tries import Try
from tests.tracking.stores import copied

EVALUATIONS: Final = 8
NAME: Final = "run"
SETTINGS: Final = (
    *("data.source.synthetic.size=400", "training.epochs=4", f"training.evaluations={EVALUATIONS}"),
    *("training.batch_size=8", "training.checkpoint_minutes=0"),
)
TRAIN: Final = ("train", "synthetic_pairs", *(word for each in SETTINGS for word in ("--set", each)), "--name", NAME)
SECONDS: Final = 200
"""What takes longer hangs."""


@dataclass(frozen=True)
class Driver:
    """A process of `dice-ray` in a folder."""

    folder: Path
    process: Any
    output: str

    @property
    def messages(self) -> str:
        """What it wrote to stderr, in one line."""
        return " ".join((self.folder / self.output).read_text(errors="replace").split())

    @property
    def code(self) -> int | None:
        """Its exit status; None while it runs."""
        code: int | None = self.process.exitcode
        return code

    def wait(self, seconds: float = SECONDS) -> int:
        """Wait for its end; its exit status."""
        self.process.join(seconds)
        if self.code is None:
            raise AssertionError(f"it hangs: {self.messages[-200:]}")
        return self.code

    def random_moment(self) -> str:
        """Wait for one, in words: after the start, in one of three cases, or after the first checkpoint."""
        if random.random() < 0.3:
            seconds = random.uniform(0, 3)
            time.sleep(seconds)
            return f"{seconds:.1f} s after its start"
        while not (self.folder / "dice_ray_runs" / NAME / "last.pt").exists() and self.code is None:
            time.sleep(0.01)
        seconds = random.uniform(0, 1.5)
        time.sleep(seconds)
        return f"{seconds:.1f} s after its first checkpoint"

    def stop(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)


@contextmanager
def driver(folder: Path, *words: str, output: str = "driver.txt", **environment: str) -> Iterator[Driver]:
    """`dice-ray` with these words; nothing of it is left after the block."""
    import transformers  # noqa: F401

    import dice_ray.run.single  # noqa: F401

    process = multiprocessing.get_context("fork").Process(target=_main, args=(folder, words, output, environment))
    process.start()
    try:
        yield Driver(folder, process, output)
    finally:
        process.kill()
        process.join()


def must_end(folder: Path, words: tuple[str, ...], faults: list[str], **environment: str) -> None:
    """Run `dice-ray` with these words, which must end well: what it says else is a fault."""
    with driver(folder, *words, **environment) as process:
        if code := process.wait():
            faults.append(f"{words[-1]} cannot go on: exit {code}: {process.messages[-300:]}")


def _main(folder: Path, words: tuple[str, ...], output: str, environment: Mapping[str, str]) -> NoReturn:
    from dice_ray.cli.app import main

    os.chdir(folder)
    os.environ.update(environment)
    for number, file in ((1, os.devnull), (2, output)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = ["dice-ray", *words]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  what a process of its own would print
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@cache
def _migrated(folder: Path) -> Path:
    file = folder / "migrated.db"
    program = f"from dice_ray.tracking.writer import Writer; Writer('first', 'sqlite:///{file}').close()"
    subprocess.run([sys.executable, "-c", program], check=True)
    return file


def new_store(above: Path, folder: Path) -> str:
    """The URI of an empty store in a folder, a copy of the one that is made once in the folder above."""
    return copied(_migrated(above), folder)


def checked(
    moment: str,
    seconds: float | None,
    store: str,
    faults: list[str],
    names: tuple[str, ...] = (NAME,),
    others: tuple[str, ...] = (),
) -> Try:
    """Each run of these names has ended, and each of its evaluations is in MLflow once; there may be others."""
    runs, points = read("train", store), curves("train", store)
    states = [(id_, status) for id_, status in zip(runs["id"], runs["status"], strict=True) if id_ not in others]
    if sorted(states) != [(name, "FINISHED") for name in sorted(names)]:
        faults.append(f"in MLflow: {states}")
    scores = points[(points["metric"] == "dev/f1") & points["id"].isin(names)]
    steps = scores[["id", "step"]].drop_duplicates()
    return Try(moment, seconds, EVALUATIONS * len(names) - len(steps), len(scores) - len(steps), tuple(faults))
