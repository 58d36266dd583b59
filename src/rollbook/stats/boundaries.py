"""What each look at growing data may spend: two-sided group-sequential boundaries for looks at any information.

    nominal_levels((0.25, 0.5, 0.75, 1.0))     # the p-value that each of four looks must not exceed

Under no difference the z statistics of the looks are a Brownian motion seen at the information fractions. The part of
it that has not crossed a boundary yet is carried from look to look as a density on Gauss-Legendre nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from rollbook.errors import BadInput
from rollbook.stats._given import Floats, choice

__all__ = ["boundaries", "classical_constant", "nominal_levels", "spent"]

SPENDING = ("obrien-fleming", "pocock")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(401)
_FARTHEST = 8.0
"""In standard errors; where nothing can be spent yet the boundary is here."""


def spent(fraction: float, alpha: float = 0.05, spending: str = "obrien-fleming") -> float:
    """Error probability spent by the time this share of the information is seen.

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
    return 4.0 * float(ndtr(float(ndtri(alpha / 4)) / math.sqrt(fraction)))


def boundaries(fractions: Sequence[float], alpha: float = 0.05, spending: str = "obrien-fleming") -> Floats:
    """The |z| that each look must exceed.

    A look's boundary depends on that look and on those before it, not on later ones: it can be had before the later
    looks are known.

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
    return np.array(_boundaries(looks, float(alpha), spending))


def nominal_levels(fractions: Sequence[float], alpha: float = 0.05, spending: str = "obrien-fleming") -> Floats:
    """The two-sided p-value that each look must not exceed; the arguments are those of `boundaries`."""
    return np.asarray(2 * ndtr(-boundaries(fractions, alpha, spending)), dtype=np.float64)


@lru_cache(maxsize=4096)
def _boundaries(fractions: tuple[float, ...], alpha: float, spending: str) -> tuple[float, ...]:
    goal = np.diff([0.0, *(spent(f, alpha, spending) for f in fractions)])

    def boundary(look: int, tail: Callable[[float], float]) -> float:
        low, high = 0.0, _FARTHEST
        if tail(high) > goal[look]:
            return high
        for _ in range(60):  # bisection: the tail falls, and half an ulp is reached before
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) > goal[look] else (low, middle)
        return high

    return tuple(_walk(fractions, boundary))


def _walk(fractions: Sequence[float], boundary: Callable[[int, Callable[[float], float]], float]) -> list[float]:
    """Choose each look's boundary, given the chance of being beyond it for the first time."""
    found: list[float] = []
    sums, mass, before = np.zeros(1), np.ones(1), 0.0
    for look, now in enumerate(fractions):
        sd, root = math.sqrt(now - before), math.sqrt(now)

        def tail(z: float, sums: Floats = sums, mass: Floats = mass, sd: float = sd, root: float = root) -> float:
            edge = z * root
            return float(mass @ (ndtr((sums - edge) / sd) + ndtr((-edge - sums) / sd)))

        found.append(boundary(look, tail))
        edge = found[-1] * root
        fresh = _NODES * edge
        density = np.exp(-0.5 * ((fresh[:, None] - sums) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
        mass = (density @ mass) * _WEIGHTS * edge
        sums, before = fresh, now
    return found


def classical_constant(looks: int, power: float, alpha: float = 0.05) -> float:
    """C of the classical design that stops at look k of K evenly spaced ones when |z| > C (k / K) ** power.

    Args:
      looks: K, at least 1.
      power: 0 for Pocock, -0.5 for O'Brien and Fleming, between for Wang and Tsiatis.
      alpha: two-sided, for all looks together.

    Returns:
      The constant; 1.96 for one look.
    """
    fractions = [k / looks for k in range(1, looks + 1)]
    low, high = 0.5, _FARTHEST
    for _ in range(60):
        constant, error = (low + high) / 2, 0.0

        def boundary(look: int, tail: Callable[[float], float], constant: float = constant) -> float:
            nonlocal error
            z = constant * float(fractions[look] ** power)
            error += tail(z)
            return z

        _walk(fractions, boundary)
        low, high = (constant, high) if error > alpha else (low, constant)
    return high
