"""Results of runs: metrics as one number each, as series, or as one long table."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from rollbook.book import Book, Series
from rollbook.errors import BadInput, UnknownKey, did_you_mean
from rollbook.runs.fields import check_field, column_of, field_names, values_at
from rollbook.schema.aliases import lower_is_better
from rollbook.system.daemon_threads import DaemonThreads
from rollbook.system.texts import amount
from rollbook.system.tuning import TUNING
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import constant, floats, join_tables

Row: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
Score: TypeAlias = Callable[[NDArray, NDArray], float]
"""(x, values), both [rows] in order of x with finite values only -> one number."""

_USUAL = ("project", "name", "id", "status", "seed", "group", "attempts", "created", "ended")
_WINDOW = re.compile(r"(mean|median|max|min) of the last (\d+(?:\.\d+)?)\s*(%?)")
_STEPS = re.compile(r"steps to (-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)")
_WORDS = (
    "last",
    "first",
    "best",
    "max",
    "min",
    "mean",
    "median",
    "count",
    "mean of the last 20",
    "mean of the last 10%",
    "area",
    "steps to 475",
)


def level_of(how: object) -> str | None:
    """The level of a score that is a number of steps to it, of which fewer are better for every metric; else None."""
    steps = _STEPS.fullmatch(how.strip().lower()) if isinstance(how, str) else None
    return None if steps is None else steps.group(1)


def _score_of_function(how: Callable[..., Any], key: str) -> Score:
    """A user's function. With one required argument, such as `np.median`, it gets (values); with two, (x, values)."""
    try:
        parameters = inspect.signature(how).parameters.values()
    except (TypeError, ValueError):  # some C functions have no signature
        return lambda x, values: float(how(values))
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in taken)
    if required == 2 or (not taken and any(p.kind is p.VAR_POSITIONAL for p in parameters)):
        return lambda x, values: float(how(x, values))
    if required == 1:
        return lambda x, values: float(how(values))
    raise BadInput(
        f"{key}: a function that makes one number of it takes (values) or (x, values), both arrays; "
        f"{getattr(how, '__name__', how)!r} needs {required} arguments. "
        "Write for example lambda values: values[-5:].mean()"
    )


def score_named(how: object, key: str) -> Score:
    """The function that turns a metric's rows into one number.

    Args:
      how: a word, or a function of (values) or of (x, values) that returns a number; see `RunSet.table`.
      key: the metric; "best" is its lowest value for losses, errors, costs and durations, else its highest.
    Raises:
      BadInput: an unknown word, or a function with other arguments.
    """
    return _score_of_function(how, key) if callable(how) else _score_of_words(str(how), key)


@functools.lru_cache(256)
def _score_of_words(how: str, key: str) -> Score:
    word = how.strip().lower()
    if word == "best":
        word = "min" if lower_is_better(key) else "max"
    simple: dict[str, Score] = {
        "last": lambda x, values: float(values[-1]),
        "first": lambda x, values: float(values[0]),
        "max": lambda x, values: float(values.max()),
        "min": lambda x, values: float(values.min()),
        "mean": lambda x, values: float(values.mean()),
        "median": lambda x, values: float(np.median(values)),
        "count": lambda x, values: float(len(values)),
        "area": _area,
    }
    if word in simple:
        return simple[word]
    steps = _STEPS.fullmatch(word)
    if steps is not None:
        level, sign = float(steps.group(1)), -1.0 if lower_is_better(key) else 1.0

        def first_at_level(x: NDArray, values: NDArray) -> float:
            """The first x where the level is reached, from the first row on; NaN if never."""
            there = np.flatnonzero(sign * values >= sign * level)
            return float(x[there[0]]) if len(there) else np.nan

        return first_at_level
    window = _WINDOW.fullmatch(word)
    if window is None or float(window.group(2)) <= 0:
        raise BadInput(f"{key}: {how!r} is not a way to make one number of it.{did_you_mean(word, list(_WORDS))}")
    reduce: Any = getattr(np, window.group(1))
    amount = float(window.group(2))
    if not window.group(3):
        return lambda x, values: float(reduce(values[-max(1, int(amount)) :]))

    def over_last_part(x: NDArray, values: NDArray) -> float:
        """Over the rows in the last part of the axis, at least the last row."""
        from_here = x[-1] - (x[-1] - x[0]) * min(amount, 100.0) / 100
        return float(reduce(values[np.searchsorted(x, from_here) :]))

    return over_last_part


def _area(x: NDArray, values: NDArray) -> float:
    """The area under the piecewise linear curve, divided by the length of the axis: its mean height."""
    length = float(x[-1] - x[0])
    return float(values[-1]) if length <= 0 else float(np.diff(x) @ (values[1:] + values[:-1]) / 2 / length)


def scores_of(rows: Sequence[Row], key: str, how: object, x: str | None = None) -> list[float | None]:
    """One number per run; None if it has no finite value of the key.

    Raises:
      UnknownKey: none of the runs has it.
    """
    score = score_named(how, key)
    taken = taken_of(rows, [key], lambda series: _number(series, score), x=x)
    return [taken[str(row["path"])].get(key) for row in rows]


def _number(series: Series | None, score: Score) -> float | None:
    if series is None:
        return None
    finite = np.isfinite(series.mean)
    if not finite.any():
        return None
    number = score(series.x[finite], series.mean[finite])
    return number if np.isfinite(number) else None


def series_of(
    rows: Sequence[Row], keys: Sequence[str], *, x: str | None = None, **more: object
) -> dict[str, dict[str, Series]]:
    """See `RunSet.series`."""
    return taken_of(rows, keys, lambda series: series, x=x, **more)


def taken_of(
    rows: Sequence[Row], keys: Sequence[str], take: Callable[[Series], T], *, x: str | None = None, **more: Any
) -> dict[str, dict[str, T]]:
    """Apply `take` to each series, by path of the run and key; each series is freed at once.

    Raises:
      UnknownKey: a key that none of the runs has.
    """

    def one_run(row: Row) -> tuple[dict[str, T], list[str]]:
        book = Book(str(row["path"]))
        series = book.batch(keys, x=x, **more)
        return {key: take(each) for key, each in series.items()}, [] if len(series) == len(keys) else book.keys()

    answers = for_each_run(rows, one_run)
    taken = {str(row["path"]): answer for row, (answer, _) in zip(rows, answers, strict=True)}
    missing = [key for key in keys if rows and not any(key in answer for answer in taken.values())]
    if missing:
        raise unknown_key(missing[0], rows, dict.fromkeys(key for _, others in answers for key in others))
    return taken


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
    return UnknownKey(f"{absent} key {key!r}.{did_you_mean(key, list(known))}")


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
    arrays = []
    for name in names:
        check_field(name, rows, f"table(columns=[…, {name!r}])")
        arrays.append(column_of([_cell(value) for value in values_at(rows, name)])[0])
    wanted = _wanted(metrics)
    if wanted:
        series = series_of(rows, list(wanted), x=x)
        for key, ways in wanted.items():
            for how in ways:
                score = score_named(how, key)
                names.append(key if len(ways) == 1 else f"{key} {getattr(how, '__name__', how)}")
                arrays.append(floats([_number(series[str(row["path"])].get(key), score) for row in rows]))
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
