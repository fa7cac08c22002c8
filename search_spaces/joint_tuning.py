"""Search spaces over loss and optimizer: `joint_tuning` also chooses the loss, each other space fixes it."""

from __future__ import annotations

from collections.abc import Callable

from optuna import Trial

from search_spaces import loss_tuning
from search_spaces.optimizer_tuning import optimizer_tuning


def joint_tuning(trial: Trial) -> None:
    loss_tuning.loss_tuning(trial)
    optimizer_tuning(trial)


def _with_optimizer(loss: Callable[[Trial], None]) -> Callable[[Trial], None]:
    def space(trial: Trial) -> None:
        loss(trial)
        optimizer_tuning(trial)

    return space


# `joint_tuning:dice`, and so for each loss.
for _space in (*loss_tuning.LOSSES.values(), loss_tuning.tversky_free):
    globals()[_space.__name__] = _with_optimizer(_space)
