"""Curves of several runs on one grid of x, without invented points.

    together = align({"seed-1": (x, y), "seed-2": (x, y)}, points=200)
    together.values_RP       # [runs, points], NaN where a run has no value
    together.n_P             # how many runs have a value at each point
    together.sentences()     # "n = 5 until 80,000, 4 after it."

x is any logged value: a clock, wall time, another key. A run may begin late, end early, crash, log at irregular x, or
restart (then its x goes back, and its earlier rows beyond that point no longer count).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Bools, Floats, Ints, choice, floats, vector
from rollbook.system.brief import brief
from rollbook.system.texts import amount

_INTERPOLATIONS = ("previous", "linear", "none")
_REDUCERS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "max": lambda values: float(values.max()),
    "min": lambda values: float(values.min()),
}


@brief
@dataclass(frozen=True)
class OrderedRows:
    """One run's rows in order of x, as they were logged.

    Attributes:
      x: [rows], increasing.
      y: [rows].
      crashed: whether the run ended without finishing.
      superseded: number of rows left out because a restart went back before them.
      unplaced: number of rows left out because their x is NaN or infinite.
      merged: number of rows merged with another row of the same x.
      dropped: number of rows left out because their y is not finite (nan="drop").
    """

    x: Floats
    y: Floats
    crashed: bool = False
    superseded: int = 0
    unplaced: int = 0
    merged: int = 0
    dropped: int = 0


@brief
@dataclass(frozen=True)
class Aligned:
    """Runs on one grid.

    Attributes:
      x_P: [points], the grid.
      values_RP: [runs, points]; NaN where the run has no value and, with nan="keep", where it logged NaN.
      present_RP: [runs, points]; whether the run has a value there (its own or the floor).
      names: [runs].
      interpolation: "previous", "linear" or "none".
      crashed_as: "count", "floor", "hold" or "drop".
      floor_RP: [runs, points]; where the value is the declared floor of a crashed run.
      raw: the rows of each run.
      left_out: names of runs without any row, and of crashed ones with crashed_as="drop", each with the reason.
    """

    x_P: Floats
    values_RP: Floats
    present_RP: Bools
    names: tuple[str, ...]
    interpolation: str
    crashed_as: str
    floor_RP: Bools
    raw: tuple[OrderedRows, ...] = field(repr=False)
    left_out: Mapping[str, str]

    @property
    def n_P(self) -> Ints:
        """[points], the number of runs with a value there, including crashed runs at their floor."""
        return np.asarray(self.present_RP.sum(axis=0), dtype=np.int64)

    @property
    def waiting_P(self) -> Bools:
        """[points], whether a run has no value yet although it had begun: its first rows are far apart."""
        waiting = np.zeros(len(self.x_P), dtype=np.bool_)
        for rows in self.raw:
            if len(rows.x) > 1:
                first = rows.x[0]
                begun = first - np.diff(rows.x[: _GAPS + 1]).max()
                waiting |= (self.x_P > begun) & (self.x_P < first)
        return waiting

    @property
    def started(self) -> int:
        """The number of runs on the grid, including crashed ones."""
        return len(self.names)

    @property
    def crashed(self) -> int:
        """The number of runs on the grid that ended without finishing."""
        return sum(rows.crashed for rows in self.raw)

    def sentences(self) -> list[str]:
        """Remarks for readers of the curves: where n changes, how crashed runs count, which runs are left out."""
        return _sentences(self)


def align(
    runs: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    grid: ArrayLike | None = None,
    points: int = 200,
    span: str = "any",
    spacing: str = "linear",
    interpolation: str = "previous",
    crashed: Sequence[str] = (),
    crashed_as: str = "count",
    floor: float | None = None,
    nan: str = "refuse",
    backwards: str = "restart",
    ties: str = "last",
    window: float | None = None,
    reduce: str = "mean",
    max_gap: float | None = None,
    ends: Mapping[str, float | None] | None = None,
) -> Aligned:
    """Put runs on a common grid.

    Args:
      runs: name -> (x, y), the rows of the run in the order in which they were logged, two vectors of one length.
      grid: [points], the x to evaluate at, increasing; None makes one from `points`, `span` and `spacing`.
      points: how many, at least 2. With interpolation="none" and no grid every x that any run logged is a point.
      span: "any": from the first to the last x of any run; "all": only where every run has begun and none has ended.
      spacing: "linear" or "log" (needs x above 0).
      interpolation: "previous": the last value logged at or before x, without knowledge of the future. "linear": on
        the straight line between the two neighbours. "none": only where the run logged exactly this x. None goes beyond
        the run's first and last row, but see `ends`.
      crashed: names of the runs that ended without finishing.
      crashed_as: after its last row a crashed run: "count" has no value (n falls, `started` does not); "floor" has the
        declared floor; "hold" keeps its last value; "drop" leaves out the whole run.
      floor: the value of a crashed run with crashed_as="floor".
      nan: for y that is NaN or infinite: "refuse" raises with the run's name, "keep" makes the curve NaN there, "drop"
        drops the row, "floor" counts it as the floor.
      backwards: if x goes back: "restart" (rows at or beyond the new x were abandoned), "sort", or "refuse".
      ties: of rows with the same x, use the "last" or the "mean". "mean" sees rows that a restart would have replaced
        only with backwards="sort".
      window: in units of x. The value at x is then `reduce` of the run's rows in (x - window, x], missing if there are
        none. Never looks ahead. Replaces the interpolation, which must be "previous".
      reduce: "mean", "median", "max" or "min", of a window.
      max_gap: in units of x. With "previous" and "linear", no value farther than this from the rows it comes from.
      ends: name -> where the run itself ended, beyond its last row: episodes end every 500 steps, a training at step
        30,000. Until there the run keeps its last value, but not beyond the last row of all runs. None: not known; then
        it keeps the last value for the distance of its last rows; a single row is kept to the end. Runs that are not
        named end at their last row, and crashed ones as `crashed_as` says.

    Returns:
      An `Aligned`.

    Raises:
      BadInput: no rows at all, NaN without a rule, no common point with span="all", arguments that conflict.
    """
    choice(interpolation, _INTERPOLATIONS, "interpolation")
    choice(crashed_as, ("count", "floor", "hold", "drop"), "crashed_as")
    choice(nan, ("refuse", "keep", "drop", "floor"), "nan")
    choice(reduce, _REDUCERS, "reduce")
    if "floor" in (crashed_as, nan) and floor is None:
        raise BadInput('crashed_as="floor" and nan="floor" need floor=, the score that such a run is worth.')
    if window is not None and (not window > 0 or interpolation != "previous"):
        raise BadInput(f'window={window!r} has to be above 0 and goes with interpolation="previous" only.')
    unknown = [name for name in crashed if name not in runs]
    if unknown:
        raise BadInput(f"crashed= names {unknown[0]!r}, which is not among the runs {', '.join(map(str, runs))}.")

    # Clean the rows of each run. A run without any stays only if it has a floor to count as.
    left_out: dict[str, str] = {}
    usable: dict[str, OrderedRows] = {}
    for name, (x, y) in runs.items():
        rows = ordered_rows(
            x, y, name=name, crashed=name in crashed, nan=nan, floor=floor, backwards=backwards, ties=ties
        )
        if rows.crashed and crashed_as == "drop":
            left_out[name] = "crashed, and crashed runs were left out on request"
        elif not len(rows.x) and not (rows.crashed and crashed_as == "floor"):
            left_out[name] = "has no row with this key"
        else:
            usable[name] = rows
    begun = [rows for rows in usable.values() if len(rows.x)]
    if not begun:
        raise BadInput(f"None of {amount(len(runs), 'run')} has a value of this key with a finite x")
    if grid is not None:
        x_P = vector(grid, "grid")
        if (np.diff(x_P) <= 0).any():
            raise BadInput("grid has to increase from point to point.")
    elif interpolation == "none":
        x_P = np.unique(np.concatenate([rows.x for rows in begun]))
    else:
        # A crashed run with a value after its end does not end the grid.
        ending = [s for s in begun if not (s.crashed and crashed_as in ("floor", "hold"))]
        x_P = common_grid([s.x for s in begun], points, span=span, spacing=spacing, ends=[s.x for s in ending])

    values_RP = np.full((len(usable), len(x_P)), np.nan)
    present_RP = np.zeros(values_RP.shape, dtype=np.bool_)
    floor_RP = np.zeros(values_RP.shape, dtype=np.bool_)
    names, end_of_all = tuple(usable), max(float(rows.x[-1]) for rows in begun)
    # Evaluate each run at the points of the grid, then say what a crashed one is worth after its end.
    for row, rows in enumerate(usable.values()):
        until = min(_end_of(rows, ends or {}, names[row]), end_of_all)
        _fill(rows, x_P, until, values_RP[row], present_RP[row], interpolation, window, reduce, max_gap)
        if rows.crashed and crashed_as in ("floor", "hold"):
            after = x_P > (rows.x[-1] if len(rows.x) else -np.inf)
            if crashed_as == "floor":
                values_RP[row, after], floor_RP[row, after] = floor, True
            else:
                values_RP[row, after] = rows.y[-1]
            present_RP[row, after] = True
    return Aligned(
        x_P,
        values_RP,
        present_RP,
        names,
        interpolation if window is None else f"{reduce} of the last {window:g}",
        crashed_as,
        floor_RP,
        tuple(usable.values()),
        left_out,
    )


def ordered_rows(
    x: ArrayLike,
    y: ArrayLike,
    *,
    name: str = "a run",
    crashed: bool = False,
    nan: str = "refuse",
    floor: float | None = None,
    backwards: str = "restart",
    ties: str = "last",
) -> OrderedRows:
    """One run's rows in order of x, and the counts of left-out rows; the arguments are those of `align`."""
    choice(backwards, ("restart", "sort", "refuse"), "backwards")
    choice(ties, ("last", "mean"), "ties")
    xs, ys = floats(x, f"x of {name}"), floats(y, f"y of {name}")
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise BadInput(f"Run {name}: x has the shape {xs.shape} and y {ys.shape}; both are vectors of one length.")
    usable = np.isfinite(xs)
    unplaced = int((~usable).sum())
    if unplaced:
        xs, ys = xs[usable], ys[usable]
    xs, ys, superseded = _in_order(xs, ys, name, backwards)
    xs, ys, dropped = _without_bad(xs, ys, name, nan, floor)
    before = len(xs)
    if bool((xs[1:] == xs[:-1]).any()):
        rises = np.diff(xs) > 0
        if ties == "mean":
            begin = np.flatnonzero(np.append(True, rises))
            xs, ys = xs[begin], np.add.reduceat(ys, begin) / np.diff(np.append(begin, before))
        else:
            last = np.append(rises, True)
            xs, ys = xs[last], ys[last]
    return OrderedRows(xs, ys, crashed, superseded, unplaced, before - len(xs), dropped)


