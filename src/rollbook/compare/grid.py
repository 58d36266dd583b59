"""The common points of the axis at which runs are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray


def shared_grid(
    groups: Sequence[Sequence[NDArray]],
    points: int,
    *,
    span: str = "any",
    spacing: str = "linear",
    start: float | None = None,
    stop: float | None = None,
) -> Floats:
    """The common x values: the runs' own steps, if those are few enough.

    If runs log every thousand steps, the grid has these steps and nothing is carried forward. If runs log at the end
    of episodes, almost every row has a different x, and the grid is even. The grid always includes the first and last
    row of each group, the first and last step at which it stands for more than one run, and every step of a group that
    has few.

    Args:
      groups: for each group the x of its runs, [rows] each, in the order of their rows.
      points: at least 2. With more distinct x than this the grid is even with this many points, plus the steps of
        groups with few steps.
      span, spacing: see `stats.common_grid`.
      start, stop: a part of the axis.
    Raises:
      BadInput: no run has rows there, or with span="all" the runs have no common range.
    """
    spans = [ends for runs in groups for x in runs if len(ends := span_of(x))]
    even = stats.common_grid(spans, points, span=span, spacing=spacing)
    low, high = float(even[0]), float(even[-1])
    if start is not None or stop is not None:
        low, high = max(low, -math.inf if start is None else start), min(high, math.inf if stop is None else stop)
        if not low < high:
            raise BadInput(f"no run has rows between {low:g} and {high:g}")
        even = np.linspace(low, high, points)
    steps = [_steps(runs, points) for runs in groups]
    if all(own is not None for own in steps):
        together = np.unique(np.concatenate([own for own in steps if own is not None]))
        # From the last row before the part to the first after it, so that lines cross its edges.
        first, last = np.searchsorted(together, low, side="right") - 1, np.searchsorted(together, high, side="left")
        together = together[max(0, first) : last + 1]
        if len(together) <= points:
            return together
    added = [even]
    for runs, own in zip(groups, steps, strict=True):
        spans = [own_span for x in runs if len(own_span := span_of(x))]
        if spans:
            room = len(own) if own is not None else 0
            few = own is not None and room <= points and sum(map(len, added)) + room <= _MOST_TIMES * points
            kept = own if few and own is not None else _ends_of_a_group(spans)
            added.append(kept[(low <= kept) & (kept <= high)])
    return np.unique(np.concatenate(added))


def _ends_of_a_group(spans: Sequence[Floats]) -> Floats:
    """Where a group's first run begins and all have begun, where it is down to one run and where that one ends."""
    firsts, lasts = np.sort(np.asarray(spans), axis=0).T
    return np.array([firsts[0], firsts[-1], lasts[max(0, len(lasts) - 2)], lasts[-1]])


_MOST_TIMES = 4
"""Steps of groups with few rows are added to an even grid, up to this many times its points."""


def _steps(runs: Sequence[NDArray], points: int) -> Floats | None:
    """The distinct finite x of a group's runs; None if there are too many rows to check."""
    if any(len(x) > 4 * points for x in runs) or sum(map(len, runs)) > 2_000 * points:
        return None
    own = np.unique(np.concatenate([np.asarray(x, dtype=np.float64) for x in runs] or [np.zeros(0)]))
    finite: Floats = own[np.isfinite(own)]
    return finite


def span_of(x: NDArray) -> Floats:
    """[first, last] of the finite readings; [] if there are none."""
    finite = x if x.dtype.kind in "iub" else x[np.isfinite(x)]
    return np.array([finite.min(), finite.max()] if len(finite) else [], dtype=np.float64)
