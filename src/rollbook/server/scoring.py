"""One number per run: its values up to the position where runs are compared. Verdicts and sweeps of the page use it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rollbook.ground.array_types import NDArray
from rollbook.server.catalogue import RunRow
from rollbook.server.group_rows import rows_of_runs
from rollbook.server.readers import stamp_of
from rollbook.server.rows import default_axis
from rollbook.server.shared_state import Hall

__all__ = ["finite_lines", "place_of_scores", "score_up_to"]


def finite_lines(
    hall: Hall, groups: dict[str, list[RunRow]], key: str, x: str | None
) -> tuple[dict[str, tuple[NDArray, NDArray]], str, set[str]]:
    """run -> (x, values) of its finite rows, the axis, and the runs whose last row is not finite."""
    axis = (
        x or default_axis(hall, next(row for rows in groups.values() for row in rows)) if any(groups.values()) else ""
    )
    every = [row for rows in groups.values() for row in rows]
    stamps = {row.folder: stamp_of(row.folder) for row in every}
    read = rows_of_runs(hall, every, key, axis, stamps)
    finite = {
        run: (rows_of_run.x[np.isfinite(rows_of_run.y)].astype(np.float64), rows_of_run.y[np.isfinite(rows_of_run.y)])
        for run, rows_of_run in read.items()
    }
    spoilt = {run for run, rows_of_run in read.items() if len(rows_of_run.y) and not np.isfinite(rows_of_run.y[-1])}
    return finite, axis, spoilt


def place_of_scores(
    groups: dict[str, list[RunRow]], lines: dict[str, tuple[NDArray, NDArray]], at: float | None
) -> tuple[float | None, str]:
    """The position where runs are compared: the requested one, else what every finished run has reached."""
    if at is not None:
        return at, "as chosen"
    ends = [
        float(lines[row.key][0].max())
        for rows in groups.values()
        for row in rows
        if row.key in lines and len(lines[row.key][0]) and row.status == "finished"
    ]
    if not ends:
        return None, "no run has finished; each counts as far as it has come"
    return min(ends), f"reached by all {len(ends)} finished runs"


def score_up_to(
    line: tuple[NDArray, NDArray] | None, at: float | None, score: Callable[[NDArray, NDArray], float]
) -> float | None:
    """The score of a run's values up to a position of the axis; None if it has no values there."""
    if line is None:
        return None
    x, values = line
    if at is not None:
        x, values = x[x <= at], values[x <= at]
    if not len(x):
        return None
    number = float(score(x, values))
    return number if math.isfinite(number) else None
