"""Charts of one run: the data of each chart, and the card of a book in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollbook.book.series import Series
from rollbook.book.table_charts import episodes, histograms, marks_along, novelty, rewards, stages, timeline
from rollbook.book.table_protocols import ChartTables
from rollbook.errors import BadInput, UnknownKey, UnknownOption, did_you_mean
from rollbook.plots import Line, Panel, Picture, Trace, draw
from rollbook.plots._registry import chart_named, options_of
from rollbook.plots.cards import card, grid, sentences, spark
from rollbook.system.files import pasted

_POINTS = 1000


def picture_of(
    book: ChartTables, keys: Sequence[str], *, x: str | None, chart: str, theme: str, options: Mapping[str, Any]
) -> Picture:
    """See `Book.plot`."""
    chart_named(chart, "run")
    make, own = _MAKERS[chart]
    known = options_of(chart) | {"size", *own}
    for name in options:
        if name not in known:
            raise UnknownOption(f"chart={chart!r} takes no option {name}=.", did_you_mean(name, sorted(known)))
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
    marked = marks_along(book, axis) if marks else ()
    return Panel(title, axis, lines, _ghosts(book, keys, axis), marked, _remarks(same))


def _small_multiples(
    book: ChartTables, keys: list[str], x: str | None, points: int = _POINTS, marks: bool = True
) -> list[Panel]:
    """One panel per key."""
    return [replace(_curves(book, [key], x, points, marks), title=key) for key in keys]


def _series(book: ChartTables, keys: list[str], x: str | None, points: int) -> dict[str, Series]:
    if not keys:
        raise BadInput("plot(): say which key, key=… or --key.", did_you_mean("", book.keys()))
    series = book.batch(keys, x=x, points=points)
    for key in keys:
        if key not in series:
            book.series(key, x=x, points=1)  # raises and lists the available names
            raise UnknownKey(f"{book.path} has no key {key!r}.", did_you_mean(key, book.keys()))
    return series


def _line(key: str, series: Series) -> Line:
    reduced = bool((series.count > 1).any())
    words = f"{key}: mean of the rows behind each point, faint: their lowest and highest" if reduced else key
    bad = _bad(series)
    return Line(
        words,
        series.x,
        np.where(np.isfinite(series.mean), series.mean, np.nan),
        least=series.min if reduced else None,
        most=series.max if reduced else None,
        raw=bad,
    )


def _bad(series: Series) -> Trace | None:
    """Rows that are not finite: their values if known, else NaN."""
    where = ~np.isfinite(series.mean) if series.bad is None else np.asarray(series.bad) > 0
    if not where.any():
        return None
    values = np.where(np.isfinite(series.mean), np.nan, series.mean)
    return Trace(series.x[where], values[where])


def _remarks(series: Mapping[str, Series]) -> tuple[str, ...]:
    return tuple(f"{key}: {_rows(each.non_finite)} NaN or infinite." for key, each in series.items() if each.non_finite)


def _rows(n: int) -> str:
    return "1 row is" if n == 1 else f"{n:,} rows are"


def _ghosts(book: ChartTables, keys: list[str], axis: str) -> tuple[Trace, ...]:
    """Rows that restarts abandoned: rows of each attempt that are not in the effective history."""
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


_MAKERS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "curves": (_curves, ("points", "marks")),
    "small_multiples": (_small_multiples, ("points", "marks")),
    "stages": (stages, ("points",)),
    "timeline": (timeline, ("since", "until")),
    "histograms": (histograms, ()),
    "episodes": (episodes, ()),
    "novelty": (novelty, ("points",)),
    "rewards": (rewards, ("points", "stage")),
}
"""Chart -> (function that makes its data, the options of that function)."""


_CANONICAL = ("test/return", "train/return", "train/length", "update/loss/policy", "update/loss/value")
_MOST_KEYS, _CARD_POINTS, _MOST_ALERTS = 10, 200, 5


def book_card(book: ChartTables, status: str, seed: int | None) -> str:
    """Identity, alerts, and the newest keys with their last value and a sparkline."""
    canonical = book.canonical()
    keys = [key for key in _CANONICAL if key in canonical or key in book.keys()]  # noqa: SIM118 - a method, no dict
    known = {canonical.get(key, key) for key in keys}
    others = [key for key in book.keys() if key not in known and not key.startswith(("host/", "rollbook/"))]  # noqa: SIM118
    keys = [*keys, *others][:_MOST_KEYS]
    series = book.batch(keys, points=_CARD_POINTS) if keys else {}
    rows = [
        {
            "key": key,
            "last": float(each.mean[-1]) if len(each) else None,
            "rows": int(each.count.sum()) + each.non_finite,
        }
        for key, each in series.items()
    ]
    drawn = [spark([(each.x, each.mean)], [(each.x, each.min, each.max)]) for each in series.values()]
    about = f"{status}, id {book.id}" + ("" if seed is None else f", seed {seed}")
    words = sentences(_sentences_of(book))
    return card(f"{book.project}/{book.name}", f"{about}, {book.path}", words, grid(rows, sparks={"": drawn}))


def _sentences_of(book: ChartTables) -> list[str]:
    """Each alert once, failures first, then the newest; notes are only in `alerts()`."""
    rows = [row for row in book.alerts().to_pylist() if row["level"] in ("warn", "fail")]
    each = {(row["level"], row["rule"], row["key"]): row for row in reversed(rows)}  # the first of each
    found = sorted(each.values(), key=lambda row: (row["level"] == "fail", row["time"]), reverse=True)
    more = [f"and {len(found) - _MOST_ALERTS} more: rollbook alerts {pasted(book.id)}"] * (len(found) > _MOST_ALERTS)
    return [f"{row['level']} {row['rule']}: {row['message']}" for row in found[:_MOST_ALERTS]] + more
