"""Rows of metrics as one wide table: wide and long pieces merged, placed on an x-axis, in order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rollbook.book.read_context import Context
from rollbook.schema.run_files import value_name
from rollbook.storage import IDENTITY, Piece, Pieces, identity
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import (
    TIME,
    from_numpy,
    join_tables,
    order_of,
    take_table,
    time_array,
    to_numpy,
    without_dictionaries,
)

Within: TypeAlias = Sequence[tuple[str, float, float]]
"""(column, low, high): only rows with low <= column < high are needed; times in unix ns."""


def all_keys(pieces: Pieces, clocks: tuple[str, ...]) -> dict[str, str]:
    """Every key of metrics and its column (value/<key> if the name is taken)."""
    keys = dict.fromkeys(itertools.chain.from_iterable(piece.meta["keys"] for piece in pieces))
    return dict(_columns_of(tuple(keys), clocks))


@functools.lru_cache(maxsize=64)
def _columns_of(keys: tuple[str, ...], clocks: tuple[str, ...]) -> dict[str, str]:
    """The same of some keys. The runs of a study mostly have the same ones."""
    return {key: value_name(key, clocks) for key in keys}


class Wide:
    """Rows of metrics during assembly.

    Attributes:
      table: time, known clocks, one column per key, and the requested identity columns.
      attempt: of each row, or of all.
    """

    def __init__(self, table: pa.Table, attempt: NDArray | int) -> None:
        self.table, self.attempt = table, attempt


def wide_metrics(
    pieces: Pieces,
    keys: Sequence[str] | None,
    run: Context,
    *,
    with_identity: bool = False,
    within: Within = (),
) -> list[Wide]:
    """The rows of each piece that the run counts and that have one of `keys`, as wide tables (not yet in order).

    Args:
      within: needed ranges of columns; blocks without such rows are not read. Other rows may be returned, too.
    """
    tables = []
    for piece in pieces:
        wide = _wide(piece, keys, run, with_identity, within)
        if wide is not None and wide.table.num_rows:
            tables.append(wide)
    return tables


def _wide(piece: Piece, keys: Sequence[str] | None, run: Context, with_identity: bool, within: Within) -> Wide | None:
    meta, clocks = piece.meta, run.clocks
    asked = set(keys or ())
    own = meta["keys"] if keys is None else [key for key in meta["keys"] if key in asked]
    if not own:
        return None
    blocks = piece.blocks_within(within)
    if blocks == []:
        return None
    everything = run.history.chooses_all(run.attempts)
    needs_identity = with_identity or not everything
    own_clocks = [clock for clock in clocks if clock in meta["clocks"]]
    shared = ["time", *own_clocks, *(IDENTITY if needs_identity or piece.is_long else ())]
    if piece.is_long:
        table = piece.read([*shared, "key", "type", "value", "integer"], blocks)
    else:
        stored = {piece.column_of(key): value_name(key, clocks) for key in own}
        table = _renamed(piece.read([*shared, *stored], blocks), stored)
    if needs_identity:
        table = identity(table, meta)
    if not everything:
        mask = run.history.chosen(table, run.attempts)
        if mask is not None and not mask.all():
            table = take_table(table, np.flatnonzero(mask))
    if piece.is_long:
        if "writer" not in table.column_names and meta.get("writer") is None:
            table = identity(table, meta)
        table = pivot(table, own if keys is not None else None, clocks)
    elif keys is not None and any(table[value_name(key, clocks)].null_count for key in own):
        table = _with_any(table, [value_name(key, clocks) for key in own])
    attempt: NDArray | int = meta["attempt"] if meta.get("attempt") is not None else 0
    if meta.get("attempt") is None and "attempt" in table.column_names:
        attempt = to_numpy(table["attempt"])[0]
    if not with_identity:
        table = table.select([name for name in table.column_names if name not in IDENTITY])
    return Wide(table, attempt)


def _renamed(table: pa.Table, labels: dict[str, str]) -> pa.Table:
    """Rename keys as in the other parts: a part may be older than a clock with the name of one of its keys."""
    names = [labels.get(name, name) for name in table.column_names]
    return table.rename_columns(names) if names != table.column_names else table


def _with_any(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows that have at least one of these columns."""
    there = np.zeros(table.num_rows, dtype=bool)
    for name in names:
        valid = to_numpy(table[name])[1]
        if valid is None:
            return table
        there |= valid
    return table if there.all() else take_table(table, np.flatnonzero(there))


