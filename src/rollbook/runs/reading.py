"""Keys of runs along an axis, each run for itself: the question, and its answer from a source of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from rollbook.book import ROWS_A_POINT, Book, Series
from rollbook.book.questions import check_range
from rollbook.compare.facts import Fact
from rollbook.errors import BadInput, RollbookError, UnknownKey
from rollbook.runs.comparing import called
from rollbook.runs.questions import SeriesQuestion
from rollbook.runs.results import batch_of, began_at, for_each_run, unknown_key
from rollbook.runs.source import Files, Row
from rollbook.system.texts import amount


class SeriesSource(Protocol):
    """Some runs, and their series; see `Source`."""

    @property
    def rows(self) -> Sequence[Row]:
        """See `Source.rows`."""

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """See `Source.keys`."""

    def series(self, ask: SeriesQuestion) -> Mapping[str, Read]:
        """The keys of the question in every run, each along its own axis if none is named, by path."""


class SeriesOfFiles(Files):
    """The files of the runs; see `SeriesSource`."""

    def series(self, ask: SeriesQuestion) -> dict[str, Read]:
        """See `SeriesSource.series`."""
        keys = keys_of(ask)

        def one_run(row: Row) -> Read:
            try:
                return Read(series_of_run(Book(str(row["path"])), keys, ask, began_at(row)))
            except (RollbookError, OSError) as err:
                return Read({}, err)

        return {str(row["path"]): one for row, one in zip(self.rows, for_each_run(self.rows, one_run), strict=True)}


class Read(NamedTuple):
    """What was read of a run.

    Attributes:
      series: by key, as it was asked for; without those that the run does not have.
      error: why nothing could be read.
    """

    series: Mapping[str, Series]
    error: Exception | None = None


class SeriesOfRuns(Mapping[str, Mapping[str, Series]]):
    """{path of the run: {key: its series}}, in the order of the runs.

    Attributes:
      keys_asked: the keys.
      facts: what readers should know besides; `sentences` has it in words.
    """

    def __init__(self, rows: Sequence[Row], keys: Sequence[str], read: Mapping[str, Read], facts: Sequence[Fact]):
        self._rows, self.keys_asked, self.facts = list(rows), tuple(keys), tuple(facts)
        self._series = {str(row["path"]): dict(read[str(row["path"])].series) for row in rows}

    def __getitem__(self, path: str) -> Mapping[str, Series]:
        return self._series[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        return f"<SeriesOfRuns of {amount(len(self), 'run')}: {', '.join(self.keys_asked):.80}>"

    def sentences(self) -> list[str]:
        """What readers should know besides the numbers."""
        return [fact.sentence for fact in self.facts]

    def each(self) -> Iterator[tuple[dict[str, Any], Series]]:
        """Each series, key by key, with what it is: run (id), project, name, seed, key, axis, points, rows,
        non_finite."""
        for key in self.keys_asked:
            for row in self._rows:
                one = self._series[str(row["path"])].get(key)
                if one is not None:
                    yield _head(row, key, one), one

    def table(self, most: int | None = None) -> list[dict[str, Any]]:
        """A row per point: run (id), key, axis, x, mean, min, max, rows (finite ones); at most `most`."""
        return list(islice(self._points(), most))

    def _points(self) -> Iterator[dict[str, Any]]:
        return (
            {"run": head["run"], "key": head["key"], "axis": head["axis"], **point}
            for head, one in self.each()
            for point in points_of(one)
        )


def _head(row: Row, key: str, one: Series) -> dict[str, Any]:
    return {
        "run": str(row["id"]),
        "project": row["project"],
        "name": row["name"],
        "seed": row.get("seed"),
        "key": key,
        "axis": one.axis,
        "points": len(one),
        "rows": int(one.count.sum()) + one.non_finite,
        "non_finite": one.non_finite,
    }


def points_of(one: Series) -> Iterator[dict[str, Any]]:
    """The points of a series: x, mean, min, max, and how many finite rows each is made of."""
    columns = (one.x, one.mean, one.min, one.max, one.count)
    for x, mean, low, high, count in zip(*(column.tolist() for column in columns), strict=True):
        yield {"x": x, "mean": mean, "min": low, "max": high, "rows": count}


def is_raw(one: Series) -> bool:
    """Whether each point is one row."""
    return bool(np.all(one.count + (one.bad if one.bad is not None else 0) <= 1))


def read(ask: SeriesQuestion, source: SeriesSource) -> SeriesOfRuns:
    """The answer; see `RunSet.series` for what it raises."""
    check(ask)
    keys = keys_of(ask)
    found = source.series(ask)
    errors = [one.error for one in found.values() if one.error is not None]
    if errors and len(errors) == len(found):
        raise errors[0]
    facts = [fact for key in keys for fact in facts_of(ask, key, source.rows, found)]
    for key in keys:
        check_key(key, source, found)
        check_axis(ask, key, found)
    return SeriesOfRuns(source.rows, keys, found, [*facts, *unread(source.rows, found)])


def unread(rows: Sequence[Row], found: Mapping[str, Read]) -> list[Fact]:
    """A fact about the runs that cannot be read, if there are any."""
    those = [(row, err) for row in rows if (err := found[str(row["path"])].error) is not None]
    return [Fact("not read", "", tuple(called([row for row, _ in those])), {"why": str(those[0][1])})] if those else []


def keys_of(ask: SeriesQuestion) -> list[str]:
    """The keys that are asked for, each once."""
    return list(dict.fromkeys([ask.keys] if isinstance(ask.keys, str) else ask.keys))


def check(ask: SeriesQuestion) -> None:
    """Raises: BadInput: points below 1, start or stop is not finite, or stop is before start."""
    if ask.points is not None and ask.points < 1:
        raise BadInput(f"points={ask.points}: none.", "Ask for at least 1, or for None to get every row")
    check_range(ask.start, ask.stop)


def check_key(key: str, source: SeriesSource, found: Mapping[str, Read]) -> None:
    """Raise if none of the runs has a key. Raises: UnknownKey."""
    if source.rows and not any(key in one.series or one.error is not None for one in found.values()):
        raise unknown_key(
            key, source.rows, dict.fromkeys(name for names, _ in source.keys().values() for name in names)
        )


def check_axis(ask: SeriesQuestion, key: str, found: Mapping[str, Read]) -> None:
    """Raise if no row of a key has a reading of the axis. Raises: UnknownKey."""
    there = [one.series[key] for one in found.values() if key in one.series]
    if ask.x is not None and ask.start is None and ask.stop is None and there and not any(map(len, there)):
        raise UnknownKey(no_reading(key, ask.x).sentence)


def no_reading(key: str, x: str, runs: Sequence[Row] = ()) -> Fact:
    """That no row of a key, or of a key of some runs, has a reading of an axis."""
    return Fact("no reading", "", tuple(called(runs)), {"key": key, "x": x})


def facts_of(ask: SeriesQuestion, key: str, rows: Sequence[Row], found: Mapping[str, Read]) -> list[Fact]:
    """What readers should know about one key of the runs."""
    there = [(row, found[str(row["path"])]) for row in rows if found[str(row["path"])].error is None]
    lacking = [row for row, one in there if key not in one.series]
    facts = []
    if lacking and len(lacking) < len(there):
        facts.append(Fact("no row of key", "", tuple(called(lacking)), {"key": key, "of": len(rows)}))
    bad = [(row, one.series[key].non_finite) for row, one in there if key in one.series and one.series[key].non_finite]
    if bad:
        values = {"key": key, "rows": sum(n for _, n in bad), "of": len(rows)}
        facts.append(Fact("rows of key not finite", "", tuple(called([row for row, _ in bad])), values))
    if ask.x is not None and ask.start is None and ask.stop is None:
        empty = [row for row, one in there if key in one.series and not len(one.series[key])]
        if empty:
            facts.append(no_reading(key, ask.x, empty))
    return facts


def series_of_run(book: Book, keys: Sequence[str], ask: SeriesQuestion, began: float) -> dict[str, Series]:
    """Keys of a run as the question wants them, in one read.

    Args:
      began: when the run began, in unix seconds.
    """
    raw = 0 if ask.points is None else ask.points * ROWS_A_POINT
    attempts = ask.attempts if isinstance(ask.attempts, str) else list(ask.attempts)
    return batch_of(
        book, keys, began, x=ask.x, points=ask.points, start=ask.start, stop=ask.stop, attempts=attempts, raw=raw
    )
