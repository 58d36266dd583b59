"""Journal records as Arrow tables: the only place that decides which columns a journal row gets.

Sealing writes these tables to Parquet, and reading a live run uses them directly, so both give the same result. A
table comes with its metadata (`Meta`), which a sealed part has in its Parquet metadata.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.journal import Segment, SegmentHeader
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.run_files import RESERVED, sound_key, value_name
from rollbook.storage.fills import Fills
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import constant, from_numpy, join_tables, take_table, time_array, to_numpy
from rollbook.values.scalars import as_float

Meta = dict[str, Any]
"""The metadata of a piece of a table: table, group, writer, lane, stream, attempt, scope, at (None if it varies by
row), first_seq, last_seq, after (last_seq of the part before it), first_time, last_time (unix ns), rows, keys, stored
(key -> its column, if that has another name), types, deferred, clocks (the known ones), fields (column -> what its type
does not express), last (the values of the last row)."""

LONG_COLUMNS = ("key", "type", "value", "integer", "digits")
"""The columns of a value in long form: key; type d, q, b or z; as float64; exact, for q and b; as digits, for z."""

_LARGEST_JUMP = 2**40

_SECTOR = 512
"""The fewest bytes that a disk loses."""


def committed_words(
    header: SegmentHeader, data: bytes, first_seq: int, up_to: int | None = None
) -> tuple[NDArray, str]:
    """The committed rows in `data` (whole rows of a segment) as [rows, words] int64, and what is damaged ("": nothing).

    Rows after sequence number `up_to` are left out: they may be half-written.
    """
    width = header.row_words
    n = len(data) // (8 * width)
    words = np.frombuffer(data, dtype="<i8", count=n * width).reshape(n, width)
    commit = words[:, -1]
    in_range = commit >= max(1, first_seq)
    if up_to is not None:
        in_range &= commit <= up_to
    good = np.flatnonzero(in_range)
    seqs = commit[good]
    if not len(seqs) or (
        int(good[-1]) == len(good) - 1 and np.all(seqs[1:] > seqs[:-1]) and int(seqs[-1]) - first_seq < _LARGEST_JUMP
    ):
        return (words if len(good) == n else words[good]), _blank_end(header, words, len(good), up_to)
    rows = np.asarray(Segment.longest_increase(good.tolist(), seqs.tolist(), first_seq), dtype=np.int64)
    problems = []
    blank, torn = _gaps(words, rows, len(header.clocks) + 1, first_seq)
    if blank or len(torn):
        problems.append(f"damage in {amount(blank + len(torn), 'row')} between others")
    elif len(rows) < len(good):
        problems.append(f"impossible sequence numbers in {amount(len(good) - len(rows), 'row')}")
    rows = np.setdiff1d(rows, torn)
    problems.append(_blank_end(header, words, int(rows[-1]) + 1 if len(rows) else 0, up_to))
    return words[rows], ", ".join(filter(None, problems))


def damage_of(segment: Segment, sealed: int = 2**63) -> str:
    """What is damaged in a segment, which may be in use; "" if nothing.

    Args:
      segment: the open segment.
      sealed: the last number of its stream that is in Parquet; above all others while its writer lives.
    """
    head, look, up_to = segment.head(), segment.look(), None
    if look is None and sealed == 2**63:
        return ""  # its writer recycles it
    if look is not None and look.state == segment.ACTIVE:  # its rows are finished up to the last one seen a moment ago
        up_to = look.last_seq
        time.sleep(segment.SETTLE_SECONDS)
    words, damage = committed_words(segment.header, segment.all_rows(), head.first_seq, up_to)
    numbers = (int(words[0, -1]), int(words[-1, -1])) if len(words) else (0, 0)
    problems = [segment.cut_short(), damage, head.contradicted(*numbers, sealed)]
    return ", ".join(filter(None, problems)) if segment.head().generation == head.generation else ""


def _gaps(words: NDArray, rows: NDArray, head: int, first_seq: int) -> tuple[int, NDArray]:
    """How many rows between others are gone, and the rows behind such gaps of which the beginning is gone, too.

    A few blank rows may be calls that were interrupted, if they are fewer than a lost sector of a disk takes with it,
    or if the numbers around them go on as if they were not there. All others are damage.

    Args:
      rows: the indices of the rows with plausible numbers.
      head: how many words of a row are clocks and time.
      first_seq: the lowest number of a row; lower ones are those of a former use of the segment.
    """
    seqs, blank, torn = words[rows, -1], 0, []
    for i in np.flatnonzero(np.diff(rows) > 1).tolist():
        before, after = int(rows[i]), int(rows[i + 1])
        skipped = after - before - 1
        between = words[before + 1 : after]
        was_never_written = not between.any() or bool(((between[:, -1] > 0) & (between[:, -1] < first_seq)).all())
        if (was_never_written and skipped < _fewest_lost(words)) or int(seqs[i + 1]) - int(seqs[i]) <= skipped:
            continue
        blank += skipped
        following = int(rows[i + 2]) if i + 2 < len(rows) else before
        low = np.minimum(words[before, :head], words[following, :head])
        high = np.maximum(words[before, :head], words[following, :head])
        if following != before and np.any((words[after, :head] < low) | (words[after, :head] > high)):
            torn.append(after)
    return blank, np.asarray(torn, dtype=np.int64)


def _fewest_lost(words: NDArray) -> int:
    """How many rows a lost sector of a disk takes with it; fewer blank ones may be calls that were interrupted."""
    return int(max(2, _SECTOR // (8 * words.shape[1])))


def _blank_end(header: SegmentHeader, words: NDArray, used: int, up_to: int | None) -> str:
    """What is wrong with the end of a segment: its writer left it full, or it is shorter than it was made."""
    blank = len(words) - used
    is_damaged = up_to is None and header.state == Segment.LEFT and blank >= _fewest_lost(words)
    return f"damage in the last {amount(blank, 'row')}" if is_damaged else ""


def segment_table(
    header: SegmentHeader,
    words: NDArray,
    keys: Iterable[str] | None = None,
    fills: Fills | None = None,
) -> tuple[Meta, pa.Table]:
    """The rows of a segment as a table, and their metadata.

    Args:
      header: of the segment.
      words: [rows, words] from `committed_words`.
      keys: only these, also in the metadata of the last row; None means all.
      fills: the values of deferred keys.
    """
    last: dict[str, object] = {}
    table = segment_rows(header, words, keys, fills, last)
    seq, times = words[:, -1], words[:, len(header.clocks)] + header.time_offset
    clocks, last_clocks = _known_clocks(header, words)
    meta = {**segment_meta(header), "clocks": clocks, **seq_range(seq, times)}
    if last:
        meta["last"], meta["last_clocks"] = last, last_clocks
    return meta, table


def segment_rows(
    header: SegmentHeader,
    words: NDArray,
    keys: Iterable[str] | None = None,
    fills: Fills | None = None,
    last: dict[str, object] | None = None,
) -> pa.Table:
    """The rows of a segment: time, the known clocks, seq, then one column per key; see `segment_table`.

    Args:
      last: is given the values of the last row.
    """
    n, n_clocks = len(words), len(header.clocks)
    seq = np.ascontiguousarray(words[:, -1])
    times = words[:, n_clocks] + header.time_offset
    readings = ((clock, np.ascontiguousarray(words[:, i])) for i, clock in enumerate(header.clocks))
    columns = [("time", time_array(times)), *clock_columns(readings)[0].items(), ("seq", from_numpy(seq))]
    wanted = None if keys is None else set(keys)
    for key, cells in _logged(header, words, None if header.table == "timings" else wanted):
        if header.table == "timings":
            columns += [("name", constant(key, n)), ("seconds", from_numpy(cells.astype(np.float64)))]
            continue
        if n and last is not None:
            last[key] = cells[-1].item()
        columns.append((value_name(key, header.clocks), from_numpy(cells)))
    for key in map(sound_key, header.deferred):
        if wanted is not None and key not in wanted:
            continue
        filled = _filled(fills, header, key, seq)
        if n and last is not None and filled[n - 1].is_valid:
            last[key] = filled[n - 1].as_py()
        columns.append((value_name(key, header.clocks), filled))
    return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])


def segment_names(header: SegmentHeader, words: NDArray) -> list[str]:
    """The columns of `segment_rows`, without a look at the values."""
    if header.table == "timings":
        names = ["name", "seconds"]
    else:
        later = set(header.deferred)
        keys = [sound_key(name) for name in header.keys if name not in later] + [*map(sound_key, header.deferred)]
        names = [value_name(key, header.clocks) for key in keys]
    return ["time", *_known_clocks(header, words)[0], "seq", *names]


def _known_clocks(header: SegmentHeader, words: NDArray) -> tuple[list[str], dict[str, int]]:
    """The clocks that some row knows, and what the last row knows of them."""
    known = [(clock, words[:, i]) for i, clock in enumerate(header.clocks) if (words[:, i] != UNKNOWN).any()]
    return [clock for clock, _ in known], {clock: int(cells[-1]) for clock, cells in known if cells[-1] != UNKNOWN}


def last_row(header: SegmentHeader, words: NDArray) -> tuple[int, dict[str, int], dict[str, object]] | None:
    """(unix ns, known clocks, key -> value) of the last row of a segment of metrics, without a column for each key.

    None: it has no rows, or values that come later.
    """
    if not len(words) or header.deferred or header.table != "metrics":
        return None
    row = words[-1:]
    time = int(row[0, len(header.clocks)]) + header.time_offset
    return time, _known_clocks(header, row)[1], {key: cells[0].item() for key, cells in _logged(header, row)}


def clock_columns(readings: Iterable[tuple[str, NDArray]]) -> tuple[dict[str, pa.Array], dict[str, int]]:
    """The columns of the clocks that some row knows, and what the last row knows of them."""
    columns: dict[str, pa.Array] = {}
    last: dict[str, int] = {}
    for clock, cells in readings:
        valid = cells != UNKNOWN
        if valid.any():
            columns[clock] = from_numpy(cells, None if valid.all() else valid)
            if valid[-1]:
                last[clock] = int(cells[-1])
    return columns, last


def _logged(
    header: SegmentHeader, words: NDArray, wanted: Collection[str] | None = None
) -> Iterator[tuple[str, NDArray]]:
    """(key, its cells) of the values in the segment itself; of some keys, or of all."""
    later = set(header.deferred)
    for i, (name, kind) in enumerate(zip(header.keys, header.types, strict=True)):
        if name not in later and (wanted is None or sound_key(name) in wanted):
            cells = np.ascontiguousarray(words[:, len(header.clocks) + 1 + i])
            yield sound_key(name), cells.view(np.float64) if kind == "d" else cells != 0 if kind == "b" else cells


def segment_meta(header: SegmentHeader) -> Meta:
    """The metadata from a segment's header; `clocks` are all that may be known."""
    keys, types, logged = _keys_of(tuple(header.keys), "".join(header.types), tuple(header.deferred))
    return {
        "table": header.table,
        "group": f"S{header.stream:03d}",
        "writer": header.writer,
        "lane": header.lane,
        "stream": header.stream,
        "attempt": header.attempt,
        "scope": header.scope,
        "at": header.at,
        "keys": list(keys),
        "stored": stored_names(keys, header.clocks),
        "types": types,
        "deferred": list(keys[logged:]),
        "clocks": list(header.clocks),
    }


