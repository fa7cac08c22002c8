"""TrainingConfig: how a run is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dice_ray.settings import Settings
from dice_ray.training.precision import Precision


class TrainingConfig(Settings):
    """How a run is trained; the same for one worker and for many.

    Attributes:
        epochs: Passes over the training rows; may be a fraction, such as .5.
        batch_size: Rows in an optimizer step, over all workers.
        tokens: The most tokens, padding included, in a micro-batch. Larger steps are cut into several micro-batches,
            with the same loss and gradient.
        precision: Of matrix products in the encoder. `auto` chooses the fastest for this machine, bf16 before fp16,
            and fp32 for the tiny encoder and for DeBERTa's first version, which supports no other. The choice is
            stored with the run, sweep or study; a machine that does not support it is refused.
        activations: `recompute` uses gradient checkpointing: less memory for large encoders, but more time.
        compile: `encoder` uses torch.compile, which takes a minute or more at the start and may speed up the steps;
            `--dry-run` measures them.
        lr: The highest learning rate.
        layer_decay: Learning rate of each encoder layer relative to the layer above it; the heads learn at `lr`.
        schedule: The learning rate after the warm-up: `linear`, half a `cosine` or a square (`polynomial`) down to 0;
            `one_cycle` rises and falls as half a cosine each.
        warmup: The share of the steps in which the learning rate rises.
        weight_decay: AdamW's; not applied to biases and norms.
        clip: The largest norm of the gradient.
        evaluations: How often dev is scored, evenly spaced; once an epoch if not given.
        patience: Early stopping: consecutive evaluations without a better score after which the run ends; off if not
            given.
        checkpoint_minutes: The most work that a killed run loses; there is a checkpoint at each evaluation as well.
        seed: Of initial weights, dropout and the order of the rows.
    """

    epochs: float = Field(3.0, gt=0, le=100_000)
    batch_size: int = Field(32, ge=1)
    tokens: int = Field(8192, ge=1)
    precision: Literal["auto"] | Precision = "auto"
    activations: Literal["keep", "recompute"] = "keep"
    compile: Literal["nothing", "encoder"] = "nothing"
    lr: float = Field(3e-5, gt=0)
    layer_decay: float = Field(1.0, gt=0, le=1)
    schedule: Literal["linear", "cosine", "polynomial", "one_cycle", "constant"] = "linear"
    warmup: float = Field(0.1, ge=0, lt=1)
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, gt=0)
    evaluations: int | None = Field(None, ge=1, le=100_000)
    patience: int | None = Field(None, ge=1)
    checkpoint_minutes: float = Field(10.0, ge=0)
    seed: int = Field(1, ge=0, lt=2**31)
