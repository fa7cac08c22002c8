"""What is known of each metric: its limits and direction, whether a threshold moves it, and the tasks it may decide in.

THE place where a metric is registered. A metric that is not listed, such as the user's own, has no limits, is
maximised, and is compared as it is. A user's function that has the name of a listed metric, such as `cost`, has its
direction too.

Whatever selects (checkpoints, early stopping, trials, arms) compares *gains*: values of which a higher one is better,
which `gain` makes of a metric's. Only gains are compared, and only values are stored in MLflow and shown.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["positive", "classes", "labels"]
"""What is classified: a positive class and another one; one of several classes; any number of labels."""


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Attributes:
        limits: The lowest and highest possible value.
        decides: The kinds of classification in which it may be the score.
        is_minimised: Whether a lower value is better.
        needs_threshold: Whether a decision rule forms the predictions that it counts; an area under a curve has none.
        needs_every_class: Whether it is undefined, or a mean with an undefined part, where a class does not occur.
        follows_f1: Whether predictions of a run with this score may use the threshold that is tuned for F1.
        is_score: Whether it says how good a model is; counts of the data and thresholds do not.
    """

    limits: tuple[float, float] = (-math.inf, math.inf)
    decides: frozenset[Kind] = frozenset()
    is_minimised: bool = False
    needs_threshold: bool = True
    needs_every_class: bool = False
    follows_f1: bool = False
    is_score: bool = True


_SHARE: Final = (0.0, 1.0)
_POSITIVE: Final = frozenset[Kind](["positive"])
_CLASSES: Final = frozenset[Kind](["positive", "classes"])
_LABELS: Final = frozenset[Kind](["positive", "labels"])
_ANY: Final = frozenset[Kind](["positive", "classes", "labels"])
_COUNT: Final = Metric(limits=(0.0, math.inf), is_score=False)

_METRICS: Final = {
    "f1": Metric(_SHARE, _LABELS, follows_f1=True),
    "precision": Metric(_SHARE, _LABELS),
    "recall": Metric(_SHARE, _LABELS),
    "accuracy": Metric(_SHARE, _CLASSES),
    "macro_f1": Metric(_SHARE, _ANY, needs_every_class=True, follows_f1=True),
    "balanced_accuracy": Metric(_SHARE, _CLASSES, needs_every_class=True),
    "mcc": Metric((-1.0, 1.0), _CLASSES),
    "roc_auc": Metric(_SHARE, _ANY, needs_threshold=False, needs_every_class=True, follows_f1=True),
    "pr_auc": Metric(_SHARE, _POSITIVE, needs_threshold=False, needs_every_class=True, follows_f1=True),
    "exact": Metric(_SHARE),
    "brier": Metric(_SHARE, is_minimised=True, needs_threshold=False),
    "calibration_error": Metric(_SHARE, is_minimised=True, needs_threshold=False),
    "log_loss": Metric((0.0, math.inf), is_minimised=True, needs_threshold=False),
    # Of wrong decisions, per 1,000 records.
    "cost": Metric((0.0, math.inf), is_minimised=True),
    "seconds": Metric((0.0, math.inf), is_minimised=True, needs_threshold=False),
    "target_missed": Metric(is_score=False),
    "flagged": Metric(is_score=False),
    "words_dropped": _COUNT,
    "spans_out_of_reach": _COUNT,
    "answers_misplaced": _COUNT,
    "answers_cut": _COUNT,
}
_FAMILIES: Final = (
    (re.compile(r"(macro_)?f\d+(\.\d+)?"), Metric(_SHARE, _LABELS)),
    (re.compile(r"constant_.*|threshold.*|background|start|end"), Metric(is_score=False)),
)
"""Metrics that share what is known of them: F-betas, and what a constant predictor or the decision rule has."""
_SPLIT: Final = re.compile(r"(dev|eval|final|test|val|valid|validation)_")
"""How other programs begin the name of a metric."""
_LOWER: Final = " (lower is better)"
_HIGHER: Final = " (higher is better)"
_ERRORS: Final = ("loss", "error", "err", "perplexity", "ppl", "mae", "mse", "rmse", "wer", "cer", "ter", "nll", "ece")
"""Words in the name of a metric of another program that is minimised."""


def metric(name: str) -> Metric:
    """What is known of a metric, by its name alone or with its split, as it is or at what dev has decided.

    >>> metric("test/f2").limits, metric("dev/mcc_tuned").limits, metric("test/saved").limits
    ((0.0, 1.0), (-1.0, 1.0), (-inf, inf))
    """
    own = name.rpartition("/")[2].removesuffix("_tuned").removesuffix("_calibrated")
    if name.endswith((_LOWER, _HIGHER)):
        return Metric(is_minimised=name.endswith(_LOWER), needs_threshold=False)
    family = (found for pattern, found in _FAMILIES if pattern.fullmatch(own))
    return _METRICS.get(own) or next(family, None) or _METRICS.get(_SPLIT.sub("", own, count=1)) or Metric()


