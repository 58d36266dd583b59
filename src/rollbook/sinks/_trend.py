"""The shape of a curve in a few points, drawn as a line of small bars."""

from __future__ import annotations

import math
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

POINTS = 64
UNICODE = "▁▂▃▄▅▆▇█"
ASCII = "_.-:=+*#"


class Trend:
    """At most 64 means of equally many values each; when they are full, neighbours are merged."""

    __slots__ = ("_count", "_each", "_sum", "_taken", "points")

    def __init__(self) -> None:
        self.points: list[float] = []
        self._each = 1
        self._sum = 0.0
        self._count = 0  # finite values in the unfinished point
        self._taken = 0  # all values in it

    def take(self, value: float) -> None:
        """Take the next value."""
        self._taken += 1
        if math.isfinite(value):
            self._sum += value
            self._count += 1
        if self._taken < self._each:
            return
        self.points.append(self._sum / self._count if self._count else math.nan)
        self._sum, self._count, self._taken = 0.0, 0, 0
        if len(self.points) >= POINTS:
            self.points = [_mean(self.points[i : i + 2]) for i in range(0, POINTS, 2)]
            self._each *= 2


def spark(points: Sequence[float], cells: int, *, unicode: bool = True) -> str:
    """The curve as at most `cells` bars, oldest first; gaps where no value was finite."""
    if len(points) > cells:
        edges = [round(i * len(points) / cells) for i in range(cells + 1)]
        points = [_mean(points[a:b]) for a, b in pairwise(edges)]
    finite = [point for point in points if math.isfinite(point)]
    if len(finite) < 2:
        return ""
    bars = UNICODE if unicode else ASCII
    low, high = min(finite), max(finite)
    if not high / 2 > low / 2:  # a flat line
        return "".join(bars[3] if math.isfinite(point) else " " for point in points)
    return "".join(
        bars[min(7, int((point / 2 - low / 2) / (high / 2 - low / 2) * 8))] if math.isfinite(point) else " "
        for point in points
    )


def _mean(points: Sequence[float]) -> float:
    finite = [point for point in points if math.isfinite(point)]
    return math.fsum(point / len(finite) for point in finite) if finite else math.nan
