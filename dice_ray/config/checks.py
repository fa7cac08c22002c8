"""What must hold between sections: functions from a RunConfig to problems."""

from __future__ import annotations

from collections.abc import Iterator

from dice_ray.config.schema import RunConfig
from dice_ray.errors import Problem
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.settings import branches_of


def check(config: RunConfig) -> list[Problem]:
    """Every problem between sections."""
    return [*_loss_takes_the_links(config), *_a_step_feeds_every_worker(config)]


def _loss_takes_the_links(config: RunConfig) -> Iterator[Problem]:
    for link in sorted(config.task.links() - config.loss.links()):
        losses = branches_of(LossConfig).items()
        takers = [name for name, loss in losses if issubclass(loss, LossBranch) and link in loss.links()]
        yield Problem(
            "loss", f"must take the {link} link of task {config.task.name}", config.loss.name, known=tuple(takers)
        )


def _a_step_feeds_every_worker(config: RunConfig) -> Iterator[Problem]:
    if config.training.batch_size < config.launch.workers:
        yield Problem(
            "training.batch_size",
            f"must be at least launch.workers, {config.launch.workers}: each worker takes a share of every step",
            str(config.training.batch_size),
        )
