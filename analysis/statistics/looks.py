"""Tests of the same difference after 5, 10, 15, ... seeds that together are wrong in 5 % of studies.

A t test repeated at each look would find a difference that is none in 12 % of studies. Here each look may spend a part
of the level: `alpha` times tau^2 by the look at a share tau of the planned seeds (Kim and DeMets 1987), so that early
looks ask for more and the last one for little more than a single test. The looks are declared before the first run.
Seeds beyond the declared ones are judged by an e-value, which holds whenever one stops, and asks for more still.

The levels are exact for normal differences, without simulation. The t statistic after n seeds is a function of
theta = sum / sqrt(n * sum of squares), the cosine between the differences and the constant vector. With cos^2(psi) the
share of the seeds so far in the squares after the next batch, theta becomes a cos(psi) theta + b sin(psi) eta. Here eta
is the cosine of the batch, a^2 and b^2 are the shares of the seeds, and psi and eta are independent of the earlier
looks. So the looks form a Markov chain on [-1, 1], whose density is carried from look to look by quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEP: Final = 5
"""Seeds from one look to the next."""
_NODES: Final = 24
_LEAST_LEVEL: Final = 1e-6
"""Smaller levels are not told apart."""


def looks_up_to(most: int) -> tuple[int, ...]:
    """The looks of a study of at most this number of seeds.

    >>> looks_up_to(12)
    (5, 10, 12)
    """
    return (*range(_STEP, most, _STEP), most)


@dataclass(frozen=True)
class Looks:
    """How the number of seeds was chosen, and at which of the declared looks a difference is judged.

    Attributes:
        seeds: The declared looks.
        reached: The seeds that have run: one of them, fewer than the first one, or more than the last one.
    """

    seeds: tuple[int, ...]
    reached: int

    @property
    def is_beyond(self) -> bool:
        """Whether seeds were added after the last declared look."""
        return self.reached > self.seeds[-1]

    def level(self, alpha: float) -> float:
        """The level of the t test at this look, if all looks together have the level `alpha`."""
        if self.reached < self.seeds[0]:
            return alpha  # fewer seeds than any claim needs
        if self.is_beyond:
            return _level_of_e_value(self.reached, alpha)
        return _levels(self.seeds, self.reached, alpha)[-1]

    def overall(self, p: float) -> float:
        """The smallest level of all looks at which the t test at this look, with this p value, is significant."""
        from scipy import optimize

        if self.level(1.0) <= p:
            return 1.0
        if self.level(_LEAST_LEVEL) >= p:
            return _LEAST_LEVEL
        found = optimize.brentq(lambda log: self.level(math.exp(log)) - p, math.log(_LEAST_LEVEL), 0.0, xtol=1e-4)
        return math.exp(found)


def _level_of_e_value(num: int, alpha: float) -> float:
    """The level of the t test over `num` seeds that is as strict as an e-value of at least 1/`alpha`.

    The e-value is that of a normal effect with the variance 1 (in standard deviations) against none, with an unknown
    spread; it stays below 1/alpha at all times in 1 - alpha of studies without a difference.
    """
    from scipy import special

    ratio, freedom = 1 + num, num - 1
    needed = (math.sqrt(ratio) / alpha) ** (2 / num)
    if needed >= ratio:
        return 0.0
    t = math.sqrt(freedom * (needed - 1) / (1 - needed / ratio))
    return float(2 * special.stdtr(freedom, -t))


@lru_cache(maxsize=4096)
def _levels(looks: tuple[int, ...], last: int, alpha: float) -> tuple[float, ...]:
    """The level of the t test at each look, up to one of them.

    >>> [round(level, 4) for level in _levels((5, 10, 15, 20), 20, 0.05)]
    [0.0031, 0.0098, 0.0199, 0.0341]
    """
    from scipy import optimize, special

    spent = [alpha * (num / looks[-1]) ** 2 for num in looks]
    looks = tuple(num for num in looks if num <= last)
    levels = [spent[0]]
    bound = _theta(levels[0], looks[0])
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # The density of theta after the first look, for those that were not significant.
    theta_K, weight_K = bound * nodes, bound * weights
    shape = (looks[0] - 1) / 2
    density_K = (1 - theta_K**2) ** (shape - 1) / special.beta(0.5, shape)
    for before, after, before_spent, now in zip(looks, looks[1:], spent, spent[1:], strict=False):
        step = _Step.of(before, after)
        mass_K = weight_K * density_K
        excess = partial(_excess, step, theta_K, mass_K, after, now - before_spent)
        # More than this look spends alone, and at most what all looks so far spend.
        lowest, highest = math.log(now - before_spent), math.log(now)
        if excess(lowest) >= 0:  # up to rounding, as of a tiny alpha
            level = now - before_spent
        else:
            level = math.exp(optimize.brentq(excess, lowest, highest, xtol=1e-8)) if excess(highest) > 0 else now
        levels.append(level)
        if after != last:
            bound = _theta(level, after)
            new_K = bound * nodes
            density_K = mass_K @ step.density(new_K, theta_K)
            theta_K, weight_K = new_K, bound * weights
    return tuple(levels)


def _excess(
    step: _Step, theta_K: NDArray[np.floating], mass_K: NDArray[np.floating], num: int, spent: float, log_level: float
) -> float:
    """How much more often a test of this level is first significant at a look than it may be."""
    return float(mass_K @ step.beyond(_theta(math.exp(log_level), num), theta_K)) - spent


def _theta(level: float, num: int) -> float:
    """The |theta| of `num` seeds whose t test has this p value; its square is Beta(1/2, (num - 1)/2)."""
    from scipy import special

    return math.sqrt(float(special.betainccinv(0.5, (num - 1) / 2, level)))


@dataclass(frozen=True)
class _Step:
    """From one look to the next: theta becomes `along * theta + across * eta`, for each psi with its weight.

    Attributes:
        shape: Of the distribution of eta^2, the cosine of a batch: Beta(1/2, `shape`); 0 for a batch of one seed.
    """

    along_P: NDArray[np.floating]
    across_P: NDArray[np.floating]
    weight_P: NDArray[np.floating]
    shape: float

    @classmethod
    def of(cls, before: int, after: int) -> _Step:
        from scipy import special

        batch = after - before
        # cos^2(psi), the share of the squares before: Beta(before/2, batch/2).
        nodes, weights = special.roots_jacobi(_NODES, batch / 2 - 1, before / 2 - 1)
        share = (1 + nodes) / 2
        along, across = np.sqrt(share * before / after), np.sqrt((1 - share) * batch / after)
        return cls(along, across, weights / weights.sum(), (batch - 1) / 2)

    def beyond(self, edge: float, theta_K: NDArray[np.floating]) -> NDArray[np.floating]:
        """The chance that |theta| exceeds `edge` at the next look."""
        center_KP = theta_K[:, None] * self.along_P
        above_KP, below_KP = (self._above((edge + side * center_KP) / self.across_P) for side in (-1, 1))
        return np.asarray((above_KP + below_KP) @ self.weight_P)

    def density(self, new_L: NDArray[np.floating], theta_K: NDArray[np.floating]) -> NDArray[np.floating]:
        """The density of theta at the next look, by theta before."""
        from scipy import special

        eta_KLP = (new_L[None, :, None] - theta_K[:, None, None] * self.along_P) / self.across_P
        inside = np.clip(1 - eta_KLP**2, 0, None) ** (self.shape - 1) * (np.abs(eta_KLP) < 1)
        return np.asarray((inside / special.beta(0.5, self.shape)) @ (self.weight_P / self.across_P))

    def _above(self, eta: NDArray[np.floating]) -> NDArray[np.floating]:
        """The chance that the cosine of a batch is above `eta`."""
        from scipy import special

        if not self.shape:  # one seed: -1 or 1
            return np.asarray(np.where(eta >= 1, 0.0, np.where(eta < -1, 1.0, 0.5)))
        beyond = special.betaincc(0.5, self.shape, np.minimum(eta**2, 1)) / 2
        return np.asarray(np.where(eta > 0, beyond, 1 - beyond))
