"""Data of the charts of a run's tables: timings, histograms, episodes, samples, rewards, and marks along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from rollbook.book.table_protocols import ChartTables, ReadRun
from rollbook.errors import BadInput, UnknownKey, did_you_mean
from rollbook.plots import Cells, Dots, Line, Mark, Panel, Spans, Stack
from rollbook.schema.default_axis import default_axis, own_axis
from rollbook.values.array_types import Floats, NDArray
from rollbook.values.arrow import to_numpy

_STRETCHES = 120
_WHOLE = ""
"""The component name that `rewards` uses for the total reward, next to its parts."""
_RECENT_SPANS = 400
_MOST_MARKED = 2_000


def marks_along(book: ChartTables, axis: str) -> tuple[Mark, ...]:
    """The checkpoints that are there, and alerts, if they know the axis."""
    marks = []
    checkpoints = book.checkpoints()
    for best, x in zip(_texts(checkpoints, "is_best"), along(checkpoints, axis), strict=True):
        if np.isfinite(x):
            marks.append(Mark(float(x), "best" if best == "True" else "checkpoint"))
    alerts = book.alerts("effective")
    for rule, x in zip(_texts(alerts, "rule"), along(alerts, axis), strict=True):
        if np.isfinite(x):
            marks.append(Mark(float(x), "alert", rule))
    return tuple(marks[:_MOST_MARKED])


def stages(book: ReadRun, keys: list[str], x: str | None, points: int = _STRETCHES) -> Stack:
    """Seconds of each stage without its nested stages, by intervals of the axis."""
    from rollbook.book.questions import Files, Stages, chosen_stages, over

    title = f"{book.project}/{book.name}: time per stage"
    if points < 1:
        raise BadInput(f"points={points}: ask for at least 1")
    page = chosen_stages(Stages(x=x, stretches=points), Files(book))
    rows = page.table.to_pylist()
    spent = over(rows)
    if not spent.x:
        return Stack(title, page.x, "seconds", np.zeros(0), (), np.zeros((0, 0)))
    shares = tuple(f"{row['name']} ({row['own']:.3g} s, {100 * row['share']:.0f} %)" for row in rows)
    own = np.array([spent.own[row["name"]] for row in rows])
    calls = sum(row["calls"] for row in rows)
    lost = calls - sum(part["calls"] for row in rows for part in row["strip"])
    remarks = (f"Not drawn, because they do not know {page.x}: {lost} of {calls:,} calls.",) if lost else ()
    what = f"seconds in each of {len(spent.x)} stretches"
    return Stack(title, page.x, what, np.array(spent.x), shares, own, None, remarks)


def timeline(
    book: ChartTables, keys: list[str], x: str | None, since: float | None = None, until: float | None = None
) -> Spans:
    """Stages in sequence, in seconds since the first: all of them, or the newest that remain legible."""
    table = book.timings()
    ends, seconds, names = moments(table), column(table, "seconds"), _texts(table, "name")
    starts = ends - seconds
    title = f"{book.project}/{book.name}: timeline"
    if not len(starts) or not np.isfinite(starts).any():
        return Spans(title, (), np.zeros(0), np.zeros(0))
    first = float(np.nanmin(starts))
    starts, ends = starts - first, ends - first
    if since is None and until is None and len(starts) > _RECENT_SPANS:
        since = float(np.sort(starts)[-_RECENT_SPANS])
    inside = (ends > (-np.inf if since is None else since)) & (starts < (np.inf if until is None else until))
    chosen = np.flatnonzero(inside)
    left_out = len(starts) - len(chosen)
    remarks = (f"{left_out:,} of {len(starts):,} calls lie outside of what is shown.",) if left_out else ()
    chosen = chosen[np.argsort(starts[chosen], kind="stable")]
    order = sorted({names[n] for n in chosen.tolist()})
    chosen = chosen[np.argsort([order.index(names[n]) for n in chosen.tolist()], kind="stable")]
    return Spans(title, tuple(names[n] for n in chosen.tolist()), starts[chosen], seconds[chosen], (), remarks)


def histograms(book: ChartTables, keys: list[str], x: str | None) -> Cells:
    """One key's distributions along the axis."""
    table = book.histograms(bins=64)
    known = list(dict.fromkeys(_texts(table, "key")))
    key = keys[0] if keys else (known[0] if len(known) == 1 else "")
    if key not in known:
        if not known:
            return Cells(
                f"{book.project}/{book.name}: histograms", "", *(np.zeros(0), (), ()), np.zeros(0), np.zeros(0)
            )
        asked = BadInput if not key else UnknownKey
        raise asked(f"plot(chart='histograms', key={key!r}): say which distribution.", did_you_mean(key, known))
    rows = [n for n, name in enumerate(_texts(table, "key")) if name == key]
    mine = table.take(rows)
    axis = _axis_of(book, mine, x)
    edges = [np.asarray(cell if cell is not None else [], dtype=np.float64) for cell in mine["edges"].to_pylist()]
    counts = [np.asarray(cell if cell is not None else [], dtype=np.float64) for cell in mine["counts"].to_pylist()]
    whole = [len(e) == len(c) + 1 and len(c) > 0 for e, c in zip(edges, counts, strict=True)]
    counts = [c if good else np.zeros(0) for c, good in zip(counts, whole, strict=True)]
    return Cells(
        f"{book.project}/{book.name}: {key}",
        axis,
        along(mine, axis),
        tuple(edges),
        tuple(counts),
        column(mine, "low"),
        column(mine, "high"),
    )


