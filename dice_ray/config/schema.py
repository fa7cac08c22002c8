"""RunConfig: everything that decides a run, as a tree of frozen sections."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dice_ray.data.sources import DataConfig, describe
from dice_ray.losses import LossConfig
from dice_ray.losses.cross_entropy import CrossEntropyConfig
from dice_ray.losses.mining import MiningConfig
from dice_ray.models.encoder import ModelConfig
from dice_ray.models.pretrained import digest
from dice_ray.settings import Settings
from dice_ray.tasks import TaskConfig
from dice_ray.tracking import schema as names
from dice_ray.training.settings import TrainingConfig


def _whole_or_part(gpus: float) -> float:
    if gpus > 1 and not gpus.is_integer():
        raise ValueError("must be whole, or less than 1")
    return int(gpus) if gpus.is_integer() else gpus


class LaunchConfig(Settings):
    """Where a run is trained; without dropout no number of a result depends on it, with dropout its draws do.

    Attributes:
        workers: Data-parallel workers.
        how: `auto` trains one worker in this process and more on Ray Train; `ray_train` forces it for one.
        threads: CPU threads a worker.
        gpus: GPUs a worker; less than one where trials of one worker share a GPU, whose memory they then share too.
        max_failures: How often Ray Train starts the workers again when one dies; they go on from the last checkpoint.
    """

    workers: int = Field(1, ge=1)
    how: Literal["auto", "ray_train"] = "auto"
    threads: int = Field(1, ge=1)
    gpus: Annotated[float, Field(ge=0), AfterValidator(_whole_or_part)] = 0
    max_failures: int = Field(2, ge=0)


class TrackingConfig(Settings):
    """What MLflow is told beside settings, metrics and counts.

    Attributes:
        text: Whether the best run's predictions are stored: they hold the texts of your data.
    """

    text: bool = False


ASIDE = ("launch", "tracking")
"""The sections that change no number of a result: a trial or arm does not write them."""


class RunConfig(Settings):
    """One run: a task on data, a model, a loss, and how it is trained, launched and tracked."""

    task: TaskConfig
    data: DataConfig
    model: ModelConfig = ModelConfig()
    loss: LossConfig = CrossEntropyConfig()
    mining: MiningConfig = MiningConfig()
    training: TrainingConfig = TrainingConfig()
    launch: LaunchConfig = LaunchConfig()
    tracking: TrackingConfig = TrackingConfig()

    def tags(self) -> dict[str, str]:
        """What runs are grouped and found by."""
        content, test_per_train = digest(self.model.encoder), self.data.test_per_train()
        return {
            names.TASK: self.task.name,
            names.DATA: describe(self.data),
            names.LOSS: self.loss.name,
            names.ENCODER: self.model.encoder,
            names.FRESH: self.model.fresh,
            **({names.ENCODER_DIGEST: content} if content else {}),
            **({names.TEST_PER_TRAIN: f"{test_per_train:g}"} if test_per_train else {}),
        }