def label_of_others(name: str, lower_is_better: bool | None = None) -> str:
    """The name under which a metric of another program is compared: it says so where a lower value is better.

    Unless the user says which is better, the words of the name decide for a metric that is not listed.

    >>> label_of_others("eval_f1"), label_of_others("eval_loss"), label_of_others("reward")
    ('eval_f1', 'eval_loss (lower is better)', 'reward')
    """
    known = metric(name)
    if lower_is_better is None:
        words = set(re.split(r"[^a-z]+", name.lower()))
        lower_is_better = known.is_minimised or (
            known == Metric() and not words.isdisjoint(_ERRORS) and "neg" not in words
        )
    if lower_is_better == known.is_minimised:
        return name
    return f"{name}{_LOWER if lower_is_better else _HIGHER}"


def gain(name: str, value: float) -> float:
    """The gain of a metric's value, of which a higher one is better; of a gain, the value.

    >>> gain("dev/f1_tuned", 0.5), gain("dev/cost_tuned", 12.0), gain("dev/cost_tuned", -12.0)
    (0.5, -12.0, 12.0)
    """
    return -value if metric(name).is_minimised else value


def best_evaluation(gains: Sequence[float], evaluations: Sequence[Mapping[str, float]]) -> int:
    """The index of a run's best evaluation: the first one of the highest gain and, among equal gains, PR-AUC on dev.

    A model that predicts one class only, as at the start of a training, has the same F1 at each evaluation, and still
    learns to rank. NaN is below all other values.
    """
    ranks = [(value, metrics.get("dev/pr_auc", math.nan)) for value, metrics in zip(gains, evaluations, strict=True)]
    ordered = [tuple(-math.inf if math.isnan(each) else each for each in rank) for rank in ranks]
    return ordered.index(max(ordered))


def scores_of(kind: Kind) -> tuple[str, ...]:
    """The metrics that may decide in a kind of classification, besides any F-beta where F1 may."""
    return tuple(name for name, known in _METRICS.items() if kind in known.decides)


def check_score(score: str, known: Collection[str]) -> None:
    """Raise ValueError for a score that is none of these names, no F-beta where there is an F1, and no address.

    Of an F-beta there is one spelling.
    """
    if score not in known and ":" not in score and not (beta(score) and "f1" in known):
        beta_name = ", f2 (any F-beta)" if "f1" in known else ""
        raise ValueError(f"score must be one of {', '.join(known)}{beta_name}, or file.py:function, got {score!r}")
    if (factor := beta(score)) and score != f"f{factor:g}":  # the name of the decision's metric
        raise ValueError(f"the score of an F-beta must be spelled f{factor:g}, got {score!r}")


def metric_of(score: str) -> str:
    """The name of the metric of a score.

    >>> metric_of("recall"), metric_of("costs.py:saved")
    ('recall', 'saved')
    """
    return score.rpartition(":")[2]


def beta(score: str) -> float | None:
    """The beta of an F-beta; None for another score.

    >>> beta("f0.5"), beta("f1_macro")
    (0.5, None)
    """
    found = re.fullmatch(r"f(\d+(?:\.\d+)?)", score)
    return float(found[1]) if found else None


_LONGEST_LABEL: Final = 180
"""MLflow allows 250 characters for the whole name of a metric."""


def metric_name_part(label: str) -> str:
    """A label as part of a metric's name; characters that MLflow refuses are named between colons.

    MLflow allows letters, digits, `_`, `-`, `.`, spaces, colons, and slashes, which it takes for folders. A name that
    would be too long for it is cut, and ends in a hash of the label.

    >>> metric_name_part("PRP$"), metric_name_part("Shipping & returns"), metric_name_part("geo-loc")
    ('PRP:dollar sign:', 'Shipping :ampersand: returns', 'geo-loc')
    """
    part = re.sub(r"[^\w. -]", lambda found: f":{unicodedata.name(found[0], f'x{ord(found[0]):x}').lower()}:", label)
    if label == "tuned":  # its metric would have the name of another one, `f1_tuned`
        part = f":x{ord(label[0]):x}:{label[1:]}"
    if len(part) <= _LONGEST_LABEL:
        return part
    return f"{part[: _LONGEST_LABEL - 10].rstrip(':')}. {hashlib.sha256(label.encode()).hexdigest()[:8]}"
