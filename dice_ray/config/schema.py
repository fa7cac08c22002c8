"""RunConfig: the whole configuration of a run, as a tree of frozen sections."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainValidator

from dice_ray.data.records import Splits
from dice_ray.data.sources import DataConfig, FilesConfig, load
from dice_ray.losses import LossConfig
from dice_ray.losses.cross_entropy import CrossEntropyConfig
from dice_ray.losses.mining import MiningConfig
from dice_ray.models.encoder import ModelConfig
from dice_ray.models.sources import digest
from dice_ray.settings import Settings
from dice_ray.tasks import TaskConfig
from dice_ray.tracking import schema as names
from dice_ray.training.settings import TrainingConfig


def _whole_or_part(gpus: object) -> float | Literal["auto"]:
    if gpus == "auto":
        return "auto"
    try:
        number = float(str(gpus))
    except ValueError:
        number = -1.0
    if not number >= 0 or (number > 1 and not number.is_integer()):
        raise ValueError("must be auto, a whole number, or a number below 1")
    return int(number) if number.is_integer() else number


class LaunchConfig(Settings):
    """Where a run is trained. Results do not depend on it, except that workers draw different dropout masks.

    Attributes:
        workers: Data-parallel workers.
        min_workers: The fewest workers with which a run continues while machines are missing; by default `workers`. It
            uses more as machines join, up to `workers`, and goes back to its last checkpoint at each change.
        how: `auto` trains one worker in this process and several on Ray Train; `ray_train` always uses Ray Train.
        threads: CPU threads for each worker. By default, runs at the same time share the cores: a single run has all
            cores of the machine (or OMP_NUM_THREADS), a trial its share of them.
        gpus: GPUs for each worker; less than one lets trials of one worker share a GPU, and its memory. `auto` runs the
            first steps of trials, and lets as many share a GPU as its memory holds; without GPUs it is 0. Trials and
            workers that ask for none are trained on CPUs. A run that one process trains alone takes a GPU if there is
            one, and does not share it.
        accelerator_type: The kind of GPU that workers are placed on, where a cluster has several kinds; any
            that Ray's machines have, as `ray status` names it (`accelerator_type:A100`).
        max_failures: How often Ray Train restarts the workers after one dies; they resume from the last checkpoint.
    """

    workers: int = Field(1, ge=1, le=1024)
    min_workers: int | None = Field(None, ge=1, le=1024)
    how: Literal["auto", "ray_train"] = "auto"
    threads: int | None = Field(None, ge=1, le=1024)
    gpus: Annotated[float | Literal["auto"], PlainValidator(_whole_or_part)] = 0
    accelerator_type: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    max_failures: int = Field(2, ge=0)

    def num_gpus(self, auto: float) -> float:
        """GPUs for each worker, with the number that `auto` stands for."""
        return auto if self.gpus == "auto" else self.gpus

    @property
    def uses_ray_train(self) -> bool:
        """Whether a run trains on Ray Train's workers; else it trains in the calling process."""
        return self.workers > 1 or self.how == "ray_train"

    @property
    def least_workers(self) -> int:
        """The fewest workers with which a run can start."""
        return self.min_workers or self.workers


_PaperData: TypeAlias = Literal[
    "ctb5",
    "ctb6",
    "ud14_chinese",
    "wsj",
    "ritter2011",
    "conll03",
    "ontonotes5",
    "msra",
    "ontonotes4",
    "squad1",
    "squad2",
    "quoref",
    "mrpc",
    "qqp",
    "sst2",
    "sst5",
]
"""The data sets of the paper's Tables 3 to 10."""


class TrackingConfig(Settings):
    """What is logged to MLflow in addition to settings, metrics and counts.

    Attributes:
        data: The name of the data set in MLflow, tables and the cache; by default the preset's, if it reads files.
        text: Whether the best run's predictions are logged, and the texts of the records that they are for.
        system: Whether each evaluation logs the mean use of the CPU, the memory and the GPU since the last one, as
            `system/...`, on the machine of the run or of its first worker. Needs the package psutil, and nvidia-ml-py
            for the utilization of the GPU.
        published: The data set of the paper that the data are, whole and in the published split. The paper's tables
            show the scores of such data only.
    """

    data: str | None = Field(None, min_length=1)
    text: bool = False
    system: bool = False
    published: _PaperData | None = None


NEUTRAL_SECTIONS = ("launch", "tracking")
"""The sections that do not affect results; trials and arms must not set them."""


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

    @property
    def data_name(self) -> str:
        return self.tracking.data or self.data.source.title

    def splits(self) -> Splits:
        """The splits of its data, from the cache if possible. Raises what `sources.load` raises."""
        return load(self.data, self.task.positive_label(), self.data_name)

    def with_data_name(self, name: str | None) -> RunConfig:
        """The same, with this name for data in files that have none: folders are called `data` and `downloads`."""
        if not isinstance(self.data.source, FilesConfig) or self.tracking.data is not None:
            return self
        return self.model_copy(update={"tracking": self.tracking.model_copy(update={"data": name})})

    def with_threads(self, threads: int) -> RunConfig:
        """The same run with this number of threads for each worker, unless it sets one itself."""
        if self.launch.threads is not None:
            return self
        return self.model_copy(update={"launch": self.launch.model_copy(update={"threads": threads})})

    def with_precision(self, precision: str) -> RunConfig:
        return self.model_copy(update={"training": self.training.model_copy(update={"precision": precision})})

    def tags(self) -> dict[str, str]:
        """The MLflow tags by which runs are grouped and found."""
        content, test_per_train = digest(self.model.encoder), self.data.test_per_train()
        return {
            names.TASK: self.task.name,
            names.DATA: self.data_name,
            **({names.PUBLISHED: self.tracking.published} if self.tracking.published else {}),
            names.LOSS: self.loss.name,
            names.ENCODER: self.model.encoder,
            names.FRESH: self.model.fresh,
            **({names.ENCODER_DIGEST: content} if content else {}),
            **({names.TEST_PER_TRAIN: f"{test_per_train:g}"} if test_per_train else {}),
        }
