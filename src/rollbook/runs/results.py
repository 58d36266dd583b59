"""Results of runs: metrics as one number each, as series, or as one long table."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from rollbook.book import Book, Series
from rollbook.errors import UnknownKey, did_you_mean
from rollbook.runs.fields import column_of, field_names, field_of, values_at
from rollbook.runs.measures import is_last, measure_of, measured, score_named
from rollbook.system.daemon_threads import DaemonThreads
from rollbook.system.texts import amount
from rollbook.system.tuning import TUNING
from rollbook.values.arrow import constant, floats, join_tables

Row: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
_USUAL = ("project", "name", "id", "status", "seed", "group", "attempts", "created", "ended")


def measures_of(
    rows: Sequence[Row], wanted: Sequence[tuple[str, object]], x: str | None = None
) -> list[list[float | None]]:
    """For each (key, way) one number per run; see `measures.measured`. Each run is read once for all.

    Without `x` the last row is the newest one, as `Book.latest` has it; along an axis it is the last one there.

    Raises:
      UnknownKey: a key that none of the runs has. BadInput: an unknown way.
    """
    for key, how in wanted:
        score_named(how, key)
    newest = {key for key, how in wanted if x is None and is_last(how)}
    along = list(dict.fromkeys(key for key, how in wanted if x is not None or not is_last(how)))

    def one_run(row: Row) -> tuple[list[float | None], set[str], list[str]]:
        book = Book(str(row["path"]))
        series = book.batch(along, x=x) if along else {}
        latest = latest_of(book, newest) if newest else {}
        found: list[float | None] = []
        for key, how in wanted:
            if key in newest and is_last(how):
                found.append(latest.get(key))
            else:
                one = series.get(key)
                found.append(None if one is None else measured(one.x, one.mean, how, key))
        there = {*series, *latest}
        return found, there, [] if len(there) == len({*newest, *along}) else book.keys()

    answers = for_each_run(rows, one_run)
    have = {key for _, there, _ in answers for key in there}
    missing = [key for key, _ in wanted if rows and key not in have]
    if missing:
        raise unknown_key(missing[0], rows, dict.fromkeys(key for _, _, others in answers for key in others))
    return [[found[index] for found, _, _ in answers] for index in range(len(wanted))]


def latest_of(book: Book, keys: Collection[str]) -> dict[str, float | None]:
    """The newest value of keys, NaN included; canonical names are understood. None: it is no number."""
    latest = book.latest()
    canonical = book.canonical() if any(key not in latest for key in keys) else {}
    found = {key: latest[name][0] for key in keys if (name := key if key in latest else canonical.get(key)) in latest}
    return {key: float(value) if isinstance(value, (int, float)) else None for key, value in found.items()}


def taken_of(
    rows: Sequence[Row],
    keys: Sequence[str],
    take: Callable[[Series], T],
    *,
    x: str | None = None,
    opened: Callable[[Row], Book] | None = None,
    **more: Any,
) -> dict[str, dict[str, T]]:
    """Apply `take` to each series, by path of the run and key; each series is freed at once.

    Args:
      x: as of `Book.series`; also "relative", seconds since the run began.
      opened: returns the book of a run; None: each is opened for this alone.
    Raises:
      UnknownKey: a key that none of the runs has.
    """

    def one_run(row: Row) -> tuple[dict[str, T], list[str]]:
        book = Book(str(row["path"])) if opened is None else opened(row)
        series = batch_of(book, keys, began_at(row), x=x, **more)
        return {key: take(each) for key, each in series.items()}, [] if len(series) == len(keys) else book.keys()

    answers = for_each_run(rows, one_run)
    taken = {str(row["path"]): answer for row, (answer, _) in zip(rows, answers, strict=True)}
    missing = [key for key in keys if rows and not any(key in answer for answer in taken.values())]
    if missing:
        raise unknown_key(missing[0], rows, dict.fromkeys(key for _, others in answers for key in others))
    return taken


def batch_of(
    book: Book,
    keys: Sequence[str],
    began: float,
    *,
    x: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    **more: Any,
) -> dict[str, Series]:
    """`Book.batch`, also along x="relative": seconds since the run began, at `began` (unix seconds)."""
    if x != RELATIVE:
        return book.batch(keys, x=x, start=start, stop=stop, **more)
    start, stop = (None if end is None else end + began for end in (start, stop))
    read = book.batch(keys, x="time", start=start, stop=stop, **more)
    return {
        key: Series(s.x - began, s.mean, s.min, s.max, s.count, RELATIVE, s.non_finite, s.bad)
        for key, s in read.items()
    }


RELATIVE = "relative"
"""The axis of seconds since a run began."""


def began_at(row: Row) -> float:
    """When a run began, in unix seconds: the zero of its relative time."""
    created = row.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def for_each_run(rows: Sequence[Row], work: Callable[[Row], T]) -> list[T]:
    """Call `work` for each run, in order; several runs are read in parallel, since decoding needs no lock.

    Raises:
      What `work` raises; runs that were not started by then are not read.
    """
    if len(rows) < TUNING.threaded_runs:
        return [work(row) for row in rows]
    with DaemonThreads(min(TUNING.most_threads, os.cpu_count() or 1), "rollbook-runs") as pool:
        answers = [pool.submit(work, row) for row in rows]
        try:
            return [answer.result() for answer in answers]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def unknown_key(key: str, rows: Sequence[Row], known: Mapping[str, object]) -> UnknownKey:
    """The error about a key that none of the runs has; `known`: keys that they have."""
    absent = "the run has no" if len(rows) == 1 else f"none of {amount(len(rows), 'run')} has a"
    return UnknownKey(f"{absent} key {key!r}.", did_you_mean(key, list(known)))


def metrics_of(rows: Sequence[Row], keys: Sequence[str] | None, *, x: str | None = None, **more: Any) -> pa.Table:
    """See `RunSet.metrics`."""
    tables, known = [], {}
    for row in rows:
        book = Book(str(row["path"]))
        there = set(book.keys()) | set(book.canonical())
        known.update(dict.fromkeys(there))
        wanted = None if keys is None else [key for key in keys if key in there]
        if wanted == []:
            continue
        table = book.metrics(wanted, x=x, **more)
        tables.append(table.add_column(0, "run", constant(str(row["id"]), table.num_rows)))
    missing = [key for key in keys or () if key not in known]
    if missing and rows:
        raise unknown_key(missing[0], rows, known)
    return join_tables(tables) if tables else pa.table({"run": pa.nulls(0, pa.string())})


def run_table(
    rows: Sequence[Row],
    columns: Sequence[str] | None,
    metrics: Mapping[str, object] | Sequence[str] | None,
    *,
    x: str | None,
) -> pa.Table:
    """See `RunSet.table`."""
    names = list(columns) if columns is not None else _usual_columns(rows)
    measures: dict[str, tuple[str, object]] = {name: one for name in names if (one := measure_of(name)) is not None}
    fields = {}
    for name in names:
        if name not in measures:
            field = field_of(name, rows, f"table(columns=[…, {name!r}])")
            fields[name] = column_of([_cell(value) for value in values_at(rows, field)])[0]
    for key, ways in _wanted(metrics).items():
        for how in ways:
            name = key if len(ways) == 1 else f"{key} {getattr(how, '__name__', how)}"
            names.append(name)
            measures[name] = (key, how)
    found = measures_of(rows, list(measures.values()), x) if measures else []
    numbers = dict(zip(measures, map(floats, found), strict=True))
    arrays = [numbers[name] if name in numbers else fields[name] for name in names]
    return pa.Table.from_arrays(arrays, names=names) if arrays else pa.table({})


def _usual_columns(rows: Sequence[Row]) -> list[str]:
    named = [name for name in field_names(rows) if name.startswith(("config.", "summary."))]
    return [*_USUAL, *named]


def _cell(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _wanted(metrics: Mapping[str, object] | Sequence[str] | None) -> dict[str, list[object]]:
    if metrics is None:
        return {}
    if isinstance(metrics, str):
        return {metrics: ["last"]}
    if not isinstance(metrics, Mapping):
        return {str(key): ["last"] for key in metrics}
    return {str(key): list(how) if isinstance(how, (list, tuple)) else [how] for key, how in metrics.items()}
