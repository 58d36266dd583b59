"""Sealed rows as `Row`s, for followers of a journal whose rows have moved to Parquet."""

from __future__ import annotations

import heapq
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged
from rollbook.protocols import Row
from rollbook.schema.run_files import HIDDEN_TABLES, data_folder
from rollbook.schema.tables import FORWARDED, FORWARDED_MARKS, table_of
from rollbook.storage.history import identity
from rollbook.storage.parts import OpenParts, Part, covers_of
from rollbook.storage.tabulate import stored_name
from rollbook.system.guard import tolerating
from rollbook.values.arrow import take_table, to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray

_ROWS_AT_ONCE = 4096


class SealedRows:
    """The source of rows that are no longer in the journal, for `journal.reader.JournalReader`.

    Args:
      run: the run's folder.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = os.fspath(run)
        self._open_parts = OpenParts(self._run)

    def lanes(self) -> dict[str, dict[int, int]]:
        """{writer: {lane: highest sequence number in Parquet}}, over all tables."""
        last_seqs: dict[str, dict[int, int]] = {}
        for table in self._tables():
            for part in self._parts(table):
                for writer, lane, _, _, last in covers_of(part.meta):
                    lanes = last_seqs.setdefault(writer, {})
                    lanes[lane] = max(last, lanes.get(lane, 0))
        return last_seqs

    def rows(
        self,
        writer: str,
        lane: int,
        after: int,
        up_to: int,
        tables: frozenset[str] = FORWARDED,
        *,
        most: int = 0,
        newest: bool = False,
    ) -> Iterator[Row]:
        """The rows of a lane with after < seq <= up_to, by seq, and the marks among them.

        Args:
          most: from a larger chunk of values (`log_many`) return about this many rows, evenly spaced, including the
            last;
            0: all.
          newest: from a part with one key set, return only the last row.
        """
        for _ in range(100):
            with tolerating(FileNotFoundError):
                sources = [
                    _of_part(part, table, writer, lane, after, up_to, most, newest)
                    for table in (*sorted(tables), "marks")
                    for part in self._parts(table)
                    if any(
                        w == writer and n == lane and first <= up_to and last > after
                        for w, n, _, first, last in covers_of(part.meta)
                    )
                ]
                # If a part is merged away meanwhile, reading it fails: start over after the last returned seq.
                for seq, rows in itertools.groupby(heapq.merge(*sources, key=_seq_of), key=_seq_of):
                    yield from list(rows)
                    after = seq
                return

    def _tables(self) -> list[str]:
        with tolerating(OSError) as missed, os.scandir(data_folder(self._run)) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
        if missed:
            return []
        return sorted(n for n in names if n not in HIDDEN_TABLES or n in ("marks", "fills"))

    def _parts(self, table: str) -> list[Part]:
        for _ in range(100):
            with tolerating(FileNotFoundError):
                return self._open_parts.parts(table)
        return []


def _of_part(
    part: Part, table: str, writer: str, lane: int, after: int, up_to: int, most: int, newest: bool
) -> Iterator[Row]:
    """The rows of one part, by seq."""
    meta = part.meta
    is_merged = meta.get("writer") is None
    groups: list[list[int] | None] = [[i] for i in range(len(part.row_groups))]
    if is_merged:
        groups = [None]
    clocks = list(meta["clocks"])
    if table != "metrics" or meta["group"][0] == "R" or "x" in meta.get("types", ""):
        most, newest = 0, False  # each row may belong to another stream
    if newest:
        groups.reverse()
    lines: Iterator[tuple[int, dict[str, Any]]] = (
        (time_ns, line)
        for group in groups
        for time_ns, line in _lines(part, group, after, up_to, most, newest)
        if after < line["seq"] <= up_to and line["writer"] == writer and line["lane"] == lane
    )
    if newest:
        lines = itertools.islice(lines, 1)
    if meta["group"][0] == "R":
        for _, same in itertools.groupby(lines, key=lambda item: (item[1]["seq"], item[1]["index"])):
            values = list(same)
            yield _row(values[0], _long_values(line for _, line in values), clocks, table=table)
        return
    kind = table_of(table)
    names = [*kind.columns, *meta["keys"]]
    for at in lines:
        if table == "marks":
            if at[1]["mark"] in FORWARDED_MARKS:
                yield _row(at, {}, clocks, str(at[1]["mark"]), tuple(json.loads(at[1]["keys"])))
        elif row_values := kind.values({name: at[1].get(stored_name(name, meta, at[1])) for name in names}):
            yield _row(at, row_values, clocks, table=table)


def _lines(
    part: Part, group: list[int] | None, after: int, up_to: int, most: int, newest: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(unix ns, cells) of the lines of a row group, or of the whole part ordered by seq."""
    if group is not None:
        known = part.column_range("seq", group[0])
        if known is not None and (known[1] <= after or known[0] > up_to):
            return
    try:
        rows = identity(part.read(None, group), part.meta)
    except Damaged:
        return
    if group is None:
        rows = rows.sort_by([("seq", "ascending"), ("index", "ascending")])
    if most or newest:
        seqs = to_numpy(rows["seq"])[0]
        indices = np.flatnonzero((seqs > after) & (seqs <= up_to))
        rows = take_table(rows, indices[-1:] if newest else indices[_spaced(seqs[indices], most)])
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        block = rows.slice(start, _ROWS_AT_ONCE)
        yield from zip(
            block["time"].cast(pa.int64()).to_pylist(), block.drop_columns(["time"]).to_pylist(), strict=True
        )


def _spaced(seqs: NDArray, most: int) -> NDArray:
    """Which rows to keep: of chunks with more than `most` rows here, which are in order, that many."""
    starts = np.flatnonzero(np.diff(seqs, prepend=seqs[:1] - 1))
    counts = np.diff(np.append(starts, len(seqs)))
    before_end = np.repeat(starts + counts, counts) - 1 - np.arange(len(seqs))
    stays: NDArray = before_end % np.repeat(-(-counts // most), counts) == 0
    return stays


def _seq_of(row: Row) -> int:
    return row.seq


def _row(
    at: tuple[int | None, dict[str, Any]],
    values: dict[str, Any],
    clocks: list[str],
    mark: str = "",
    keys: tuple[str, ...] = (),
    table: str = "metrics",
) -> Row:
    time_ns, line = at
    known = {name: line[name] for name in clocks if line.get(name) is not None}
    return Row(
        (time_ns or 0) / 1e9,  # none where repair could not read it
        known,
        values,
        line["scope"],
        line["writer"],
        line["lane"],
        line["seq"],
        line["attempt"],
        mark,
        keys,
        line["at"] or "",
        table,
    )


def _long_values(lines: Iterable[dict[str, Any]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for line in lines:
        kind = line["type"]
        if kind == "z":
            values[line["key"]] = int(line["digits"])
        else:
            value = line["integer"] if kind in "qb" else line["value"]
            values[line["key"]] = bool(value) if kind == "b" else value
    return values
