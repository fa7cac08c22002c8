"""Search space over LoRA in place of the training of all weights; the learning rate is searched higher for it."""

from __future__ import annotations

from optuna import Trial


def lora_tuning(trial: Trial) -> None:
    trial.suggest_categorical("model.adapter", ["lora"])
    trial.suggest_int("model.adapter.lora.rank", 2, 64, log=True)
    trial.suggest_float("model.adapter.lora.alpha", 4, 64, log=True)
    trial.suggest_float("model.adapter.lora.dropout", 0, 0.2)
    trial.suggest_float("training.lr", 1e-4, 1e-2, log=True)
