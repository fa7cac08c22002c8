"""From a RunConfig to what is trained: data and task, model, losses, optimizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from dice_ray.config.checks import check_data, check_encoder
from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.data.sampling import EachEpochConfig
from dice_ray.errors import ConfigError, DataError, RefusedError
from dice_ray.losses.margins import shifted
from dice_ray.models.encoder import EncoderWithHeads, load_encoder, with_heads
from dice_ray.models.heads import start_heads
from dice_ray.models.pretrained import pretrained_settings
from dice_ray.models.tiny import TINY
from dice_ray.run import cluster, object_store, system, trained
from dice_ray.settings import nested
from dice_ray.tasks.base import Task
from dice_ray.tasks.encoding import Encoding, encode
from dice_ray.tasks.inspection import rarest_and_unseen
from dice_ray.terms import TermFacts
from dice_ray.tracking import schema
from dice_ray.training import precision, workers
from dice_ray.training.batches import Sampling
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, never
from dice_ray.training.loop import Evaluation, Parts, StepProgress, fit
from dice_ray.training.optim import build_optimizer
from dice_ray.training.precision import Numerics

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.data.records import LoadReport, Splits
    from dice_ray.losses.weighting import Weighting


Events: TypeAlias = Generator[Evaluation | StepProgress, None, None]
"""What a run reports: progress after a step, or an evaluation. Closing the generator stops the run."""


def build(config: RunConfig) -> Parts:
    """Everything that a run trains, from its configuration and seed.

    Raises:
        ConfigError: The loss, batch size or task does not fit the data or the encoder.
        RunError: The encoder cannot do what the configuration asks for.
    """
    prepared = prepare(config)
    numerics = _choose_numerics(config)
    sampling = _sampling(config, prepared)
    shift = sampling.log_odds_ratio(config.training.batch_size) if config.data.batches.correct_prior else 0.0
    model = _build_model(config, prepared, numerics, shift)
    # Mining wraps a loss, since it selects the items that the loss is formed over.
    losses = {
        term.name: shifted(config.mining.wrap(config.loss.build(term)), shift).to(numerics.device)
        for term in prepared.facts
    }
    optimizer = build_optimizer(model, config.training)
    return Parts(
        # Anew, since prepared data are shared by runs, and the file of an own metric may have been edited between them.
        task=config.task.build(prepared.task.classes),
        tokenizer=prepared.tokenizer,
        model=model,
        losses=losses,
        optimizer=optimizer,
        train=prepared.train,
        dev=prepared.dev,
        objective=objective(config),
        numerics=numerics,
        sampling=sampling,
    )


def objective(config: RunConfig, split: str = "dev") -> str:
    """The task's metric: on dev it decides which checkpoint and trial is best, on test it compares.

    On test it is the metric itself where that on dev is of what dev has decided, `f1_tuned`: a study compares both, by
    the threshold that it has declared.
    """
    name = config.task.objective()
    return f"{split}/{name.removesuffix('_tuned') if split == 'test' else name}"


def class_weights(config: RunConfig) -> dict[str, str]:
    """The tag with the smallest and the largest class weight of each term; none if the loss weighs no classes."""
    weighting: Weighting | None = getattr(config.loss, "weighting", None)
    if weighting is None:
        return {}
    ranges = {term.name: weighting.range_of(term) for term in prepare(config).facts if term.link != "position"}
    text = "; ".join(f"{name}: {range_}" if len(ranges) > 1 else range_ for name, range_ in ranges.items())
    return {schema.CLASS_WEIGHTS: text}


@dataclass(frozen=True)
class PreparedData:
    """A task with its data encoded for an encoder, shared by runs that differ in loss or training alone."""

    task: Task[Any]
    tokenizer: PreTrainedTokenizerBase
    splits: Splits
    train: EncodedSplit
    dev: EncodedSplit
    facts: tuple[TermFacts, ...]
    encoding: Encoding

    def report(self, *encoded: EncodedSplit) -> LoadReport:
        """The load report, with the number of truncated rows in these splits, and the rarest class of dev and test."""
        by_name = dict(zip(("train", "dev", "test"), encoded, strict=False))
        cut = {name: sum(row["cut"] for row in split.rows) for name, split in by_name.items()}
        held_out = {"dev": self.splits.dev, "test": self.splits.test}
        rarest, unseen = rarest_and_unseen(self.task.config, self.task.classes, held_out)
        return replace(self.splits.report, cut=cut, rarest=rarest, unseen=unseen)

    def test(self) -> EncodedSplit:
        """The test split, encoded only when a run is scored on it.

        Raises:
            DataError: The data has no test split, or one that cannot be scored.
        """
        if not self.splits.test:
            raise DataError("the data must have a test split to be scored on: it has none")
        try:
            return EncodedSplit(self.splits.test, self.encoding.test(self.splits.test))
        except DataError as error:
            if drawn := self.splits.report.drawn.get("test"):
                raise DataError(f"{error} (the test split is {drawn})") from error
            raise


def prepare(config: RunConfig) -> PreparedData:
    """Load and encode the data of a run, from the cache where possible; the last two results stay open."""
    sections = nested(config)
    kept = {"task": sections["task"], "data": sections["data"], "tracking": {"data": config.tracking.data}}
    written = json.dumps({**kept, "model": {"encoder": config.model.encoder}}, sort_keys=True)
    return _prepare(written, json.dumps(sources.key(config.data, config.task.positive_label())))


@lru_cache(maxsize=2)
def _prepare(written: str, key: str) -> PreparedData:
    """`key` is for the cache alone: it changes with the content of the data files."""
    config = resolve([Layer("the run", json.loads(written))])
    splits = config.splits()
    encoded = encode(config.task, config.model, splits, config.data_name)
    train, dev = EncodedSplit(splits.train, encoded.train), EncodedSplit(splits.dev, encoded.dev)
    return PreparedData(encoded.task, encoded.tokenizer, splits, train, dev, encoded.facts, encoded)


def fix_precision(config: RunConfig, *, is_of_trials: bool = False) -> RunConfig:
    """Replace the precision `auto` by the best one for this machine: a whole run, sweep or study shares it."""
    if config.launch.threads is not None:
        torch.set_num_threads(config.launch.threads)  # the fastest precision depends on their number
    if config.training.precision != "auto":
        return config
    encoder = config.model.encoder
    # Half precision saves a tiny encoder no time and costs it accuracy; DeBERTa supports fp32 alone.
    needs_fp32 = encoder == TINY or pretrained_settings(encoder).model_type in precision.ONLY_FP32
    on_gpu = _may_use_gpu(config, on_ray=is_of_trials or config.launch.uses_ray_train)
    return config.with_precision(precision.resolve("fp32" if needs_fp32 else "auto", on_gpu=on_gpu).precision)


def _may_use_gpu(config: RunConfig, *, on_ray: bool) -> bool:
    """Trials and workers use the GPUs that they ask for; a process that trains a run alone takes one if it can."""
    return not on_ray or config.launch.num_gpus(auto=1) > 0


def _choose_numerics(config: RunConfig) -> Numerics:
    """Device, precision and attention of a run on this machine; a RunError where it does not support the precision."""
    on_gpu = _may_use_gpu(config, on_ray=config.launch.uses_ray_train)
    numerics = precision.resolve(fix_precision(config).training.precision, on_gpu=on_gpu)
    precision.check(numerics)
    return numerics


def check_machine(config: RunConfig) -> None:
    """Raise a RunError unless this process has a run's GPUs, supports its precision and can measure what is tracked."""
    system.check(config.tracking.system)
    cluster.check_gpus(config.launch.num_gpus(auto=0), torch.cuda.device_count())
    _choose_numerics(config)


