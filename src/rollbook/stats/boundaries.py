"""The error that each look at growing data may spend: two-sided group-sequential boundaries at any information.

    nominal_levels((0.25, 0.5, 0.75, 1.0))     # the p-value that each of four planned looks must not exceed
    open_ended((5, 10, 20))                    # the same where nothing is planned: 0.03, …

Without a difference, the z statistics of the looks are a Brownian motion at the information fractions. The part of it
that has not crossed a boundary is carried from look to look as a density on Gauss-Legendre nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, choice
from rollbook.stats._quadrature import nodes_and_weights
from rollbook.stats._special import ndtr, ndtri

SPENDING = ("obrien-fleming", "pocock")
FIRST = 0.6
"""The share of the error that a first look may spend where nothing is planned."""
_NODES = 401
_FARTHEST = 8.0
"""The boundary while nothing can be spent, in standard errors."""


def spent(fraction: float, alpha: float = 0.05, spending: str = "obrien-fleming") -> float:
    """Error probability spent up to this share of the information.

    Args:
      fraction: from 0 (not included) to 1.
      alpha: two-sided, for all looks together.
      spending: "obrien-fleming" (little at first) or "pocock" (about evenly).

    Returns:
      From 0 to alpha.

    Source: Lan and DeMets, Discrete sequential boundaries for clinical trials (1983).
    """
    choice(spending, SPENDING, "spending")
    if spending == "pocock":
        return alpha * math.log(1 + (math.e - 1) * fraction)
    return 4.0 * float(ndtr(ndtri(alpha / 4) / math.sqrt(fraction)))


def boundaries(fractions: Sequence[float], alpha: float = 0.05, spending: str = "obrien-fleming") -> Floats:
    """The |z| that each look must exceed.

    A look's boundary depends only on this look and earlier ones, so it can be computed before later looks are known.

    Args:
      fractions: information fraction of each look, increasing, above 0, at most 1.
      alpha: two-sided, for all looks together.
      spending: "obrien-fleming" or "pocock".

    Returns:
      [looks].

    Raises:
      BadInput: fractions that do not increase within (0, 1], or alpha out of (0, 1).
    """
    looks = tuple(float(f) for f in fractions)
    if not looks or looks[0] <= 0 or looks[-1] > 1 + 1e-12 or any(b <= a for a, b in itertools.pairwise(looks)):
        raise BadInput(f"Information fractions have to increase and lie above 0 and at most at 1; given were {looks}.")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha={alpha!r} has to lie between 0 and 1.")
    choice(spending, SPENDING, "spending")
    return _bounds(looks, tuple(spent(look, float(alpha), spending) for look in looks))


def nominal_levels(fractions: Sequence[float], alpha: float = 0.05, spending: str = "obrien-fleming") -> Floats:
    """The two-sided p-value that each look must not exceed; the arguments are those of `boundaries`."""
    return np.asarray(2 * ndtr(-boundaries(fractions, alpha, spending)), dtype=np.float64)


def open_ended(information: Sequence[float], alpha: float = 0.05) -> Floats:
    """The p-value that each look must not exceed where nothing is planned and the looks may go on for ever.

    The first look may spend `FIRST` of alpha. All later ones share the rest as the information grows: half of it is
    spent when there is twice as much as at the first look, and never all of it. So the number of looks does not matter,
    only how far the data have grown.

    Args:
      information: of each look, increasing: 1 / (1/n_a + 1/n_b) for seeds of two arms, in any unit.
      alpha: two-sided, for all looks together.

    Returns:
      [looks].

    Raises:
      BadInput: information that does not increase.
    """
    looks = tuple(float(each) / float(information[0]) for each in information)
    if not looks or any(b <= a for a, b in itertools.pairwise(looks)):
        raise BadInput(f"The information of looks has to increase; given was {tuple(information)}.")
    spends = tuple(alpha * (FIRST + (1 - FIRST) * (1 - 1 / look)) for look in looks)
    return np.asarray(2 * ndtr(-_bounds(looks, spends)), dtype=np.float64)


@dataclass(frozen=True)
class _Walk:
    """The state after some looks: the density of the sums that have crossed no boundary."""

    at: float
    sums: Floats
    mass: Floats

    def tail(self, z: float, now: float) -> float:
        """The probability of being beyond z standard errors at information `now` for the first time."""
        sd, edge = math.sqrt(now - self.at), z * math.sqrt(now)
        return float(self.mass @ (ndtr((self.sums - edge) / sd) + ndtr((-edge - self.sums) / sd)))

    def slope(self, z: float, now: float) -> float:
        """How fast `tail` falls as z grows."""
        sd, edge = math.sqrt(now - self.at), z * math.sqrt(now)
        density = np.exp(-0.5 * ((self.sums - edge) / sd) ** 2) + np.exp(-0.5 * ((edge + self.sums) / sd) ** 2)
        return float(self.mass @ density) * math.sqrt(now) / (sd * math.sqrt(2 * math.pi))

    def beyond(self, z: float, now: float) -> _Walk:
        """The state after one more look that stops at |z|."""
        sd, edge = math.sqrt(now - self.at), z * math.sqrt(now)
        nodes, weights = nodes_and_weights(_NODES)
        fresh = nodes * edge
        density = np.exp(-0.5 * ((fresh[:, None] - self.sums) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
        return _Walk(now, fresh, (density @ self.mass) * weights * edge)


_START = _Walk(0.0, np.zeros(1), np.ones(1))


@lru_cache(maxsize=1024)
def _walked(times: tuple[float, ...], spends: tuple[float, ...]) -> _Walk:
    """The state after looks at these times, which together spend this much; each look continues from the one before."""
    if not times:
        return _START
    return _walked(times[:-1], spends[:-1]).beyond(_bound(times, spends), times[-1])


@lru_cache(maxsize=4096)
def _bound(times: tuple[float, ...], spends: tuple[float, ...]) -> float:
    """The |z| of the last of these looks."""
    before, now = _walked(times[:-1], spends[:-1]), times[-1]
    goal = spends[-1] - (spends[-2] if len(spends) > 1 else 0.0)
    low, high = 0.0, _FARTHEST
    if before.tail(high, now) > goal:
        return high
    z = (low + high) / 2
    for _ in range(100):  # Newton's steps, and where one leads out of the interval its middle
        missing = before.tail(z, now) - goal
        low, high = (z, high) if missing > 0 else (low, z)
        step = missing / (before.slope(z, now) or math.nan)
        if high - low < 2e-13 or abs(step) < 1e-13:
            break
        z = z + step if low < z + step < high else (low + high) / 2
    return z


def _bounds(times: tuple[float, ...], spends: tuple[float, ...]) -> Floats:
    return np.array([_bound(times[: n + 1], spends[: n + 1]) for n in range(len(times))])
