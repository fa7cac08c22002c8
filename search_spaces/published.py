"""The settings of the authors' scripts for their data sets, by preset, as starting points of a search.

From ShannonAI/dice_loss_for_NLP at d437bb9, one seed each. Their `smooth` is gamma, their `alpha` is the decay, and
their `ohem_ratio` is the mining ratio. The batch size is theirs times their gradient accumulation steps. All clip
gradients at 1.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from search_spaces import arms

_Settings: TypeAlias = dict[str, Any]


def _point(
    loss: _Settings,
    *,
    lr: float,
    batch_size: int,
    epochs: int,
    warmup: float,
    weight_decay: float = 0.002,
    dropout: float = 0.1,
    schedule: str = "linear",
    mining: float = 0.0,
) -> _Settings:
    training = {
        "training.lr": lr,
        "training.schedule": schedule,
        "training.batch_size": batch_size,
        "training.epochs": epochs,
        "training.warmup": warmup,
        "training.weight_decay": weight_decay,
    }
    return {**loss, "mining.ratio": mining, "model.dropout": dropout, **training}


def _focal(gamma: float) -> _Settings:
    return {"loss": "focal", "loss.focal.gamma": gamma}


_CE: _Settings = {"loss": "cross_entropy"}
_DSC: _Settings = arms.ARMS["authors_code"]
_BY_EXAMPLE: _Settings = _DSC | arms.arm("self_adjusting_dice", scope="example", classes="all")

PUBLISHED: dict[str, tuple[_Settings, ...]] = {
    "mrpc": (
        _point(_CE, lr=2e-5, batch_size=24, epochs=3, warmup=0.1, weight_decay=0.01),
        _point(_CE, lr=2e-5, batch_size=32, epochs=3, warmup=0.1),
        _point(_focal(2), lr=3e-5, batch_size=38, epochs=3, warmup=0.1),
        _point(_focal(3), lr=2e-5, batch_size=32, epochs=3, warmup=0.1),
        _point(_DSC, lr=3e-5, batch_size=20, epochs=5, warmup=0.002, weight_decay=0.003, dropout=0.2),
        _point(_DSC, lr=2e-5, batch_size=12, epochs=5, warmup=0.06, weight_decay=0.001),
    ),
    "squad1": (
        _point(_CE, lr=3e-5, batch_size=12, epochs=2, warmup=0.002),
        _point(_CE, lr=3e-5, batch_size=24, epochs=2, warmup=0.002),
        _point(_focal(2), lr=3e-5, batch_size=12, epochs=3, warmup=0, weight_decay=0.01, schedule="one_cycle"),
        _point(_DSC, lr=3e-5, batch_size=20, epochs=10, warmup=0, weight_decay=0, mining=0.3),
        _point(_DSC, lr=2e-5, batch_size=40, epochs=5, warmup=0.06, schedule="polynomial", mining=0.1),
    ),
    "conll03_mrc": (
        _point(_focal(2), lr=2e-5, batch_size=72, epochs=10, warmup=0.06, dropout=0.2, schedule="polynomial"),
        _point(
            _DSC, lr=3e-5, batch_size=288, epochs=10, warmup=0.01, weight_decay=0.01, dropout=0.2, schedule="polynomial"
        ),
    ),
    "ontonotes5_mrc": (
        _point(_focal(4), lr=1e-5, batch_size=48, epochs=5, warmup=0.1),
        _point(_DSC, lr=2e-5, batch_size=72, epochs=5, warmup=0.1, mining=0.3),
    ),
    "msra_mrc": (
        _point(_focal(3), lr=1e-5, batch_size=27, epochs=5, warmup=0.08),
        _point(_DSC, lr=2e-5, batch_size=30, epochs=5, warmup=0.02, schedule="polynomial", mining=0.3),
    ),
    "ontonotes4_mrc": (
        _point(_focal(4), lr=2e-5, batch_size=16, epochs=5, warmup=0.1, schedule="polynomial"),
        _point(_DSC, lr=2e-5, batch_size=16, epochs=5, warmup=0.1, schedule="polynomial", mining=0.3),
    ),
    "tnews": (
        _point(_focal(4), lr=3e-5, batch_size=18, epochs=5, warmup=0.02, dropout=0.2),
        _point(_BY_EXAMPLE, lr=3e-5, batch_size=36, epochs=5, warmup=0.1, schedule="polynomial"),
    ),
}