@functools.lru_cache(maxsize=64)
def _keys_of(names: tuple[str, ...], kinds: str, deferred: tuple[str, ...]) -> tuple[tuple[str, ...], str, int]:
    """(the keys, those that come later last; a type for each; how many are in the segment itself), once for each key
    set: of a live run each look makes the metadata of all its segments."""
    later = frozenset(deferred)
    types = {sound_key(key): kind for key, kind in zip(names, kinds, strict=True) if key not in later}
    keys = (*types, *map(sound_key, deferred))
    return keys, "".join(types.values()) + "p" * len(deferred), len(types)


def stored_names(keys: Iterable[str], clocks: Sequence[str]) -> dict[str, str]:
    """{key: its column}, for keys whose column has another name."""
    return dict(_stored_names(tuple(keys), tuple(clocks)))


@functools.lru_cache(maxsize=64)
def _stored_names(keys: tuple[str, ...], clocks: tuple[str, ...]) -> dict[str, str]:
    """The same of some keys."""
    return {key: name for key in keys if (name := value_name(key, clocks)) != key}


def stored_name(key: str, meta: Meta, columns: Iterable[str]) -> str:
    """The column of a key in rows with metadata `meta`; `columns` are the existing ones."""
    stored = meta.get("stored")
    if stored is not None:
        return str(stored.get(key, key))
    # Parts of format 1 do not record this; there a key whose name was taken is stored as value/<key>.
    return key if key in columns and key not in RESERVED and key not in meta["clocks"] else f"value/{key}"


