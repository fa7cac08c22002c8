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


cross_entropy = _with_optimizer(loss_tuning.cross_entropy)
weighted_cross_entropy = _with_optimizer(loss_tuning.weighted_cross_entropy)
focal = _with_optimizer(loss_tuning.focal)
logit_adjusted = _with_optimizer(loss_tuning.logit_adjusted)
dice = _with_optimizer(loss_tuning.dice)
self_adjusting_dice = _with_optimizer(loss_tuning.self_adjusting_dice)
tversky = _with_optimizer(loss_tuning.tversky)
tversky_free = _with_optimizer(loss_tuning.tversky_free)
dice_ce = _with_optimizer(loss_tuning.dice_ce)
asymmetric = _with_optimizer(loss_tuning.asymmetric)
vector_scaling = _with_optimizer(loss_tuning.vector_scaling)
ldam = _with_optimizer(loss_tuning.ldam)
majority_or_minority = _with_optimizer(loss_tuning.majority_or_minority)
poly = _with_optimizer(loss_tuning.poly)
distribution_balanced = _with_optimizer(loss_tuning.distribution_balanced)
listwise = _with_optimizer(loss_tuning.listwise)
