"""Simulated studies over seeds: false claims, power and runs of fixed numbers of seeds, of looks, and of e-values.

The score of a run is that of its seed, which all arms share, and noise of its own with heavier tails than the normal
distribution. So differences between arms are correlated through the baseline, and not normal. The unit of a lead is the
standard deviation of a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.comparison import comparisons
from analysis.frames import Findings
from analysis.statistics.intervals import ALPHA, holm_of, moderated, paired_difference
from analysis.statistics.looks import Looks
from analysis.verdict.decision import decide
from tests.analysis.cells import study

Floats: TypeAlias = NDArray[np.floating]

LOOKS: Final = (5, 10, 15, 20)
LEADS: Final = (0.0, 1.0, 2.0)
FUTILE: Final = 0.1


def differences(rng: np.random.Generator, num_studies: int, num_arms: int, lead: float, kind: str = "t6") -> Floats:
    """`_DAS`: of each arm but the baseline, by seed; the last arm leads."""
    noise = stats.t.rvs(6, size=(num_studies, num_arms, LOOKS[-1]), random_state=rng) / np.sqrt(1.5)
    if kind == "spreads that differ sixfold":
        noise *= np.resize([1.0, 0.3, 2.0, 0.6, 1.5], num_arms)[:, None]
    elif kind == "a skewed baseline":
        noise[:, 0] = 1 - rng.exponential(size=noise[:, 0].shape)
    found_DAS = (noise[:, 1:] - noise[:, :1]) / np.sqrt(2)
    found_DAS[:, -1] += lead
    return np.asarray(found_DAS)


def at_look(differences_DAS: Floats, num: int) -> tuple[Floats, Floats]:
    """The t statistic and the level of its t test after so many seeds."""
    seen = differences_DAS[..., :num]
    t = seen.mean(-1) / (seen.std(-1, ddof=1) / np.sqrt(num))
    return np.abs(t), np.asarray(2 * stats.t.sf(np.abs(t), num - 1))


def _claims(p_DA: Floats, level_of: Any) -> NDArray[np.bool_]:
    """Which differences are significant, if `level_of` has the level of the t test for a number of open arms."""
    order_DA = np.argsort(p_DA, 1)
    sorted_DA = np.take_along_axis(p_DA, order_DA, 1)
    levels_A = np.array([level_of(p_DA.shape[1] - rank) for rank in range(p_DA.shape[1])])
    is_claimed = np.cumprod(sorted_DA <= levels_A, 1).astype(bool)
    claims_DA = np.zeros_like(is_claimed)
    np.put_along_axis(claims_DA, order_DA, is_claimed, 1)
    return claims_DA


def fixed(differences_DAS: Floats, num: int) -> tuple[NDArray[np.bool_], Floats]:
    """The claims with this number of seeds, and the runs of each study."""
    _, p_DA = at_look(differences_DAS, num)
    num_studies, num_arms, _ = differences_DAS.shape
    return _claims(p_DA, lambda num_open: ALPHA / num_open), np.full(num_studies, num * (num_arms + 1.0))


def repeated(differences_DAS: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """The same where the test of a fixed number is made at each look, and claimed arms stop."""
    return _in_looks(differences_DAS, lambda num, num_open: ALPHA / num_open, futility=False)


def in_looks(differences_DAS: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """The same with the levels of looks; arms that hardly can be told apart stop too."""
    return _in_looks(differences_DAS, lambda num, num_open: Looks(LOOKS, num).level(ALPHA / num_open), futility=True)


def at_any_time(differences_DAS: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """The same with e-values, as for seeds that are added after a look at the first five."""
    return _in_looks(
        differences_DAS,
        lambda num, num_open: Looks((5,), num).level(ALPHA / num_open) if num > 5 else 0.0,
        futility=False,
    )


def _in_looks(differences_DAS: Floats, level_of: Any, *, futility: bool) -> tuple[NDArray[np.bool_], Floats]:
    num_studies, num_arms, _ = differences_DAS.shape
    claims_DA, is_open_DA = (np.full((num_studies, num_arms), value) for value in (False, True))
    runs_D = np.zeros(num_studies)
    for before, num in zip((0, *LOOKS), LOOKS, strict=False):
        any_open_D = is_open_DA.any(1)
        runs_D += (num - before) * (is_open_DA.sum(1) + any_open_D)
        t_DA, p_DA = at_look(differences_DAS, num)
        p_DA = np.where(is_open_DA, p_DA, 2.0)
        for _ in range(num_arms):  # arms that were claimed before count no more; those given up do
            num_left_D = num_arms - claims_DA.sum(1)
            levels_D = np.array([level_of(num, left) if left else 0.0 for left in range(num_arms + 1)])[num_left_D]
            claims_DA |= p_DA <= levels_D[:, None]
        is_open_DA &= ~claims_DA
        if futility and num < LOOKS[-1]:
            share = num / LOOKS[-1]
            num_left_D = np.maximum(num_arms - claims_DA.sum(1), 1)
            z_D = stats.norm.isf(np.array([level_of(LOOKS[-1], left) / 2 for left in range(1, num_arms + 1)]))[
                num_left_D - 1
            ]
            seen_DA = t_DA / np.sqrt(share)
            is_open_DA &= stats.norm.sf((z_D[:, None] - seen_DA) / np.sqrt(1 - share)) >= FUTILE
    return claims_DA, runs_D


def of_report(differences_DAS: Floats, num: int) -> tuple[NDArray[np.bool_], Floats]:
    """The same as a report tests them, with moderated standard errors; of the first 2,000 studies."""
    zeros, limits = dict.fromkeys(range(num), 0.0), (-math.inf, math.inf)
    found_DAS = differences_DAS[:2000, :, :num]
    claims = [
        [
            each.p <= ALPHA
            for each in holm_of(
                moderated([paired_difference(dict(enumerate(seen)), zeros, 0.0, limits) for seen in of_study])
            )
        ]
        for of_study in found_DAS.tolist()
    ]
    return np.array(claims), np.full(len(claims), num * (differences_DAS.shape[1] + 1.0))


DESIGNS: Final = {
    "5 seeds": lambda found: of_report(found, 5),
    "5 seeds, plain t test": lambda found: fixed(found, 5),
    "10 seeds": lambda found: of_report(found, 10),
    "20 seeds": lambda found: of_report(found, 20),
    "t test repeated at 5, 10, 15, 20": repeated,
    "looks at 5, 10, 15, 20": in_looks,
    "e-values at 5, 10, 15, 20": at_any_time,
}


def over_seeds(num_studies: int) -> Iterator[dict[str, Any]]:
    """Claims about equal arms in % of studies, the power for one that leads, and the mean number of runs."""
    for num_arms in (5, 13):
        for name, design in DESIGNS.items():
            row: dict[str, Any] = {"arms": num_arms, "design": name}
            for lead in LEADS:
                rng = np.random.default_rng(7)
                claims_DA, runs_D = design(differences(rng, num_studies, num_arms, lead))
                claimed = claims_DA.any(1) if not lead else claims_DA[:, -1]
                row[f"+{lead:g} sd" if lead else "equal"] = f"{100 * claimed.mean():.1f} ({runs_D.mean():.0f} runs)"
            yield row


def with_other_noise(num_studies: int) -> Iterator[dict[str, Any]]:
    """Claims about five equal arms whose noise is not alike, in % of studies; in brackets the power for +2 sd."""
    for kind in ("spreads that differ sixfold", "a skewed baseline"):
        row = {"noise": kind}
        for name in ("5 seeds", "5 seeds, plain t test", "looks at 5, 10, 15, 20"):
            equal, led = (
                DESIGNS[name](differences(np.random.default_rng(7), num_studies, 5, lead, kind))[0]
                for lead in (0.0, 2.0)
            )
            row[name] = f"{100 * equal.any(1).mean():.1f} ({100 * led[:, -1].mean():.0f})"
        yield row


def collapses(num_studies: int) -> Iterator[dict[str, Any]]:
    """Each arm collapses in a tenth of its runs, one is +2 sd where it learns: % of studies that show it."""
    for num in (5, 10, 20):
        shown = {"t test over all runs": 0, "collapses apart": 0}
        false = dict.fromkeys(shown, 0)
        for number in range(num_studies):
            rng = np.random.default_rng(number)
            for lead, counts in ((0.02, shown), (0.0, false)):
                scores = 0.7 + rng.normal(0, 0.01 / np.sqrt(2), (3, num))
                scores[2] += lead
                is_collapsed = rng.random(scores.shape) < 0.1
                scores[is_collapsed] = 0.1
                frame = study(dict(zip(("plain", "dice", "focal"), scores.tolist(), strict=True)), baseline="plain")
                frame["metrics.test/constant_f1"] = 0.1
                frame["metrics.test/collapsed"] = [np.nan, *is_collapsed.ravel().astype(float)]
                for name, of_frame in (
                    ("t test over all runs", frame.assign(**{"metrics.test/collapsed": 0.0})),
                    ("collapses apart", frame),
                ):
                    (compared,) = comparisons(Findings(of_frame, lambda runs, file: {}))
                    found = decide(compared).standing("better", "worse")
                    counts[name] += bool([arm for arm in found if arm.name == "focal"] if lead else found)
        yield {"seeds": num} | {
            name: f"{100 * shown[name] / num_studies:.0f}; false {100 * false[name] / num_studies:.1f}"
            for name in shown
        }
