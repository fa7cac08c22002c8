"""Verdicts of studies: each kind of study has one implementation of `base.Verdict`, and is registered here alone."""

from __future__ import annotations

from functools import lru_cache

from analysis.budget import at_budget
from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.verdict.base import Verdict
from analysis.verdict.decision import decide
from analysis.verdict.equal_budget import AtEqualBudget
from analysis.verdict.over_seeds import OverSeeds


@lru_cache(maxsize=1)
def verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """A verdict for each place of a study, in its order; empty for a sweep and for runs trained alone."""
    over_seeds = [OverSeeds(decide(each)) for each in comparisons(findings)]
    return (*over_seeds, *map(AtEqualBudget, at_budget(findings)))
