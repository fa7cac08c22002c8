"""TrainingConfig: how a run is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dice_ray.settings import Settings


class TrainingConfig(Settings):
    """How a run is trained; the same for one worker and for many.

    Attributes:
        epochs: How often each row is seen; half an epoch is .5.
        batch_size: Rows in an optimizer step, over all workers.
        tokens: The most tokens, padding included, of a micro-batch: a step of more is cut, its loss and gradient stay.
        lr: The highest learning rate.
        schedule: How the rate goes on after the warm-up.
        warmup: The share of the steps in which the rate rises.
        weight_decay: AdamW's, not for biases and norms.
        clip: The largest norm of the gradient.
        evaluations: How often dev is scored, evenly spaced; once an epoch where not given.
        seed: Of fresh weights, dropout and the order of the rows.
    """

    epochs: float = Field(3.0, gt=0)
    batch_size: int = Field(32, ge=1)
    tokens: int = Field(8192, ge=1)
    lr: float = Field(3e-5, gt=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: float = Field(0.1, ge=0, lt=1)
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, gt=0)
    evaluations: int | None = Field(None, ge=1)
    seed: int = Field(1, ge=0, lt=2**31)
