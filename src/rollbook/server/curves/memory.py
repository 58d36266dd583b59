"""Rows that the server keeps of runs, as a source of questions about runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.runs.results import unknown_key
from rollbook.runs.source import Line, Row
from rollbook.server.curves.groups import rows_of_runs
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.rows import contents, started
from rollbook.server.shared.state import ServerContext, stamp_of

T = TypeVar("T")


class Memory:
    """Some runs of a server; see `runs.source.Source`. Long runs, of which reduced rows are kept, are read whole."""

    def __init__(self, context: ServerContext, rows: Sequence[RunRow]) -> None:
        self._context, self._rows = context, list(rows)
        self.rows: list[Row] = [{**row.about, "path": row.folder} for row in self._rows]
        roots = context.catalogue.roots
        self.root = roots[0] if len(roots) == 1 else ""
        self.key_of = {row.folder: row.key for row in self._rows}

    def each(self, key: str, x: str | None, take: Callable[[Line], T]) -> dict[str, T]:
        """See `Source.each`."""
        stamps = {row.folder: stamp_of(row.folder) for row in self._rows}
        kept = rows_of_runs(self._context, self._rows, key, x, stamps, own_axes=True)
        taken: dict[str, T] = {}
        for row in self._rows:
            rows = kept.get(row.key)
            if rows is None:
                continue
            if rows.is_whole:
                taken[row.folder] = take(Line(rows.axis, rows.x, rows.y))
            else:
                taken[row.folder] = self._whole(row, key, x, take, stamps[row.folder])
        if not taken:
            known: dict[str, None] = {}
            for row in self._rows:
                try:
                    of_run = contents(self._context, row)
                except (RollbookError, OSError):
                    continue
                known.update(dict.fromkeys(of_run.keys))
                if key in of_run.keys or key in of_run.canonical.values():
                    return {}
            raise unknown_key(key, self.rows, known)
        return taken

    def facts(self, name: str, take: Callable[[Book], T]) -> dict[str, T]:
        """See `Source.facts`; kept until a run changes."""
        made: dict[str, T] = {}
        for row in self._rows:
            with contextlib.suppress(RollbookError, OSError):
                made[row.folder] = self._context.remembered(name, row, take)
        return made

    def _whole(self, row: RunRow, key: str, x: str | None, take: Callable[[Line], T], stamp: object) -> T:
        """From all rows of a long run; what was taken is kept, its rows are not."""
        name = ("taken", row.folder, key, x, take)
        known: T | None = self._context.answers.get(name, stamp)
        if known is not None:
            return known
        with self._context.book(row) as book:
            series = book.series(key, x="time" if x == "relative" else x)
        places = series.x - started(row) if x == "relative" else series.x
        made = take(Line(series.axis, places, series.mean))
        self._context.answers.put(name, stamp, made, 1_000)
        return made
