"""Every loss has an example; the tests of the house execute them."""

from __future__ import annotations

import dice_ray.losses


def test_every_loss_has_an_example() -> None:
    losses = [getattr(dice_ray.losses, name) for name in dice_ray.losses.__all__ if name.endswith("Loss")]
    assert len(losses) > 7
    assert [loss.__name__ for loss in losses if ">>>" not in (loss.__doc__ or "")] == []
