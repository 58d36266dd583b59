"""Bands along a curve: pointwise (labelled so), or for the whole curve of the mean.

    iqm = band(aligned.values_RP, "iqm", rng=rng)
    iqm.low_P, iqm.high_P, iqm.n_P
    iqm.legend()          # "IQM of 5 seeds, 95 % at each point (at worst 80 %)"

A pointwise band contains the whole true curve in 7-58 % of studies. The whole-curve band is 1.6 to 4 times as wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, Ints, floats, level_of
from rollbook.stats._special import stdtr, stdtrit
from rollbook.stats.intervals import DRAWS, decide, pointwise
from rollbook.system.brief import brief


@brief
@dataclass(frozen=True)
class Band:
    """A centre line with a band.

    Attributes:
      statistic: of the centre line.
      centre_P: [points]; NaN where no seed has a value.
      low_P: [points]; NaN where no valid band exists; draw the seeds there.
      high_P: [points].
      n_P: [points], seeds with a value (with several tasks: with a value in all of them).
      claim_P: [points], the coverage that may be claimed at that point; NaN without a band, and for means.
      methods: the methods used, in the order of their first point.
      level: nominal coverage.
      kind: "pointwise" or "whole curve".
      draws: number of resamples; 0 for closed forms.
      preliminary: whether more draws will follow.
      reasons: why there is no band at some points; none if there is one everywhere.
    """

    statistic: str
    centre_P: Floats
    low_P: Floats
    high_P: Floats
    n_P: Ints
    claim_P: Floats
    methods: tuple[str, ...]
    level: float
    kind: str
    draws: int = 0
    preliminary: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """`reasons` as one text."""
        return "; ".join(self.reasons)

    def legend(self, tasks: int = 1, *, why: bool = True) -> str:
        """The text that a chart shows about its band.

        Args:
          tasks: how many tasks its seeds were trained on.
          why: whether to say why there is no band.
        """
        name = {"iqm": "IQM", "optimality_gap": "optimality gap"}.get(self.statistic, self.statistic.replace("_", " "))
        seen = self.n_P[self.n_P > 0]
        if not len(seen):
            return f"{name} of no seeds"
        n = f"{seen.max()}" if seen.min() == seen.max() else f"{seen.min()} to {seen.max()}"
        words = f"{name} of {n} seed{'' if n == '1' else 's'}" + (f" x {tasks} tasks" if tasks > 1 else "")
        if not np.isfinite(self.low_P).any():
            return f"{words}, no band" + (f": {self.reason}" if why else "")
        if self.methods == ("range",):
            return f"{words}, band: lowest to highest seed at each point"
        claims = self.claim_P[np.isfinite(self.claim_P)]
        where = "at each point" if self.kind == "pointwise" else "for the whole curve"
        words += f", {'' if len(claims) else 'nominally '}{100 * self.level:g} % {where}"
        if len(claims) and claims.min() < self.level:
            words += f" (at worst {100 * claims.min():g} %)"
        return f"{words}, preliminary ({self.draws} draws)" if self.preliminary else words


def band(
    curves_RTP: ArrayLike,
    statistic: str = "iqm",
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    draws: int = DRAWS,
    target: float = 1.0,
) -> Band:
    """The statistic along the curve with its interval at each point, by the decision table at that point's n.

    Args:
      curves_RTP: [seeds, points] or [seeds, tasks, points]; NaN where a seed has no value. Infinities are refused.
      statistic: "mean", "iqm", "median", "optimality_gap", "solved" or "success_rate".
      rng: of the resamples. Points with the same seeds share them.
      level: nominal coverage at each point.
      draws: number of resamples, if the method needs them.
      target: of the optimality gap.

    Returns:
      A `Band` of kind "pointwise".
    """
    curves = _curves(curves_RTP)
    level_of(level)
    _, tasks, points = curves.shape
    decide(statistic, 1, tasks)  # raises for an unknown statistic before any work
    present = ~np.isnan(curves).any(axis=1)
    centre, low, high, claim = (np.full(points, np.nan) for _ in range(4))
    methods: list[str] = []
    reasons: list[str] = []
    drawn = False
    patterns, which = np.unique(present, axis=1, return_inverse=True)
    order = sorted(range(patterns.shape[1]), key=lambda k: int(np.argmax(which == k)))
    for child, k in zip(rng.spawn(len(order)), order, strict=True):
        here, runs = np.flatnonzero(np.ravel(which) == k), patterns[:, k]
        if not runs.any():
            continue
        part = curves[runs][:, :, here]
        row = decide(statistic, int(runs.sum()), tasks)
        centre[here], low[here], high[here], method, why = pointwise(
            part, statistic, rng=child, level=level, draws=draws, target=target
        )
        ends = np.isfinite(low[here])
        if row.claim is not None and abs(level - 0.95) < 1e-12:
            claim[here] = np.where(ends, row.claim, np.nan)
        if ends.any() and method not in methods:
            methods.append(method)
            drawn |= method.startswith(("bootstrap", "expanded"))
        if why and why not in reasons:
            reasons.append(why)
    return Band(
        statistic,
        centre,
        low,
        high,
        present.sum(axis=0),
        claim,
        tuple(methods),
        level,
        "pointwise",
        draws if drawn else 0,
        False,
        tuple(reasons),
    )


def whole_curve_band(curves_RP: ArrayLike, level: float = 0.95) -> Band:
    """A band that contains the whole true mean curve, by the Gaussian kinematic formula for t curves.

    Valid for curves that are roughly Gaussian at each point (95-97 % at 5 to 20 seeds, smooth or rough). If 20 % of the
    seeds start late or never, it covers 78, 80 and 91 % at 5, 10 and 20 seeds; as for any mean, no coverage is claimed.

    Args:
      curves_RP: [seeds, points]; all seeds have a value at all points, at least 5 seeds.
      level: nominal coverage of the whole curve.

    Returns:
      A `Band` of kind "whole curve"; without a band below 5 seeds.

    Raises:
      BadInput: NaN: cut the curves to the range that all seeds have.

    Source: Taylor and Worsley (2007) for the formula; its length is estimated from the standardised residuals.
    """
    curves = _curves(curves_RP)
    if curves.shape[1] != 1:
        curves = curves.mean(axis=1, keepdims=True)
    values = curves[:, 0]
    if np.isnan(values).any():
        raise BadInput("A band for the whole curve needs every seed at every point; align with span='all' first.")
    tail = 1 - level_of(level)
    n, points = values.shape
    centre = values.mean(axis=0)
    counts = np.full(points, n, dtype=np.int64)
    if n < 5:
        nothing = np.full(points, np.nan)
        return Band(
            "mean",
            centre,
            nothing,
            nothing,
            counts,
            nothing,
            (),
            level,
            "whole curve",
            reasons=("it needs at least 5 seeds",),
        )
    # The residuals of all seeds at a point, scaled to length 1, are a point on a sphere. The way it travels along the
    # curve says how rough the curves are.
    residual = values - centre
    length = np.linalg.norm(residual, axis=0)
    unit = np.divide(
        residual, length, out=np.zeros_like(residual), where=length > 1e-12 * max(float(length.max()), 1e-300)
    )
    travelled = float(np.linalg.norm(np.diff(unit, axis=1), axis=0).sum())
    freedom = n - 1
    low, high = float(stdtrit(freedom, 1 - tail / 2)), float(stdtrit(freedom, 1 - tail / (2 * points)))
    # Bisect for the height u that a curve so rough leaves anywhere, above u or below -u, with probability `tail`: the
    # chance that it begins there, plus the expected number of times that it crosses.
    for _ in range(60):
        u = (low + high) / 2
        crossings = travelled / (2 * math.pi) * (1 + u * u / freedom) ** ((1 - freedom) / 2)
        low, high = (u, high) if 2 * (float(stdtr(freedom, -u)) + crossings) > tail else (low, u)
    reach = high * length / math.sqrt(n * freedom)
    nothing_claimed = np.full(points, np.nan)
    return Band(
        "mean", centre, centre - reach, centre + reach, counts, nothing_claimed, ("Kac-Rice t",), level, "whole curve"
    )


def _curves(curves: ArrayLike) -> Floats:
    array = floats(curves, "curves_RTP")
    if array.ndim == 2:
        array = array[:, None, :]
    if array.ndim != 3 or 0 in array.shape:
        raise BadInput(
            f"curves_RTP has the shape {array.shape}; it has to be [seeds, points] or [seeds, tasks, points]."
        )
    if np.isinf(array).any():
        run, task, point = (int(i) for i in np.argwhere(np.isinf(array))[0])
        raise BadInput(f"curves_RTP is infinite for seed {run}, task {task}, point {point}; choose what that is worth.")
    return array
