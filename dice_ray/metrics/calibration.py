"""Calibration of probabilities on dev, and their correction for another share of positives.

Calibrated probabilities are needed where a number is read as a probability: by a cost rule, by the correction for
another share of positives, and by users. It changes no ranking by temperature (of two classes, or of each label), and
merges neighbours by isotonic regression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

_IsotonicSteps: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Probabilities before and after, both ascending; linear between two of them, constant outside."""

_SATURATED: Final = 1e-12
"""Added before logarithms: a probability that was rounded to 0 or 1 counts as a logit of 28 in magnitude."""


@dataclass(frozen=True)
class Calibration:
    """A monotone map of probabilities, fitted on dev; without arguments it changes nothing.

    >>> Calibration(temperature=2.0).apply(np.array([[0.1, 0.9]]), exclusive=True).round(2).tolist()
    [[0.25, 0.75]]

    Attributes:
        temperature: logits are divided by it: above 1 for probabilities that are too extreme.
        steps: of isotonic regression, one for each class; for two exclusive classes those of the second class alone.
    """

    temperature: float = 1.0
    steps: tuple[_IsotonicSteps, ...] = ()

    def apply(self, probabilities_NC: NDArray[np.floating], *, exclusive: bool) -> NDArray[np.float64]:
        """The calibrated probabilities: of `exclusive` classes those of an item add up to 1, labels are independent."""
        p_NC = np.asarray(probabilities_NC, dtype=np.float64)
        if self.temperature != 1:
            log_p_NC = np.log(p_NC + _SATURATED)
            if exclusive:
                scaled_NC = np.exp((log_p_NC - log_p_NC.max(1, keepdims=True)) / self.temperature)
                p_NC = scaled_NC / scaled_NC.sum(1, keepdims=True)
            else:
                logits_NC = log_p_NC - np.log(1 - p_NC + _SATURATED)
                p_NC = 1 / (1 + np.exp(-logits_NC / self.temperature))
        if self.steps:
            columns = p_NC.T[-len(self.steps) :]
            p_NC = np.stack([np.interp(p_N, *of_class) for p_N, of_class in zip(columns, self.steps, strict=True)], 1)
            if exclusive and len(self.steps) == 1:
                p_NC = np.concatenate([1 - p_NC, p_NC], axis=1)
            elif exclusive:
                p_NC /= p_NC.sum(1, keepdims=True)
        return p_NC

    def stored(self) -> dict[str, Any]:
        """As values of JSON, which `of` reads."""
        return {"temperature": self.temperature, "steps": [[list(points) for points in each] for each in self.steps]}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Calibration:
        return cls(stored["temperature"], tuple((tuple(before), tuple(after)) for before, after in stored["steps"]))


def fit_calibration(
    kind: Literal["temperature", "isotonic"],
    probabilities_NC: NDArray[np.floating],
    members_NC: NDArray[np.bool_],
    *,
    exclusive: bool,
) -> Calibration:
    """The calibration with the lowest log loss (temperature) or squared error (isotonic) on dev.

    One temperature is fitted for all classes, and needs few items. Isotonic regression needs some hundred positives of
    each class; it makes no probability more extreme than 1 / (items + 2). A class that all items have, or none, stays
    as it is; without items, or with one class alone, everything does. Of `exclusive` classes each item has one, and two
    of them have two columns.
    """
    from scipy import optimize

    has_both_C = members_NC.any(0) & ~members_NC.all(0)
    if not has_both_C.any():
        return Calibration()
    if kind == "isotonic":
        classes = [1] if exclusive and members_NC.shape[1] == 2 else range(members_NC.shape[1])
        of_classes = [_isotonic(probabilities_NC[:, each], members_NC[:, each]) for each in classes]
        return Calibration(steps=tuple(of_classes))

    def loss(log_temperature: float) -> float:
        scaled_NC = Calibration(math.exp(log_temperature)).apply(probabilities_NC, exclusive=exclusive)
        return log_loss(scaled_NC, members_NC, exclusive=exclusive)

    # Where dev is separated without an error the best temperature is 0, which would make all probabilities equal, as
    # those beyond logits of 30 begin to be.
    p_NC = np.asarray(probabilities_NC, dtype=np.float64)
    largest = float(np.abs(np.log(p_NC + _SATURATED) - np.log(1 - p_NC + _SATURATED)).max())
    bounds = (math.log(max(0.2, largest / 30)), math.log(100))
    best = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    return Calibration(math.exp(best.x)) if best.fun < loss(0.0) else Calibration()


