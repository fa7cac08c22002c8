"""The paper's Figure 1 with its correction, and the counts of its Table 1 as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.figures.base import COLORS, QUIET, Figure, Line
from analysis.frames import Findings, losses
from analysis.paper.tables import on_paper_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from dice_ray.losses.base import Loss
    from dice_ray.tasks.inspection import Inspection


@dataclass(frozen=True)
class _Figure1(Figure):
    """The derivatives of four losses for y = 1 and gamma 1: as published, and with DSC's gradient keeping its sign."""

    published: tuple[Line, ...]
    corrected: tuple[Line, ...]

    caption: ClassVar[str] = (
        "The derivative of the loss of one positive item with respect to p, gamma 1. The paper says that DSC "
        "approaches zero above p = .5; its derivative turns positive there, which pushes a correct prediction down "
        "to the threshold. With decay_gradient: stopped it does approach zero, at p = 1. Which losses the paper "
        "drew is inferred."
    )

    def draw(self, canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharey=True)
        titles = ("As published: DSC changes its sign at 1/2", "Corrected: decay_gradient stopped")
        for axes, title, curves in zip((left, right), titles, (self.published, self.corrected), strict=True):
            for curve, color in zip(curves, COLORS, strict=False):
                axes.plot(curve.x, curve.y, label=curve.name, color=color, lw=2.2 if "DSC" in curve.name else 1.2)
            axes.axhline(0, color=QUIET, linewidth=0.6)
            axes.set(title=title, xlabel="p of a positive item", ylim=(-2.0, 0.8), xlim=(0, 1))
            axes.legend(loc="lower right")
        left.set_ylabel("dL/dp")


def figure_1() -> _Figure1:
    """The paper's Figure 1 and its correction: FL, DL (eq. 7), TL and DSC (eq. 11), each for one item."""
    from dice_ray import losses as known  # importing torch takes seconds, and most reports do not have this figure

    others = [
        ("FL (gamma 2)", known.FocalLoss(known.FocalConfig(), "sigmoid")),
        ("DL", known.DiceLoss(known.DiceConfig(scope="example", gamma=1), "sigmoid")),
        ("TL (alpha .5)", known.TverskyLoss(known.TverskyConfig(scope="example", gamma=1), "sigmoid")),
    ]
    dsc = known.SelfAdjustingDiceConfig(scope="example", gamma=1, decay=1, denominator="linear")
    stopped = dsc.model_copy(update={"decay_gradient": "stopped"})
    shared = tuple(_derivative(name, loss) for name, loss in others)
    return _Figure1(
        "figure_1",
        "The paper's Figure 1 and its correction",
        (*shared, _derivative("DSC", known.SelfAdjustingDiceLoss(dsc, "sigmoid"))),
        (*shared, _derivative("DSC, stopped", known.SelfAdjustingDiceLoss(stopped, "sigmoid"))),
    )


def signs_of_dsc(findings: Findings) -> Iterator[Figure]:
    """Figure 1, for studies on a data set of the paper that trained the self-adjusting dice loss."""
    has_dsc = (losses(findings.frame) == "self_adjusting_dice").any()
    if has_dsc and on_paper_data(findings):
        yield figure_1()


def _derivative(name: str, loss: Loss) -> Line:
    """dL/dp = dL/dz / (p (1-p)) of a positive item, at evenly spaced p between 0 and 1."""
    import torch

    p_N = torch.arange(1, 200, dtype=torch.float64) / 200
    logits_N = torch.logit(p_N).requires_grad_()
    total = loss.statistics(logits_N, torch.ones(len(p_N), dtype=torch.long))[0]
    (grad_N,) = torch.autograd.grad(total, logits_N)
    return Line(name, tuple(p_N.tolist()), tuple((grad_N / (p_N * (1 - p_N))).tolist()))


@dataclass(frozen=True)
class _ImbalanceBars(Figure):
    """Two bars for each data set.

    Attributes:
        counts: The negatives and positives of each data set.
    """

    counts: tuple[tuple[str, int, int], ...]

    caption: ClassVar[str] = (
        "Negatives and positives of the training splits, on a logarithmic axis; their ratio beside the name."
    )

    @property
    def labels(self) -> list[str]:
        ratios = [f"{neg / pos:,.2f} : 1" if pos else "no positives" for _, neg, pos in self.counts]
        return [f"{name}  ({ratio})" for (name, _, _), ratio in zip(self.counts, ratios, strict=True)]

    @property
    def height(self) -> float:
        return 1.1 + 0.45 * len(self.counts)

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        _, negatives, positives = zip(*self.counts, strict=True)
        rows = range(len(self.counts))
        for color, label, place, counts in (
            (QUIET, "negative", -0.2, negatives),
            (COLORS[1], "positive", 0.2, positives),
        ):
            drawn = axes.barh([row + place for row in rows], counts, 0.4, color=color, label=label)
            axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=3)
        axes.set_yticks(rows, self.labels)
        # From .8, so that one item has a visible bar; to 6 times the longest bar, for the count written beside it.
        longest = max(*negatives, *positives)
        axes.set(xscale="log", xlabel="items of the training split", xlim=(0.8, 6 * max(longest, 2)))
        axes.invert_yaxis()
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)


def imbalance_bars(inspections: Sequence[Inspection]) -> _ImbalanceBars:
    """The bars of the training splits, in the given order."""
    trains = [(data.name, data.splits["train"]) for data in inspections]
    counts = tuple((name, train.negatives, train.positives) for name, train in trains)
    return _ImbalanceBars("imbalance", "Negatives and positives", counts)