def check_fits(config: RunConfig, prepared: PreparedData) -> None:
    """Raise a ConfigError unless loss, mining and batch size fit the training split."""
    if problems := check_data(config, prepared.facts, len(prepared.train.rows)):
        raise ConfigError(problems)


def _build_model(config: RunConfig, prepared: PreparedData, numerics: Numerics, shift: float) -> EncoderWithHeads:
    """The encoder with the task's heads on the device; new weights are drawn from the run's seed.

    `shift` is what is added to the logits in training: the head begins as far below, as if nothing were added.
    """
    check_fits(config, prepared)
    torch.manual_seed(config.training.seed)
    encoder = load_encoder(config.model, prepared.tokenizer, numerics.attention)
    precision.check_family(numerics, config.model.encoder, encoder.config.model_type)
    if problems := check_encoder(config, encoder, prepared.tokenizer.padding_side):
        raise ConfigError(problems)
    if config.training.activations == "recompute":
        if not encoder.supports_gradient_checkpointing:
            raise RefusedError(
                f"training.activations must be keep for {config.model.encoder}: it does not support gradient "
                "checkpointing"
            )
        # The second one is its name in transformers 5.19 and before.
        (getattr(encoder, "activation_checkpointing_enable", None) or encoder.gradient_checkpointing_enable)()
    if config.training.compile == "encoder":
        # In place, so that the weights keep their names. `fallback_random` draws the same dropout masks as eager mode.
        encoder.compile(dynamic=True, options={"fallback_random": True})
    heads = prepared.task.heads(encoder.config.hidden_size, config.model)
    start_heads(heads, prepared.facts, config.model.head_bias, shift)
    # An adapter draws its weights last: the heads start alike with it and without it.
    return with_heads(encoder, heads, config.model).to(numerics.device)


def _sampling(config: RunConfig, prepared: PreparedData) -> Sampling:
    """Which training rows are drawn, by `data.oversampling` and `data.batches`."""
    rows, positive, drawn = prepared.train.rows, config.task.positive_label(), config.data.batches
    if drawn.size is not None:
        return Sampling(drawn.size, [drawn.size / len(rows)] * len(rows))
    if positive is None:
        return Sampling(len(rows))
    label = prepared.task.classes.index(positive)
    is_positive = [row["label"] == label for row in rows]
    if isinstance(drawn.undersampling, EachEpochConfig):
        weights = drawn.undersampling.weights(is_positive)
        return Sampling(max(1, round(sum(weights))), weights, is_positive)
    weights = config.data.oversampling.weights(is_positive)
    return Sampling(len(rows), weights, is_positive, drawn.positive_share)


def train_here(
    config: RunConfig, folder: Path, is_stopped: Callable[[], bool] = never, parts: Parts | None = None
) -> Events:
    """Train a run, or a worker's part of it; after the first checkpoint, the folder can be used to predict."""
    if config.launch.threads is not None:
        torch.set_num_threads(config.launch.threads)
    parts = parts or build(config)
    if workers.rank() == 0:
        prepared = prepare(config)
        trained.store(config, folder, parts.task, prepared.facts, parts.model, parts.tokenizer, prepared.splits.digest)
    training = fit(parts, config.training, Checkpoints(folder), is_stopped)
    if config.tracking.system and workers.rank() == 0:
        training = system.measured(training, parts.numerics.device)
    with closing(training) as events:
        for event in events:
            object_store.send(folder)
            yield event
    object_store.send(folder)
