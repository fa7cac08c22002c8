"""What TPE loses by modelling a part of the trials: its best result, and the time of a suggestion, beside Optuna's.

Both go on from the same first trials, of which Optuna's sampler models all. Two functions are searched: Hartmann's of
six parameters, and one with noise whose branches have parameters of their own, as losses do.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
import warnings
from collections.abc import Callable

import numpy as np
import optuna
from optuna.trial import Trial

from analysis.statistics.intervals import t_interval
from dice_ray.tuning.samplers import _NUM_AT_ONCE, _NUM_MODELLED, _BoundedTPE

NOISE = 0.02
SHAPE = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
PEAKS = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann(trial: Trial, seed: int) -> tuple[float, float]:
    """Its true value, and the same as the score."""
    at = np.array([trial.suggest_float(f"x{number}", 0, 1) for number in range(6)])
    value = float(HEIGHTS @ np.exp(-(SHAPE * (at - PEAKS) ** 2).sum(1)))
    return value, value


def branched(trial: Trial, seed: int) -> tuple[float, float]:
    """One less the distance to a place that depends on the branch and the seed; and the same with noise."""
    branch = trial.suggest_categorical("branch", list("abcde"))
    names = ["x", "y", "z", f"{branch}.x", f"{branch}.y"]
    at = np.array([trial.suggest_float(name, 0, 1) for name in names])
    place = np.random.default_rng([seed, ord(branch)])
    value = 1 - 0.1 * place.random() - float(((at - place.random(len(names))) ** 2).mean())
    return value, value + NOISE * float(np.random.default_rng([seed, trial.number]).normal())


def go_on(study: optuna.Study, function: Callable[[Trial, int], tuple[float, float]], seed: int, num: int) -> float:
    """Try so many points; returns the CPU time of a suggestion in ms."""
    seconds = 0.0
    for _ in range(num):
        begin = time.thread_time()
        trial = study.ask()
        value, score = function(trial, seed)
        seconds += time.thread_time() - begin
        trial.set_user_attr("value", value)
        study.tell(trial, score)
    return 1e3 * seconds / num


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    shared = _NUM_MODELLED + _NUM_AT_ONCE
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; {arguments.trials} trials")
    figures = {}
    for function in (hartmann, branched):
        values: dict[str, list[float]] = {"all trials": [], "a part": []}
        times: dict[str, list[float]] = {"all trials": [], "a part": []}
        for seed in range(arguments.seeds):
            sampler = optuna.samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)
            start = optuna.create_study(sampler=sampler, direction="maximize")
            go_on(start, function, seed, shared)
            for name in values:
                study = copy.deepcopy(start)
                if name == "a part":
                    study.sampler = _BoundedTPE(seed + 1)
                times[name].append(go_on(study, function, seed, arguments.trials - shared))
                values[name].append(study.best_trial.user_attrs["value"])
        for name in values:
            best = t_interval(values[name])
            print(
                f"{function.__name__:9} TPE on {name:10} best {best.mean:.4f} [{best.low:.4f}, {best.high:.4f}], "
                f"{np.mean(times[name]):.1f} ms a suggestion",
                flush=True,
            )
        gain = t_interval((np.array(values["a part"]) - values["all trials"]).tolist())
        interval = f"{gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        print(f"{function.__name__:9} difference of the best, by seed: {interval}", flush=True)
        figures[function.__name__] = {"difference": gain.mean, "low": gain.low, "high": gain.high}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
