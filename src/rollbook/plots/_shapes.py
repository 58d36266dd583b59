"""What charts draw: arrays and words, ready made. No chart computes a number about runs; it is told them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rollbook.ground.array_types import Floats, NDArray
from rollbook.ground.texts import printable

__all__ = [
    "Bars", "Cells", "Dots", "Line", "Mark", "Panel", "Spans", "Stack", "Threads", "Trace", "short", "thinned",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One run's rows: x and y [rows], in order of x, NaN and infinities included."""

    x: NDArray
    y: NDArray
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line with what surrounds it.

    Attributes:
      label: the words of the legend: what it is, what its band is, and of how many runs.
      x, y: [points]; NaN is a gap.
      low, high: [points], the band; NaN where there is none.
      least, most: [points], the extremes of everything behind the line; drawn fainter.
      seeds: the runs themselves, thin.
      raw: rows that are not finite, marked at the edge.
      steps: what holds at a point holds until the next one; without it neighbours are joined by a straight line.
    """

    label: str
    x: NDArray
    y: NDArray
    low: NDArray | None = None
    high: NDArray | None = None
    least: NDArray | None = None
    most: NDArray | None = None
    seeds: tuple[Trace, ...] = ()
    raw: Trace | None = None
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at one x: kind "checkpoint", "best" or "alert"."""

    x: float
    kind: str
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Lines over one axis.

    Attributes:
      title, axis: what is drawn, along what.
      lines: in the order of their colours.
      ghosts: what a restart abandoned.
      marks: checkpoints and alerts.
      remarks: sentences a reader has to know; they stand below.
    """

    title: str
    axis: str
    lines: tuple[Line, ...]
    ghosts: tuple[Trace, ...] = ()
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Estimates with intervals, a row each.

    Attributes:
      title, axis: what is estimated, and the words below the axis.
      labels: [rows].
      values, low, high: [rows]; NaN in low and high: no honest interval.
      points: [rows], the scores themselves.
      words: [rows], how the interval was made and of how many.
      zero: where a line says "no difference"; None for none.
      span: the range of the axis; None for that of the data.
      neutral: one colour for all rows, which are no groups.
    """

    title: str
    axis: str
    labels: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    points: tuple[Floats, ...]
    words: tuple[str, ...]
    zero: float | None = None
    span: tuple[float, float] | None = None
    remarks: tuple[str, ...] = ()
    neutral: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Shares of one whole along an axis: `parts` is [names, points], positive and negative stacked apart.

    Attributes:
      total: [points], what the parts should add up to; drawn as a line. None: not known.
    """

    title: str
    axis: str
    unit: str
    x: Floats
    names: tuple[str, ...]
    parts: Floats
    total: Floats | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Stages as bars along time: names, start and seconds [spans], one row a name."""

    title: str
    names: tuple[str, ...]
    start: Floats
    seconds: Floats
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Distributions along an axis: x [rows], and for each row edges and counts.

    Attributes:
      low, high: [rows], the extremes of the values; NaN where unknown.
    """

    title: str
    axis: str
    x: Floats
    edges: tuple[Floats, ...]
    counts: tuple[Floats, ...]
    low: Floats
    high: Floats
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """Points of several kinds: x, y [points], kind [points] as numbers of `kinds`."""

    title: str
    axis: str
    up: str
    x: Floats
    y: Floats
    kind: npt.NDArray[np.int64]
    kinds: tuple[str, ...]
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """Runs across columns: values by column [runs] as floats or texts, and the result [runs], which colours them."""

    title: str
    columns: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]
    result: Floats
    result_name: str
    remarks: tuple[str, ...] = field(default=())


def short(text: object, longest: int = 60) -> str:
    """A name as one line that fits, without control characters."""
    words = printable(text)
    return words if len(words) <= longest else words[: longest - 1] + "…"


def thinned(x: NDArray, y: NDArray, pixels: int = 900) -> tuple[Floats, Floats]:
    """Rows as at most 2 x `pixels` points: the lowest and the highest of each stretch, so that no spike is lost.

    A stretch without any finite value leaves a gap.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) <= 2 * pixels:
        return xs, np.where(np.isfinite(ys), ys, np.nan)
    starts = np.linspace(0, len(xs), pixels + 1).astype(np.int64)[:-1]
    finite = np.isfinite(ys)
    low = np.minimum.reduceat(np.where(finite, ys, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, ys, -np.inf), starts)
    stop = np.append(starts[1:], len(xs)) - 1
    none = low > high
    points_x = np.stack([xs[starts], (xs[starts] + xs[stop]) / 2], axis=1).ravel()
    points_y = np.stack([np.where(none, np.nan, low), np.where(none, np.nan, high)], axis=1).ravel()
    return points_x, points_y
