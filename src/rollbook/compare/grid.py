"""The points of the axis at which runs are put beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.array_types import NDArray

__all__ = ["shared_grid", "span_of"]


def shared_grid(
    xs: Sequence[NDArray],
    points: int,
    *,
    span: str = "any",
    spacing: str = "linear",
    start: float | None = None,
    stop: float | None = None,
) -> Floats:
    """The x at which runs are put beside each other: where they themselves have rows, if those are few enough.

    Runs that log every thousand steps meet at those steps, and nothing is carried on from one to the next. Runs whose
    episodes end wherever they end have as many different x as rows; their grid is even.

    Args:
      xs: [rows] of each run, in the order of its rows.
      points: at least 2; more different x than that make an even grid of so many.
      span, spacing: see `stats.common_grid`.
      start, stop: a part of the axis.
    Raises:
      BadInput: no run has rows there, or none that all share with span="all".
    """
    spans = [ends for x in xs if len(ends := span_of(x))]
    even = stats.common_grid(spans, points, span=span, spacing=spacing)
    low, high = float(even[0]), float(even[-1])
    if start is not None or stop is not None:
        low, high = max(low, -math.inf if start is None else start), min(high, math.inf if stop is None else stop)
        if not low < high:
            raise BadInput(f"no run has rows between {low:g} and {high:g}")
        even = np.linspace(low, high, points)
    if any(len(x) > 4 * points for x in xs) or sum(map(len, xs)) > 2_000 * points:
        return even
    own = np.unique(np.concatenate([np.asarray(x, dtype=np.float64) for x in xs]))
    own = own[np.isfinite(own)]
    # From the last row before the part to the first behind it, so that lines run through its edges.
    own = own[max(0, np.searchsorted(own, low, side="right") - 1) : np.searchsorted(own, high, side="left") + 1]
    return own if len(own) <= points else even


def span_of(x: NDArray) -> Floats:
    """[first, last] of the finite readings, [] where there is none."""
    finite = x if x.dtype.kind in "iub" else x[np.isfinite(x)]
    return np.array([finite.min(), finite.max()] if len(finite) else [], dtype=np.float64)
