"""Rows that the server keeps of runs, as a source of questions about runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TypeVar
from weakref import WeakValueDictionary

import numpy as np

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.runs.results import batch_of, unknown_key
from rollbook.runs.reward_parts import PARTS
from rollbook.runs.source import KeyRows, Row
from rollbook.server.curves.kept_rows import Rows, keep, kept, rows_in
from rollbook.server.curves.row_helpers import RowHelpers
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.rows import axis_name, contents, started
from rollbook.server.shared.state import ServerContext, Stamps
from rollbook.values.array_types import NDArray

T = TypeVar("T")


_MOST_KEYS, _MOST_AHEAD = 16, 1_000
_IN_TURN = 256
"""Requests for more unread runs take turns; one for fewer, such as the first curve of many, does not wait for them."""
_NOTHING = KeyRows("", np.zeros(0), np.zeros(0))
"""The line of a run without the key."""


def unread(context: ServerContext, rows: Sequence[RunRow], key: str, x: str | None) -> int:
    """How many runs have no rows of a key in memory, not even older ones."""
    return sum(not context.group_rows.holds((row.folder, key, x)) for row in rows)


def _missing(
    context: ServerContext, rows: Sequence[RunRow], key: str, x: str | None, stamps: Mapping[str, object]
) -> list[RunRow]:
    """The runs whose newest rows of a key are not in memory."""
    return [row for row in rows if _held(context, row.folder, key, x, stamps[row.folder]) is None]


def rows_of_runs(
    context: ServerContext,
    rows: Sequence[RunRow],
    key: str,
    x: str | None,
    stamps: Mapping[str, object],
    ahead: Sequence[str] = (),
    *,
    own_axes: bool = False,
) -> dict[str, KeyRows]:
    """run -> its rows along one axis, without the runs that have none or cannot be read.

    Args:
      own_axes: without `x`, along each run's own axis.
      x: None: the axis of the first run that has rows.
      stamps: of each run, by its folder.
      ahead: further keys that will be requested: a few runs are read once for several of them.
    """
    if not rows:
        return {}
    together = [key, *(other_key for other_key in ahead if other_key != key)][
        : max(1, min(_MOST_KEYS, _MOST_AHEAD // len(rows)))
    ]
    read: dict[str, KeyRows] = {}
    now: dict[str, KeyRows] = {}  # by folder: a thousand long runs are more than the cache keeps
    axis = x
    new = _missing(context, rows, key, x, stamps)
    if len(new) > context.limits.kept_runs:
        with context.reading_many if len(new) > _IN_TURN else nullcontext():
            new = _missing(context, rows, key, x, stamps)  # another request may have read them meanwhile
            known = kept(context.catalogue.roots, key, x, {row.folder: stamps[row.folder] for row in new})
            for folder, of_run in known.items():
                now[folder] = _remember(context, folder, key, x, stamps[folder], of_run)
            new = [row for row in new if row.folder not in known]
            now |= _read_together(context, new, together, x, stamps)
    for row in context.progress.over(rows):
        rows_of_run = now.get(row.folder) or _rows_of(context, row, together, x, stamps[row.folder])
        if len(rows_of_run.x) and axis is None:
            axis = rows_of_run.axis
        if (
            len(rows_of_run.x) and x is None and rows_of_run.axis != axis and not own_axes
        ):  # its own axis is another one
            rows_of_run = _rows_of(context, row, [key], axis, stamps[row.folder])
        if len(rows_of_run.x):
            read[row.key] = rows_of_run
    if len(new) > context.limits.kept_runs:
        done = {
            row.folder: Rows(*read[row.key], context.answers.get((PARTS, row.folder), stamps[row.folder]))
            for row in rows
            if row.key in read and not row.is_live
        }
        keep(context.catalogue.roots, key, x, stamps, done)
    return read


def _read_together(
    context: ServerContext, new: Sequence[RunRow], keys: Sequence[str], x: str | None, stamps: Mapping[str, object]
) -> dict[str, KeyRows]:
    """folder -> the rows of the first key, of many runs. Rows of the other keys are kept in memory, too. Very many
    runs are read in several processes."""
    of_folder = {row.folder: row for row in new}
    read: dict[str, KeyRows] = {}
    helpers = RowHelpers(list(of_folder), keys, "time" if x == "relative" else x, context.limits.helpers)
    try:
        for folder in helpers.mine:
            read[folder] = _rows_of(context, of_folder[folder], keys, x, stamps[folder])
        for (folder, key), rows in helpers.answers().items():
            taken = _take(context, of_folder[folder], key, x, stamps[folder], rows)
            if key == keys[0]:
                read[folder] = taken
    finally:
        helpers.close()
    return read


def _take(context: ServerContext, row: RunRow, key: str, x: str | None, stamp: object, rows: Rows) -> KeyRows:
    """Remember the rows of a run as it was read."""
    positions = rows.x - started(row) if x == "relative" and len(rows.x) else rows.x
    axis = axis_name(x, rows.axis) if rows.axis else ""
    return _remember(context, row.folder, key, x, stamp, rows._replace(axis=axis, x=positions))


_axes: WeakValueDictionary[tuple[object, ...], NDArray] = WeakValueDictionary()
"""Axes in memory: seeds that log at the same steps share one."""


def _shared(x: NDArray) -> tuple[NDArray, int]:
    """An axis, or an equal one that is in memory; and how many bytes it adds."""
    name = (x.dtype.str, len(x), x[0].item(), x[-1].item()) if len(x) else ()
    known = _axes.get(name)
    if known is not None and np.array_equal(known, x):
        return known, 0
    _axes[name] = x
    return x, x.nbytes


def _remember(context: ServerContext, folder: str, key: str, x: str | None, stamp: object, rows: Rows) -> KeyRows:
    """Keep rows by the name of their axis, by which the page asks once it knows it; and which one a run's own is. That
    is the older of the two, so that it goes no later than the rows."""
    axis, size = _shared(rows.x)
    kept_rows = KeyRows(rows.axis, axis, rows.y, rows.is_whole)
    if x is None:
        x = rows.axis
        context.group_rows.put((folder, key, None), stamp, x, 200)
    context.group_rows.put((folder, key, x), stamp, kept_rows, size + rows.y.nbytes + 300)
    if rows.parts is not None:
        context.answers.put((PARTS, folder), stamp, rows.parts, 500)
    return kept_rows


def _held(context: ServerContext, folder: str, key: str, x: str | None, stamp: object) -> KeyRows | None:
    """The rows of a run if its newest ones are in memory."""
    if x is None:
        x = context.group_rows.get((folder, key, None), stamp)
    held: KeyRows | None = None if x is None else context.group_rows.get((folder, key, x), stamp)
    return held


def _rows_of(context: ServerContext, row: RunRow, keys: Sequence[str], x: str | None, stamp: object) -> KeyRows:
    """The rows of the first key; those of the other keys are remembered, too."""
    rows_of_run = _held(context, row.folder, keys[0], x, stamp)
    if rows_of_run is not None:
        return rows_of_run
    try:
        with context.book(row) as book:
            read = rows_in(book, keys, "time" if x == "relative" else x)
    except (RollbookError, OSError):
        return _NOTHING
    of_key = {key: _take(context, row, key, x, stamp, rows) for key, rows in read.items()}
    return of_key[keys[0]]


class Memory:
    """Some runs of a server; see `runs.source.Source`. Long runs, of which reduced rows are kept, are read whole
    for a score, not for a curve.

    Args:
      ahead: keys that will be asked for next: a few runs are read once for several of them.
      stamps: of the runs, where some are known already.
    Attributes:
      context: of the server; of_table: the runs, as the table of runs has them; stamps: of these, by folder.
    """

    def __init__(
        self, context: ServerContext, rows: Sequence[RunRow], ahead: Sequence[str] = (), stamps: Stamps | None = None
    ) -> None:
        self.context, self.of_table, self._ahead = context, list(rows), ahead
        self.stamps = Stamps() if stamps is None else stamps
        self.rows: list[Row] = [{**row.about, "path": row.folder} for row in self.of_table]
        roots = context.catalogue.roots
        self.root = roots[0] if len(roots) == 1 else ""
        self.key_of = {row.folder: row.key for row in self.of_table}

    def each(self, key: str, x: str | None, take: Callable[[KeyRows], T]) -> dict[str, T]:
        """See `Source.each`."""
        held = rows_of_runs(self.context, self.of_table, key, x, self.stamps, own_axes=True)
        taken: dict[str, T] = {}
        for row in self.of_table:
            rows = held.get(row.key)
            if rows is None:
                continue
            if rows.is_whole:
                taken[row.folder] = take(rows)
            else:
                taken[row.folder] = self._whole(row, key, x, take, self.stamps[row.folder])
        if not taken:
            self._check(key)
        return taken

    def key_rows(self, key: str, x: str | None) -> dict[str, KeyRows]:
        """See `Source.key_rows`."""
        held = rows_of_runs(self.context, self.of_table, key, x, self.stamps, self._ahead)
        if not held:
            self._check(key)
        return {row.folder: held[row.key] for row in self.of_table if row.key in held}

    def _check(self, key: str) -> None:
        """Raise if none of the runs has a key. Raises: UnknownKey."""
        known = self.keys()
        if not any(key in keys or key in canonical.values() for keys, canonical in known.values()):
            raise unknown_key(key, self.rows, dict.fromkeys(name for keys, _ in known.values() for name in keys))

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """See `Source.keys`."""
        found: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}
        for row in self.context.progress.over(self.of_table):
            with contextlib.suppress(RollbookError, OSError):  # its page shows what is wrong with it
                of_run = contents(self.context, row, self.stamps[row.folder])
                found[row.folder] = of_run.keys, of_run.canonical
        return found

    def facts(self, name: str, take: Callable[[Book], T], rows: Sequence[Row] | None = None) -> dict[str, T]:
        """See `Source.facts`; kept until a run changes."""
        wanted = None if rows is None else {str(row["path"]) for row in rows}
        made: dict[str, T] = {}
        for row in self.context.progress.over(self.of_table):
            if wanted is None or row.folder in wanted:
                with contextlib.suppress(RollbookError, OSError):
                    made[row.folder] = self.context.remembered(name, row, take, stamp=self.stamps[row.folder])
        return made

    def _whole(self, row: RunRow, key: str, x: str | None, take: Callable[[KeyRows], T], stamp: object) -> T:
        """From all rows of a long run; what was taken is kept, its rows are not."""
        name = ("taken", row.folder, key, x, take)
        known: T | None = self.context.answers.get(name, stamp)
        if known is not None:
            return known
        with self.context.book(row) as book:
            (series,) = batch_of(book, [key], started(row), x=x).values()
        made = take(KeyRows(series.axis, series.x, series.mean))
        self.context.answers.put(name, stamp, made, 1_000)
        return made
