"""How often a recall or precision that a decision promises holds in use, by simulation.

The scores of positives and negatives are normal with unit variance, and probabilities calibrated, so that recall and
precision in use are known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dice_ray.metrics.fitting import _best_threshold
from dice_ray.metrics.rules import PrecisionRule, RecallRule, Rule

Floats: TypeAlias = NDArray[np.floating]
Fit: TypeAlias = Callable[[Floats, NDArray[np.bool_]], float]
"""A threshold from the probabilities and the labels of dev."""

RECALL: Final = 0.95
PRECISION: Final = 0.8
CERTAINTY: Final = 0.95
MODELS: Final = {"good, 10 % positive": (0.1, 3.0), "fair, 10 % positive": (0.1, 2.0), "good, 2 %": (0.02, 3.0)}
"""The share of positives, and the distance of the classes in standard deviations: ROC-AUC 98 and 92 %."""


def _of(rule: Rule) -> Fit:
    return lambda probabilities, gold: _best_threshold(probabilities, gold, rule)


def _conformal(probabilities: Floats, gold: NDArray[np.bool_]) -> float:
    """Just below the k-th smallest probability of the positives: the mean recall of all dev sets is the floor."""
    ordered = np.sort(probabilities[gold])
    place = int((len(ordered) + 1) * (1 - RECALL))
    return float(np.nextafter(ordered[place - 1], 0)) if place else 0.0


def in_use(fit: Fit, positives: int, draws: int, share: float, distance: float) -> tuple[Floats, Floats]:
    """Recall and precision in use, of thresholds that are fitted to so many draws of dev."""
    draw, thresholds = np.random.default_rng(positives), []
    gold = np.repeat([True, False], [positives, round(positives * (1 - share) / share)])
    offset = distance**2 / 2 - np.log(share / (1 - share))
    for _ in range(draws):
        scores = draw.normal(distance * gold)
        thresholds.append(fit(1 / (1 + np.exp(offset - distance * scores)), gold))
    with np.errstate(divide="ignore"):
        limits = (np.log(thresholds) - np.log1p(-np.array(thresholds)) + offset) / distance
    recall = stats.norm.sf(limits - distance)
    flagged = share * recall + (1 - share) * stats.norm.sf(limits)
    return recall, share * recall / flagged


def _row(name: str, found: tuple[Floats, Floats]) -> dict[str, Any]:
    """How often a rule holds what its name begins with."""
    values, others, floor = (*found, RECALL) if name.startswith("recall") else (*found[::-1], PRECISION)
    figures = {
        "holds": (values >= floor).mean(),
        "mean": values.mean(),
        "5 % quantile": np.quantile(values, 0.05),
        "other score": others.mean(),
    }
    return {"rule": name} | {key: round(100 * float(figure), 1) for key, figure in figures.items()}


def floors(draws: int) -> Iterator[dict[str, Any]]:
    """The % of dev sets with which the floor holds in use; mean and 5 % quantile of that score; mean of the other.

    The last rows of each model are the lowest floors on dev that hold the real ones with 95 % of dev sets.
    """
    fits = {
        "recall .95": _of(RecallRule(at_least=RECALL)),
        "recall .95, certainty .95": _of(RecallRule(at_least=RECALL, certainty=CERTAINTY)),
        "recall .95, conformal": _conformal,
        "precision .8": _of(PrecisionRule(at_least=PRECISION)),
        "precision .8, certainty .95": _of(PrecisionRule(at_least=PRECISION, certainty=CERTAINTY)),
    }
    raised: dict[str, Callable[[float], Rule]] = {
        "recall": lambda floor: RecallRule(at_least=floor),
        "precision": lambda floor: PrecisionRule(at_least=floor),
    }
    starts = {"recall": RECALL, "precision": PRECISION}
    for (model, setting), positives in product(MODELS.items(), (20, 50, 200)):
        common = {"model": model, "positives": positives}
        for name, fit in fits.items():
            yield common | _row(name, in_use(fit, positives, draws, *setting))
        for name, rule in raised.items():
            for floor in np.arange(starts[name], 1.001, 0.01).round(2).tolist():
                row = _row(f"{name} {floor} on dev", in_use(_of(rule(floor)), positives, draws, *setting))
                if row["holds"] >= 100 * CERTAINTY:
                    yield common | row
                    break