def _isotonic(probabilities_N: NDArray[np.floating], members_N: NDArray[np.bool_]) -> _IsotonicSteps:
    from scipy import optimize

    if members_N.all() or not members_N.any():
        return (0.0, 1.0), (0.0, 1.0)  # which changes nothing
    values_V, places_N = np.unique(np.asarray(probabilities_N, dtype=np.float64), return_inverse=True)
    sizes_V = np.bincount(places_N)
    fitted_V = optimize.isotonic_regression(np.bincount(places_N, weights=members_N) / sizes_V, weights=sizes_V).x
    margin = 1 / (len(members_N) + 2)
    fitted_V = np.clip(fitted_V, margin, 1 - margin)
    # Of equal fitted values the first and the last suffice.
    changes_V = np.diff(fitted_V) != 0
    is_kept_V = np.append(True, changes_V) | np.append(changes_V, True)
    return tuple(values_V[is_kept_V].tolist()), tuple(fitted_V[is_kept_V].tolist())


def log_loss(probabilities_NC: NDArray[np.floating], members_NC: NDArray[np.bool_], *, exclusive: bool) -> float:
    """The mean of -log of the probability of what is true, over items, or over items and labels; 0 without items."""
    limit = float(np.finfo(np.float64).eps)
    p_NC = np.clip(np.asarray(probabilities_NC, dtype=np.float64), limit, 1 - limit)
    true = p_NC[members_NC] if exclusive else np.where(members_NC, p_NC, 1 - p_NC)
    return float(-np.log(true).mean()) if true.size else 0.0


def with_prior(probabilities_N: NDArray[np.floating], before: float, after: float) -> NDArray[np.float64]:
    """Probabilities of the positive where its share is `after`, from those where it is `before`: shifted log-odds.

    Both shares lie between 0 and 1, and are neither. Within each class the items must be alike in both places.

    >>> with_prior(np.array([0.5, 1.0]), before=0.5, after=0.1).tolist()
    [0.1, 1.0]
    """
    positive_N = np.asarray(probabilities_N, dtype=np.float64) * (after / before)
    negative_N = (1 - np.asarray(probabilities_N, dtype=np.float64)) * ((1 - after) / (1 - before))
    return positive_N / (positive_N + negative_N)


def estimated_prior(probabilities_N: NDArray[np.floating], before: float) -> float:
    """The share of positives among unlabelled items, where EM (Saerens, Latinne, Decaestecker 2002) converges to.

    A step of EM goes from a share to the mean of the probabilities that are corrected for it, and so towards the
    maximum of the likelihood, which is the only one. Bisection by the direction of the steps finds it at once; EM would
    take hundreds of steps where the classes overlap. Without items, or where nothing speaks against it, `before`.

    The probabilities must be calibrated where the share of positives was `before`, which lies between 0 and 1 and is
    neither; otherwise the estimate is wrong.
    """
    low, share, high = 0.0, before, 1.0
    while high - low > 1e-12 and len(probabilities_N):
        step = float(with_prior(probabilities_N, before, share).mean()) - share
        if abs(step) < 1e-12:
            break
        low, high = (share, high) if step > 0 else (low, share)
        share = (low + high) / 2
    return share


def implied_prior(probabilities_N: NDArray[np.floating], share: float) -> float:
    """The share of positives that probabilities of labelled items, of which `share` are positive, stand for.

    Corrected from it to `share`, `share` is their mean. It is another one than that of the training split where
    positives were drawn more often, or where a loss weighs them, as dice losses do. Without items, or where `share` is
    0 or 1, `share`.
    """
    low, high = 0.0, 1.0
    if not len(probabilities_N) or share in (low, high):
        return share
    for _ in range(50):
        prior = (low + high) / 2
        is_higher = with_prior(probabilities_N, prior, share).mean() > share
        low, high = (prior, high) if is_higher else (low, prior)
    return (low + high) / 2
