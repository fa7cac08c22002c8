"""A sweep of many trials that do nothing: what its driver takes, a trial, and whether that grows."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import psutil

from dice_ray import api
from dice_ray.run import cluster

cluster.prepare("local")  # before the next lines import Ray

from dice_ray.tuning import trial as trials  # noqa: E402
from dice_ray.tuning.ledger import TrialSpec  # noqa: E402

SPACE = f"{Path(__file__).parents[1] / 'tuning' / 'spaces.py'}:rate"


class NoWork(trials.TrialActor):
    """A trial that is at its end as soon as it is asked."""

    def setup(self, config: dict[str, Any], work: trials.Work | None = None) -> None:
        self._results = _at_once(TrialSpec(**config))

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._results = _at_once(TrialSpec(**new_config))
        return True


def _at_once(trial: TrialSpec) -> Generator[trials.TrialResult, None, None]:
    score = 1 / (1 + abs(float(trial.params["training.lr"]) - 1e-3))
    yield {trials.SCORE: score, "step": 1, "metrics": {"dev/f1": score}, "finished": True, "done": True}


@dataclass
class Marks:
    """The driver's time and memory as trials end.

    Attributes:
        at: For each number of ended trials, seconds and bytes when it was first seen.
    """

    at: dict[int, tuple[float, int]] = field(default_factory=dict)

    def show(self, state: Any) -> None:
        if isinstance(state, str):
            return
        ended = state.done + state.pruned + state.failed
        self.at.setdefault(ended, (time.monotonic(), psutil.Process().memory_info().rss))

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Seconds and bytes a trial, from about one number of trials to another."""
        marks = [min(self.at, key=lambda num: abs(num - wanted)) for wanted in (first, last)]
        (begin, small), (end, large) = (self.at[num] for num in marks)
        num = marks[1] - marks[0]
        return (end - begin) / num, (large - small) / num


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    num = parser.parse_args().trials
    marks = Marks()

    @contextmanager
    def show(terminal: TextIO) -> Iterator[Marks]:
        yield marks

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; {num} trials of no work")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with mock.patch.object(trials, "TrialActor", NoWork):
            api.tune("synthetic_pairs", ["data.source.synthetic.size=200"], space=SPACE, trials=num, show=show)
        open_files = psutil.Process().num_fds()
        os.chdir("/")
    fifth = num // 5
    (seconds, memory), (last_seconds, last_memory) = marks.between(fifth, num), marks.between(num - fifth, num)
    first_seconds, _ = marks.between(fifth, 2 * fifth)
    figures = {
        "seconds_a_trial": seconds,
        "last_fifth_over_second_fifth": last_seconds / first_seconds,
        "kilobytes_a_trial": memory / 1e3,
        "kilobytes_a_trial_in_the_last_fifth": last_memory / 1e3,
        "open_files_at_the_end": open_files,
    }
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