def episodes(book: ChartTables, keys: list[str], x: str | None) -> Dots:
    """The return (or another column) of every episode, by how it ended and by scope."""
    table = book.episodes()
    up = keys[0] if keys else "return"
    if up not in table.column_names and table.num_rows:
        raise UnknownKey(f"{book.path}: episodes have no column {up!r}.", did_you_mean(up, table.column_names))
    axis = _axis_of(book, table, x)
    scopes = _texts(table, "scope")
    several = len(set(scopes)) > 1
    words = []
    for scope, ended, cut in zip(scopes, _texts(table, "terminated"), _texts(table, "truncated"), strict=True):
        how = "terminated" if ended == "True" else "truncated" if cut == "True" else "not played to its end"
        words.append(f"{scope or 'run'}: {how}" if several else how)
    kinds = tuple(sorted(set(words)))
    number = {word: n for n, word in enumerate(kinds)}
    kind = np.array([number[word] for word in words], dtype=np.int64)
    title = f"{book.project}/{book.name}: {up} of every episode"
    return Dots(title, axis, up, along(table, axis), column(table, up), kind, kinds, marks_along(book, axis))


def novelty(book: ReadRun, keys: list[str], x: str | None, points: int = 60) -> Panel:
    """The share of new items, by intervals of the axis and cumulatively."""
    from rollbook.book.questions import Files, Novelty, counted_new

    title = f"{book.project}/{book.name}: share of samples never seen before"
    page = counted_new(Novelty(x=x, points=points), Files(book))
    if not page.table.num_rows:
        return Panel(title, page.x, ())
    middle, rows, new = (column(page.table, name) for name in (page.x, "rows", "new"))
    lines = (
        Line(f"of the items of each stretch ({rows.min():.0f} to {rows.max():.0f} items)", middle, new / rows),
        Line(
            f"of all items until there ({rows.sum():,.0f}, {new.sum():,.0f} different)",
            middle,
            new.cumsum() / rows.cumsum(),
        ),
    )
    return Panel(title, page.x, lines)


