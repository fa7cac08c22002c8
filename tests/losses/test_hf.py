"""The Hugging Face Trainer fine-tunes a tiny encoder with any loss."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dice_ray.errors import ConfigError, LossInputError
from dice_ray.losses import AsymmetricConfig, CrossEntropyConfig, DiceConfig, FocalConfig, SelfAdjustingDiceConfig
from dice_ray.losses.base import LossBranch
from dice_ray.losses.hf import _ERROR, TrainerLoss, compute_loss_func
from dice_ray.losses.tversky import TverskyConfig
from dice_ray.losses.weighting import InverseConfig
from dice_ray.terms import TermFacts

TAGS = TermFacts("tag", "softmax", ("O", "A", "B"), (80, 15, 5), 0)
TOPICS = TermFacts("topic", "sigmoid", ("no", "yes"), (80, 20), 0)


def rows() -> list[dict[str, Tensor]]:
    """Sixteen sentences of unequal length; the tag of a word is determined by the word."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 35, (16, 8), generator=generator)
    labels = ids % 3
    labels[::2, 3:] = -100
    return [
        {"input_ids": x, "attention_mask": torch.ones_like(x), "labels": y} for x, y in zip(ids, labels, strict=True)
    ]


def tiny_encoder() -> nn.Module:
    from transformers import BertConfig, BertForTokenClassification

    torch.manual_seed(0)
    labels: dict[str, Any] = {"num_labels": 3}
    config = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **labels,
    )
    encoder: nn.Module = BertForTokenClassification(config)
    return encoder


def trained(folder: Path, loss: LossBranch, batch: int, accumulation: int, steps: int) -> tuple[nn.Module, list[float]]:
    from transformers import Trainer, TrainingArguments

    settings: dict[str, Any] = {"report_to": "none", "use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
    arguments = TrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        learning_rate=0.01,
        logging_steps=1,
        **settings,
    )
    model = tiny_encoder()
    trainer = Trainer(model, arguments, train_dataset=rows(), compute_loss_func=compute_loss_func(loss, TAGS))
    trainer.train()
    return model, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_it_learns(tmp_path: Path) -> None:
    _, losses = trained(tmp_path, DiceConfig(), 16, 1, steps=30)
    assert losses[-1] < 0.5 * losses[0]


def test_accumulation_changes_nothing_for_a_mean_over_items(tmp_path: Path) -> None:
    whole, _ = trained(tmp_path, FocalConfig(), 16, 1, steps=2)
    parts, _ = trained(tmp_path, FocalConfig(), 4, 4, steps=2)
    for ours, others in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours, others, rtol=1e-3, atol=1e-4)


def test_a_batch_scope_loss_is_weighted_by_the_items_of_its_micro_batch_with_a_warning() -> None:
    loss, whole = compute_loss_func(DiceConfig(), TAGS), DiceConfig().build(TAGS)
    logits, labels = torch.randn(2, 5, 3), torch.randint(3, (2, 5))
    labels[0, 0] = -100
    with pytest.warns(
        UserWarning, match=rf"on each micro-batch, not on the whole step of 36 items: gradients are off by {_ERROR}"
    ):
        value = loss({"logits": logits}, labels, num_items_in_batch=torch.tensor(36))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss({"logits": logits}, labels, num_items_in_batch=torch.tensor(36))
    torch.testing.assert_close(value, whole(logits, labels) * 9 / 36)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(
            compute_loss_func(DiceConfig(), TAGS)({"logits": logits}, labels, 9), whole(logits, labels)
        )


def test_a_batch_without_items_has_no_loss() -> None:
    """It was nan, and with it the loss of the whole evaluation."""
    loss = compute_loss_func(DiceConfig(), TAGS)
    assert loss({"logits": torch.randn(2, 5, 3)}, torch.full((2, 5), -100), torch.tensor(0)) == 0


def test_several_labels_count_as_many_items() -> None:
    loss = compute_loss_func(CrossEntropyConfig(), TOPICS)
    logits, labels = torch.randn(4, 3), torch.randint(2, (4, 3)).float()
    expected = nn.functional.binary_cross_entropy_with_logits(logits, labels)
    torch.testing.assert_close(loss({"logits": logits}, labels, num_items_in_batch=12), expected)
    torch.testing.assert_close(loss({"logits": logits}, labels), expected)


def test_unsuitable_losses_and_missing_labels_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"loss\.reweight_after: must be 0: the Trainer does not tell how far it is"):
        compute_loss_func(FocalConfig(weighting=InverseConfig(), reweight_after=0.8), TAGS)
    with pytest.raises(ConfigError, match="no effect in example scope"):
        compute_loss_func(DiceConfig(scope="example", average="pooled"), TAGS)
    soft = torch.tensor([1.0, 0.9])
    with pytest.raises(LossInputError, match=r"whole numbers, since no loss takes soft ones, got 0\.9"):
        compute_loss_func(CrossEntropyConfig(), TOPICS)({"logits": torch.randn(2)}, soft)
    places = TermFacts("start", "position", classes=(), counts=())
    for loss, facts in ((AsymmetricConfig(), TAGS), (DiceConfig(), places), (CrossEntropyConfig(), places)):
        with pytest.raises(ConfigError, match=f"must be one that {loss.name} takes, got {facts.link}"):
            compute_loss_func(loss, facts)
    per_device = torch.tensor([[2], [2]])
    with pytest.raises(LossInputError, match="Each process must train on one device, got 2"):
        compute_loss_func(DiceConfig(), TAGS)({"logits": torch.zeros(2, 3)}, torch.zeros(2), per_device)
    with pytest.raises(LossInputError, match="must hold labels"):
        compute_loss_func(CrossEntropyConfig(), TAGS)({"logits": torch.zeros(2, 3)}, None)


@pytest.mark.filterwarnings("ignore:The Trainer evaluates this loss")
def test_the_error_that_the_warning_names_is_that_of_random_steps() -> None:
    pair = TermFacts("label", "softmax", ("no", "yes"), (80, 20), 0)
    generator, errors = torch.Generator().manual_seed(0), []
    for number in range(360):
        config = (DiceConfig(), SelfAdjustingDiceConfig(), TverskyConfig())[number % 3]
        size, parts, share = (64, 256)[number // 3 % 2], (4, 8, 16)[number // 6 % 3], (0.05, 0.2)[number // 18 % 2]
        labels = (torch.rand(size, generator=generator) < share).long()
        logits = torch.randn(size, 2, generator=generator) + 1.5 * nn.functional.one_hot(labels, 2)
        whole, split = (
            gradient(compute_loss_func(config, pair), logits, labels, num_parts) for num_parts in (1, parts)
        )
        errors.append(float((split - whole).norm() / whole.norm()))
    low, high = np.quantile(errors, [0.1, 0.9])
    assert f"{100 * low:.0f} to {100 * high:.0f} %" == _ERROR


def gradient(loss: TrainerLoss, logits: Tensor, labels: Tensor, num_parts: int) -> Tensor:
    """The gradient of a step, as the Trainer adds it up over micro-batches."""
    leaf = logits.clone().requires_grad_()
    parts = zip(leaf.chunk(num_parts), labels.chunk(num_parts), strict=True)
    step = torch.stack([loss({"logits": part}, of_part, len(labels)) for part, of_part in parts]).sum()
    (result,) = torch.autograd.grad(step, leaf)
    return result
