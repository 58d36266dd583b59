"""Merge: one row for everything logged at one reading of the clocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollbook.protocols import Row
from rollbook.sinks.filters._base import Filter
from rollbook.sinks.filters._rows import row_from_json, row_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rollbook.protocols import Row, Sink


class Merge(Filter):
    """Joins consecutive rows with the same reading into one, for sinks that want wide rows.

    A row is passed on at the next reading, at a mark and at the end. A key that comes a second time at one reading
    begins a new row, so no value is lost. The joined row has the time, scope and identity of its last part, and the
    clocks of all of them.

    Args:
      to: the sink behind.
      clock: rows with the same reading of this clock belong together; None compares all clocks. Rows that know no
        clock (or not this one) pass alone.
    """

    name = "merge"

    def __init__(self, to: Sink, clock: str | None = None) -> None:
        super().__init__(to, clock=clock)
        self._clock = clock
        self._pending: Row | None = None

    def _row(self, row: Row) -> Iterable[Row]:
        before = self._pending
        if self._reading(row) is None:
            self._pending = None
            return (row,) if before is None else (before, row)
        if before is not None and self._belong(before, row):
            self._pending = replace(
                row,
                clocks={**before.clocks, **row.clocks},
                values={**before.values, **row.values},
                scope=row.scope if row.scope == before.scope else "",
                at=row.at if row.at == before.at else "",
                table=row.table if row.table == before.table else "metrics",
            )
            return ()
        self._pending = row
        return () if before is None else (before,)

    def _reading(self, row: Row) -> object:
        return (row.clocks or None) if self._clock is None else row.clocks.get(self._clock)

    def _belong(self, before: Row, row: Row) -> bool:
        return (
            before.attempt == row.attempt
            and self._reading(before) == self._reading(row)
            and before.values.keys().isdisjoint(row.values)
        )

    def _mark(self, row: Row) -> Iterable[Row]:
        return (*self._rest(), row)

    def _rest(self) -> Iterable[Row]:
        before, self._pending = self._pending, None
        return () if before is None else (before,)

    def _remember(self) -> object:
        return self._pending

    def _recall(self, token: Any) -> None:
        self._pending = token

    def _save(self) -> dict[str, object]:
        return {} if self._pending is None else {"pending": row_to_json(self._pending)}

    def _load(self, saved: Mapping[str, Any]) -> None:
        pending = saved.get("pending")
        self._pending = None if pending is None else row_from_json(pending)