def _in_order(xs: Floats, ys: Floats, name: str, backwards: str) -> tuple[Floats, Floats, int]:
    """The rows by x, and how many a restart replaced."""
    back = xs[1:] < xs[:-1]
    if not back.any():
        return xs, ys, 0
    if backwards == "refuse":
        at = int(np.flatnonzero(back)[0])
        raise BadInput(
            f"Run {name}: x goes back from {xs[at]:g} to {xs[at + 1]:g}. "
            'Choose backwards="restart" (later rows replace what they repeat) or backwards="sort".'
        )
    if backwards == "sort":
        order = np.argsort(xs, kind="stable")
        return xs[order], ys[order], 0
    # A row is valid if every later row is beyond it; one that follows at the same x is a tie, not a restart.
    later = np.append(np.minimum.accumulate(xs[::-1])[::-1][1:], np.inf)
    valid = (xs < later) | ((xs == later) & np.append(xs[1:] == xs[:-1], False))
    return xs[valid], ys[valid], int((~valid).sum())


def _without_bad(xs: Floats, ys: Floats, name: str, nan: str, floor: float | None) -> tuple[Floats, Floats, int]:
    """The rows with NaN and infinity handled as `nan` says, and how many were dropped."""
    bad = ~np.isfinite(ys)
    if not bad.any() or nan == "keep":
        return xs, ys, 0
    if nan == "refuse":
        at = int(np.flatnonzero(bad)[0])
        raise BadInput(
            f"Run {name} has {ys[at]} at {xs[at]:g}. It is neither dropped nor counted as zero; choose "
            'nan="floor", nan="drop" or nan="keep".'
        )
    if nan == "drop":
        return xs[~bad], ys[~bad], int(bad.sum())
    return xs, np.where(bad, np.nan if floor is None else floor, ys), 0


