"""Charts of one run: which arrays each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.asked import ChartTables
from rollbook.book.series import Series
from rollbook.errors import BadInput, UnknownKey, UnknownOption, did_you_mean
from rollbook.plots import Line, Mark, Panel, Picture, Trace, draw
from rollbook.plots._registry import chart_named, options_of
from rollbook.storage.columns import to_numpy

__all__ = ["picture_of"]

NDArray = npt.NDArray[Any]
Options = dict[str, Any]

_POINTS = 1000
_MOST_MARKED = 2_000


def picture_of(
    book: ChartTables, keys: Sequence[str], *, x: str | None, chart: str, theme: str, options: Mapping[str, Any]
) -> Picture:
    """See `Book.plot`."""
    chart_named(chart, "run")
    make, own = _MAKERS[chart]
    known = options_of(chart) | {"size", *own}
    for name in options:
        if name not in known:
            raise UnknownOption(
                f"{name}=: nobody takes this option for chart={chart!r}.{did_you_mean(name, sorted(known))}"
            )
    mine = {name: value for name, value in options.items() if name in own}
    data = make(book, list(keys), x, **mine)
    return draw(chart, data, theme=theme, **{name: value for name, value in options.items() if name not in own})


# -- curves


def _curves(book: ChartTables, keys: list[str], x: str | None, points: int = _POINTS, marks: bool = True) -> Panel:
    series = _series(book, keys, x, points)
    title = f"{book.project}/{book.name}: {', '.join(keys)}"
    axis = next(iter(series.values())).axis
    same = {key: each for key, each in series.items() if each.axis == axis}
    for key, each in series.items():
        if each.axis != axis:
            same[key] = book.series(key, x=axis, points=points)
    lines = tuple(_line(key, each) for key, each in same.items())
    return Panel(
        title, axis, lines, _ghosts(book, keys, axis), _marks(book, axis) if marks else (), _remarks(same)
    )  # fmt: skip


def _series(book: ChartTables, keys: list[str], x: str | None, points: int) -> dict[str, Series]:
    if not keys:
        raise BadInput(f"plot(): say which key.{did_you_mean('', book.keys())}")
    found = book.batch(keys, x=x, points=points)
    for key in keys:
        if key not in found:
            book.series(key, x=x, points=1)  # raises with the names that there are
            raise UnknownKey(f"{book.path} has no key {key!r}.{did_you_mean(key, book.keys())}")
    return found


def _line(key: str, series: Series) -> Line:
    reduced = bool((series.count > 1).any())
    words = f"{key}: mean of the rows behind each point, faint: their lowest and highest" if reduced else key
    bad = _bad(series)
    return Line(
        words, series.x, np.where(np.isfinite(series.mean), series.mean, np.nan),
        least=series.min if reduced else None, most=series.max if reduced else None, raw=bad,
    )  # fmt: skip


def _bad(series: Series) -> Trace | None:
    """Where rows are not finite: what they are if that is known, else as NaN."""
    places = ~np.isfinite(series.mean) if series.bad is None else np.asarray(series.bad) > 0
    if not places.any():
        return None
    values = np.where(np.isfinite(series.mean), np.nan, series.mean)
    return Trace(series.x[places], values[places])


def _remarks(series: Mapping[str, Series]) -> tuple[str, ...]:
    return tuple(
        f"{key}: {each.non_finite:,} rows are NaN or infinite." for key, each in series.items() if each.non_finite
    )


def _ghosts(book: ChartTables, keys: list[str], axis: str) -> tuple[Trace, ...]:
    """What restarts abandoned: rows of each attempt that are not in the effective history."""
    attempts = book.attempts
    if len(attempts) < 2:
        return ()
    ghosts = []
    for key in keys:
        effective = book.series(key, x=axis, points=None)
        known = set(zip(effective.x.tolist(), effective.mean.tolist(), strict=True))
        for attempt in attempts[:-1]:
            try:
                mine = book.series(key, x=axis, points=None, attempts=[attempt["n"]])
            except UnknownKey:
                continue
            gone = np.array([pair not in known for pair in zip(mine.x.tolist(), mine.mean.tolist(), strict=True)], bool)
            if gone.any():
                ghosts.append(Trace(mine.x[gone], mine.mean[gone], f"{key}: abandoned, attempt {attempt['n']}"))
    return tuple(ghosts)


def _marks(book: ChartTables, axis: str) -> tuple[Mark, ...]:
    """Checkpoints that are still kept, and alerts, where they know the axis."""
    marks = []
    checkpoints = book.checkpoints("effective")
    gone = {row["checkpoint_id"] for row in _dicts(checkpoints, ("checkpoint_id", "kept")) if row["kept"] is False}
    for row, x in zip(_dicts(checkpoints, ("checkpoint_id", "is_best")), along(checkpoints, axis), strict=True):
        if np.isfinite(x) and row["checkpoint_id"] not in gone:
            marks.append(Mark(float(x), "best" if row.get("is_best") else "checkpoint"))
    alerts = book.alerts("effective")
    for row, x in zip(_dicts(alerts, ("rule",)), along(alerts, axis), strict=True):
        if np.isfinite(x):
            marks.append(Mark(float(x), "alert", str(row.get("rule") or "")))
    return tuple(marks[:_MOST_MARKED])


# -- what several charts need


def along(table: pa.Table, axis: str) -> NDArray:
    """Where the rows of a table stand on an axis ("time": unix seconds); NaN where they do not know it."""
    if axis == "time" and "time" in table.column_names:
        return to_numpy(table["time"])[0].astype("datetime64[ns]").astype(np.int64) / 1e9
    return column(table, axis)


def column(table: pa.Table, name: str) -> NDArray:
    """Numbers of a column, NaN where a row has none; all NaN if there is no such column."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    cells = table[name].to_pylist()
    return np.array(
        [float(c) if isinstance(c, (int, float)) and not isinstance(c, bool) else np.nan for c in cells], np.float64
    )


def _dicts(table: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    there = [name for name in names if name in table.column_names]
    rows: list[dict[str, Any]] = table.select(there).to_pylist() if there else [{} for _ in range(table.num_rows)]
    return [{name: row.get(name) for name in names} for row in rows]


_MAKERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {"curves": (_curves, ("points", "marks"))}
"""Chart -> (what makes its data, the options that this takes)."""
