"""A reference for every loss, from its formula: float64 NumPy, one-hot targets, loops over items and classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from dice_ray.losses.base import LossBranch
from dice_ray.terms import TermFacts

Array = npt.NDArray[Any]


def reference(
    config: LossBranch, facts: TermFacts, logits: Array, targets: Array, mask: Array | None = None, ratio: float = 0
) -> float:
    """The loss of these items; `ratio` is that of mining."""
    rows = [index for index, target in enumerate(targets) if np.all(target != -100)]
    if facts.link == "position":
        allowed = np.ones_like(logits, dtype=bool) if mask is None else mask
        rows = [index for index in rows if allowed[index].any()]
        logits = np.where(allowed, logits, -np.inf)
    elif mask is not None:
        rows = [index for index in rows if np.all(mask[index])]
    z = logits[rows].astype(np.float64).reshape(-1, *logits.shape[targets.ndim :])
    if facts.link == "sigmoid":
        z = np.stack([np.zeros_like(z), z], -1)
    return REFERENCES[config.name](config, facts, z, targets[rows].astype(int).reshape(-1), ratio)


def log_softmax(z: Array) -> Array:
    top = z.max(-1, keepdims=True, initial=-np.inf)
    shifted: Array = z - top
    log_p: Array = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_p


def others(log_p: Array) -> Array:
    """log(1 - p), as the log of the sum of the other classes."""
    columns = [np.logaddexp.reduce(np.delete(log_p, index, 1), 1) for index in range(log_p.shape[1])]
    return np.stack(columns, 1) if columns else log_p


def raised_k(odds: Sequence[float], k: float, strength: float) -> float:
    """Of the form ratio(k') = ratio(k) ** strength, solved by SciPy."""
    if strength == 1 or min(odds) == max(odds):
        return k

    def log_ratio(k: float) -> float:
        return float(np.log(np.log10(max(odds) + k) / np.log10(min(odds) + k)))

    found = optimize.brentq(lambda x: log_ratio(x) - strength * log_ratio(k), k, 1e12, xtol=1e-12, rtol=1e-14)
    return float(found)


def class_weights(config: LossBranch, facts: TermFacts) -> list[float]:
    weighting: Any = getattr(config, "weighting", None)
    if weighting is None:
        return [1.0] * len(facts.counts)
    n_t = [max(count, 1) for count in facts.counts]
    n = sum(n_t)
    match weighting.name:
        case "lg":
            odds = [(n - count) / count for count in n_t]
            k = raised_k(odds, weighting.k, weighting.strength)
            return [float(np.log10(each + k)) for each in odds]
        case "inverse":
            return [n / (len(n_t) * count) for count in n_t]
        case "effective_number":
            raw = [(1 - weighting.beta) / (1 - weighting.beta**count) for count in n_t]
            return [weight * len(raw) / sum(raw) for weight in raw]
        case "given":
            return [weighting.weights.get(name, 1.0) for name in facts.classes]
    raise AssertionError(weighting)


def mean(losses: Sequence[float]) -> float:
    return float(np.mean(losses)) if len(losses) else 0.0


def mined(y: Array, score: Array, label: int, ratio: float) -> list[int]:
    """The items that a class keeps: its positives and the hardest negatives."""
    positives = [index for index in range(len(y)) if y[index] == label]
    negatives = [index for index in range(len(y)) if y[index] != label]
    if not ratio or not positives:
        return list(range(len(y)))
    negatives.sort(key=lambda index: -score[index, label])
    return sorted(positives + negatives[: max(1, int(np.ceil(ratio * len(positives))))])


def cross_entropy(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    log_p = log_softmax(z)
    kept = mined(y, log_p, 1, ratio)
    weights = class_weights(config, facts)
    gamma = getattr(config, "gamma", 0.0)
    rest = others(log_p)
    if smoothing := getattr(config, "label_smoothing", 0.0):
        log_p = (1 - smoothing) * log_p + smoothing * log_p.mean(1, keepdims=True)
    return mean([-weights[y[i]] * np.exp(gamma * rest[i, y[i]]) * log_p[i, y[i]] for i in kept])


def margins(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    """logit_adjusted, vector_scaling and ldam: cross-entropy of other logits of each item."""
    n_t = np.maximum(facts.counts, 1)
    kept = mined(y, log_softmax(z), 1, ratio)
    weights = class_weights(config, facts)
    adjusted = z + getattr(config, "tau", 0.0) * np.log(n_t / n_t.sum())
    if config.name == "vector_scaling":
        delta = (n_t / n_t.max()) ** config.gamma
        # Two classes: both logits by that of the item's own class.
        adjusted = adjusted - z + z * (delta[y][:, None] if len(n_t) == 2 else delta)
    elif config.name == "ldam":
        adjusted = adjusted - np.eye(len(n_t))[y] * config.margin * ((n_t.min() / n_t) ** 0.25)
    log_p = log_softmax(adjusted)
    return mean([-weights[y[i]] * log_p[i, y[i]] for i in kept])


def majority_or_minority(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    log_p = log_softmax(z)
    kept = mined(y, log_p, 1, ratio)
    majority = np.argmax(facts.counts) if facts.background is None else facts.background
    extra = [-config.weight * log_p[i, y[i]] if y[i] == majority else 0.0 for i in kept]
    return mean([-log_p[i, y[i]] for i in kept]) + mean(extra)


def poly(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    log_p, weights = log_softmax(z), class_weights(config, facts)
    own = [(weights[y[i]], log_p[i, y[i]]) for i in mined(y, log_p, 1, ratio)]
    return mean([-weight * (each + config.epsilon * np.expm1(each)) for weight, each in own])


def distribution_balanced(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    """Of each text and label, as the publications write it."""
    counts = np.maximum(facts.label_counts or facts.counts[1:], 1)
    num_texts = facts.num_items // len(counts)
    losses = []
    for row, labels in zip(z[:, 1].reshape(-1, len(counts)), y.reshape(-1, len(counts)), strict=True):
        for k, count in enumerate(counts):
            all_of_text = sum(1 / n for n, has in zip(counts, labels, strict=True) if has)
            share = 1 / count / all_of_text if all_of_text else np.inf
            weight = config.floor + 1 / (1 + np.exp(-config.slope * (share - config.center)))
            shifted = row[k] - config.bias * np.log(num_texts / count - 1)
            margin, factor = (shifted, 1) if labels[k] else (-config.scale * shifted, 1 / config.scale)
            log_p = -np.logaddexp(0, -margin)
            losses.append(-weight * factor * np.exp(-config.gamma * np.logaddexp(0, margin)) * log_p)
    return mean(losses)


def listwise(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    margin = z[:, 1] - z[:, 0]
    negatives = margin[y == 0]
    return mean([float(np.logaddexp.reduce([0.0, *(negatives - score)])) for score in margin[y == 1]])


def asymmetric(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    log_p, weights = log_softmax(z), class_weights(config, facts)
    p, log_rest, losses = np.exp(log_p)[:, 1], others(log_p)[:, 1], []
    for i in mined(y, z - z[:, :1], 1, ratio):
        q = max(p[i] - config.margin, 0)
        if y[i] == 1:
            losses.append(-weights[1] * (1 - p[i]) ** config.gamma_pos * np.log(p[i]))
        else:
            losses.append(-weights[0] * q**config.gamma_neg * (np.log(1 - q) if config.margin else log_rest[i]))
    return mean(losses)


def overlap(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    """dice, self_adjusting_dice and tversky, by their own formulas."""
    log_p = log_softmax(z)
    # At least the root of the least number: p^2 of any logit is above 0, though it underflows from -373 on.
    u = np.maximum(np.exp(log_p + getattr(config, "decay", 0.0) * others(log_p)), 1.5e-154)
    labels = list(range(z.shape[1])) if config.classes == "all" else list(facts.foreground)

    def coefficient(columns: list[tuple[Array, Array]]) -> float:
        u_i, y_i = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        if config.name == "tversky":
            overlap_, false_positive, false_negative = (
                (u_i * y_i).sum(),
                (u_i * (1 - y_i)).sum(),
                ((1 - u_i) * y_i).sum(),
            )
            above = overlap_ + config.gamma
            below = above + config.alpha * false_positive + config.beta * false_negative
        else:
            power = 2 if config.denominator == "squared" else 1
            above, below = 2 * (u_i * y_i).sum() + config.gamma, (u_i**power + y_i**power).sum() + config.gamma
        return float(above / below) if below > 0 else 1.0

    columns = []
    for label in labels:
        kept = mined(y, log_p, label, ratio)
        columns.append((u[kept, label], (y[kept] == label).astype(float)))
    if getattr(config, "scope", "batch") == "example":
        return mean(
            [1 - coefficient([(u_c[i : i + 1], y_c[i : i + 1])]) for u_c, y_c in columns for i in range(len(u_c))]
        )
    if config.average == "pooled":
        return 1 - coefficient(columns)
    return 1 - float(np.mean([coefficient([column]) for column in columns]))


def dice_ce(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    cross = mean([-log_softmax(z)[i, y[i]] for i in range(len(y))])
    return cross + float(config.weight) * overlap(config, facts, z, y, ratio)


def brier(config: Any, facts: TermFacts, z: Array, y: Array, ratio: float) -> float:
    p = np.exp(log_softmax(z))
    return mean([config.parameters["factor"] * (1 - p[i, y[i]]) ** 2 for i in range(len(y))])


REFERENCES: dict[str, Callable[[Any, TermFacts, Array, Array, float], float]] = {
    "cross_entropy": cross_entropy,
    "weighted_cross_entropy": cross_entropy,
    "focal": cross_entropy,
    "logit_adjusted": margins,
    "vector_scaling": margins,
    "ldam": margins,
    "majority_or_minority": majority_or_minority,
    "poly": poly,
    "asymmetric": asymmetric,
    "listwise": listwise,
    "distribution_balanced": distribution_balanced,
    "dice": overlap,
    "self_adjusting_dice": overlap,
    "tversky": overlap,
    "dice_ce": dice_ce,
    "custom": brier,
}
