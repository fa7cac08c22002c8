"""One RunConfig, in this process or on Ray Train's workers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from dice_ray import cluster, trained
from dice_ray.config.checks import check_data, check_encoder
from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.errors import ConfigError, DataError, DiceRayError, RunError
from dice_ray.models.encoder import TINY, EncoderWithHeads, load_encoder, start_heads
from dice_ray.models.pretrained import family, longest_row
from dice_ray.settings import nested
from dice_ray.tasks.base import Task
from dice_ray.tasks.encoding import Encoding, encode
from dice_ray.terms import TermFacts
from dice_ray.training import precision, workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit
from dice_ray.training.loop import Evaluation, Parts, StepProgress, fit

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup
    from transformers import PreTrainedTokenizerBase

    from dice_ray.data.records import LoadReport, Splits

Told: TypeAlias = Generator[Evaluation | StepProgress, None, None]
SECONDS = 1.0
"""How often workers of Ray Train say how far they are."""
END = 60.0
"""Seconds that Ray Train has to end by itself once the run is whole: workers that were stopped would be replaced."""
STOPPED = "stopped"
"""The file that marks the folder of a run on Ray Train which nobody waits for any more."""
GROUP = "placement_group"
"""The file with the id of what the workers of such a run hold, and keep holding when its process is killed."""


@dataclass(frozen=True)
class Prepared:
    """A task with its data encoded for an encoder: what runs that differ in loss or training share."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    splits: Splits
    train: EncodedSplit
    dev: EncodedSplit
    facts: tuple[TermFacts, ...]
    encoding: Encoding

    def report(self, *encoded: EncodedSplit) -> LoadReport:
        """What was read, and how many rows of these splits lost text to the length limit."""
        names = ("train", "dev", "test")
        cut = {name: sum(row["cut"] for row in split.rows) for name, split in zip(names, encoded, strict=False)}
        return replace(self.splits.report, cut=cut)

    def test(self) -> EncodedSplit:
        """The test split, encoded only when a run is scored on it."""
        if not self.splits.test:
            raise DataError("the data must have a test split to be scored on: it has none")
        try:
            return EncodedSplit(self.splits.test, self.encoding.test(self.splits.test))
        except DataError as error:
            if drawn := self.splits.report.drawn.get("test"):
                raise DataError(f"{error} (the test split is {drawn})") from error
            raise


def objective(config: RunConfig, split: str = "dev") -> str:
    """The metric of the task: on dev it decides which checkpoint and trial is best, on test it compares."""
    return f"{split}/{config.task.objective()}"


def prepare(config: RunConfig) -> Prepared:
    """Load and encode the data of a run, from the cache if any process did so before; the last ones stay open."""
    sections = {name: nested(config)[name] for name in ("task", "data")}
    written = json.dumps({**sections, "model": {"encoder": config.model.encoder}}, sort_keys=True)
    return _prepared(written, json.dumps(sources.key(config.data, config.task.positive_label())))


def start(config: RunConfig, folder: Path) -> Generator[Evaluation, None, None]:
    """Train a run in its folder, yielding at each evaluation; closing the generator frees its workers."""
    with closing(steps(config, folder)) as running:
        for told in running:
            if isinstance(told, Evaluation):
                yield told