def common_grid(
    xs: Sequence[ArrayLike],
    points: int = 200,
    *,
    span: str = "any",
    spacing: str = "linear",
    ends: Sequence[ArrayLike] | None = None,
) -> Floats:
    """Evenly spaced x over the range of several runs.

    Args:
      xs: one increasing vector per run, none empty.
      points: at least 2; a single x of all runs gives a grid of one point.
      span: "any" or "all", as in `align`.
      spacing: "linear" or "log".
      ends: the runs whose end limits span="all"; all of them by default.

    Returns:
      [points], increasing.

    Raises:
      BadInput: no common point with span="all", or a range without a logarithm.
    """
    choice(span, ("any", "all"), "span")
    choice(spacing, ("linear", "log"), "spacing")
    if points < 2:
        raise BadInput(f"points={points!r}: a grid has at least 2.")
    firsts, lasts = [float(np.min(x)) for x in xs], [float(np.max(x)) for x in xs]
    if span == "any":
        begin, end = min(firsts), max(lasts)
    else:
        begin = max(firsts)
        end = min(lasts) if ends is None else min((float(np.max(x)) for x in ends), default=max(lasts))
    if begin > end:
        raise BadInput(
            f"The runs have no common point: one begins at {begin:g}, another has ended at {end:g}. "
            'Choose span="any", or leave one of them out.'
        )
    if begin == end:
        return np.array([begin])
    if spacing == "log":
        if begin <= 0:
            raise BadInput(f'spacing="log" needs x above 0; the first is {begin:g}.')
        grid = np.geomspace(begin, end, points)
    else:
        grid = np.linspace(begin, end, points)
    grid[0], grid[-1] = begin, end
    return np.unique(grid)


