"""Curves of runs and of groups, marks on them, and their numbers as a file."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Ask, Num

__all__ = [
    "Array",
    "CsvAsk",
    "CurveEntry",
    "CurvesAsk",
    "EntryError",
    "Group",
    "Mark",
    "MarksAnswer",
    "MarksAsk",
    "SeriesAsk",
    "SeriesEntry",
]

Field = Literal["mean", "min", "max", "count"]


class SeriesAsk(Ask, kw_only=True):
    """Many keys of many runs.

    Attributes:
      x: a clock, "time" (unix seconds), "relative" (seconds since the run began), a key; null: each run's own axis.
      points: about one per pixel. Up to four rows a point come raw.
      fields: which numbers of a reduced point.
      start, stop: only rows with start <= x < stop.
      attempts: "effective", "all", or attempt numbers.
      ghosts: also what rewinds abandoned, as entries of their own.
    """

    runs: list[str]
    keys: list[str]
    x: str | None = None
    points: int = 800
    fields: list[Field] = msgspec.field(default_factory=lambda: list[Field](("mean", "min", "max")))
    start: float | None = None
    stop: float | None = None
    attempts: Literal["effective", "all"] | list[int] = "effective"
    ghosts: bool = False


class Array(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An array in the payload of a frame: value i is b + s * raw[i].

    Attributes:
      o: byte offset in the payload; n: length; t: f8, f4, u4, i4, u2 or u1.
    """

    o: int
    n: int
    t: Literal["f8", "f4", "u4", "i4", "u2", "u1"]
    b: float = 0.0
    s: float = 1.0


class EntryError(msgspec.Struct, kw_only=True):
    """Why one entry of many is empty; the others are not."""

    code: str
    message: str
    hint: str | None = None


class SeriesEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One curve in the header of a frame.

    Attributes:
      kind: raw (arrays x, y: every row), envelope (x and the fields asked for: a point per stretch), none.
      n: points; rows: rows in range; non_finite: those of them that are NaN or infinite.
      arrays: see `Array`.
      bad: arrays x, nan, up, down: where rows are NaN, +inf, -inf, and how many.
      span: smallest and largest x of the whole series; y_span: smallest and largest finite value in range; robust: the
        same without outliers.
      ghost: the attempt whose abandoned rows these are.
      inferred: rows placed on the axis by time.
      version: the same as long as the data is the same.
    """

    run: str
    key: str
    x: str
    kind: Literal["raw", "envelope", "none"]
    n: int = 0
    rows: int = 0
    non_finite: int = 0
    arrays: dict[str, Array] = {}
    bad: dict[str, Array] | None = None
    span: tuple[float, float] | None = None
    y_span: tuple[float, float] | None = None
    robust: tuple[float, float] | None = None
    ghost: int | None = None
    inferred: int = 0
    error: EntryError | None = None
    version: str = ""


class Group(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Runs that are taken together."""

    name: str
    runs: list[str]


class CurvesAsk(Ask, kw_only=True):
    """Many keys of many groups of runs.

    Attributes:
      refine: where bands of many runs take long, a frame of few draws comes first for each key, then the full one.
    """

    groups: list[Group]
    keys: list[str]
    x: str | None = None
    points: int = 200
    start: float | None = None
    stop: float | None = None
    statistic: Literal["iqm", "mean", "median"] = "iqm"
    level: float = 0.95
    refine: bool = False


class CurveEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The curve of a group in the header of a frame.

    Attributes:
      arrays: x, centre, low, high (NaN where too few seeds stand for an interval), count (seeds at each point), min,
        max (over the seeds).
      band: "pointwise".
      method, claim: how low and high were found, and per cent of studies in which they hold at least.
      seeds: members that have the key; missing: those that have not.
      preliminary: whether the same entry with bands of more draws is on its way.
    """

    group: str
    key: str
    x: str
    kind: Literal["curve", "none"]
    n: int = 0
    arrays: dict[str, Array] = {}
    statistic: str = "iqm"
    level: float = 0.95
    band: str = "pointwise"
    method: str = ""
    claim: float | None = None
    sentence: str = ""
    seeds: int = 0
    missing: list[str] = []
    preliminary: bool = False
    error: EntryError | None = None
    version: str = ""


class MarksAsk(Ask, kw_only=True):
    """Of which runs, on which axis."""

    runs: list[str]
    x: str | None = None
    start: float | None = None
    stop: float | None = None


class Mark(msgspec.Struct, kw_only=True):
    """A checkpoint, alert, note or begin of an attempt on the axis."""

    run: str
    kind: Literal["checkpoint", "alert", "note", "attempt"]
    x: Num
    time: float | None
    id: str
    label: str
    text: str
    level: str | None


class MarksAnswer(Answer, kw_only=True):
    """Marks in order of x."""

    marks: list[Mark]
    truncated: bool


class CsvAsk(Ask, kw_only=True):
    """Rows of a table as CSV.

    Attributes:
      run, key: repeated; key only for metrics.
      table: which table.
    """

    run: list[str]
    key: list[str] = []
    x: str | None = None
    start: float | None = None
    stop: float | None = None
    table: str = "metrics"
