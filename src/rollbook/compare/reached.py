"""Which share of the runs has reached a score, along training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats, GroupCurve
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.plots import Picture

__all__ = ["Reached", "reached"]


@dataclass(frozen=True, slots=True)
class Reached:
    """The share of runs that have reached a score, along training.

    Attributes:
      key, axis, level: the metric, what it runs along, the score.
      x_P: [points].
      labels, n: of the groups; runs that were begun, whether or not they have rows.
      share_GP, low_GP, high_GP: [groups, points], the share and its Clopper-Pearson interval; NaN below 3 runs.
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

    def plot(self, *, theme: str = "light", **options: Any) -> Picture:
        """The shares as a picture."""
        from rollbook.plots import Line, Panel, draw

        def words(label: str, n: int) -> str:
            title = f"{label}: share of {n} seed{'' if n == 1 else 's'}"
            return f"{title}, 95 % at each point (Clopper-Pearson)" if n >= 3 else f"{title}, no band below 3"

        lines = tuple(
            Line(words(label, n), self.x_P, share, low if n >= 3 else None, high if n >= 3 else None, steps=True)
            for label, n, share, low, high in zip(
                self.labels, self.n, self.share_GP, self.low_GP, self.high_GP, strict=True
            )
        )
        panel = Panel(f"share of seeds that reached {self.key} = {self.level:.6g}", self.axis, lines)
        return draw("efficiency", panel, theme=theme, **options)


def reached(groups: Sequence[GroupCurve], x_P: Floats, *, key: str, axis: str, level: float | None) -> Reached:
    """See `Curves.reached`; x_P [points] is the grid of all groups."""
    if any(group.tasks > 1 for group in groups):
        raise BadInput(
            "the share of runs that reached a score is of one task, and these are several; choose the runs of one"
        )
    if level is None:
        tops = [group.band.centre_P[np.isfinite(group.band.centre_P)] for group in groups]
        level = float(min((top.max() for top in tops if len(top)), default=math.nan))
    shares, lows, highs, started = [], [], [], []
    for group in groups:
        first = [
            float(raw.x[hits[0]]) if len(hits := np.flatnonzero(raw.y >= level)) else math.inf
            for raw in group.aligned.raw
        ]
        first += [math.inf] * len(group.aligned.left_out)  # a run without a row has reached nothing
        n = len(first)
        hits_P = (np.asarray(first)[:, None] <= x_P).sum(axis=0)
        low, high = stats.clopper_pearson(hits_P, n) if n >= 3 else (np.full(len(x_P), np.nan),) * 2
        shares.append(hits_P / n)
        lows.append(low)
        highs.append(high)
        started.append(n)
    return Reached(
        key, axis, level, x_P, tuple(group.label for group in groups), tuple(started),
        np.array(shares), np.array(lows), np.array(highs),
    )  # fmt: skip
