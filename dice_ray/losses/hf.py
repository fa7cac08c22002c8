"""Any loss as `compute_loss_func` of the Hugging Face Trainer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dice_ray.errors import ConfigError, LossInputError, Problem
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.items import is_readable
from dice_ray.losses.mining import MiningConfig
from dice_ray.losses.reduction import step_loss

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts

_ERROR = "17 to 72 %"
"""The error of the gradient in the logits, relative to its size, in 80 % of random steps: 64 or 256 items in 4 to 16
parts, 5 or 20 % of them positive; `tests/losses/test_hf.py` measures it."""


def compute_loss_func(config: LossBranch, facts: TermFacts, mining: MiningConfig | None = None) -> TrainerLoss:
    """The loss as a callable for `Trainer(..., compute_loss_func=...)`, with labels of -100 ignored.

    Raises:
        ConfigError: The loss or its mining does not fit the term, or the term is one of positions, whose mask the
            Trainer does not pass.

    Example:
        >>> from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments
        >>> from dice_ray.losses import SelfAdjustingDiceConfig
        >>> from dice_ray.terms import TermFacts
        >>> facts = TermFacts("tag", "softmax", classes=("O", "A", "B"), counts=(22, 5, 5), background=0)
        >>> rows = [{"input_ids": ids, "labels": ids % 3} for ids in torch.arange(5, 37).reshape(8, 4)]
        >>> sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        >>> encoder = BertForTokenClassification(BertConfig(vocab_size=40, num_labels=3, **sizes))
        >>> arguments = TrainingArguments(max_steps=2, report_to="none", save_strategy="no", use_cpu=True)
        >>> loss = compute_loss_func(SelfAdjustingDiceConfig(), facts)
        >>> trainer = Trainer(encoder, arguments, train_dataset=rows, compute_loss_func=loss)
        >>> trainer.train().global_step
        {'train_runtime': ...}
        2
    """
    mining = mining or MiningConfig()
    if facts.link == "position" or facts.link not in config.supported:
        known = tuple(sorted({*config.supported} - {"position"}))
        raise ConfigError([Problem("facts.link", f"must be one that {config.name} takes", facts.link, known=known)])
    problems = [*config.problems(facts, "loss"), *mining.problems(config, facts, "mining")]
    if after := getattr(config, "reweight_after", 0.0):
        must = "must be 0: the Trainer does not tell how far it is"
        problems.append(Problem("loss.reweight_after", must, str(after)))
    if problems:
        raise ConfigError(problems)
    return TrainerLoss(mining.wrap(config.build(facts)))


class TrainerLoss:
    """The callable that the Trainer applies to each micro-batch, whose values it adds up over the step.

    A mean over items divides by the number of items in the step, which the Trainer passes, and is therefore exact. A
    batch-scope loss, or one with mining, is that of the micro-batch alone, weighted by its share of the items: it would
    need the logits of the whole step, and the Trainer passes one micro-batch after the other. A warning says so, once.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss, self.is_first = loss, True

    def __call__(
        self, outputs: Mapping[str, Tensor], labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        if labels is None:
            raise LossInputError("The batch must hold labels, got none; name the label column `labels`.")
        is_first, self.is_first = self.is_first, False
        if (is_first or is_readable(labels)) and (is_soft := labels != labels.long()).any():
            raise LossInputError(
                f"Labels must be whole numbers, since no loss takes soft ones, got {labels[is_soft][0]:g}."
            )
        logits, labels = outputs["logits"], labels.long()
        if self.loss.link == "sigmoid":
            logits = logits.reshape(labels.shape)
        self.loss.to(logits.device)
        statistics = self.loss.statistics(logits, labels)
        if num_items_in_batch is None:
            return self.loss.value(statistics)
        num_items = torch.as_tensor(num_items_in_batch, device=logits.device)
        if num_items.numel() > 1:
            raise LossInputError(
                f"Each process must train on one device, got {num_items.numel()}: start the Trainer, which uses all "
                "GPUs that it sees, by torchrun or accelerate, or set CUDA_VISIBLE_DEVICES=0."
            )
        if self.loss.is_item_mean:
            return step_loss(self.loss, statistics, num_items=num_items)
        # The Trainer adds up the micro-batches of a step: with their shares, the sum is a weighted mean.
        share = self.loss.num_items(labels) / num_items.clamp(min=1)
        if is_first and share < 1 and num_items > 0:
            warnings.warn(
                f"The Trainer evaluates this loss, which is not a mean over items, on each micro-batch, not on the "
                f"whole step of {num_items:,} items: gradients are off by {_ERROR} of their size, and more where a "
                "micro-batch lacks a class. Exact are gradient_accumulation_steps=1 on one device, scope='example' "
                "without mining, and `dice-ray train`.",
                stacklevel=2,
            )
        return self.loss.value(statistics) * share