def _filled(fills: Fills | None, header: SegmentHeader, key: str, seq: NDArray) -> pa.Array:
    if fills is None:
        return pa.nulls(len(seq), pa.float64())
    return fills.column(header.writer, header.lane, key, seq)


def seq_range(seq: NDArray, times: NDArray) -> Meta:
    """The number of rows, and their range of sequence numbers and times (unix ns)."""
    n = len(seq)
    if not n:
        return {"rows": 0, "first_seq": 0, "last_seq": 0, "first_time": 0, "last_time": 0}
    return {
        "rows": n,
        "first_seq": int(seq.min()),
        "last_seq": int(seq.max()),
        "first_time": int(times.min()),
        "last_time": int(times.max()),
    }


def type_codes(kind: pa.DataType) -> str:
    """d, q or b for a number column, x for anything else."""
    if pa.types.is_floating(kind):
        return "d"
    if pa.types.is_integer(kind):
        return "q"
    return "b" if pa.types.is_boolean(kind) else "x"


def long_cells(keys: list[str], values: Sequence[Any]) -> dict[str, list[Any]]:
    """Values in long form, as columns; see LONG_COLUMNS."""
    kinds = [
        "b" if type(v) is bool else "d" if isinstance(v, float) else "q" if -(2**63) <= v < 2**63 else "z"
        for v in values
    ]
    return {
        "key": keys,
        "type": kinds,
        "value": [as_float(v) for v in values],
        "integer": [int(v) if k in "qb" else None for k, v in zip(kinds, values, strict=True)],
        "digits": [str(v) if k == "z" else None for k, v in zip(kinds, values, strict=True)],
    }


