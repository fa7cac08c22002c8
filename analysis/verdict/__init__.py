"""Verdicts of studies: each kind forms the same record, `base.Verdict`, and is registered here alone."""

from __future__ import annotations

from functools import lru_cache

from analysis.budget import at_budget
from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.verdict.base import Verdict
from analysis.verdict.decision import decide
from analysis.verdict.equal_budget import equal_budget
from analysis.verdict.over_seeds import over_seeds


@lru_cache(maxsize=1)
def verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """A verdict for each place of a study, in its order; empty for a sweep and for runs trained alone."""
    made = [over_seeds(decide(each)) for each in comparisons(findings)]
    return (*made, *(equal_budget(each) for each in at_budget(findings)))
