"""Trains a run in its folder, in this process or on Ray Train's workers, and scores its best checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError
from dice_ray.files import store_url, without_password
from dice_ray.run import store, trained
from dice_ray.run.build import fix_precision, prepare
from dice_ray.run.here import Events, train_here
from dice_ray.run.ray_train import train_on_ray
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation


def train(config: RunConfig, folder: Path, is_stopped: Callable[[], bool] = never) -> Events:
    """Train a run, yielding progress after each step and evaluations; a run that was interrupted is resumed.

    Closing the generator stops the run and frees its workers. Once `is_stopped()`, the run writes a checkpoint and
    ends.

    Raises:
        RunError: The run is one of several workers, and its folder is a URL.
    """
    config = fix_precision(config)
    if config.launch.uses_ray_train and (url := store_url()):
        raise RunError(
            "DICE_RAY_RUNS must be a folder that all machines see for a run on several workers (launch.workers), got "
            f"{without_password(url)}"
        )
    start = train_on_ray if config.launch.uses_ray_train else train_here
    return start(config, folder, is_stopped)


def evaluations(config: RunConfig, folder: Path) -> Generator[Evaluation, None, None]:
    """The same, yielding evaluations alone."""
    with closing(train(config, folder)) as events:
        for event in events:
            if isinstance(event, Evaluation):
                yield event


def score(config: RunConfig, folder: Path, split: str) -> dict[str, float]:
    """The metrics of a run's best checkpoint on `dev` or `test`, at the threshold that dev decided.

    The counts behind them are written to the run's folder.
    """
    run, prepared = trained.load(folder), prepare(config)
    scores = run.score(prepared.test() if split == "test" else prepared.dev)
    (folder / split).mkdir(exist_ok=True)
    for file, content in trained.count_files(split, scores).items():
        (folder / file).write_text(content, encoding="utf-8")
    store.send(folder)
    return scores.named(split)
