"""The data of charts: arrays and texts. Charts get their numbers from here and compute none about runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rollbook.system.brief import brief
from rollbook.system.short_names import short_names
from rollbook.system.texts import printable
from rollbook.values.array_types import Floats, NDArray


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One run's rows.

    Attributes:
      x, y: [rows], in order of x, NaN and infinities included.
      label: the name of the run.
    """

    x: NDArray
    y: NDArray
    label: str = ""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line with its band and runs.

    Attributes:
      label: the text of the legend: the line, its band, and the number of runs.
      x, y: [points]; NaN is a gap.
      low, high: [points], the band; NaN where there is none.
      least, most: [points], the extremes of all data of the line; drawn fainter.
      seeds: the single runs, as thin lines.
      raw: rows that are not finite, marked at the edge.
      steps: whether a value holds until the next point; else neighbours are joined by a straight line.
      look: which colour and dashes of the style, from 0; None: those of its index among the lines.
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
    look: int | None = None


@brief
@dataclass(frozen=True, slots=True)
class Mark:
    """An event at one x.

    Attributes:
      x: where it is on the axis.
      kind: "checkpoint", "best" or "alert".
      label: what it is called; "" for no text.
    """

    x: float
    kind: str
    label: str = ""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Lines over one axis.

    Attributes:
      title, axis: the title, and the name of the axis.
      lines: in the order of their colours.
      ghosts: rows that a restart abandoned.
      marks: checkpoints and alerts.
      remarks: sentences for the reader, shown below.
    """

    title: str
    axis: str
    lines: tuple[Line, ...]
    ghosts: tuple[Trace, ...] = ()
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Estimates with intervals, one per row.

    Attributes:
      title, axis: what is estimated, and the label of the axis.
      labels: [rows].
      values, low, high: [rows]; NaN in low and high: no valid interval.
      points: [rows], the scores.
      words: [rows], the method of the interval and the number of scores.
      zero: where a line marks "no difference"; None for no line.
      span: the range of the axis; None for that of the data.
      remarks: sentences for the reader, shown below.
      neutral: whether all rows have one colour, because they are not groups.
      looks: [rows], which colour of the style; (): those of their indices.
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
    looks: tuple[int, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Shares of a whole along an axis. Positive and negative ones are stacked separately.

    Attributes:
      title, axis: the title, and the name of the axis.
      unit: of the parts.
      x: [points], increasing.
      names: of the parts.
      parts: [names, points].
      total: [points], the expected sum of the parts; drawn as a line. None: unknown.
      remarks: sentences for the reader, shown below.
    """

    title: str
    axis: str
    unit: str
    x: Floats
    names: tuple[str, ...]
    parts: Floats
    total: Floats | None = None
    remarks: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Stages as bars along time, one row per name.

    Attributes:
      title: the title.
      names: [spans], the stage of each; a/b is a part of a.
      start: [spans], when each began, in seconds since the first one began.
      seconds: [spans], how long each took.
      marks: checkpoints and alerts, in the same seconds.
      remarks: sentences for the reader, shown below.
    """

    title: str
    names: tuple[str, ...]
    start: Floats
    seconds: Floats
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Distributions along an axis.

    Attributes:
      title, axis: the title, and the name of the axis.
      x: [rows], where each distribution is.
      edges, counts: for each row its edges, [bins + 1], and how many values are between them, [bins].
      low, high: [rows], the extremes of the values; NaN where unknown.
      remarks: sentences for the reader, shown below.
    """

    title: str
    axis: str
    x: Floats
    edges: tuple[Floats, ...]
    counts: tuple[Floats, ...]
    low: Floats
    high: Floats
    remarks: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """Points of several kinds.

    Attributes:
      title, axis, up: the title, and the names of the axis and of the vertical axis.
      x, y: [points].
      kind: [points], the index of each point's kind in `kinds`.
      kinds: their names, in the order of their colours.
      marks: checkpoints and alerts.
      remarks: sentences for the reader, shown below.
    """

    title: str
    axis: str
    up: str
    x: Floats
    y: Floats
    kind: npt.NDArray[np.int64]
    kinds: tuple[str, ...]
    marks: tuple[Mark, ...] = ()
    remarks: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """Runs across columns, each run a line.

    Attributes:
      title: the title.
      columns: names of the columns.
      values: for each column its values, [runs], floats or texts.
      result: [runs], which colours the lines; NaN for none.
      result_name: what it is.
      remarks: sentences for the reader, shown below.
    """

    title: str
    columns: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]
    result: Floats
    result_name: str
    remarks: tuple[str, ...] = field(default=())


def short(text: object, longest: int = 60) -> str:
    """A name on one line, shortened, without control characters."""
    words = printable(text)
    return words if len(words) <= longest else words[: longest - 1] + "…"


def shorts(texts: Iterable[object], longest: int) -> list[str]:
    """Names side by side, each on one line: two that differ stay different."""
    return short_names([printable(text) for text in texts], longest)


def thinned(x: NDArray, y: NDArray, pixels: int = 900) -> tuple[Floats, Floats]:
    """Reduce rows to at most 2 x `pixels` points: the lowest and the highest of each interval, so that no spike is
    lost.

    An interval without finite values leaves a gap.
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
