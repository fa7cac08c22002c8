"""How far intervals, verdicts and decisions hold, by simulation: coverage, width, claims about equal arms, limits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.intervals import t_interval
from tests.benchmarks.equal_budget import equal_budget, of_designs
from tests.benchmarks.floors import floors
from tests.benchmarks.looks import collapses, over_seeds, with_other_noise

Floats: TypeAlias = NDArray[np.floating]
Bounds: TypeAlias = tuple[Floats, Floats]

SCORES = {"0.90": (0.9, 0.01), "0.60": (0.6, 0.05), "0.97": (0.97, 0.02), "0.10": (0.1, 0.08), "0.50": (0.5, 0.25)}
"""Mean and standard deviation of beta distributions, by the name under which they are printed."""


def _student(scores: Floats) -> Bounds:
    """The t interval on the plain scale, cut off at 0 and 1."""
    num = scores.shape[1]
    half = stats.t.ppf(0.975, num - 1) * scores.std(1, ddof=1) / np.sqrt(num)
    return np.clip(scores.mean(1) - half, 0, 1), np.clip(scores.mean(1) + half, 0, 1)


def _logit(scores: Floats) -> Bounds:
    """The interval of a report; without spread it has no bounds, and counts here as the mean alone."""
    intervals = [t_interval(each) for each in scores.tolist()]
    low, high = np.array([(each.low, each.high) for each in intervals]).T
    return np.where(np.isnan(low), scores.mean(1), low), np.where(np.isnan(high), scores.mean(1), high)


def means(num_studies: int) -> Iterator[dict[str, Any]]:
    """Coverage (%) of the true mean and mean width (points) of both methods."""
    methods: dict[str, Callable[[Floats], Bounds]] = {"t cut off": _student, "t of the logit": _logit}
    for (name, (mean, spread)), num in ((score, num) for score in SCORES.items() for num in (2, 3, 5, 10)):
        scale = mean * (1 - mean) / spread**2 - 1
        scores = np.random.default_rng(0).beta(mean * scale, (1 - mean) * scale, (num_studies, num))
        row: dict[str, Any] = {"score": name, "seeds": num}
        for method, bounds in methods.items():
            low, high = bounds(scores)
            covered = (low <= mean + 1e-9) & (mean - 1e-9 <= high)
            row[method] = f"{100 * covered.mean():.1f} ({100 * (high - low).mean():.1f})"
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    num = parser.parse_args().studies
    sections = {
        "the mean of scores: coverage in % (width in points)": means(num),
        "over seeds: claims about equal arms and power, in % of studies (runs)": over_seeds(5 * num),
        "the same with other noise": with_other_noise(5 * num),
        "runs that collapse: power and false claims, in % of studies": collapses(num // 5),
        "recall and precision that decisions promise, in use, in %": floors(num // 2),
        "equal arms that are tuned, in % of studies": equal_budget(num),
        "at equal budget: false claims; power for +1/+2/+5 points, in % of studies": of_designs(num),
    }
    figures = {}
    for title, rows in sections.items():
        figures[title] = list(rows)
        print(f"\n{title}\n{pd.DataFrame(figures[title]).to_string(index=False)}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