def overlap(a: Aligned, b: Aligned) -> tuple[float, float] | None:
    """The range of x in which both groups have a value of at least one run; None if there is none.

    Args:
      a: one group.
      b: another group; its grid may differ.

    Returns:
      (first, last) in units of x, or None.
    """
    ranges = []
    for group in (a, b):
        seen = np.flatnonzero(group.n_P > 0)
        if not len(seen):
            return None
        ranges.append((float(group.x_P[seen[0]]), float(group.x_P[seen[-1]])))
    begin, end = max(r[0] for r in ranges), min(r[1] for r in ranges)
    return (begin, end) if begin <= end else None


def _fill(
    rows: OrderedRows,
    x_P: Floats,
    until: float,
    values_P: Floats,
    present_P: Bools,
    interpolation: str,
    window: float | None,
    reduce: str,
    max_gap: float | None,
) -> None:
    """Write one run's values on the grid into the two rows, none beyond `until`."""
    if not len(rows.x):
        return
    x, y = rows.x, rows.y
    at = np.searchsorted(x, x_P, side="right") - 1  # the last row at or before each point
    if window is not None:
        begin = np.searchsorted(x, x_P - window, side="right")
        within = (at >= begin) & (x_P <= until)  # no window after the run's end
        values_P[within] = _windows(y, begin[within], at[within] + 1, reduce)
        present_P[within] = True
        return
    exact = (at >= 0) & (x[np.maximum(at, 0)] == x_P)
    if interpolation == "none":
        inside = exact
        values_P[inside] = y[at[inside]]
    else:
        inside = (at >= 0) & (x_P <= until)
        if interpolation == "linear":
            following = np.minimum(at + 1, len(x) - 1)
            if max_gap is not None:
                inside &= exact | (x[following] - x[np.maximum(at, 0)] <= max_gap)
            left, right = at[inside], following[inside]
            width = np.where(right > left, x[right] - x[left], 1.0)
            share = np.where(exact[inside], 0.0, (x_P[inside] - x[left]) / width)
            with np.errstate(invalid="ignore"):  # an infinity that was kept gives NaN next to it
                between = y[left] + share * (y[right] - y[left])
            values_P[inside] = np.where(share == 0.0, y[left], between)
        else:
            if max_gap is not None:
                inside &= x_P - x[np.maximum(at, 0)] <= max_gap
            values_P[inside] = y[at[inside]]
    present_P[inside] = True


