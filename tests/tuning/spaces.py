"""Spaces for the tests of sweeps."""

from __future__ import annotations

from pathlib import Path

from optuna import Trial
from optuna.pruners import BasePruner, MedianPruner, PatientPruner
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler

from search_spaces import loss_tuning


def losses_and_a_rate_too_high(trial: Trial) -> None:
    """One trial in two fails: its gradient is not finite."""
    loss_tuning.loss_tuning(trial)
    trial.suggest_categorical("training.lr", [1e-3, 1e38])


def rate(trial: Trial) -> None:
    trial.suggest_float("training.lr", 1e-4, 1e-2, log=True)


def two_rates(trial: Trial) -> None:
    trial.suggest_categorical("training.lr", [1e-3, 2e-3])


def batches(trial: Trial) -> None:
    trial.suggest_categorical("training.batch_size", [8, 128])


def batches_and_a_missing_encoder(trial: Trial) -> None:
    if trial.suggest_categorical("training.batch_size", [8, 128]) == 8:
        trial.suggest_categorical("model.encoder", ["tiny", "missing"])


def of_a_grid(seed: int) -> BaseSampler:
    return GridSampler({"training.lr": [1e-4, 1e-2]}, seed=seed)


def of_all(seed: int) -> BaseSampler:
    return BruteForceSampler(seed)


def patient() -> BasePruner:
    return PatientPruner(MedianPruner(), patience=1)


def loss_and_rate(trial: Trial) -> None:
    trial.suggest_categorical("loss", ["dice", "focal", "cross_entropy"])
    trial.suggest_categorical("training.lr", [1e-3, 2e-3, 1e38])


def faults(trial: Trial, *others: str) -> None:
    path = "loss.custom.parameters"
    trial.suggest_categorical(f"{path}.fault", ["an error", "a full disk", "none", *others])
    trial.suggest_categorical(f"{path}.attempts", [str(Path("attempts").absolute())])


def faults_and_an_exit(trial: Trial) -> None:
    faults(trial, "an exit")


def four_rates(trial: Trial) -> None:
    trial.suggest_categorical("training.lr", [1e-6, 2e-3, 5e-3, 1e-2])
