"""The point from which the curves of two groups stay apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats, GroupCurve
from rollbook.system.brief import brief

_LEAST_APART = 5
"""Seeds per group below which no interval at a point is valid."""


@brief
@dataclass(frozen=True, slots=True)
class Parted:
    """The point from which two groups stay apart.

    Attributes:
      a, b: their labels.
      ahead: the group that is higher from there on; None if they have not parted.
      x: the first grid point from which they stay apart; None if they have not parted.
      last: the last point where both have 5 units or more; None if there is none.
      level: of the interval at each point.
      axis: the unit of x.
    """

    a: str
    b: str
    ahead: str | None
    x: float | None
    last: float | None
    level: float
    axis: str

    def sentence(self) -> str:
        """The result in words, with the remark that it is pointwise."""
        if self.last is None:
            return f"{self.a} and {self.b}: no point of {self.axis} has 5 seeds of each."
        if self.x is None or self.ahead is None:
            return f"{self.a} and {self.b} are not apart at {self.axis} {_reading(self.last)}."
        behind = self.b if self.ahead == self.a else self.a
        return (
            f"{self.ahead} stays above {behind} from {self.axis} {_reading(self.x)} to {_reading(self.last)} "
            f"(nominally {100 * self.level:g} % at each point; no verdict)."
        )


def _reading(x: float) -> str:
    """A position from a thousand on as a whole number, a smaller one with six figures."""
    return f"{x:,.0f}" if x.is_integer() or abs(x) >= 1_000 else f"{x:,.6g}"


def parted(a: GroupCurve, b: GroupCurve, x_P: Floats, axis: str, level: float) -> Parted:
    """See `Curves.parted`; x_P [points] is the grid of both."""
    (mean_a, var_a, n_a), (mean_b, var_b, n_b) = (_moments(group.units_UP) for group in (a, b))
    both = np.flatnonzero((n_a >= _LEAST_APART) & (n_b >= _LEAST_APART))
    if not len(both):
        return Parted(a.label, b.label, None, None, None, level, axis)
    low, high = stats.welch_interval(mean_a[both], var_a[both], n_a[both], mean_b[both], var_b[both], n_b[both], level)
    side = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    last = float(x_P[both[-1]])
    if side[-1] == 0:
        return Parted(a.label, b.label, None, None, last, level, axis)
    on_other_side = np.flatnonzero(side != side[-1])
    first = both[on_other_side[-1] + 1 if len(on_other_side) else 0]
    return Parted(a.label, b.label, a.label if side[-1] > 0 else b.label, float(x_P[first]), last, level, axis)


def _moments(units_UP: Floats) -> tuple[Floats, Floats, Floats]:
    """(mean, variance, n) of the units that have a value at each point."""
    known = ~np.isnan(units_UP)
    n = known.sum(axis=0).astype(np.float64)
    filled = np.where(known, units_UP, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / n
        variance = (np.where(known, units_UP - mean, 0.0) ** 2).sum(axis=0) / (n - 1)
    return mean, variance, n
