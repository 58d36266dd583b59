"""Levels of a large part: per column the extremes and sums of every 2^k rows, so that a plot costs its pixels.

    magic, blocks, index (JSON), tail (offset, length and checksum of the index, magic)

A block belongs to a row group of the part. It has one level after the other: 2^8 rows per bucket, then 2^10, …; a
level has one column after the other; a column of a level is five arrays with one 8-byte number per bucket:

    axes (time, seq, clocks), int64:  first, last, min, max, count of known readings
    keys, float64:                    min, max and sum of the finite values, their count, the count of the others

So one key at one level needs one read per block. Pyramids are derived data: without them the part itself is read.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rollbook.schema import source
from rollbook.system.files import make_folders, open_regular, pread, replace_file
from rollbook.system.guard import raising
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

MIN_ROWS = 1 << 16
"""Parts with fewer rows have no pyramid."""

_MAGIC = b"RBKPYR1\n"
_TAIL = struct.Struct("<QII8s")
_BASE_BITS, _STEP_BITS, _MOST_LEVELS = 8, 2, 8
_MOST_INDEX_BYTES = 64 << 20
_NO_MIN, _NO_MAX = 2**63 - 1, -(2**63)


def level_sizes(rows: int) -> list[int]:
    """The number of buckets of each level of a block of `rows` rows."""
    sizes = [-(-rows // (1 << _BASE_BITS))]
    while sizes[-1] > 1 and len(sizes) < _MOST_LEVELS:
        sizes.append(-(-sizes[-1] // (1 << _STEP_BITS)))
    return sizes


def bucket_rows(level: int) -> int:
    """The number of rows per bucket of a level."""
    return 1 << (_BASE_BITS + _STEP_BITS * level)


class PyramidWriter:
    """Writes the levels of one part, block by block. The file appears only at `finish`.

    Args:
      path: the path of the pyramid; the folder above its own exists.
      axes, keys: the columns of both kinds, by their names in the part.
    """

    def __init__(self, path: str, axes: Sequence[str], keys: Sequence[str]) -> None:
        folder = os.path.dirname(path)
        make_folders(folder, inside=os.path.dirname(folder))
        self._path, self._temporary = path, f"{path}.{os.getpid()}.tmp"
        self._axes, self._keys = list(axes), list(keys)
        self._blocks: list[tuple[int, int]] = []
        self._file = open(self._temporary, "wb")  # noqa: SIM115  closed by finish or abandon
        self._file.write(_MAGIC)

    def add(self, table: pa.Table) -> None:
        """Add the rows of one row group."""
        self._blocks.append((self._file.tell(), table.num_rows))
        columns = [_axis_levels(table[name]) for name in self._axes]
        columns += [_key_levels(table[name]) for name in self._keys]
        for level in range(len(level_sizes(table.num_rows))):
            for levels in columns:
                self._file.write(np.ascontiguousarray(levels[level]).tobytes())

    def finish(self, identity: dict[str, object]) -> None:
        """Write the index, sync the file to disk and rename it. `identity` identifies its part."""
        text = json.dumps({"axes": self._axes, "keys": self._keys, "blocks": self._blocks, **identity}).encode()
        offset = self._file.tell()
        self._file.write(text + _TAIL.pack(offset, len(text), zlib.crc32(text), _MAGIC))
        self._file.close()
        replace_file(self._temporary, self._path)

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._file.close()
        try:
            os.unlink(self._temporary)
        except OSError:
            pass


def _starts(n: int, step: int) -> NDArray:
    return np.arange(0, n, step)


def _axis_levels(column: pa.ChunkedArray) -> list[NDArray]:
    """[5, buckets] int64 of each level: first, last, min, max, count."""
    cells, valid = to_numpy(column)
    cells = cells.astype(np.int64, copy=False)
    n = len(cells)
    starts = _starts(n, 1 << _BASE_BITS)
    ends = np.append(starts[1:], n) - 1
    if valid is None:
        low = high = cells
        count = np.diff(np.append(starts, n))
    else:
        low, high = np.where(valid, cells, _NO_MIN), np.where(valid, cells, _NO_MAX)
        count = np.add.reduceat(valid.astype(np.int64), starts)
    levels = [
        np.stack([low[starts], high[ends], np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts), count])
    ]
    for size in level_sizes(n)[1:]:
        below = levels[-1]
        starts = _starts(below.shape[1], 1 << _STEP_BITS)
        ends = np.append(starts[1:], below.shape[1]) - 1
        levels.append(
            np.stack(
                [
                    below[0][starts],
                    below[1][ends],
                    np.minimum.reduceat(below[2], starts),
                    np.maximum.reduceat(below[3], starts),
                    np.add.reduceat(below[4], starts),
                ]
            )
        )
        assert levels[-1].shape[1] == size
    return levels


def _key_levels(column: pa.ChunkedArray) -> list[NDArray]:
    """[5, buckets] float64 of each level: min, max, sum, count, non-finite."""
    cells, valid = to_numpy(column)
    cells = cells.astype(np.float64, copy=False)
    finite = np.isfinite(cells)
    odd = ~finite
    if valid is not None:
        finite, odd = finite & valid, odd & valid
    n = len(cells)
    starts = _starts(n, 1 << _BASE_BITS)
    if finite.all():
        low = high = total = cells
        counts = [np.diff(np.append(starts, n)).astype(np.float64), np.zeros(len(starts))]
    else:
        low, high, total = np.where(finite, cells, np.inf), np.where(finite, cells, -np.inf), np.where(finite, cells, 0)
        counts = [np.add.reduceat(mask.astype(np.float64), starts) for mask in (finite, odd)]
    levels = [
        np.stack(
            [
                np.minimum.reduceat(low, starts),
                np.maximum.reduceat(high, starts),
                np.add.reduceat(total, starts),
                *counts,
            ]
        )
    ]
    for _ in level_sizes(n)[1:]:
        below = levels[-1]
        starts = _starts(below.shape[1], 1 << _STEP_BITS)
        levels.append(
            np.stack(
                [
                    np.minimum.reduceat(below[0], starts),
                    np.maximum.reduceat(below[1], starts),
                    *(np.add.reduceat(row, starts) for row in below[2:]),
                ]
            )
        )
    return levels


class Pyramid:
    """The levels of one part. Reads only what is requested.

    Attributes:
      axes, keys: its columns.
      rows: of each block.

    Raises:
      FileNotFoundError: there is none.
      ValueError: it is damaged, or belongs to another part.
    """

    MIN_ROWS: ClassVar[int] = MIN_ROWS

    def __init__(self, path: str, *, rows: int, first_seq: int, last_seq: int) -> None:
        self.path = path
        self._is_view = source.is_view(path)
        if self._is_view:
            source.ensure(path, footer=True)
        with open(open_regular(path), "rb") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            size = file.seek(0, os.SEEK_END)
            if size < _TAIL.size:
                raise ValueError(f"{path} has {size} bytes and cannot be a pyramid")
            file.seek(size - _TAIL.size)
            offset, length, crc, magic = _TAIL.unpack(file.read(_TAIL.size))
            if magic != _MAGIC or offset + length + _TAIL.size != size or length > _MOST_INDEX_BYTES:
                raise ValueError(f"{path} is not a pyramid")
            if self._is_view:
                source.ensure(path, [(offset, size)])
            file.seek(offset)
            text = file.read(length)
        if zlib.crc32(text) != crc:
            raise ValueError(f"{path}: its index is damaged")
        wrong = f"{path}: its index makes no sense"
        kinds = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
        with raising(lambda err: ValueError(f"{wrong} ({type(err).__name__})"), *kinds):
            index = json.loads(text)
            identity = (index["rows"], index["first_seq"], index["last_seq"])
            self.axes: list[str] = list(map(str, index["axes"]))
            self.keys: list[str] = list(map(str, index["keys"]))
            self._blocks: list[tuple[int, int]] = [(int(o), int(r)) for o, r in index["blocks"]]
        if identity != (rows, first_seq, last_seq):
            raise ValueError(f"{path} belongs to another part")
        self.rows = [rows for _, rows in self._blocks]
        self._ranges: dict[str, tuple[NDArray, NDArray, NDArray]] = {}
        if sum(self.rows) != rows:
            raise ValueError(f"{path}: its blocks do not add up")
        end = 0  # blocks are contiguous in the file, so no read exceeds its size
        for start, block_rows in self._blocks:
            if start < end or block_rows < 0:
                raise ValueError(f"{path}: its blocks overlap")
            end = start + sum(level_sizes(block_rows)) * (len(self.axes) + len(self.keys)) * 40
        if end > offset:
            raise ValueError(f"{path} is shorter than its index says")

    def is_same(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def levels(self) -> int:
        """The number of levels of every block but the last."""
        return len(level_sizes(max(self.rows, default=0)))

    def ranges(self, axis: str) -> tuple[NDArray, NDArray, NDArray]:
        """For each block (smallest, largest) reading and the number of rows with one, from its coarsest level; cached.

        Raises:
          ValueError: see `read`.
        """
        if axis not in self._ranges:
            top = self.read([axis], _MOST_LEVELS, range(len(self.rows)))[0]
            sizes = [level_sizes(rows)[-1] for rows in self.rows]
            starts = np.cumsum([0, *sizes[:-1]])
            lows, highs = np.minimum.reduceat(top[2], starts), np.maximum.reduceat(top[3], starts)
            self._ranges[axis] = lows, highs, np.add.reduceat(top[4], starts)
        return self._ranges[axis]

    def read(self, columns: Sequence[str], level: int, blocks: Sequence[int]) -> list[NDArray]:
        """Per column [5, buckets] of some blocks at a level (or their coarsest, if they have fewer levels).

        Raises:
          ValueError: the file is shorter than its index requires, or was replaced by another one.
        """
        indices = [(self.axes + self.keys).index(name) for name in columns]
        n_columns = len(self.axes) + len(self.keys)
        parts: list[list[NDArray]] = [[] for _ in columns]
        if self._is_view:
            self._have(indices, level, blocks)
        with open(open_regular(self.path), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_ino != self._inode:
                raise ValueError(f"{self.path} was replaced")
            for block in blocks:
                offset, rows = self._blocks[block]
                sizes = level_sizes(rows)
                own = min(level, len(sizes) - 1)
                base = offset + sum(sizes[:own]) * n_columns * 40
                for part, index in zip(parts, indices, strict=True):
                    data = pread(file.fileno(), sizes[own] * 40, base + index * sizes[own] * 40)
                    if len(data) != sizes[own] * 40:
                        raise ValueError(f"{self.path} is shorter than its index says")
                    dtype = "<i8" if index < len(self.axes) else "<f8"
                    part.append(np.frombuffer(data, dtype=dtype).reshape(5, sizes[own]))
        return [np.concatenate(part, axis=1) if part else np.zeros((5, 0)) for part in parts]

    def _have(self, indices: Sequence[int], level: int, blocks: Sequence[int]) -> None:
        """For a pyramid in a remote: fetch what `read` needs into the cache."""
        n_columns = len(self.axes) + len(self.keys)
        ranges = []
        for block in blocks:
            offset, rows = self._blocks[block]
            sizes = level_sizes(rows)
            own = min(level, len(sizes) - 1)
            base = offset + sum(sizes[:own]) * n_columns * 40
            ranges += [(base + index * sizes[own] * 40, base + (index + 1) * sizes[own] * 40) for index in indices]
        source.ensure(self.path, ranges)
