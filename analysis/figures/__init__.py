"""Figures: each computes a small typed record of what was found, and draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from analysis.figures.base import Figure
from analysis.figures.curves import training_curves
from analysis.figures.derivatives import signs_of_dsc
from analysis.figures.search import best_so_far, importance
from analysis.figures.study import gain_by_ratio, planes, tversky_alpha

if TYPE_CHECKING:
    from analysis.found import Found

MakeFigures: TypeAlias = "Callable[[Found], list[Figure]]"

FIGURES: Final[tuple[MakeFigures, ...]] = (
    planes,
    gain_by_ratio,
    tversky_alpha,
    best_so_far,
    importance,
    training_curves,
    signs_of_dsc,
)
"""In the order of the report; each makes no figure where nothing was found for it."""
