"""All rows of a table of a run, sealed or not, each once: the basis of every reading function.

The journal is listed and read before Parquet, so a row that is being sealed is seen at least once. Rows seen twice are
removed by the ranges that parts cover. If a file moves while it is read, reading starts over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged
from rollbook.schema import source
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import HIDDEN_TABLES, table_names
from rollbook.storage.damage import losses
from rollbook.storage.fills import Fills
from rollbook.storage.history import IDENTITY, identity
from rollbook.storage.live import LiveFrames, LiveJournal, LiveSegment, Moved, Snapshot
from rollbook.storage.parts import OpenParts, Part, covers_of
from rollbook.storage.sealed_so_far import missing_parts
from rollbook.storage.sealing.merge import filled
from rollbook.storage.tabulate import Meta, stored_name
from rollbook.system.guard import ours, tolerating
from rollbook.system.tuning import TUNING
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import any_column, empty_table, rows_equal, take_table, to_numpy

T = TypeVar("T")
_TRIES = 200

Lines = dict[str, tuple[NDArray, NDArray | None]]


class BadPiece(Exception):
    """A sealed part with unreadable content: left out from now on, and listed in the problems."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path = path


class Piece:
    """Rows of one table from one source: a sealed part, a live segment, or a group of live frames.

    Attributes:
      meta: its metadata; see `storage.tabulate.Meta`.
      part: the sealed part, or None.
      rows: number of rows.
    """

    def __init__(
        self,
        meta: Meta,
        rows: int,
        fills: Fills,
        part: Part | None,
        segment: LiveSegment | None,
        frames: LiveFrames | None,
        limit: int | None = None,
    ) -> None:
        self.meta, self.rows, self.part = meta, rows, part
        self._limit = limit
        self._fills, self._segment, self._frames = fills, segment, frames
        self._lines: Lines | None = None

    @classmethod
    def of_table(cls, meta: Meta, table: pa.Table) -> Piece:
        """Rows that were read already, with their `seq`."""
        return cls(meta, table.num_rows, Fills(), None, None, LiveFrames(meta, table, None))

    @property
    def is_whole(self) -> bool:
        """Whether it is a sealed part whose rows all count."""
        return self.part is not None and self._limit is None

    def tail(self, rows: int) -> Piece | None:
        """The last rows of a live segment that has more of them; else None."""
        if self._segment is None or self.rows <= rows:
            return None
        segment = self._segment.tail(rows)
        return Piece(segment.meta, segment.rows, self._fills, None, segment, None)

    def last_row(self) -> tuple[int, dict[str, int], dict[str, object]] | None:
        """Of a live segment; see `storage.tabulate.last_row`. None for other pieces."""
        return None if self._segment is None else self._segment.last_row()

    def newest(self) -> tuple[int, int] | None:
        """(attempt, unix ns) that none of its rows is newer than; None: not known without reading them."""
        attempt = self.meta.get("attempt")
        last = self.meta.get("last_time") if self._segment is None else self._segment.last_time()
        return None if attempt is None or last is None else (int(attempt), int(last))

    @property
    def is_frames(self) -> bool:
        """Whether it holds rows of unsealed frames."""
        return self._frames is not None

    def without_rows(self) -> Piece:
        """The columns of live frames, or of a sealed part, without rows; reads nothing."""
        assert self._segment is None
        empty = empty_table(self.part.schema) if self.part is not None else self._frames.empty if self._frames else None
        assert empty is not None
        return Piece(self.meta, 0, self._fills, None, None, LiveFrames(self.meta, empty, None))

    @property
    def bytes(self) -> int:
        """The approximate memory of its rows."""
        if self.part is not None:
            return self.part.decoded_bytes()
        live = self._segment if self._segment is not None else self._frames
        assert live is not None
        return live.size

    @property
    def is_waiting(self) -> bool:
        """Whether values of its rows may be elsewhere: they came from a device after sealing."""
        return bool(self._fills) and bool(self.meta.get("deferred"))

    @property
    def is_long(self) -> bool:
        """Whether it holds rows of metrics with one line per value."""
        return bool(self.meta["group"][0] == "R")

    def few_lines(self) -> Lines | None:
        """{clock, "key", "type", "value" or "integer": (cells, mask or None)} of all lines of a small sealed part with
        one line per value, read once; None for other pieces.

        The first rows of most keys are stored so, before their key set has its own segment.
        """
        if not self.is_long or not self.is_whole or self.is_waiting or self.rows > TUNING.few_lines:
            return None
        if self._lines is None:
            table = self.read([*self.meta["clocks"], "key", "type", "value", "integer"])
            self._lines = {name: to_numpy(table[name]) for name in table.column_names}
        return self._lines

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        if self.part is not None:
            return self.part.columns
        if self._frames is not None:
            return self._frames.names
        assert self._segment is not None
        return self._segment.names

    def column_of(self, key: str) -> str:
        """The column of a key's rows here; it need not exist."""
        return stored_name(key, self.meta, () if self.part is None else self.part.columns)

    def blocks_within(self, ranges: Sequence[tuple[str, float, float]]) -> list[int] | None:
        """The row groups that may have rows with low <= column < high for all ranges; None for all of them.

        The range of a column that some rows lack excludes nothing: such rows are placed in another way.
        """
        part = self.part
        if part is None or not ranges:
            return None
        blocks = list(range(len(part.row_groups)))
        for column, low, high in ranges:
            if column in part.columns and not part.null_count(column):
                seen = [(block, part.column_range(column, block)) for block in blocks]
                blocks = [block for block, known in seen if known is None or (known[1] >= low and known[0] < high)]
        return None if len(blocks) == len(part.row_groups) else blocks

    def read(self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of its rows, in order of seq; missing columns are left out.

        Raises:
          Moved, FileNotFoundError, BadPiece: start over, as `RunFiles.read` does.
        """
        if self.part is not None:
            try:
                table = self.part.read(columns, row_groups)
            except Damaged as err:
                raise BadPiece(self.part.path, str(err)) from None
            if self._limit is not None:
                seqs = to_numpy(self.part.read(["seq"], row_groups)["seq"])[0]
                table = take_table(table, np.flatnonzero(seqs <= self._limit))
            if self._fills and self.meta.get("deferred") and "seq" in self.part.columns:
                table = self._late(table, columns, row_groups)
            return table
        if self._segment is not None:
            return self._segment.read(columns, self._fills)
        assert self._frames is not None
        return self._frames.read(columns)

    def rows_with(self, column: str, word: str) -> pa.Table | None:
        """The rows that have `word` in a column, None if there are none; reads only row groups with such rows.

        Raises:
          Moved, FileNotFoundError, BadPiece: see `read`.
        """
        blocks: list[list[int] | None] = [None]
        if self.part is not None:
            try:
                blocks = [[group] for group in self.part.groups_with(column, word)]
            except Damaged as err:
                raise BadPiece(self.part.path, str(err)) from None
        matching = []
        for block in blocks:  # one at a time: pictures take several times their size while decoding
            rows = self.read(None, block)
            if column in rows.column_names:
                matching.append(take_table(rows, rows_equal(rows[column], word)))
        table = pa.concat_tables(matching) if matching else None
        if table is None or not table.num_rows:
            return None
        # Columns without a common type in the whole piece often have one among these rows.
        for name, more in (self.meta.get("fields") or {}).items():
            if more.get("rollbook") == "json" and name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, _from_json(table[name]))
        return table

    def rows_of(self, moved: Piece) -> pa.Table | None:
        """The rows of `moved`, a piece whose file was since sealed or merged, that are in this part; None without any.

        Raises:
          Moved, FileNotFoundError, BadPiece: see `read`.
        """
        assert self.part is not None
        own = covers_of(self.part.meta)
        held = [
            (writer, lane, first, last)
            for writer, lane, group, first, last in moved._covers()
            if any(own_of[:3] == (writer, lane, group) and own_of[3] <= last and own_of[4] >= first for own_of in own)
        ]
        if not held:
            return None
        span = min(first for _, _, first, _ in held), max(last for *_, last in held)
        found = []
        blocks = self.blocks_within([("seq", span[0], span[1] + 1)])
        for block in range(len(self.part.row_groups)) if blocks is None else blocks:
            rows = self.read(None, [block])
            known = identity(rows.select([name for name in IDENTITY if name in rows.column_names]), self.meta)
            seqs, lanes = (to_numpy(known[name])[0] for name in ("seq", "lane"))
            mask = np.zeros(rows.num_rows, dtype=bool)
            for writer, lane, first, last in held:
                mask |= (_words(known["writer"]) == writer) & (lanes == lane) & (seqs >= first) & (seqs <= last)
            if moved._frames is not None:
                mask &= np.isin(seqs, moved._frames.seqs)
            found.append(take_table(rows, np.flatnonzero(mask)))
        return pa.concat_tables(found) if found else None

    def _covers(self) -> list[tuple[str, int, str, int, int]]:
        """The ranges of sequence numbers that it has rows of; see `parts.covers_of`."""
        if self.part is not None:
            return covers_of(self.part.meta)
        assert self._frames is not None
        seqs, meta = self._frames.seqs, self.meta
        return [(meta["writer"], meta["lane"], meta["group"], int(seqs.min()), int(seqs.max()))]

    def _late(self, table: pa.Table, columns: Sequence[str] | None, row_groups: Sequence[int] | None) -> pa.Table:
        """Add the device values that came after these rows were sealed."""
        assert self.part is not None
        late = {self.column_of(key) for key in self.meta["deferred"]}
        if not any(table[n].null_count for n in table.column_names if n in late):
            return table
        if "seq" in table.column_names:
            return filled(table, self.meta, self._fills)
        seqs = self.part.read(["seq"], row_groups)
        if self._limit is not None:
            seqs = take_table(seqs, np.flatnonzero(to_numpy(seqs["seq"])[0] <= self._limit))
        table = table.append_column("seq", seqs["seq"])
        return filled(table, self.meta, self._fills).drop_columns(["seq"])


Pieces = list[Piece]


class RunFiles:
    """The files of one run, journal and Parquet.

    Args:
      run: the run's folder.
    Attributes:
      problems: path -> what was left out there, and why.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._journal = LiveJournal(run)
        self._open_parts = OpenParts(run)
        self._bad: set[str] = set()
        self._listing = threading.Lock()  # DuckDB reads two streams in two threads
        self._gathered: tuple[int, dict[str, Pieces]] = (0, {})  # of the read under way, and its thread

    @property
    def damage(self) -> dict[str, str]:
        """The part of `problems` about files that cannot be read."""
        return {**self._journal.problems, **self._open_parts.problems}

    @property
    def problems(self) -> dict[str, str]:
        """What was left out and why, for the files read so far."""
        problems = self.damage
        for writer in self._journal.marks.unconfirmed:
            problems[writer] = (
                f"writer {writer}: the machine was restarted since it wrote, and no keeper had confirmed its rows "
                "on the disk; they are shown as they are"
            )
        return problems

    def read(
        self, tables: Sequence[str], work: Callable[[dict[str, Pieces]], T], having: tuple[str, str] | None = None
    ) -> T:
        """Call `work` on the pieces of some tables; start again whenever a file moves meanwhile.

        A read that `work` itself does gets the same pieces and lists no file again.

        Args:
          having: a column of text, and a text: `work` gets at least the rows with it, but not all of the journal.
        Raises:
          Damaged: files keep moving, which sealing alone does not cause.
        """
        thread, gathered = self._gathered
        if thread == threading.get_ident() and gathered.keys() >= set(tables):
            return work({table: gathered[table] for table in tables})
        for _ in range(_TRIES):
            try:
                with tolerating(Moved, FileNotFoundError):  # then once more
                    pieces = self._gather(tables, having)
                    if having is None:
                        self._gathered = threading.get_ident(), pieces
                    return work(pieces)
            except BadPiece as bad:
                self._bad.add(bad.path)
                self._open_parts.problems[bad.path] = str(bad)
            finally:
                self._gathered = 0, {}
        raise Damaged(
            f"{self.run}: its files were replaced {_TRIES} times while they were read; is something moving them?"
        )

    def report(self, bad: BadPiece) -> None:
        """Add a partly readable part to the problems; the rest of it is still read."""
        self._open_parts.problems[bad.path] = str(bad)

    def leave_out(self, damaged: Mapping[str, str]) -> None:
        """Add unreadable parts, {path: why}, to the problems, and read only the others from now on."""
        self._bad |= damaged.keys()
        self._open_parts.problems.update(damaged)

    def missing(self) -> list[Problem]:
        """Sealed rows whose files are missing, and what was lost to damage.

        For a run in a remote only the latter: its manifest lists its files.
        """
        gone = () if source.is_view(self.run) else missing_parts(self.run, self._open_parts)
        return [*gone, *losses(self.run)]

    def parts(self, table: str) -> list[Part]:
        """The readable sealed parts of a table."""
        return [part for part in self._open_parts.parts(table) if part.path not in self._bad]

    def holds(self, table: str) -> bool:
        """Whether there were rows of a table when something was read last; reads nothing."""
        return table in self._journal.tables or bool(self.parts(table))

    def known(self) -> list[str]:
        """The tables of the run that readers see, also those that a program recorded itself; of the journal those that
        it had when something was read last."""
        return sorted({*table_names(self.run), *(name for name in self._journal.tables if name not in HIDDEN_TABLES)})

    def part_pieces(self, table: str) -> Pieces:
        """The sealed parts of a table at this moment, without the journal.

        Raises:
          FileNotFoundError: a part was replaced meanwhile.
        """
        with self._listing:
            return [Piece(part.meta, part.rows, Fills(), part, None, None) for part in self.parts(table)]

    def _gather(self, tables: Sequence[str], having: tuple[str, str] | None) -> dict[str, Pieces]:
        listed: dict[str, list[Part]] = {}
        live = self._journal.snapshot(lambda: self._sealed_tops(tables, listed), tables, having)
        fills = live.fills
        for part in self.parts("fills"):
            try:
                fills.add_table(part.meta["writer"], part.read())
            except ours(Damaged, KeyError) as err:
                raise BadPiece(part.path, str(err)) from None
        return {table: self._of_table(table, live, fills, listed[table]) for table in tables}

    def _sealed_tops(self, tables: Sequence[str], listed: dict[str, list[Part]]) -> dict[tuple[str, int], int]:
        """(writer, lane) -> the highest sequence number in Parquet; the parts of each table are put into `listed`."""
        last_seqs: dict[tuple[str, int], int] = {}
        for table in tables:
            listed[table] = self.parts(table)
            for part in listed[table]:
                for writer, lane, _, _, last in covers_of(part.meta):
                    last_seqs[writer, lane] = max(last, last_seqs.get((writer, lane), 0))
        return last_seqs

    def _of_table(self, table: str, live: Snapshot, fills: Fills, listed: Sequence[Part]) -> Pieces:
        pieces: Pieces = []
        ranges: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
        if live.writers:  # what was in the journal may have been sealed since the parts were listed
            listed = self.parts(table)
        for part in listed:
            limit = None
            for writer, lane, group, first, last in covers_of(part.meta):
                ranges.setdefault((writer, lane, group), []).append((first, last))
                if last > live.tops.get((writer, lane), 0):  # sealed since: these rows are not in the snapshot
                    if "covers" in part.meta:
                        raise Moved(part.path)
                    limit = live.tops.get((writer, lane), 0)
            if limit is None or limit >= part.meta["first_seq"]:
                pieces.append(Piece(part.meta, part.rows, fills, part, None, None, limit))
        for segment in live.segments:
            meta = segment.meta
            if meta["table"] == table:
                sealed = ranges.get((meta["writer"], meta["lane"], meta["group"]), [])
                if not any(first <= segment.lowest_seq <= last for first, last in sealed):
                    pieces.append(Piece(meta, segment.rows, fills, None, segment, None))
        for rows in live.frames:
            meta = rows.meta
            if meta["table"] == table:
                sealed = ranges.get((meta["writer"], meta["lane"], meta["group"]), [])
                unsealed = rows.outside(sealed, live.tops.get((meta["writer"], meta["lane"])))
                if unsealed.rows:
                    pieces.append(Piece(meta, unsealed.rows, fills, None, None, unsealed))
        return pieces


def _words(column: pa.ChunkedArray) -> NDArray:
    """A column of texts as numpy strings."""
    words: NDArray = to_numpy(column)[0].astype(str)
    return words


def _from_json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of JSON texts in the common type of its values; unchanged if they have none."""
    values = []
    for cell in column.to_pylist():
        with tolerating(ValueError) as missed:  # some text was not JSON
            values.append(json.loads(cell) if isinstance(cell, str) else cell)
        if missed:
            values.append(cell)
    array, more = any_column(values)
    return column if more else pa.chunked_array([array], array.type)
