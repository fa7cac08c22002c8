"""The table of the registered losses."""

from __future__ import annotations

from dice_ray.losses import LossConfig
from dice_ray.losses.table import rows
from dice_ray.settings import branches_of


def test_every_loss_has_a_row_with_its_parameters_and_their_defaults() -> None:
    table = {row.name: row for row in rows()}
    assert list(table) == list(branches_of(LossConfig))
    assert all(row.formula and row.source for row in table.values())
    assert table["weighted_cross_entropy"].parameters == (
        "weighting: lg",
        "weighting.lg.labels: pooled",
        "weighting.lg.k: 1.0",
        "weighting.lg.strength: 1.0",
        "weighting.inverse.labels: pooled",
        "weighting.effective_number.labels: pooled",
        "weighting.effective_number.beta: 0.999",
        "weighting.given.labels: pooled",
        "weighting.given.weights: must be given",
        "reweight_after: 0.0",
    )
    assert "gamma: .01, or 1 in example scope" in table["dice"].parameters
    assert "beta: 1 - alpha" in table["tversky"].parameters
    assert [table[name].group for name in ("poly", "tversky", "ldam")] == ["focusing", "overlap", "margins"]
    assert table["asymmetric"].links == ("sigmoid",)
    assert [table[name].scope for name in ("focal", "dice", "dice_ce", "custom")] == [
        "mean over items",
        "batch, example",
        "batch",
        "as the target decides",
    ]
