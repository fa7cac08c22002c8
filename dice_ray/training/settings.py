"""TrainingConfig: how a run is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dice_ray.settings import Settings
from dice_ray.training.precision import Precision


class TrainingConfig(Settings):
    """How a run is trained; the same for one worker and for many.

    Attributes:
        epochs: How often each row is seen; half an epoch is .5.
        batch_size: Rows in an optimizer step, over all workers.
        tokens: The most tokens, padding included, of a micro-batch: a step of more is cut, its loss and gradient stay.
        precision: Of the encoder's products of matrices; `auto` takes what is fastest here, bf16 before fp16, and fp32
            for the tiny encoder and for DeBERTa's first version, which knows no other. What was found is stored with a
            run, sweep or study: a machine that cannot keep it is refused.
        activations: `recompute` forms them again in the backward pass, for large encoders: less memory, more time.
        compile: `encoder` has torch translate it for this machine first, which takes a minute or more and may make its
            steps faster: rehearse a run with `--dry-run` to see.
        lr: The highest learning rate.
        layer_decay: What the rate of each layer is of that of the layer above it; the heads learn at `lr`.
        schedule: How the rate goes on after the warm-up: to 0 linearly, as half a cosine or as a square; `one_cycle`
            rises and falls as half a cosine each.
        warmup: The share of the steps in which the rate rises.
        weight_decay: AdamW's, not for biases and norms.
        clip: The largest norm of the gradient.
        evaluations: How often dev is scored, evenly spaced; once an epoch where not given.
        patience: Evaluations in a row without a better score that end the run; none end it where not given.
        checkpoint_minutes: How much work a run that is killed may lose; each evaluation is kept in any case.
        seed: Of fresh weights, dropout and the order of the rows.
    """

    epochs: float = Field(3.0, gt=0)
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
    evaluations: int | None = Field(None, ge=1)
    patience: int | None = Field(None, ge=1)
    checkpoint_minutes: float = Field(10.0, ge=0)
    seed: int = Field(1, ge=0, lt=2**31)
