"""Which loss, with which of its own hyperparameters: `loss_tuning` chooses one of all, the other spaces hold theirs."""

from __future__ import annotations

from collections.abc import Callable

from optuna import Trial


def loss_tuning(trial: Trial) -> None:
    LOSSES[trial.suggest_categorical("loss", list(LOSSES))](trial)


def cross_entropy(trial: Trial) -> None:
    _hold(trial, "cross_entropy")


def weighted_cross_entropy(trial: Trial) -> None:
    _hold(trial, "weighted_cross_entropy")
    trial.suggest_categorical("loss.weighted_cross_entropy.weighting", ["lg"])
    trial.suggest_float("loss.weighted_cross_entropy.weighting.lg.k", 1, 1000, log=True)


def focal(trial: Trial) -> None:
    _hold(trial, "focal")
    trial.suggest_float("loss.focal.gamma", 0, 5)


def dice(trial: Trial) -> None:
    _hold(trial, "dice")
    _smoothing(trial, "loss.dice")
    _scope(trial, "loss.dice")
    trial.suggest_categorical("loss.dice.denominator", ["squared", "linear"])


def self_adjusting_dice(trial: Trial) -> None:
    _hold(trial, "self_adjusting_dice")
    _smoothing(trial, "loss.self_adjusting_dice")
    _scope(trial, "loss.self_adjusting_dice")
    trial.suggest_float("loss.self_adjusting_dice.decay", 1e-3, 1, log=True)


def tversky(trial: Trial) -> None:
    """One weight against the other: beta, where not given, is 1 - alpha."""
    _hold(trial, "tversky")
    _smoothing(trial, "loss.tversky")
    trial.suggest_float("loss.tversky.alpha", 0.1, 0.9)


def tversky_free(trial: Trial) -> None:
    """Both weights by themselves."""
    tversky(trial)
    trial.suggest_float("loss.tversky.beta", 0.1, 0.9)


LOSSES: dict[str, Callable[[Trial], None]] = {
    space.__name__: space
    for space in (cross_entropy, weighted_cross_entropy, focal, dice, self_adjusting_dice, tversky)
}


def _hold(trial: Trial, loss: str) -> None:
    """The space of one loss, called by itself, holds that loss."""
    if "loss" not in trial.params:
        trial.suggest_categorical("loss", [loss])


def _smoothing(trial: Trial, loss: str) -> None:
    trial.suggest_float(f"{loss}.gamma", 1e-4, 10, log=True)


def _scope(trial: Trial, loss: str) -> None:
    trial.suggest_categorical(f"{loss}.scope", ["batch", "example"])