def rewards(
    book: ChartTables, keys: list[str], x: str | None, points: int = _STRETCHES, stage: str | None = None
) -> Stack:
    """The mean over episodes of each component's sum, by intervals of the axis."""
    table = book.table("rewards")
    title = f"{book.project}/{book.name}: reward components"
    stages = list(dict.fromkeys(_texts(table, "stage")))
    if stage is None:
        stage = "final" if "final" in stages or not stages else stages[-1]
    elif stage not in stages:
        raise UnknownKey(f"plot(chart='rewards', stage={stage!r}): no such stage.", did_you_mean(stage, stages))
    rows = [n for n, name in enumerate(_texts(table, "stage")) if name == stage]
    mine = table.take(rows) if rows else table.slice(0, 0)
    axis = _axis_of(book, mine, x)
    positions, sums = along(mine, axis), column(mine, "sum")
    components, ids = _texts(mine, "component"), _texts(mine, "episode_id")
    known = np.isfinite(positions)
    if not known.any():
        return Stack(title, axis, "", np.zeros(0), (), np.zeros((0, 0)))
    names = [name for name in dict.fromkeys(components) if name != _WHOLE] or [_WHOLE]
    middle, stretch_known = _stretches(positions[known], points)
    stretch = np.full(len(positions), -1)
    stretch[known] = stretch_known
    played = np.zeros(len(middle))
    for index in {identity: int(n) for identity, n in zip(ids, stretch, strict=True)}.values():
        played[index] += index >= 0
    used = np.flatnonzero(played)
    parts = np.stack([_sums(sums, stretch, [c == name for c in components], len(middle)) for name in names])
    total = _sums(sums, stretch, [c == _WHOLE for c in components], len(middle)) if _WHOLE in components else None
    remarks = (f"{int(played.sum()):,} episodes, stage {stage!r}.",)
    return Stack(
        f"{title} ({stage})",
        axis,
        "mean per episode",
        middle[used],
        tuple(name or "reward" for name in names),
        parts[:, used] / played[used],
        None if total is None else total[used] / played[used],
        remarks,
    )


def _sums(values: Floats, stretch: NDArray, mine: Sequence[bool], n: int) -> Floats:
    chosen = np.asarray(mine) & (stretch >= 0)
    return np.asarray(np.bincount(stretch[chosen], values[chosen], minlength=n), dtype=np.float64)


def _stretches(positions: Floats, points: int) -> tuple[Floats, NDArray]:
    """(the middle of each interval, the interval of each row): at most `points` equal intervals of the axis."""
    if points < 1:
        raise BadInput(f"points={points}: ask for at least 1")
    low, high = float(positions.min()), float(positions.max())
    n = min(points, len(np.unique(positions)))
    width = (high - low) / n or 1.0
    stretch = np.clip(((positions - low) / width).astype(np.int64), 0, n - 1)
    return np.asarray(low + (np.arange(n) + 0.5) * width, dtype=np.float64), stretch


def _axis_of(book: ChartTables, table: pa.Table, x: str | None) -> str:
    """The requested axis, or the default axis of these rows."""
    if x is not None:
        if x != "time" and x not in table.column_names and table.num_rows:
            raise UnknownKey(f"x={x!r}: these rows have no readings of it.", did_you_mean(x, [*book.clocks, "time"]))
        return x
    there = [name for name in book.clocks if name in table.column_names]
    known = [name for name in there if table[name].null_count < table.num_rows]
    return default_axis(own_axis(book.info.x, book.info.total), known) if known else "time"


def along(table: pa.Table, axis: str) -> Floats:
    """The positions of a table's rows on an axis ("time": unix seconds); NaN if a row does not know it."""
    return moments(table) if axis == "time" else column(table, axis)


def moments(table: pa.Table) -> Floats:
    """The times of rows in unix seconds."""
    times = np.asarray(to_numpy(table["time"])[0])
    if times.dtype.kind == "M":
        return times.astype("datetime64[ns]").astype(np.int64) / 1e9
    unit = str(table.schema.field("time").type)
    return times.astype(np.float64) / (1e9 if "ns" in unit else 1e6 if "us" in unit else 1e3 if "ms" in unit else 1.0)


def column(table: pa.Table, name: str) -> Floats:
    """Numbers of a column, NaN if a row has none; all NaN if there is no such column."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    cells = table[name].to_pylist()
    return np.array([float(c) if type(c) in (int, float) else np.nan for c in cells], dtype=np.float64)


def _texts(table: pa.Table, name: str) -> list[str]:
    """The texts of a column, "" if a row has none."""
    if name not in table.column_names:
        return [""] * table.num_rows
    return list(_words(table[name].to_pylist()))


def _words(cells: Sequence[object]) -> Iterator[str]:
    for cell in cells:
        yield "" if cell is None else str(cell)