def pivot(table: pa.Table, keys: Sequence[str] | None, clocks: tuple[str, ...]) -> pa.Table:
    """Long rows (one line per value) as wide ones: one row per (writer, lane, seq, index)."""
    names, kinds = to_numpy(table["key"])[0], to_numpy(table["type"])[0]
    table = table.select([name for name in table.column_names if name not in ("key", "type", "digits")])
    if keys is not None:
        wanted = set(keys)
        lines = np.flatnonzero(np.fromiter((name in wanted for name in names), dtype=bool, count=len(names)))
        names, kinds = names[lines], kinds[lines]
        table = take_table(table, lines)
    n = table.num_rows
    row_of, first = _row_numbers(table)
    n_rows = len(first)
    shared = take_table(table.select([c for c in table.column_names if c not in ("value", "integer")]), first)
    values = to_numpy(table["value"])[0]
    integers = to_numpy(table["integer"])[0]
    # The lines of a key one after the other: each key becomes a column, of which the rows without it are empty.
    order = np.argsort(order_of(names), kind="stable")
    starts: list[int] = []
    if n:
        starts = np.flatnonzero(np.concatenate([[True], names[order][1:] != names[order][:-1]])).tolist()
    columns = []
    labels = []
    for start, stop in itertools.pairwise([*starts, n]):
        at = order[start:stop]
        key = str(names[at[0]])
        own = set(kinds[at].tolist())
        valid = np.zeros(n_rows, dtype=bool)
        valid[row_of[at]] = True
        if own <= {"q", "b"}:  # whole numbers beyond 2**53 would be rounded as floats
            cells = np.zeros(n_rows, dtype=np.int64)
            cells[row_of[at]] = integers[at]
            if own == {"b"}:
                cells = cells != 0
        else:
            cells = np.zeros(n_rows, dtype=np.float64)
            cells[row_of[at]] = values[at]
        labels.append(value_name(key, clocks))
        columns.append(from_numpy(cells, None if valid.all() else valid))
    rank = {} if keys is None else {key: rank for rank, key in enumerate(keys)}
    in_order = sorted(zip(labels, columns, strict=True), key=lambda pair: (rank.get(pair[0], 0), pair[0]))
    return pa.Table.from_arrays(
        [*shared.columns, *(column for _, column in in_order)],
        [*shared.column_names, *(label for label, _ in in_order)],
    )


def _row_numbers(table: pa.Table) -> tuple[NDArray, NDArray]:
    """The row number of each line, and the first line of each row; rows in order of appearance."""
    n = table.num_rows
    if not n:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    columns = []
    for name in ("writer", "lane", "seq", "index"):
        if name in table.column_names:
            values = to_numpy(table[name])[0]
            columns.append(np.unique(values.astype(str), return_inverse=True)[1] if values.dtype == object else values)
    new = np.zeros(n, dtype=bool)
    new[0] = True
    for values in columns:
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    run_of = np.cumsum(new) - 1
    # Lines of one row are adjacent, except in files that merge several writers.
    heads = np.stack([values[starts] for values in columns], axis=1)
    _, first, same = np.unique(heads, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(starts):
        return run_of, starts
    by_first = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[by_first] = np.arange(len(first))
    return number[same.reshape(-1)][run_of], starts[first[by_first]]


def joined(wides: list[Wide], keys: Sequence[str], clocks: tuple[str, ...]) -> tuple[pa.Table, NDArray]:
    """All rows concatenated, with the columns clocks, time, keys (and identity), and the attempt of each row."""
    names = [*clocks, "time", *keys]
    tables = [wide.table for wide in wides]
    table = join_tables(tables) if tables else _no_rows()
    there, asked = set(table.column_names), set(names)
    missing = [name for name in names if name not in there]
    for name in missing:
        kind = TIME if name == "time" else pa.int64() if name in clocks else pa.float64()
        table = table.append_column(name, pa.chunked_array([pa.nulls(table.num_rows, kind)], kind))
    rest = [name for name in table.column_names if name not in asked]
    table = without_dictionaries(table.select([*names, *rest]))
    attempts = [
        wide.attempt if isinstance(wide.attempt, np.ndarray) else np.full(wide.table.num_rows, wide.attempt)
        for wide in wides
    ]
    return table, np.concatenate(attempts) if attempts else np.zeros(0, dtype=np.int64)


def _no_rows() -> pa.Table:
    return pa.Table.from_arrays([time_array(np.zeros(0, dtype=np.int64))], names=["time"])
