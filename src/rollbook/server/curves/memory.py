"""Rows that the server keeps of runs, as a source of questions about runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
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
            known = self.keys()
            if any(key in keys or key in canonical.values() for keys, canonical in known.values()):
                return {}
            raise unknown_key(key, self.rows, dict.fromkeys(name for keys, _ in known.values() for name in keys))
        return taken

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """See `Source.keys`."""
        found: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}
        for row in self._rows:
            with contextlib.suppress(RollbookError, OSError):  # its page shows what is wrong with it
                of_run = contents(self._context, row)
                found[row.folder] = of_run.keys, of_run.canonical
        return found

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
