"""The share of runs that have reached a score, along training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats, GroupCurve
from rollbook.errors import BadInput
from rollbook.system.brief import brief
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.plots import Picture


@brief
@dataclass(frozen=True, slots=True)
class Reached:
    """The share of runs that have reached a score, along training.

    Attributes:
      key, axis, level: the metric, its axis, the score.
      x_P: [points].
      labels, n: of the groups; n counts all started runs, also those without rows.
      lower_is_better: whether a run reaches the score from above.
      share_GP, low_GP, high_GP: [groups, points], the share and its Clopper-Pearson interval; NaN below 3 runs.
      looks: see `Curves`.
    """

    key: str
    axis: str
    level: float
    x_P: Floats
    labels: tuple[str, ...]
    n: tuple[int, ...]
    share_GP: Floats
    low_GP: Floats
    high_GP: Floats
    lower_is_better: bool = False
    looks: Mapping[str, int] = field(default_factory=dict)

    def plot(self, *, theme: str = "light", **options: Any) -> Picture:
        """The shares as a chart."""
        from rollbook.plots import Line, Panel, draw

        crowded = len(self.labels) > 2  # more than two bands hide each other: report the final values in text

        def words(index: int) -> str:
            label, n, share = self.labels[index], self.n[index], self.share_GP[index]
            title = f"{label}: share of {amount(n, 'seed')}"
            if n < 3:
                return f"{title}, no band below 3"
            if not crowded:
                return f"{title}, 95 % at each point (Clopper-Pearson)"
            low, high = 100 * self.low_GP[index][-1], 100 * self.high_GP[index][-1]
            return f"{title}, {100 * share[-1]:.0f} % at the end (95 %: {low:.0f} to {high:.0f}, Clopper-Pearson)"

        lines = []
        for index, (n, share, low, high) in enumerate(
            zip(self.n, self.share_GP, self.low_GP, self.high_GP, strict=True)
        ):
            shown = n >= 3 and not crowded
            lines.append(
                Line(
                    words(index),
                    self.x_P,
                    share,
                    low if shown else None,
                    high if shown else None,
                    steps=True,
                    look=self.looks.get(self.labels[index]),
                )
            )
        side = "at most" if self.lower_is_better else "at least"
        panel = Panel(f"share of seeds that reached {self.key} of {side} {self.level:.6g}", self.axis, tuple(lines))
        return draw("efficiency", panel, theme=theme, **options)


def reached(
    groups: Sequence[GroupCurve], x_P: Floats, *, key: str, axis: str, level: float | None, lower: bool
) -> Reached:
    """See `Curves.reached`; x_P [points] is the grid of all groups."""
    if any(group.tasks > 1 for group in groups):
        raise BadInput(
            "the share of runs that reached a score is of one task, and these are several.", "Choose the runs of one"
        )
    if level is None:
        sign = -1.0 if lower else 1.0
        tops = [sign * group.band.centre_P[np.isfinite(group.band.centre_P)] for group in groups]
        level = sign * _rounded_down(float(min((top.max() for top in tops if len(top)), default=math.nan)))
    shares, lows, highs, started = [], [], [], []
    for group in groups:
        first = [
            float(raw.x[hits[0]])
            if len(hits := np.flatnonzero(raw.y <= level if lower else raw.y >= level))
            else math.inf
            for raw, name in zip(group.aligned.raw, group.aligned.names, strict=True)
            if name not in group.again
        ]
        first += [math.inf] * len(group.aligned.left_out)  # a run without rows has reached nothing
        n = len(first)
        hits_P = (np.asarray(first)[:, None] <= x_P).sum(axis=0)
        low, high = stats.clopper_pearson(hits_P, n) if n >= 3 else (np.full(len(x_P), np.nan),) * 2
        shares.append(hits_P / n)
        lows.append(low)
        highs.append(high)
        started.append(n)
    return Reached(
        key,
        axis,
        level,
        x_P,
        tuple(group.label for group in groups),
        tuple(started),
        np.array(shares),
        np.array(lows),
        np.array(highs),
        lower,
    )


def _rounded_down(level: float) -> float:
    """Round down to two significant digits: 24.4375 -> 24, -0.118 -> -0.12."""
    if not math.isfinite(level) or level == 0:
        return level
    digits = 1 - math.floor(math.log10(abs(level)))
    scaled = level * 10.0**digits
    return float(f"{round(scaled) if abs(scaled - round(scaled)) < 1e-9 else math.floor(scaled)}e{-digits}")
