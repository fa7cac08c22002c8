"""Search spaces over losses and their hyperparameters: `loss_tuning` chooses the loss, each other space fixes one.

A search chooses among the losses that fit the task's link and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from optuna import Trial

LOSSES: dict[str, Callable[[Trial], None]] = {}


def loss_tuning(trial: Trial) -> None:
    LOSSES[trial.suggest_categorical("loss", list(LOSSES))](trial)


def _loss(parameters: Callable[[Trial], None]) -> Callable[[Trial], None]:
    """The space of the loss of this name: its parameters, and the bias of the head."""

    @wraps(parameters)
    def space(trial: Trial) -> None:
        if "loss" not in trial.params:  # unless `loss_tuning` has chosen it already
            trial.suggest_categorical("loss", [parameters.__name__])
        parameters(trial)
        trial.suggest_categorical("model.head_bias", ["zero", "prior"])

    LOSSES[parameters.__name__] = space
    return space


@_loss
def cross_entropy(trial: Trial) -> None:
    """Label smoothing stays 0 where a task predicts positions."""
    trial.suggest_float("loss.cross_entropy.label_smoothing", 0, 0.2)


@_loss
def weighted_cross_entropy(trial: Trial) -> None:
    # The strength sets k. Most values of k itself give nearly equal weights: from 5 on where a third is positive.
    trial.suggest_categorical("loss.weighted_cross_entropy.weighting", ["lg"])
    trial.suggest_float("loss.weighted_cross_entropy.weighting.lg.strength", 0.05, 1)


@_loss
def focal(trial: Trial) -> None:
    trial.suggest_float("loss.focal.gamma", 0, 5)


@_loss
def logit_adjusted(trial: Trial) -> None:
    trial.suggest_float("loss.logit_adjusted.tau", 0, 2)


@_loss
def dice(trial: Trial) -> None:
    _dice_form(trial, "dice")
    _mining(trial)


@_loss
def self_adjusting_dice(trial: Trial) -> None:
    _dice_form(trial, "self_adjusting_dice")
    trial.suggest_float("loss.self_adjusting_dice.decay", 1e-3, 1, log=True)
    _mining(trial)


@_loss
def tversky(trial: Trial) -> None:
    """Searches alpha only; beta defaults to 1 - alpha."""
    trial.suggest_float("loss.tversky.gamma", 1e-4, 10, log=True)
    trial.suggest_float("loss.tversky.alpha", 0.1, 0.9)
    _mining(trial)


def tversky_free(trial: Trial) -> None:
    """Searches alpha and beta independently; `loss_tuning` would draw the same loss a second time."""
    tversky(trial)
    trial.suggest_float("loss.tversky.beta", 0.1, 0.9)


@_loss
def dice_ce(trial: Trial) -> None:
    trial.suggest_float("loss.dice_ce.gamma", 1e-4, 10, log=True)
    trial.suggest_float("loss.dice_ce.weight", 0.1, 10, log=True)


@_loss
def asymmetric(trial: Trial) -> None:
    trial.suggest_float("loss.asymmetric.gamma_pos", 0, 2)
    trial.suggest_float("loss.asymmetric.gamma_neg", 0, 8)
    trial.suggest_float("loss.asymmetric.margin", 0, 0.2)


@_loss
def vector_scaling(trial: Trial) -> None:
    trial.suggest_float("loss.vector_scaling.gamma", 0, 1)
    trial.suggest_float("loss.vector_scaling.tau", 0, 2)


@_loss
def ldam(trial: Trial) -> None:
    """Its weights may begin so late that they hardly count."""
    trial.suggest_float("loss.ldam.margin", 0.1, 15, log=True)
    trial.suggest_categorical("loss.ldam.weighting", ["effective_number"])
    trial.suggest_float("loss.ldam.reweight_after", 0, 0.95)


@_loss
def majority_or_minority(trial: Trial) -> None:
    trial.suggest_float("loss.majority_or_minority.weight", 0.1, 10, log=True)


@_loss
def poly(trial: Trial) -> None:
    trial.suggest_float("loss.poly.epsilon", -1, 5)


@_loss
def distribution_balanced(trial: Trial) -> None:
    trial.suggest_float("loss.distribution_balanced.floor", 0, 1)
    trial.suggest_float("loss.distribution_balanced.center", 0, 1)
    trial.suggest_float("loss.distribution_balanced.scale", 1, 5)
    trial.suggest_float("loss.distribution_balanced.bias", 0, 0.2)
    trial.suggest_float("loss.distribution_balanced.gamma", 0, 5)


@_loss
def listwise(trial: Trial) -> None:
    """Searches nothing of the loss, which has no parameters."""


def _dice_form(trial: Trial, loss: str) -> None:
    """What the dice losses share: scope, smoothing and denominator."""
    trial.suggest_categorical(f"loss.{loss}.scope", ["batch", "example"])
    trial.suggest_float(f"loss.{loss}.gamma", 1e-4, 10, log=True)
    trial.suggest_categorical(f"loss.{loss}.denominator", ["squared", "linear"])


def _mining(trial: Trial) -> None:
    """Mining, of the dice and Tversky losses; ratio 0 keeps all negatives."""
    trial.suggest_categorical("mining.ratio", [0.0, 0.1, 0.3, 1.0, 3.0])
