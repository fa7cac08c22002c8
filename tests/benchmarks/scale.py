"""A sweep of many trials that do nothing, on simulated machines: what its driver takes, and whether that grows.

Then the sweep is resumed with a few more trials: what that takes beside the start of Ray and its processes, with the
store of its runs and with an empty one. Last, what the driver computes from so many ended trials, and from ten times as
many: to restore them, to suggest a trial, and to judge an evaluation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import psutil

from dice_ray import api
from dice_ray.run import cluster
from dice_ray.tuning.ledger import History, TrialOutcome, TrialSpec
from tests.machines import machines

RATE = f"{Path(__file__).parents[1] / 'tuning' / 'spaces.py'}:rate"
NAME = "scale"
TABLES = ("runs", "params", "metrics", "tags", "inputs")
NUM_MORE = 4
SENDER = "dice_ray.tracking"


def no_work() -> type[Any]:
    """A trial that is at its end as soon as it is asked; sent by value, so that its process imports no more."""
    from dice_ray.tuning.trial import SCORE, TrialActor

    def at_once(config: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        score = 1 / (1 + abs(float(config["params"]["training.lr"]) - 1e-3))
        yield {SCORE: score, "step": 1, "metrics": {"dev/f1": score}, "finished": True, "done": True}

    class NoWork(TrialActor):
        def setup(self, config: dict[str, Any], work: Any = None) -> None:
            self._results = at_once(config)

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self._results = at_once(new_config)
            return True

    return NoWork


@dataclass(frozen=True)
class Mark:
    """The driver at a moment.

    Attributes:
        at: Seconds.
        cpu: Its CPU seconds.
        tune: Those of the thread in which Ray Tune runs.
        sender: Those of the thread that sends to MLflow, which lags behind such trials: the longer they take, the more
            is sent meanwhile.
        loop: Those of a fixed loop at this moment: other programs slow down caches and cores, and so also CPU seconds.
        memory: In bytes.
        threads: Of Python.
        files: That are open.
    """

    at: float
    cpu: float
    tune: float
    sender: float
    loop: float
    memory: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> Mark:
        process, begin = psutil.Process(), time.thread_time()
        sum(number * number for number in range(20_000))
        return cls(
            time.monotonic(),
            time.process_time(),
            begin,
            sum(
                time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
                for thread in threading.enumerate()
                if thread.name == SENDER and thread.ident
            ),
            time.thread_time() - begin,
            process.memory_info().rss,
            threading.active_count(),
            process.num_fds(),
        )


@dataclass
class Marks:
    """Marks of the driver as trials end: for each number of ended trials, when it was first seen."""

    at: dict[int, Mark] = field(default_factory=dict)

    def show(self, state: Any) -> None:
        if not isinstance(state, str) and (ended := state.done + state.pruned + state.failed) not in self.at:
            self.at[ended] = Mark.now()

    def a_trial(self, of: Callable[[Mark], float], first: int, last: int) -> float:
        """The increase of a number for each trial, from about one number of trials to another."""
        begin, end = (min(self.at, key=lambda num: abs(num - wanted)) for wanted in (first, last))
        return (of(self.at[end]) - of(self.at[begin])) / (end - begin)

    def loop(self, first: int, last: int) -> float:
        """The median CPU seconds of the loop while these trials ended."""
        return statistics.median(mark.loop for num, mark in self.at.items() if first <= num <= last)

    @contextmanager
    def screen(self, terminal: TextIO) -> Iterator[Marks]:
        yield self


def with_ended(num: int, space: str = RATE) -> History:
    """A history of so many ended trials; each third was pruned at its first evaluation."""
    import optuna

    from dice_ray.tuning.space import Space

    history = History()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for number in range(1, num + 1):
        trial = study.ask()
        Space(space)(trial)
        id_, scores = f"{number:04d}", [(number * 7 % 100) / 100 + step / 1000 for step in range(3)]
        scores = scores[:1] if number % 3 == 0 else scores
        history.specs[id_] = TrialSpec(id=id_, params=trial.params, seed=0)
        history.outcomes[id_] = TrialOutcome(
            id=id_,
            state="done" if len(scores) == 3 else "pruned",
            curve=tuple(enumerate(scores, start=1)),
            metrics=({},) * len(scores),
        )
    return history


def of_many(num: int, space: str) -> dict[str, float]:
    """CPU seconds of the driver for what it computes from so many ended trials, without Ray."""
    from dice_ray.tuning.plan_file import read
    from dice_ray.tuning.search import SweepSearcher
    from dice_ray.tuning.sweep import SweepPlan

    plan, history = read(Path(f"dice_ray_runs/{NAME}")), with_ended(num, space)
    assert isinstance(plan, SweepPlan)
    plan = plan.model_copy(update={"trials": num + 10, "points": ()})
    marks = [time.thread_time()]
    searcher = SweepSearcher(plan, history)
    marks.append(time.thread_time())
    searcher.suggest("first")  # leaves out the trials that are not modelled
    marks.append(time.thread_time())
    searcher.suggest("next")
    marks.append(time.thread_time())
    searcher.report("next", {"score": 0.5, "step": 1, "metrics": {}})
    marks.append(time.thread_time())
    restored, _, suggested, judged = (end - begin for begin, end in itertools.pairwise(marks))
    return {"restored": restored, "suggested": suggested, "judged": judged}


def swept(num: int, space: str, address: str | None) -> dict[str, float]:
    """A sweep of so many trials."""
    marks = Marks()
    with mock.patch("dice_ray.tuning.trial.TrialActor", no_work()):
        api.tune(
            "synthetic_pairs",
            ["data.source.synthetic.size=200"],
            space=space,
            trials=num,
            name=NAME,
            address=address,
            show=marks.screen,
        )
    end = time.monotonic()
    with closing(sqlite3.connect("mlflow.db")) as store:
        rows = sum(store.execute(f"select count(*) from {table}").fetchone()[0] for table in TABLES)
    fifth = num // 5
    figures: dict[str, float] = {}
    clocks: dict[str, Callable[[Mark], float]] = {
        "seconds": lambda mark: mark.at,
        "cpu_seconds": lambda mark: mark.cpu,
        "cpu_seconds_in_tune": lambda mark: mark.tune,
        "cpu_seconds_of_sender": lambda mark: mark.sender,
    }
    for name, of in clocks.items():
        growth = marks.a_trial(of, num - fifth, num) / marks.a_trial(of, fifth, 2 * fifth)
        figures |= {f"{name}_a_trial": marks.a_trial(of, fifth, num), f"{name}_last_over_second_fifth": growth}
    slower = marks.loop(num - fifth, num) / marks.loop(fifth, 2 * fifth)
    figures |= {
        "loop_last_over_second_fifth": slower,
        "growth_of_cpu_a_trial": figures["cpu_seconds_last_over_second_fifth"] / slower,
        "growth_of_cpu_in_tune": figures["cpu_seconds_in_tune_last_over_second_fifth"] / slower,
    }
    begin, last = marks.at[min(filter(None, marks.at))], marks.at[max(marks.at)]
    first = marks.at[min(marks.at, key=lambda num: abs(num - fifth))]
    return figures | {
        "kilobytes_a_trial": marks.a_trial(lambda mark: mark.memory / 1e3, fifth, num),
        "megabytes_at_the_end": last.memory / 1e6,
        "more_threads": last.threads - first.threads,
        "more_open_files": last.files - first.files,
        "mlflow_rows_a_second": rows / (end - begin.at),
        "seconds_from_last_trial_to_end": end - last.at,
        "ledger_bytes_a_trial": Path(f"dice_ray_runs/{NAME}/ledger.jsonl").stat().st_size / num,
        "log_bytes": Path(f"dice_ray_runs/{NAME}/log.txt").stat().st_size,
    }


def resumed(address: str | None) -> float:
    """CPU seconds of the driver from a call of `resume` to its first trial, without those while Ray starts."""
    from dice_ray.tuning.recorder import Recorder

    marks: dict[str, float] = {}
    started, recorded = cluster.started, Recorder.started

    @contextmanager
    def noted(*arguments: Any, **named: Any) -> Iterator[cluster.Cluster]:
        marks["begin"] = time.thread_time()
        with started(*arguments, **named) as ray:
            marks["end"] = time.thread_time()
            yield ray

    def first(self: Recorder, trial: Any) -> None:
        marks.setdefault("first", time.thread_time())
        recorded(self, trial)

    begin = time.thread_time()
    with (
        mock.patch("dice_ray.tuning.trial.TrialActor", no_work()),
        mock.patch.object(cluster, "started", noted),
        mock.patch.object(Recorder, "started", first),
    ):
        api.resume(NAME, more_trials=NUM_MORE, address=address)
    return marks["first"] - marks["end"] + marks["begin"] - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--machines", type=int, default=8, help="Simulated ones of one CPU each.")
    parser.add_argument("--space", default=RATE)
    arguments = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    print(f"load of the machine: {load}; {arguments.trials} trials of no work on {arguments.machines} machines")
    with (
        tempfile.TemporaryDirectory(prefix="dr-") as ray,
        tempfile.TemporaryDirectory() as folder,
        machines(Path(ray)) as simulated,
    ):
        for _ in range(arguments.machines - 2):
            simulated.add()
        os.environ.update(simulated.environment)
        cluster.prepare(simulated.address)  # before anything imports Ray
        os.chdir(folder)
        figures = swept(arguments.trials, arguments.space, simulated.address)
        for name, value in figures.items():
            print(f"{name.replace('_', ' '):40} {value:10.3f}", flush=True)
        for store in ("mlflow.db", "another.db"):
            os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/{store}"
            seconds = resumed(simulated.address)
            name = f"cpu_seconds_to_resume_with_{store.removesuffix('.db')}"
            print(f"{name.replace('_', ' '):40} {seconds:10.3f}", flush=True)
            figures[name] = seconds
        for num in (arguments.trials, 10 * arguments.trials):
            for name, seconds in of_many(num, arguments.space).items():
                print(f"milliseconds to be {name + f' with {num} ended':25} {1e3 * seconds:10.3f}", flush=True)
                figures[f"milliseconds_{name}_with_{num}_ended"] = 1e3 * seconds
        os.chdir("/")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
