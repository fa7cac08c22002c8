"""The figures of a report: each computes a small typed record from the findings, and draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from analysis.figures.base import Figure
from analysis.figures.by_number import gain_by_ratio, score_by_budget, score_by_ratio, tversky_alpha
from analysis.figures.curves import training_curves
from analysis.figures.differences import forests, ranks
from analysis.figures.paper import signs_of_dsc
from analysis.figures.precision_recall import planes, pr_curves
from analysis.figures.settings import parallel_coordinates, slices
from analysis.figures.sweep import best_so_far, importance

if TYPE_CHECKING:
    from analysis.frames import Findings

MakeFigures: TypeAlias = "Callable[[Findings], list[Figure]]"

FIGURES: Final[tuple[MakeFigures, ...]] = (
    forests,
    ranks,
    score_by_budget,
    planes,
    pr_curves,
    score_by_ratio,
    gain_by_ratio,
    tversky_alpha,
    best_so_far,
    slices,
    parallel_coordinates,
    importance,
    training_curves,
    signs_of_dsc,
)
"""In the order of the report; each function returns no figure if it does not apply."""
