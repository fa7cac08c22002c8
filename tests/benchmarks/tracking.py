"""The share of a sweep's wall time that tracking takes: our writer on against off, interleaved; the last line is JSON.

Run as `python -m tests.benchmarks.tracking [PAIRS]`. Off is the same sweep whose writer swallows what it is told.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dice_ray.config.load import values_layer
from dice_ray.run.driver import Driver
from dice_ray.tracking import writer as writing
from dice_ray.tracking.store import quiet
from dice_ray.tuning import runner
from dice_ray.tuning.sweep import SweepPlan

NUM_TRIALS = 16
GOAL = 0.05
VALUES: dict[str, Any] = {
    "task": "sentence_pair",
    "data.source": "synthetic",
    "training.epochs": 2,
    "training.evaluations": 10,
}


class Off(writing.Writer):
    """A writer that is told everything and stores nothing."""

    def __init__(self, experiment: str, uri: str | None = None, folder: Path | None = None) -> None:
        self.failure = None

    def _add(self, entry: object) -> None: ...

    def open(self, *arguments: Any, **named: Any) -> None: ...

    def end(self, *arguments: Any) -> None: ...

    def close(self) -> None: ...


def seconds(folder: Path, *, is_tracked: bool) -> tuple[float, float]:
    """The wall time of one sweep, Ray's start left in since it hides the store's; and the driver's CPU time."""
    runner.Writer = writing.Writer if is_tracked else Off  # type: ignore[attr-defined]
    plan = SweepPlan(
        name=folder.name,
        layers=(values_layer("preset", VALUES),),
        space="search_spaces.loss_tuning:loss_tuning",
        trials=NUM_TRIALS,
        sampler="random",
        scheduler="none",
    )
    begun, cpu = time.perf_counter(), time.process_time()
    progress = runner.run(plan, folder, Driver(num_cpus=2))
    assert progress.is_finished, progress
    return time.perf_counter() - begun, time.process_time() - cpu


def main(num_pairs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="dr-") as name:
        os.chdir(name)
        quiet()
        seconds(Path("warm"), is_tracked=True)  # imports, the cache of the data, MLflow's tables
        shares, cpu_shares = [], []
        for pair in range(num_pairs):
            took = {}
            for is_tracked in (True, False) if pair % 2 else (False, True):
                took[is_tracked] = seconds(Path(f"{'on' if is_tracked else 'off'}{pair}"), is_tracked=is_tracked)
            (on, on_cpu), (off, off_cpu) = took[True], took[False]
            shares.append(1 - off / on)
            cpu_shares.append((on_cpu - off_cpu) / on)
            print(
                f"{pair + 1}: on {on:6.2f} s, off {off:6.2f} s, share {shares[-1]:+.3f}; "
                f"CPU of the driver: on {on_cpu:5.2f} s, off {off_cpu:5.2f} s",
                flush=True,
            )
    share = statistics.median(shares)
    print(f"the median share is {share:+.3f}, the goal at most {GOAL}")
    facts = {"benchmark": "tracking", "trials": NUM_TRIALS, "pairs": num_pairs, "shares": shares}
    print(json.dumps({**facts, "share": share, "cpu_share": statistics.median(cpu_shares), "goal": GOAL}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
