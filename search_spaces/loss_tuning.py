"""Search spaces over losses and their hyperparameters: `loss_tuning` chooses the loss, each other space fixes one.

A search chooses among the losses that fit the task's link and classes.
"""

from __future__ import annotations

from collections.abc import Callable

from optuna import Trial


def loss_tuning(trial: Trial) -> None:
    LOSSES[trial.suggest_categorical("loss", list(LOSSES))](trial)


def cross_entropy(trial: Trial) -> None:
    """Label smoothing stays 0 where a task predicts positions."""
    _fix(trial, "cross_entropy")
    trial.suggest_float("loss.cross_entropy.label_smoothing", 0, 0.2)
    _head_bias(trial)


def weighted_cross_entropy(trial: Trial) -> None:
    _fix(trial, "weighted_cross_entropy")
    # The strength sets k. Most values of k itself give nearly equal weights: from 5 on where a third is positive.
    trial.suggest_categorical("loss.weighted_cross_entropy.weighting", ["lg"])
    trial.suggest_float("loss.weighted_cross_entropy.weighting.lg.strength", 0.05, 1)
    _head_bias(trial)


def focal(trial: Trial) -> None:
    _fix(trial, "focal")
    trial.suggest_float("loss.focal.gamma", 0, 5)
    _head_bias(trial)


def logit_adjusted(trial: Trial) -> None:
    _fix(trial, "logit_adjusted")
    trial.suggest_float("loss.logit_adjusted.tau", 0, 2)
    _head_bias(trial)


def dice(trial: Trial) -> None:
    _dice_form(trial, "dice")
    _overlap(trial)


def self_adjusting_dice(trial: Trial) -> None:
    _dice_form(trial, "self_adjusting_dice")
    trial.suggest_float("loss.self_adjusting_dice.decay", 1e-3, 1, log=True)
    _overlap(trial)


def tversky(trial: Trial) -> None:
    """Searches alpha only; beta defaults to 1 - alpha."""
    _fix(trial, "tversky")
    _smoothing(trial, "tversky")
    trial.suggest_float("loss.tversky.alpha", 0.1, 0.9)
    _overlap(trial)


def tversky_free(trial: Trial) -> None:
    """Searches alpha and beta independently."""
    tversky(trial)
    trial.suggest_float("loss.tversky.beta", 0.1, 0.9)


def dice_ce(trial: Trial) -> None:
    _fix(trial, "dice_ce")
    _smoothing(trial, "dice_ce")
    trial.suggest_float("loss.dice_ce.weight", 0.1, 10, log=True)
    _head_bias(trial)


def asymmetric(trial: Trial) -> None:
    _fix(trial, "asymmetric")
    trial.suggest_float("loss.asymmetric.gamma_pos", 0, 2)
    trial.suggest_float("loss.asymmetric.gamma_neg", 0, 8)
    trial.suggest_float("loss.asymmetric.margin", 0, 0.2)
    _head_bias(trial)


def vector_scaling(trial: Trial) -> None:
    _fix(trial, "vector_scaling")
    trial.suggest_float("loss.vector_scaling.gamma", 0, 1)
    trial.suggest_float("loss.vector_scaling.tau", 0, 2)
    _head_bias(trial)


def ldam(trial: Trial) -> None:
    """Its weights may begin so late that they hardly count."""
    _fix(trial, "ldam")
    trial.suggest_float("loss.ldam.margin", 0.1, 15, log=True)
    trial.suggest_categorical("loss.ldam.weighting", ["effective_number"])
    trial.suggest_float("loss.ldam.reweight_after", 0, 0.95)
    _head_bias(trial)


def majority_or_minority(trial: Trial) -> None:
    _fix(trial, "majority_or_minority")
    trial.suggest_float("loss.majority_or_minority.weight", 0.1, 10, log=True)
    _head_bias(trial)


def poly(trial: Trial) -> None:
    _fix(trial, "poly")
    trial.suggest_float("loss.poly.epsilon", -1, 5)
    _head_bias(trial)


def distribution_balanced(trial: Trial) -> None:
    _fix(trial, "distribution_balanced")
    trial.suggest_float("loss.distribution_balanced.floor", 0, 1)
    trial.suggest_float("loss.distribution_balanced.center", 0, 1)
    trial.suggest_float("loss.distribution_balanced.scale", 1, 5)
    trial.suggest_float("loss.distribution_balanced.bias", 0, 0.2)
    trial.suggest_float("loss.distribution_balanced.gamma", 0, 5)
    _head_bias(trial)


def listwise(trial: Trial) -> None:
    """Searches nothing of the loss, which has no parameters."""
    _fix(trial, "listwise")
    _head_bias(trial)


# Without `tversky_free`, which would draw the same loss a second time.
_CHOICES = (
    cross_entropy,
    weighted_cross_entropy,
    focal,
    logit_adjusted,
    dice,
    self_adjusting_dice,
    tversky,
    dice_ce,
    asymmetric,
    vector_scaling,
    ldam,
    majority_or_minority,
    poly,
    distribution_balanced,
    listwise,
)
LOSSES: dict[str, Callable[[Trial], None]] = {space.__name__: space for space in _CHOICES}


def _fix(trial: Trial, loss: str) -> None:
    """Fix the loss, unless `loss_tuning` has chosen it already."""
    if "loss" not in trial.params:
        trial.suggest_categorical("loss", [loss])


def _smoothing(trial: Trial, loss: str) -> None:
    trial.suggest_float(f"loss.{loss}.gamma", 1e-4, 10, log=True)


def _dice_form(trial: Trial, loss: str) -> None:
    """What the dice losses share: scope, smoothing and denominator."""
    _fix(trial, loss)
    trial.suggest_categorical(f"loss.{loss}.scope", ["batch", "example"])
    _smoothing(trial, loss)
    trial.suggest_categorical(f"loss.{loss}.denominator", ["squared", "linear"])


def _overlap(trial: Trial) -> None:
    """What the dice and Tversky losses are combined with; mining ratio 0 keeps all negatives."""
    trial.suggest_categorical("mining.ratio", [0.0, 0.1, 0.3, 1.0, 3.0])
    _head_bias(trial)


def _head_bias(trial: Trial) -> None:
    trial.suggest_categorical("model.head_bias", ["zero", "prior"])
