"""Checks across sections, and of sections against the data: functions from a RunConfig to problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dice_ray.config.schema import RunConfig
from dice_ray.errors import Problem
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts


def check(config: RunConfig) -> list[Problem]:
    """Every problem between sections; empty if there are none."""
    return [
        *_task_reads_records(config),
        *_loss_supports_links(config),
        *_test_split_is_drawn_once(config),
        *_resampling_has_positive_class(config),
        *_batch_reaches_all_workers(config),
        *_gpus_are_not_shared_within_a_run(config),
    ]


def check_data(config: RunConfig, facts: Sequence[TermFacts], num_rows: int) -> list[Problem]:
    """Every problem of loss, mining and batch size with the training split."""
    loss, mining = config.loss, config.mining
    problems: list[Problem] = []
    for term in facts:
        problems += [*loss.problems(term, f"loss.{loss.name}"), *mining.problems(loss, term, "mining")]
    if config.training.batch_size > num_rows:
        must = f"must be at most the rows of the training split, {num_rows}"
        problems.append(Problem("training.batch_size", must, str(config.training.batch_size)))
    return list(dict.fromkeys(problems))


def check_encoder(config: RunConfig, longest: int | None, padding_side: str) -> list[Problem]:
    """Every problem of the task with an encoder of at most `longest` positions; `None` if it has no such limit."""
    if longest is None:
        return []
    problems = []
    if config.task.max_length > longest:
        must = f"must be at most {longest}, the positions of model.encoder {config.model.encoder}"
        problems.append(Problem(f"task.{config.task.name}.max_length", must, str(config.task.max_length)))
    if padding_side == "left":
        must = "must pad on the right, as the encoder counts positions from the first token"
        problems.append(Problem("model.encoder", must, "padding_side left (tokenizer_config.json)"))
    return problems


def _task_reads_records(config: RunConfig) -> Iterator[Problem]:
    if (record := config.data.yields()) not in config.task.records:
        expected = " or ".join(kind.__name__ for kind in config.task.records)
        yield Problem("data.source", f"must yield what task {config.task.name} reads, {expected}", record.__name__)


def _loss_supports_links(config: RunConfig) -> Iterator[Problem]:
    for link in sorted(config.task.links() - config.loss.links()):
        losses = branches_of(LossConfig).items()
        supporting = [name for name, loss in losses if issubclass(loss, LossBranch) and link in loss.links()]
        must = f"must take the {link} link of task {config.task.name}"
        if link == "position":
            must += f" (task.{config.task.name}.formulation=token has another, which every loss takes)"
        yield Problem("loss", must, config.loss.name, known=tuple(supporting))


def _test_split_is_drawn_once(config: RunConfig) -> Iterator[Problem]:
    if config.data.test_share is not None and config.data.has("test"):
        must = "must be left out: data.source has a test split, and another one cannot be drawn"
        yield Problem("data.test_share", must, str(config.data.test_share))


def _resampling_has_positive_class(config: RunConfig) -> Iterator[Problem]:
    if config.task.positive_label() is not None:
        return
    must = "must be none for a task without a positive class (task.sentence_pair, or task.text_classification.positive)"
    for name, chosen in (("imbalance", config.data.imbalance), ("oversampling", config.data.oversampling)):
        if chosen.name != "none":
            yield Problem(f"data.{name}", must, chosen.name)


def _batch_reaches_all_workers(config: RunConfig) -> Iterator[Problem]:
    if config.training.batch_size < config.launch.workers:
        yield Problem(
            "training.batch_size",
            f"must be at least launch.workers, {config.launch.workers}: each worker takes a share of every step",
            str(config.training.batch_size),
        )


def _gpus_are_not_shared_within_a_run(config: RunConfig) -> Iterator[Problem]:
    if 0 < config.launch.gpus < 1 < config.launch.workers:
        yield Problem("launch.gpus", "must be whole where launch.workers is more than 1", str(config.launch.gpus))