_GAPS = 10
"""How many distances between rows say how far rows of a run are apart: near its end, near its beginning."""


def _end_of(rows: OrderedRows, ends: Mapping[str, float | None], name: str) -> float:
    """How far a run has a value: to its last row, or to its own end."""
    if not len(rows.x):
        return -math.inf
    last = float(rows.x[-1])
    if rows.crashed or name not in ends:
        return last
    end = ends[name]
    if end is not None:
        return max(last, end)
    return last + float(np.diff(rows.x[-_GAPS - 1 :]).max()) if len(rows.x) > 1 else math.inf


def _windows(y: Floats, begin: Ints, end: Ints, reduce: str) -> Floats:
    """The reduction of y[begin:end] for each pair; none is empty."""
    if reduce == "mean" and np.isfinite(y).all():
        centre = y.mean()  # sum deviations, so that a large constant part costs no precision
        total = np.append(0.0, np.cumsum(y - centre))
        return np.asarray((total[end] - total[begin]) / (end - begin) + centre)
    function = _REDUCERS[reduce]
    return np.array([function(y[b:e]) for b, e in zip(begin, end, strict=True)])


def _sentences(aligned: Aligned) -> list[str]:
    sentences = []
    as_group = ~aligned.waiting_P & (aligned.n_P >= min(2, aligned.started))
    n, x = aligned.n_P[as_group], aligned.x_P[as_group]
    change = np.flatnonzero(np.diff(n))
    if len(change) == 1:
        sentences.append(f"n = {n[0]} until {x[change[0]]:,.6g}, {n[-1]} after it.")
    elif len(change):
        sentences.append(f"n changes along the curve: from {n.min()} to {n.max()} of {aligned.started} runs.")
    if len(x) and (aligned.n_P[aligned.x_P > x[-1]] > 0).any():
        sentences.append(f"The group ends at {x[-1]:,.6g}: beyond it 1 of {aligned.started} runs is left.")
    if aligned.crashed:
        how = {
            "count": "after their end they have no value and stay in the count of runs",
            "floor": "after their end they count as the declared floor",
            "hold": "after their end they keep their last value",
        }[aligned.crashed_as]
        sentences.append(f"{aligned.crashed} of {aligned.started} runs did not finish; {how}.")
    for name, why in aligned.left_out.items():
        sentences.append(f"Run {name} {why}.")
    superseded = sum(rows.superseded for rows in aligned.raw)
    if superseded:
        sentences.append(f"Left out: {amount(superseded, 'row')} that a restart replaced.")
    dropped = sum(rows.dropped for rows in aligned.raw)
    if dropped:
        sentences.append(f"Dropped on request: {amount(dropped, 'row')} not finite.")
    return sentences
