"""All that a run holds of a table, sealed or not, each row once: the ground that every reading function stands on.

The journal is listed and looked at first and Parquet second, so a row that is being sealed is seen at least once; what
is seen twice is left out by the ranges that parts say they cover. If a file moved while it was read, all starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged
from rollbook.store.columns import take_table, to_numpy
from rollbook.store.fills import Fills
from rollbook.store.live import LiveJournal, LiveSegment, Moved, Snapshot
from rollbook.store.merge import filled
from rollbook.store.parts import Part, PartShelf, covers_of
from rollbook.store.tabulate import Meta

__all__ = ["Piece", "Pieces", "RunFiles"]

T = TypeVar("T")
_TRIES = 200


class BadPiece(Exception):
    """A sealed part whose content cannot be read: left out from now on, and named in the problems."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path = path


class Piece:
    """Rows of one table from one place: a sealed part, a live segment, or a group of live frames.

    Attributes:
      meta: what it holds; see `store.tabulate.Meta`.
      part: the sealed part, or None.
      rows: how many.
    """

    def __init__(
        self, meta: Meta, rows: int, fills: Fills, part: Part | None, segment: LiveSegment | None, table: Any
    ) -> None:
        self.meta, self.rows, self.part = meta, rows, part
        self._fills, self._segment, self._table = fills, segment, table

    @property
    def is_long(self) -> bool:
        """Rows of metrics with one line a value."""
        return bool(self.meta["group"] == "R")

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        if self.part is not None:
            return self.part.columns
        source = self._table if self._table is not None else self._segment.read(None, self._fills)  # type: ignore[union-attr]
        names: list[str] = source.column_names
        return names

    def read(self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of its rows, in order of seq; those it lacks are left out.

        Raises:
          Moved, FileNotFoundError, BadPiece: start over; `RunFiles.read` does.
        """
        if self.part is not None:
            try:
                table = self.part.read(columns, row_groups)
            except Damaged as err:
                raise BadPiece(self.part.path, str(err)) from None
            if self._fills and self.meta.get("deferred") and "seq" in self.part.columns:
                table = self._late(table, columns, row_groups)
            return table
        if self._segment is not None:
            return self._segment.read(columns, self._fills)
        table = self._table
        return table if columns is None else table.select([name for name in columns if name in table.column_names])

    def _late(self, table: pa.Table, columns: Sequence[str] | None, row_groups: Sequence[int] | None) -> pa.Table:
        """With the device values that came after these rows were sealed."""
        assert self.part is not None
        if not any(table[n].null_count for n in table.column_names if n in self.meta["deferred"]):
            return table
        if "seq" in table.column_names:
            return filled(table, self.meta, self._fills)
        table = table.append_column("seq", self.part.read(["seq"], row_groups)["seq"])
        return filled(table, self.meta, self._fills).drop_columns(["seq"])


Pieces = list[Piece]


class RunFiles:
    """The files of one run, journal and Parquet.

    Args:
      run: the run's folder.
    Attributes:
      problems: path -> what was left out there and why.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._journal = LiveJournal(run)
        self._shelf = PartShelf(run)
        self._bad: set[str] = set()

    @property
    def problems(self) -> dict[str, str]:
        """What was left out and why, as far as it was looked at."""
        found = {**self._journal.problems, **self._shelf.problems}
        for writer in self._journal.marks.unconfirmed:
            found[writer] = (
                f"writer {writer}: the machine was booted anew since it wrote, and no keeper had confirmed its rows "
                "on the disk; they are shown as they are"
            )
        return found

    def read(self, tables: Sequence[str], work: Callable[[dict[str, Pieces]], T]) -> T:
        """`work` on the pieces of some tables, from the start again whenever a file moved under it.

        Raises:
          Damaged: files keep moving, which sealing alone does not do.
        """
        for _ in range(_TRIES):
            try:
                return work(self._gather(tables))
            except (Moved, FileNotFoundError):
                continue
            except BadPiece as bad:
                self._bad.add(bad.path)
                self._shelf.problems[bad.path] = str(bad)
        raise Damaged(
            f"{self.run}: its files were replaced {_TRIES} times while they were read; is something moving them?"
        )

    def writers(self) -> list[Any]:
        """The writers that have a folder in the journal."""
        return self._journal.snapshot().writers

    def parts(self, table: str) -> list[Part]:
        """The sealed parts of a table that can be read."""
        return [part for part in self._shelf.parts(table) if part.path not in self._bad]

    def _gather(self, tables: Sequence[str]) -> dict[str, Pieces]:
        before = {table: self.parts(table) for table in tables}
        live = self._journal.snapshot()
        fills = live.fills
        for part in self.parts("fills"):
            try:
                fills.add_table(part.meta["writer"], part.read())
            except (Damaged, KeyError) as err:
                raise BadPiece(part.path, str(err)) from None
        return {table: self._of_table(table, live, fills, before[table]) for table in tables}

    def _of_table(self, table: str, live: Snapshot, fills: Fills, before: list[Part]) -> Pieces:
        parts = self.parts(table)
        if (live.segments or live.frames) and parts != before:
            raise Moved(table)  # what was sealed meanwhile may lie behind rows that the snapshot lacks
        ranges: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
        for part in parts:
            for writer, lane, group, first, last in covers_of(part.meta):
                ranges.setdefault((writer, lane, group), []).append((first, last))
        pieces = [Piece(part.meta, part.rows, fills, part, None, None) for part in parts]
        for segment in live.segments:
            meta = segment.meta
            if meta["table"] != table:
                continue
            sealed = ranges.get((meta["writer"], meta["lane"], meta["group"]), [])
            if any(first <= segment.lowest_seq <= last for first, last in sealed):
                continue
            pieces.append(Piece(meta, segment.rows, fills, None, segment, None))
        for meta, rows in live.frames:
            if meta["table"] == table:
                sealed = ranges.get((meta["writer"], meta["lane"], meta["group"]), [])
                kept = _outside(rows, sealed)
                if kept.num_rows:
                    pieces.append(Piece(meta, kept.num_rows, fills, None, None, kept))
        return pieces


def _outside(table: pa.Table, sealed: list[tuple[int, int]]) -> pa.Table:
    """The rows that are not sealed yet."""
    if not sealed:
        return table
    seqs = to_numpy(table["seq"])[0]
    inside = np.zeros(len(seqs), dtype=bool)
    for first, last in sealed:
        inside |= (seqs >= first) & (seqs <= last)
    return take_table(table, np.flatnonzero(~inside)) if inside.any() else table
