"""Any loss as the `compute_loss_func` of Hugging Face's Trainer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dice_ray.errors import ConfigError, LossInputError
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.mining import MiningConfig
from dice_ray.losses.reduction import step_loss

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


def compute_loss_func(config: LossBranch, facts: TermFacts, mining: MiningConfig | None = None) -> TrainerLoss:
    """The loss as `Trainer(..., compute_loss_func=...)` calls it, of `logits` and `labels` (-100 is ignored).

    Raises:
        ConfigError: The loss does not fit the term.

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
    if problems := [*config.problems(facts, "loss"), *mining.problems(config, facts, "mining")]:
        raise ConfigError(problems)
    return TrainerLoss(mining.wrap(config.build(facts)))


class TrainerLoss:
    """What the Trainer calls for each micro-batch. It adds these up over the step, without dividing by their number.

    A mean over items divides by the items of the step, and so is exact. A set-level loss is that of the micro-batch
    alone, weighed by its share of the items: the Trainer never shows the rest of the step.
    """

    def __init__(self, loss: Loss) -> None:
        assert loss.link != "position", "the Trainer has no labels over positions"
        self.loss, self.is_first = loss, True

    def __call__(
        self, outputs: Mapping[str, Tensor], labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        if labels is None:
            raise LossInputError("The batch must hold labels, got none: is the column named `labels`?")
        logits, labels = outputs["logits"], labels.long()
        if self.loss.link == "sigmoid":
            logits = logits.reshape(labels.shape)
        self.loss.to(logits.device)
        statistics = self.loss.statistics(logits, labels)
        if num_items_in_batch is None:
            return self.loss.value(statistics)
        num_items = torch.as_tensor(num_items_in_batch, device=logits.device)
        if self.loss.is_item_mean:
            return step_loss(self.loss, statistics, num_items=num_items)
        share = self.loss.num_items(labels) / num_items
        if self.is_first and share < 1:
            warnings.warn(
                "A loss of sets is that of each micro-batch here, not of the step: the gradient depends on how the "
                "step is cut. dice_ray's own training is exact.",
                stacklevel=2,
            )
        self.is_first = False
        return self.loss.value(statistics) * share
