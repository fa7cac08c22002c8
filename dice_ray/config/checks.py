"""Checks across sections, and of sections against the data: functions from a RunConfig to problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dice_ray import user_code
from dice_ray.config.schema import RunConfig
from dice_ray.data.formats import FORMATS
from dice_ray.data.formats.columns import ColumnsBranch
from dice_ray.errors import InputError, Problem, UnknownNameError
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.losses.cross_entropy import CrossEntropyConfig
from dice_ray.losses.custom import CustomConfig
from dice_ray.models.layers import num_layers
from dice_ray.models.pretrained import is_causal, max_sequence_length, num_positions
from dice_ray.settings import branches_of
from dice_ray.tasks import TaskConfig
from dice_ray.tasks.base import TaskBranch
from dice_ray.terms import TermFacts

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def check(config: RunConfig) -> list[Problem]:
    """Every problem between sections; empty if there are none."""
    data, task, launch, batch_size = config.data, config.task, config.launch, config.training.batch_size
    problems = []
    if (record := data.yields()) not in task.records:
        expected = " or ".join(kind.__name__ for kind in task.records)
        must = f"must yield what task {task.name} reads, {expected}"
        problems.append(Problem("data.source", must, record.__name__))
    for link in sorted(task.links() - {*config.loss.supported}):
        losses = branches_of(LossConfig).items()
        supporting = [name for name, loss in losses if issubclass(loss, LossBranch) and link in loss.supported]
        must = f"must take the {link} link of task {task.name}"
        if link == "position":
            must += f" (task.{task.name}.formulation=token has another, which every loss takes)"
        problems.append(Problem("loss", must, config.loss.name, known=tuple(supporting)))
    if data.test_share is not None and data.has("test"):
        must = "must be left out: data.source has a test split, and another one cannot be drawn"
        problems.append(Problem("data.test_share", must, str(data.test_share)))
    for setting, column in data.split_columns().items():
        if not isinstance(getattr(data.reader, "columns", None), ColumnsBranch):
            known = ("hub", *(each.name for each in FORMATS if "columns" in each.model_fields))
            must = "must be left out: the records are not rows with columns, as these readers read them"
            problems.append(Problem(f"data.{setting}", must, str(column), known=known))
        elif setting == "time" and not data.drawn():
            problems.append(Problem("data.time", "must be left out: data.source lacks no split", str(column)))
    problems += _sampling_problems(config)
    if config.model.pooling != "auto" and not task.classifies_texts:
        tasks = branches_of(TaskConfig).items()
        of_texts = [name for name, each in tasks if issubclass(each, TaskBranch) and each.classifies_texts]
        must = f"must be auto for task {task.name}: only {' and '.join(of_texts)} classify whole texts"
        problems.append(Problem("model.pooling", must, config.model.pooling))
    if config.model.adapter.name != "none" and config.model.freeze != "none":
        must = f"must be none with model.adapter={config.model.adapter.name}, which trains no weight of the encoder"
        problems.append(Problem("model.freeze", must, str(config.model.freeze)))
    if batch_size < launch.workers:
        must = f"must be at least launch.workers, {launch.workers}: each worker takes a share of every step"
        problems.append(Problem("training.batch_size", must, str(batch_size)))
    if launch.least_workers > launch.workers:
        must = f"must be at most launch.workers, {launch.workers}"
        problems.append(Problem("launch.min_workers", must, str(launch.min_workers)))
    if launch.workers > 1 and 0 < launch.num_gpus(auto=0.5) < 1:
        problems.append(Problem("launch.gpus", "must be whole where launch.workers is more than 1", str(launch.gpus)))
    if launch.how == "ray_train" and launch.gpus == "auto":
        problems.append(Problem("launch.gpus", "must be a number where launch.how is ray_train", "auto"))
    return problems


def _sampling_problems(config: RunConfig) -> list[Problem]:
    """The problems of the settings that change how many positives a split or a step has."""
    data, batches, problems = config.data, config.data.batches, list[Problem]()
    resampled = {
        "data.oversampling": data.oversampling.name,
        "data.batches.undersampling": batches.undersampling.name,
        "data.batches.positive_share": "none" if batches.positive_share is None else str(batches.positive_share),
    }
    set_ = {path: value for path, value in resampled.items() if value != "none"}
    if config.task.positive_label() is None:
        tasks = branches_of(TaskConfig).items()
        positive = [f"task.{name}.positive" for name, each in tasks if "positive" in each.model_fields]
        must = f"must be none for a task without a positive class ({' or '.join(positive)})"
        altered = {"data.imbalance": data.imbalance.name} | resampled
        problems += [Problem(path, must, value) for path, value in altered.items() if value != "none"]
    if batches.correct_prior and not set_:
        must = f"must be false without one of {', '.join(resampled)}: the share of positives is that of the split"
        problems.append(Problem("data.batches.correct_prior", must, "true"))
    if batches.size is not None:
        set_ |= {"data.batches.size": str(batches.size)}
    for path in [*set_][1:]:
        problems.append(Problem(path, f"must be left out with {next(iter(set_))}: one of them draws rows", set_[path]))
    if batches.positive_share is not None and config.training.batch_size < 2:
        must = "must be at least 2 with data.batches.positive_share: a step holds both classes"
        problems.append(Problem("training.batch_size", must, str(config.training.batch_size)))
    return problems


def check_data(config: RunConfig, facts: Sequence[TermFacts], num_rows: int) -> list[Problem]:
    """Every problem of loss, mining and batch size with the training split."""
    loss, mining = config.loss, config.mining
    problems: list[Problem] = []
    for term in facts:
        problems += [*loss.problems(term, f"loss.{loss.name}"), *mining.problems(loss, term, "mining")]
    if (address := config.task.own_metric()) is not None:
        try:
            user_code.load(address)
        except (InputError, UnknownNameError) as error:
            must = f"must be the address of a function, and: {error}"
            problems.append(Problem(f"task.{config.task.name}.score", must))
    if config.training.batch_size > num_rows:
        must = f"must be at most the rows of the training split, {num_rows}"
        problems.append(Problem("training.batch_size", must, str(config.training.batch_size)))
    return list(dict.fromkeys(problems))


def unfit(config: RunConfig, facts: Sequence[TermFacts]) -> frozenset[str]:
    """The losses whose defaults do not fit the task, and the path of label smoothing where it predicts positions."""

    def fits(loss: LossBranch) -> bool:
        return config.task.links() <= {*loss.supported} and not any(loss.problems(term, "") for term in facts)

    losses = {name: each for name, each in branches_of(LossConfig).items() if each is not CustomConfig}
    found = {name for name, each in losses.items() if issubclass(each, LossBranch) and not fits(each())}
    if not fits(CrossEntropyConfig(label_smoothing=0.1)):
        found.add("loss.cross_entropy.label_smoothing")
    return frozenset(found)


def check_encoder(config: RunConfig, encoder: PreTrainedModel, padding_side: str) -> list[Problem]:
    """Every problem of the settings with the encoder that they name."""
    model, longest, layers = config.model, max_sequence_length(encoder), num_layers(encoder)
    problems = []
    if longest is not None and config.task.max_length > longest:
        must = f"must be at most {longest}, the positions of model.encoder {model.encoder}"
        problems.append(Problem(f"task.{config.task.name}.max_length", must, str(config.task.max_length)))
    if num_positions(encoder) is not None and padding_side == "left":
        must = "must pad on the right, as the encoder counts positions from the first token"
        problems.append(Problem("model.encoder", must, "padding_side left (tokenizer_config.json)"))
    if config.training.layer_decay < 1 and not layers:
        must = f"must be 1 with {model.encoder}, whose parameters do not say which layer they are of"
        problems.append(Problem("training.layer_decay", must, str(config.training.layer_decay)))
    if isinstance(model.freeze, int) and model.freeze > layers:
        must = f"must be none, embeddings, encoder, or at most {layers}, the layers of model.encoder {model.encoder}"
        problems.append(Problem("model.freeze", must, str(model.freeze)))
    if model.pooling == "first" and is_causal(encoder):
        must = f"must be last or mean for {model.encoder}, a decoder, whose first token does not depend on the others"
        problems.append(Problem("model.pooling", must, "first"))
    return problems
