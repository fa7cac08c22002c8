"""Search space over optimizer, schedule and dropout for any loss; the number of epochs is the budget, not searched."""

from __future__ import annotations

from optuna import Trial


def optimizer_tuning(trial: Trial) -> None:
    trial.suggest_float("training.lr", 5e-6, 2e-3, log=True)
    trial.suggest_int("training.batch_size", 8, 288, log=True)
    trial.suggest_categorical("training.schedule", ["linear", "cosine", "polynomial", "one_cycle", "constant"])
    trial.suggest_float("training.warmup", 0, 0.3)
    trial.suggest_float("training.weight_decay", 0, 0.1)
    trial.suggest_float("model.dropout", 0, 0.3)