def steps(config: RunConfig, folder: Path) -> Told:
    """The same, yielding how far the run is between evaluations too."""
    config = resolved(config)
    if config.launch.workers > 1 or config.launch.how == "ray_train":
        return _on_ray_train(config, folder)
    return _fit(config, folder)


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with what pays on this machine in place of `auto`: all of a run, sweep or study share it."""
    torch.set_num_threads(config.launch.threads)
    if config.training.precision != "auto":
        return config
    encoder = config.model.encoder
    # Half of the bits save a tiny encoder no time, and cost it what it learns.
    needs_all = encoder == TINY or family(encoder) in precision.ONLY_FP32
    found = precision.resolve("fp32" if needs_all else "auto").precision
    return config.model_copy(update={"training": config.training.model_copy(update={"precision": found})})


def train(config: RunConfig, folder: Path, report: Callable[[Evaluation | StepProgress], None]) -> None:
    """Train a run to its end; starts a local Ray where the run needs one."""
    launch = config.launch
    if launch.workers == 1 and launch.how == "auto":
        check_here(config)
        for told in steps(config, folder):
            report(told)
        return
    folder.mkdir(parents=True, exist_ok=True)
    num_cpus = launch.workers * launch.threads + 1
    with cluster.started(num_cpus=num_cpus, log=folder / "log.txt", folder=folder) as ray:
        check_gpus(launch.workers * launch.gpus, ray.gpus)
        for told in steps(config, folder):
            report(told)


def evaluate(config: RunConfig, folder: Path, split: str) -> dict[str, float]:
    """The scores of a run's best checkpoint on `dev` or `test`, under what dev decided.

    The counts behind them are left in the folder: `<split>/items.csv` and `<split>/classes.csv`.
    """
    run, prepared = trained.load(folder), prepare(config)
    scores = run.score(prepared.test() if split == "test" else prepared.dev)
    (folder / split).mkdir(exist_ok=True)
    for file, content in trained.count_files(split, scores).items():
        (folder / file).write_text(content, encoding="utf-8")
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)}
    return {f"{split}/{name}": value for name, value in metrics.items()}


def check_here(config: RunConfig) -> None:
    """Whether this process finds the GPUs of a run, and keeps its precision."""
    check_gpus(config.launch.gpus, torch.cuda.device_count())
    precision.check(precision.resolve(resolved(config).training.precision))


def check_gpus(wanted: float, found: int) -> None:
    """Whether a run finds its GPUs."""
    if wanted > found:
        raise RunError(f"there must be {wanted} GPUs (launch.workers x launch.gpus), and there are {found}")


def _fit(config: RunConfig, folder: Path) -> Told:
    """The run of one worker, or of this process; the folder can predict as soon as it holds a checkpoint."""
    torch.set_num_threads(config.launch.threads)
    parts = build(config)
    if workers.rank() == 0:
        assert isinstance(parts.model, EncoderWithHeads)
        prepared = prepare(config)
        trained.store(config, folder, parts.task, prepared.facts, parts.model, parts.tokenizer, prepared.splits.digest)
    yield from fit(parts, config.training, Checkpoints(folder))


def build(config: RunConfig) -> Parts:
    """What a run trains, by what, from its configuration and seed."""
    prepared = prepare(config)
    if problems := check_data(config, prepared.facts, len(prepared.train.rows)):
        raise ConfigError(problems)
    torch.manual_seed(config.training.seed)
    numerics = precision.resolve(resolved(config).training.precision)
    precision.check(numerics)
    encoder = load_encoder(config.model, prepared.tokenizer, numerics.attention)
    precision.check_family(numerics, config.model.encoder, encoder.config.model_type)
    if problems := check_encoder(config, longest_row(encoder), prepared.tokenizer.padding_side):
        raise ConfigError(problems)
    if config.training.activations == "recompute":
        if not encoder.supports_gradient_checkpointing:
            raise RunError(f"training.activations must be keep for {config.model.encoder}: it cannot form them again")
        encoder.activation_checkpointing_enable()
    if config.training.compile == "encoder":
        # In place, so that no weight gets another name; and dropout draws what it would without.
        encoder.compile(dynamic=True, options={"fallback_random": True})
    heads = prepared.task.heads(prepared.facts, encoder.config.hidden_size, config.model.dropout)
    start_heads(heads, prepared.facts, config.model.head_bias)
    losses = {term.name: config.mining.wrap(config.loss.build(term)) for term in prepared.facts}
    model = EncoderWithHeads(encoder, heads).to(numerics.device)
    sides = prepared.train, prepared.dev
    weights = _weights(config, prepared)
    return Parts(prepared.task, prepared.tokenizer, model, losses, *sides, objective(config), numerics, weights)


def _weights(config: RunConfig, prepared: Prepared) -> list[float] | None:
    """How often each training row is drawn, where `data.oversampling` draws those of a class more often."""
    oversampling, positive = config.data.oversampling, config.task.positive_label()
    if oversampling.name == "none" or positive is None:
        return None
    label = prepared.task.classes.index(positive)
    return oversampling.weights([row["label"] == label for row in prepared.train.rows])


@lru_cache(maxsize=2)
def _prepared(written: str, key: str) -> Prepared:
    """What these sections say; the key tells a changed file from the one that was read."""
    config = resolve([Layer("the run", json.loads(written))])
    splits = sources.load(config.data, config.task.positive_label())
    encoded = encode(config.task, config.model, splits, sources.describe(config.data))
    train, dev = EncodedSplit(splits.train, encoded.train), EncodedSplit(splits.dev, encoded.dev)
    return Prepared(encoded.task, encoded.tokenizer, splits, train, dev, encoded.facts, encoded)


def _on_ray_train(config: RunConfig, folder: Path) -> Told:
    """The same run on Ray Train's workers: what rank 0 yields comes back through a queue.

    Workers that are started again after one died tell their history again: what was told is not told twice.
    """
    from ray.train import FailureConfig, ScalingConfig
    from ray.train import RunConfig as RayRunConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.placement_group import PlacementGroup
    from ray.util.queue import Empty, Queue

    _free(folder)
    (folder / STOPPED).unlink(missing_ok=True)
    told = Queue(actor_options={"num_cpus": 0})
    trainer = TorchTrainer(
        _worker,
        train_loop_config={"config": nested(config), "folder": str(folder.resolve()), "told": told},
        torch_config=TorchConfig(backend="nccl" if config.launch.gpus else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=config.launch.workers,
            use_gpu=config.launch.gpus > 0,
            resources_per_worker={"CPU": config.launch.threads, "GPU": config.launch.gpus},
        ),
        run_config=RayRunConfig(
            name=folder.name,
            storage_path=str(folder.resolve() / "ray_train"),
            failure_config=FailureConfig(max_failures=config.launch.max_failures),
        ),
    )
    group: PlacementGroup | None = None
    last, is_whole = 0, False
    pool = ThreadPoolExecutor(max_workers=1)
    running = pool.submit(trainer.fit)
    try:
        while not running.done() or not told.empty():
            try:
                item = told.get(timeout=0.2)
            except Empty:
                continue
            if isinstance(item, PlacementGroup):
                group = item
            elif isinstance(item, DiceRayError):
                raise item
            elif isinstance(item, StepProgress):
                yield item
            elif item.step > last:
                last, is_whole = item.step, item.finished
                yield item
        if failure := running.exception():
            raise RunError(f"Ray Train stopped: {failure}") from failure
    finally:
        if is_whole:
            wait([running], timeout=END)
        if group is not None and not running.done():
            _stop(folder, group)
        (folder / GROUP).unlink(missing_ok=True)
        wait([running], timeout=10)
        pool.shutdown(wait=False)


def _stop(folder: Path, group: PlacementGroup) -> None:
    """End the workers at once by taking their group; those that replace them see the mark."""
    from ray.util import remove_placement_group

    (folder / STOPPED).touch()
    remove_placement_group(group)


def _free(folder: Path) -> None:
    """End the workers of an attempt whose own process was killed: they would go on, and hold what this one needs."""
    import ray
    from ray.util.placement_group import PlacementGroup

    file = folder / GROUP
    left = file.read_text() if file.exists() else None
    if left is not None and left in ray.util.placement_group_table():  # a Ray of before took its groups with it
        ray.util.remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(left))))
    file.unlink(missing_ok=True)


def _worker(settings: dict[str, Any]) -> None:
    """The training loop of one worker of Ray Train."""
    import ray

    told = settings["told"]
    if (Path(settings["folder"]) / STOPPED).exists():
        return
    config = resolve([Layer("the run", settings["config"])])
    speaks = workers.rank() == 0
    if speaks:
        group = ray.util.get_current_placement_group()
        assert group is not None
        (Path(settings["folder"]) / GROUP).write_text(group.id.hex())
        told.put(group)
    spoke = time.monotonic()
    try:
        for item in _fit(config, Path(settings["folder"])):
            if speaks and (isinstance(item, Evaluation) or time.monotonic() - spoke >= SECONDS):
                told.put(item)
                spoke = time.monotonic()
    except DiceRayError as error:
        told.put(error)
