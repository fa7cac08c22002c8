"""What must hold between sections, and between them and the data: functions from a RunConfig to problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dice_ray.config.schema import RunConfig
from dice_ray.errors import Problem
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts


def check(config: RunConfig) -> list[Problem]:
    """Every problem between sections."""
    return [
        *_the_task_reads_the_records(config),
        *_the_loss_takes_the_links(config),
        *_a_test_split_is_there_or_drawn(config),
        *_an_altered_class_is_named(config),
        *_a_step_feeds_every_worker(config),
        *_a_gpu_has_one_worker_of_a_run(config),
    ]


def check_data(config: RunConfig, facts: Sequence[TermFacts], num_rows: int) -> list[Problem]:
    """Every problem of loss, mining and batch size with what the training split holds."""
    loss, mining = config.loss, config.mining
    found = [[*loss.problems(term, f"loss.{loss.name}"), *mining.problems(loss, term, "mining")] for term in facts]
    if config.training.batch_size > num_rows:
        must = f"must be at most the rows of the training split, {num_rows}"
        found.append([Problem("training.batch_size", must, str(config.training.batch_size))])
    return list(dict.fromkeys(problem for problems in found for problem in problems))


def check_encoder(config: RunConfig, longest: int | None, padding_side: str) -> list[Problem]:
    """Every problem of the task with an encoder whose positions, if it counts them, reach the longest row."""
    if longest is None:
        return []
    found = []
    if config.task.max_length > longest:
        must = f"must be at most {longest}, the positions of model.encoder {config.model.encoder}"
        found.append(Problem(f"task.{config.task.name}.max_length", must, str(config.task.max_length)))
    if padding_side == "left":
        must = "must pad on the right, as the encoder counts positions from the first token"
        found.append(Problem("model.encoder", must, "padding_side left (tokenizer_config.json)"))
    return found


def _the_task_reads_the_records(config: RunConfig) -> Iterator[Problem]:
    if (found := config.data.yields()) not in config.task.records:
        read = " or ".join(record.__name__ for record in config.task.records)
        yield Problem("data.source", f"must yield what task {config.task.name} reads, {read}", found.__name__)


def _the_loss_takes_the_links(config: RunConfig) -> Iterator[Problem]:
    for link in sorted(config.task.links() - config.loss.links()):
        losses = branches_of(LossConfig).items()
        takers = [name for name, loss in losses if issubclass(loss, LossBranch) and link in loss.links()]
        must = f"must take the {link} link of task {config.task.name}"
        if link == "position":
            must += f" (task.{config.task.name}.formulation=token has another, which every loss takes)"
        yield Problem("loss", must, config.loss.name, known=tuple(takers))


def _a_test_split_is_there_or_drawn(config: RunConfig) -> Iterator[Problem]:
    if config.data.test_share is not None and config.data.has("test"):
        must = "must be left out: data.source has a test split, and another one cannot be drawn"
        yield Problem("data.test_share", must, str(config.data.test_share))


def _an_altered_class_is_named(config: RunConfig) -> Iterator[Problem]:
    if config.task.positive_label() is not None:
        return
    must = "must be none for a task without a positive class (task.sentence_pair, or task.text_classification.positive)"
    for name, chosen in (("imbalance", config.data.imbalance), ("oversampling", config.data.oversampling)):
        if chosen.name != "none":
            yield Problem(f"data.{name}", must, chosen.name)


def _a_step_feeds_every_worker(config: RunConfig) -> Iterator[Problem]:
    if config.training.batch_size < config.launch.workers:
        yield Problem(
            "training.batch_size",
            f"must be at least launch.workers, {config.launch.workers}: each worker takes a share of every step",
            str(config.training.batch_size),
        )


def _a_gpu_has_one_worker_of_a_run(config: RunConfig) -> Iterator[Problem]:
    if 0 < config.launch.gpus < 1 < config.launch.workers:
        yield Problem("launch.gpus", "must be whole where launch.workers is more than 1", str(config.launch.gpus))