def long_table(table: pa.Table, meta: Meta) -> pa.Table:
    """A wide table of metrics in long form: one line per value, with the time, clocks and identity of its row."""
    if meta["group"][0] == "R":
        return table
    shared = [name for name in table.column_names if name in _SHARED or name in meta["clocks"]]
    known = set(table.column_names)
    pieces = []
    for key in meta["keys"]:
        name = stored_name(key, meta, known)
        if name not in known:
            continue
        cells, valid = to_numpy(table[name])
        rows = table.select(shared)
        if valid is not None:
            indices = np.flatnonzero(valid)
            rows, cells = take_table(rows, indices), cells[indices]
        kind = type_codes(table.schema.field(name).type)
        n = len(cells)
        as_int = from_numpy(cells.astype(np.int64)) if kind in "qb" else pa.nulls(n, pa.int64())
        columns = [constant(key, n), constant(kind, n), from_numpy(cells.astype(np.float64)), as_int]
        for label, cells_of in zip(LONG_COLUMNS, [*columns, pa.nulls(n, pa.string())], strict=True):
            rows = rows.append_column(label, cells_of)
        pieces.append(rows)
    return join_tables(pieces) if pieces else table.select(shared).slice(0, 0)


_SHARED = frozenset({"time", "scope", "at", "seq", "index"})
