"""Figures: what they show as a small typed record, computed first, and then the drawing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dice_ray.losses import (
    DiceConfig,
    DiceLoss,
    FocalConfig,
    FocalLoss,
    SelfAdjustingDiceConfig,
    SelfAdjustingDiceLoss,
    TverskyConfig,
    TverskyLoss,
)
from dice_ray.losses.base import Loss

if TYPE_CHECKING:
    from dice_ray.tasks.inspection import Inspection


@dataclass(frozen=True)
class Curve:
    """The derivative in p of one loss of one positive item."""

    name: str
    p: tuple[float, ...]
    derivative: tuple[float, ...]


@dataclass(frozen=True)
class Figure1:
    """The derivatives of four losses for y = 1 and gamma 1: as published, and with the sign of DSC kept."""

    published: tuple[Curve, ...]
    corrected: tuple[Curve, ...]


def figure_1(points: int = 199) -> Figure1:
    """The paper's Figure 1 and its correction.

    Which losses the paper drew is inferred: FL, DL (eq. 7), TL and DSC (eq. 11), each of one item. DSC is said to
    approach zero above p = .5; its derivative turns positive there, which pushes a right prediction down to the
    threshold. With `decay_gradient: stopped` it does approach zero, at p = 1.
    """
    others = [
        ("FL (gamma 2)", FocalLoss(FocalConfig(), "sigmoid")),
        ("DL", DiceLoss(DiceConfig(scope="example", gamma=1), "sigmoid")),
        ("TL (alpha .5)", TverskyLoss(TverskyConfig(scope="example", gamma=1), "sigmoid")),
    ]
    dsc = SelfAdjustingDiceConfig(scope="example", gamma=1, decay=1, denominator="linear")
    stopped = dsc.model_copy(update={"decay_gradient": "stopped"})
    shared = tuple(derivative(name, loss, points) for name, loss in others)
    return Figure1(
        (*shared, derivative("DSC", SelfAdjustingDiceLoss(dsc, "sigmoid"), points)),
        (*shared, derivative("DSC, stopped", SelfAdjustingDiceLoss(stopped, "sigmoid"), points)),
    )


def derivative(name: str, loss: Loss, points: int) -> Curve:
    """dL/dp = dL/dz / (p (1-p)) of a positive item, at so many p between 0 and 1."""
    p_N = torch.arange(1, points + 1, dtype=torch.float64) / (points + 1)
    logits_N = torch.logit(p_N).requires_grad_()
    total = loss.statistics(logits_N, torch.ones(points, dtype=torch.long))[0]
    (grad_N,) = torch.autograd.grad(total, logits_N)
    return Curve(name, tuple(p_N.tolist()), tuple((grad_N / (p_N * (1 - p_N))).tolist()))


def draw_figure_1(figure: Figure1, file: Path) -> None:
    """Draw it as a picture, in the format of the file's ending."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(10, 4), layout="constrained")
    left, right = canvas.subplots(1, 2, sharey=True)
    titles = ("As published: above p = 1/2 DSC turns the sign over", "Corrected: decay_gradient stopped")
    for axes, title, curves in zip((left, right), titles, (figure.published, figure.corrected), strict=True):
        for curve in curves:
            axes.plot(curve.p, curve.derivative, label=curve.name, linewidth=2.5 if "DSC" in curve.name else 1.2)
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set(title=title, xlabel="p of a positive item", ylim=(-2.0, 0.8), xlim=(0, 1))
        axes.legend()
    left.set_ylabel("dL/dp")
    canvas.savefig(file, dpi=120)


@dataclass(frozen=True)
class Bars:
    """The negatives and positives of one data set."""

    name: str
    negatives: int
    positives: int


def imbalance_bars(found: Sequence[Inspection]) -> tuple[Bars, ...]:
    """The training splits of data sets."""
    trains = [(data.name, data.splits["train"]) for data in found]
    return tuple(Bars(name, train.negatives, train.positives) for name, train in trains)


def draw_imbalance(bars: Sequence[Bars], file: Path) -> None:
    """Draw two bars a data set, the first one on top, with their ratio beside."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8, 1.4 + 0.6 * len(bars)), layout="constrained")
    axes = canvas.subplots()
    for color, label, place, counts in (
        ("tab:gray", "negative", -0.2, [bar.negatives for bar in bars]),
        ("tab:orange", "positive", 0.2, [bar.positives for bar in bars]),
    ):
        drawn = axes.barh([row + place for row in range(len(bars))], counts, height=0.4, color=color, label=label)
        axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=3, fontsize=8)
    names = [
        f"{bar.name}  ({bar.negatives / bar.positives:,.2f} : 1)" if bar.positives else f"{bar.name}  (no positives)"
        for bar in bars
    ]
    axes.set_yticks(range(len(bars)), names)
    longest = max(max(bar.negatives, bar.positives) for bar in bars)
    axes.set(xscale="log", xlabel="items of the training split", xlim=(0.8, 6 * max(longest, 2)))
    axes.invert_yaxis()
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    canvas.savefig(file, dpi=120)
