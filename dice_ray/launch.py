"""One RunConfig, in this process or on Ray Train's workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dice_ray import cluster
from dice_ray.config.checks import check_data
from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.errors import ConfigError, DataError, DiceRayError, RunError
from dice_ray.models.encoder import EncoderWithHeads, load_encoder, start_heads
from dice_ray.settings import nested
from dice_ray.tasks.base import Task
from dice_ray.tasks.encoding import Encoding, encode
from dice_ray.terms import TermFacts
from dice_ray.training import precision, workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.loop import Evaluation, Parts, fit

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.data.records import LoadReport, Splits


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
        return EncodedSplit(self.splits.test, self.encoding.test(self.splits.test))


def objective(config: RunConfig, split: str = "dev") -> str:
    """The metric of the task: on dev it decides which checkpoint and trial is best, on test it compares."""
    return f"{split}/{config.task.objective()}"


def prepare(config: RunConfig) -> Prepared:
    """Load and encode the data of a run, from the cache if any process did so before; the last ones stay open."""
    sections = {name: nested(config)[name] for name in ("task", "data")}
    written = json.dumps({**sections, "model": {"encoder": config.model.encoder}}, sort_keys=True)
    return _prepared(written, json.dumps(sources.key(config.data)))


def start(config: RunConfig, folder: Path) -> Generator[Evaluation, None, None]:
    """Train a run in its folder, yielding at each evaluation; closing the generator frees its workers."""
    config = resolved(config)
    if config.launch.workers > 1 or config.launch.how == "ray_train":
        return _on_ray_train(config, folder)
    return fit(build(config), config.training, Checkpoints(folder))


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with what pays on this machine in place of `auto`: all of a run, sweep or study share it."""
    torch.set_num_threads(config.launch.threads)
    found = precision.resolve(config.training.precision).precision
    return config.model_copy(update={"training": config.training.model_copy(update={"precision": found})})


def train(config: RunConfig, folder: Path, report: Callable[[Evaluation], None]) -> None:
    """Train a run to its end; starts a local Ray where the run needs one."""
    if config.launch.workers == 1 and config.launch.how == "auto":
        for evaluation in start(config, folder):
            report(evaluation)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with cluster.started(num_cpus=config.launch.workers * config.launch.threads + 1, log=folder / "log.txt"):
        for evaluation in start(config, folder):
            report(evaluation)


def evaluate(config: RunConfig, folder: Path, split: str) -> dict[str, float]:
    """The scores of a run's best checkpoint on `dev` or `test`, under what dev decided."""
    prepared = prepare(config)
    parts = build(config)
    best = Checkpoints(folder).best()
    parts.model.load_state_dict(best["model"])
    encoded = prepared.test() if split == "test" else prepared.dev
    items = decoded(parts.task, parts.model, encoded, parts.tokenizer, parts.numerics, config.training.tokens)
    scores = parts.task.score(encoded.records, encoded.rows, items, best["decisions"])
    metrics = {**scores.metrics, "collapsed": float(scores.collapsed)}
    return {f"{split}/{name}": value for name, value in metrics.items()}


def build(config: RunConfig) -> Parts:
    """What a run trains, by what, from its configuration and seed."""
    prepared = prepare(config)
    if problems := check_data(config, prepared.facts, len(prepared.train.rows)):
        raise ConfigError(problems)
    torch.manual_seed(config.training.seed)
    numerics = precision.resolve(config.training.precision)
    encoder = load_encoder(config.model, prepared.tokenizer, numerics.attention)
    if config.training.activations == "recompute":
        if not encoder.supports_gradient_checkpointing:
            raise RunError(f"training.activations must be keep for {config.model.encoder}: it cannot form them again")
        encoder.activation_checkpointing_enable()
    heads = prepared.task.heads(prepared.facts, encoder.config.hidden_size, config.model.dropout)
    start_heads(heads, prepared.facts, config.model.head_bias)
    losses = {term.name: config.mining.wrap(config.loss.build(term)) for term in prepared.facts}
    model = EncoderWithHeads(encoder, heads).to(numerics.device)
    sides = prepared.train, prepared.dev
    return Parts(prepared.task, prepared.tokenizer, model, losses, *sides, objective(config), numerics)


@lru_cache(maxsize=2)
def _prepared(written: str, key: str) -> Prepared:
    """What these sections say; the key tells a changed file from the one that was read."""
    config = resolve([Layer("the run", json.loads(written))])
    splits = sources.load(config.data)
    encoded = encode(config.task, config.model, splits, sources.describe(config.data))
    train, dev = EncodedSplit(splits.train, encoded.train), EncodedSplit(splits.dev, encoded.dev)
    return Prepared(encoded.task, encoded.tokenizer, splits, train, dev, encoded.facts, encoded)


def _on_ray_train(config: RunConfig, folder: Path) -> Generator[Evaluation, None, None]:
    """The same run on Ray Train's workers: what rank 0 yields comes back through a queue."""
    import ray
    from ray.train import RunConfig as RayRunConfig
    from ray.train import ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.placement_group import PlacementGroup
    from ray.util.queue import Empty, Queue

    told = Queue(actor_options={"num_cpus": 0})
    trainer = TorchTrainer(
        _worker,
        train_loop_config={"config": nested(config), "folder": str(folder.resolve()), "told": told},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(
            num_workers=config.launch.workers, resources_per_worker={"CPU": config.launch.threads}
        ),
        run_config=RayRunConfig(name=folder.name, storage_path=str(folder.resolve() / "ray_train")),
    )
    group: PlacementGroup | None = None
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
            else:
                yield item
        if failure := running.exception():
            raise RunError(f"Ray Train stopped: {failure}") from failure
    finally:
        if not running.done() and group is not None:
            # Stopped early: without their group the workers end at once, and `fit` with them.
            ray.util.remove_placement_group(group)
        wait([running], timeout=10)
        pool.shutdown(wait=False)


def _worker(settings: dict[str, Any]) -> None:
    """The training loop of one worker of Ray Train."""
    import ray

    told = settings["told"]
    config = resolve([Layer("the run", settings["config"])])
    speaks = workers.rank() == 0
    if speaks:
        told.put(ray.util.get_current_placement_group())
    torch.set_num_threads(config.launch.threads)
    try:
        for evaluation in fit(build(config), config.training, Checkpoints(Path(settings["folder"]))):
            if speaks:
                told.put(evaluation)
    except DiceRayError as error:
        told.put(error)
