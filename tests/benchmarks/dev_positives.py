"""How many positives a dev set needs for a threshold, from the stored test predictions of a study's finished runs.

Each draw takes so many positives of a run's test items, with negatives at the share that test has, as a dev set, and
scores the threshold fitted there on all other test items. No training.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.frames import of_kind
from dice_ray.api.reports import findings
from dice_ray.metrics.fitting import fit_threshold
from dice_ray.metrics.rules import F1Rule, Outcomes

NUMBERS: Final = (5, 10, 20, 50, 100)
_RULE: Final = F1Rule()


def _f1(probabilities_N: NDArray[np.float64], gold_N: NDArray[np.bool_], threshold: float) -> float:
    return 100 * float(_RULE.value(Outcomes.of(probabilities_N > threshold, gold_N)))


def rows(
    arm: str, probabilities_N: NDArray[np.float64], gold_N: NDArray[np.bool_], draws: int, seed: int
) -> Iterator[dict[str, str | int | float]]:
    """F1 on the other items for each number and draw: untuned, at the threshold of dev, with the guard, at the best."""
    draw = np.random.default_rng(seed)
    positives, negatives = np.flatnonzero(gold_N), np.flatnonzero(~gold_N)
    for num in (num for num in NUMBERS if num <= 0.6 * len(positives)):
        num_negatives = round(num * len(negatives) / len(positives))
        for _ in range(draws):
            dev = np.concatenate([draw.choice(positives, num, False), draw.choice(negatives, num_negatives, False)])
            rest = np.delete(np.arange(len(gold_N)), dev)
            p_N, is_N = probabilities_N[rest], gold_N[rest]
            fitted = fit_threshold(probabilities_N[dev, None], gold_N[dev, None], _RULE)
            yield {
                "arm": arm,
                "positives": num,
                "at .5": _f1(p_N, is_N, 0.5),
                "fitted": _f1(p_N, is_N, fitted.tuned["threshold"]),
                "with the guard": _f1(p_N, is_N, fitted.used["threshold"]),
                "best": _f1(p_N, is_N, fit_threshold(p_N[:, None], is_N[:, None], _RULE).tuned["threshold"]),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--draws", type=int, default=100, help="of each run")
    options = parser.parse_args()
    found = findings(options.study)
    cells = of_kind(found.frame, "cell").set_index("id")
    table = pd.DataFrame(
        row
        for place, (id_, items) in enumerate(found.items.items())
        for row in rows(
            str(cells.loc[id_, "arm"]),
            np.where(items.tp + items.fn > 0, items.label_probability, 1 - items.label_probability).astype(np.float64),
            (items.tp + items.fn > 0).to_numpy(),
            options.draws,
            place,
        )
    )
    table["fitted is worse than .5, %"] = 100.0 * (table["fitted"] < table["at .5"])
    table["guarded is worse than .5, %"] = 100.0 * (table["with the guard"] < table["at .5"])
    print(table.groupby(["arm", "positives"]).mean().round(1).to_csv())


if __name__ == "__main__":
    main()
