"""Row groups of the `steps` table, decoded once: an episode is then a slice of every column.

Most episodes are in one group, in order, with the observation after the last step in a separate row. The counts that
show this are computed once for the whole group, so an episode reads two numbers instead of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.formats.datasets._cells import Cells, column_cells, from_json, stacked
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, to_numpy

_NOT_STEPS = frozenset(("time", "seq", "index", "lane", "writer", "attempt", "scope", "at", "episode_id", "agent", "t"))


@dataclass(slots=True)
class StepRows:
    """The rows of a group that are the steps of an episode: [start, stop), or `rows` if they are not contiguous.

    Attributes:
      end: the row of the observation after the last step; None without one.
    """

    start: int
    stop: int
    rows: NDArray | None
    end: int | None


class StepColumn:
    """One column of a group.

    Attributes:
      cells: [rows, …], or a list; arbitrary where nothing is valid.
      valid: True where there is a value; None: everywhere.
      is_json: the cells come from JSON; an episode's cells become an array if possible.
    """

    def __init__(self, cells: Cells, valid: NDArray | None, *, is_json: bool = False) -> None:
        self.cells, self.valid, self.is_json = cells, valid, is_json
        self._counts: memoryview[int] | None = None

    def is_there(self, row: int) -> bool:
        """Whether a row has a value."""
        return self.valid is None or bool(self.valid[row])

    def one(self, row: int) -> Any:
        """The value of a row."""
        cell = self.cells[row]
        if self.is_json:
            array = from_json([cell])
            return array[0]
        return cell.copy() if isinstance(cell, np.ndarray) else cell

    def count(self, start: int, stop: int) -> int:
        """The number of rows in [start, stop) that have a value."""
        if self.valid is None:
            return stop - start
        if self._counts is None:
            self._counts = _counted(self.valid)
        return self._counts[stop] - self._counts[start]


class RowGroup:
    """The rows of a row group, decoded, with the rows of each episode together.

    Args:
      table: as read.
      odd: names of columns whose texts are JSON.
      order: the rows to keep, in this order; None: all in their own order.
      skip: names of columns that do not describe a step.
    """

    def __init__(
        self, table: pa.Table, odd: set[str] | frozenset[str], order: NDArray | None, skip: Iterable[str]
    ) -> None:
        if order is not None:
            table = table.take(from_numpy(np.asarray(order, dtype=np.int64)))
        names, unwanted = set(table.column_names), {*_NOT_STEPS, *skip}
        self.nbytes = int(table.nbytes)
        self._length = table.num_rows
        self.t: NDArray = to_numpy(table["t"])[0] if "t" in names else np.arange(table.num_rows)
        self.times: NDArray = to_numpy(table["time"])[0]
        self.columns: dict[str, StepColumn] = {}
        for name in table.column_names:
            if name in unwanted or name.startswith("shape/"):
                continue
            shapes = table[f"shape/{name}"] if f"shape/{name}" in names else None
            column = _decoded(table[name], shapes, name in odd)
            if column is not None:
                self.columns[name] = column
        self._survey()

    def __len__(self) -> int:
        return int(self._length)

    def _survey(self) -> None:
        """Count steps, observations and breaks in the numbering."""
        n = self._length
        steps = np.zeros(n, dtype=bool)
        standard = self.columns.keys() & {"reward", "terminated"}
        for name, column in self.columns.items():
            if name in standard or (not standard and name.partition("/")[0] == "action"):
                steps |= True if column.valid is None else column.valid
        seen = np.zeros(n, dtype=bool)
        for name, column in self.columns.items():
            if name.partition("/")[0] == "obs":
                seen |= True if column.valid is None else column.valid
        self._steps, self._seen = steps, seen
        breaks = np.concatenate([np.diff(self.t) != 1, [True]]) if n else np.zeros(0, bool)
        self._steps_before, self._breaks_before = _counted(steps), _counted(breaks)
        self.observed = [(name, column) for name, column in self.columns.items() if name.partition("/")[0] == "obs"]

    def step_rows(self, start: int, stop: int) -> StepRows | None:
        """The steps among rows [start, stop) of one episode; None if there are none."""
        before = self._steps_before
        count = before[stop] - before[start]
        if not count:
            return None
        middle = start + count
        if (
            stop - middle <= 1
            and before[middle] - before[start] == count
            and self._breaks_before[stop - 1] == self._breaks_before[start]
        ):
            return StepRows(start, middle, None, middle if stop > middle and self._seen[middle] else None)
        t, steps, seen = self.t[start:stop], self._steps[start:stop], self._seen[start:stop]
        order = np.argsort(t, kind="stable")
        rows = order[steps[order]]
        rows = rows[np.unique(t[rows], return_index=True)[1]]  # a step that was logged twice counts once
        ends = order[seen[order] & ~steps[order] & (t[order] > t[rows[-1]])]
        return StepRows(start, stop, start + rows, start + int(ends[0]) if len(ends) else None)

    def stretch(self, start: int, stop: int) -> RowGroup:
        """Rows [start, stop) as a separate group."""
        made = object.__new__(RowGroup)
        made.nbytes, made._length = 0, stop - start
        made.t, made.times = self.t[start:stop], self.times[start:stop]
        made.columns = {}
        for name, column in self.columns.items():
            if column.count(start, stop):  # an empty column would widen the types of the other groups' cells
                valid = None if column.valid is None else column.valid[start:stop]
                made.columns[name] = StepColumn(column.cells[start:stop], valid, is_json=column.is_json)
        return made


def joined(groups: Sequence[RowGroup]) -> RowGroup:
    """Stretches of several groups, concatenated."""
    made = object.__new__(RowGroup)
    made.nbytes, made._length = 0, sum(map(len, groups))
    made.t = np.concatenate([group.t for group in groups])
    made.times = np.concatenate([group.times for group in groups])
    made.columns = {}
    for name in dict.fromkeys(name for group in groups for name in group.columns):
        made.columns[name] = _joined_column([group.columns.get(name) for group in groups], list(map(len, groups)))
    made._survey()
    return made


def _joined_column(parts: Sequence[StepColumn | None], lengths: Sequence[int]) -> StepColumn:
    known = [part for part in parts if part is not None]
    is_json = any(part.is_json for part in known)
    pairs = list(zip(parts, lengths, strict=True))
    valid: NDArray | None = None
    if len(known) < len(parts) or any(part.valid is not None for part in known):
        valid = np.concatenate([_validity(part, n) for part, n in pairs])
    arrays = [part.cells for part in known if isinstance(part.cells, np.ndarray)]
    shapes = {cells.shape[1:] for cells in arrays}
    if len(arrays) == len(known) and len(shapes) == 1 and not is_json:
        kind, shape = np.result_type(*arrays), shapes.pop()
        filled = (np.zeros((n, *shape), kind) if part is None else np.asarray(part.cells) for part, n in pairs)
        return StepColumn(np.concatenate([cells.astype(kind, copy=False) for cells in filled]), valid)
    listed: list[object] = []
    for part, n in pairs:
        listed += [None] * n if part is None else list(part.cells)
    return StepColumn(listed, valid, is_json=is_json)


def _validity(part: StepColumn | None, n: int) -> NDArray:
    if part is None:
        return np.zeros(n, dtype=bool)
    return np.ones(n, dtype=bool) if part.valid is None else part.valid


def cut(column: StepColumn, steps: StepRows) -> Cells | None:
    """The cells of an episode's steps; None if all are missing, a list with None if some are."""
    start, stop, rows = steps.start, steps.stop, steps.rows
    cells = column.cells
    if rows is None:
        count = column.count(start, stop)
        if count == stop - start:
            if isinstance(cells, np.ndarray):
                return cells[start:stop].copy()
            return from_json(cells[start:stop]) if column.is_json else stacked(cells[start:stop])
        if not count:
            return None
        rows = np.arange(start, stop)
    valid = np.ones(len(rows), dtype=bool) if column.valid is None else column.valid[rows]
    if valid.all():
        if isinstance(cells, np.ndarray):
            return cells[rows]
        chosen = [cells[row] for row in rows.tolist()]
        return from_json(chosen) if column.is_json else stacked(chosen)
    if not valid.any():
        return None
    return [_plain(cells[row]) if there else None for row, there in zip(rows.tolist(), valid.tolist(), strict=True)]


def _plain(cell: object) -> object:
    return cell.item() if isinstance(cell, np.generic) else cell


def _decoded(column: pa.ChunkedArray, shapes: pa.ChunkedArray | None, is_json: bool) -> StepColumn | None:
    """A column of a group; None if it is empty."""
    n = len(column)
    if column.null_count == n:
        return None
    valid = None
    if column.null_count:
        valid = to_numpy(column.is_valid())[0]
        rows = np.flatnonzero(valid)
        chosen = from_numpy(rows)
        column = column.take(chosen)
        shapes = None if shapes is None else shapes.take(chosen)
    if is_json:
        cells: Cells = [json.loads(text) for text in column.to_pylist()]
    else:
        cells = column_cells(column, shapes=None if shapes is None else shapes.to_pylist())
    if valid is None:
        return StepColumn(cells, None, is_json=is_json)
    if isinstance(cells, np.ndarray):
        spread = np.zeros((n, *cells.shape[1:]), cells.dtype)
        spread[rows] = cells
        return StepColumn(spread, valid)
    listed: list[object] = [None] * n
    for row, cell in zip(rows.tolist(), cells, strict=True):
        listed[row] = cell
    return StepColumn(listed, valid, is_json=is_json)


def _counted(flags: NDArray) -> memoryview[int]:
    """[n + 1]: how many of the flags before each index are set.

    An item of a memoryview is a plain number, read in a fourth of the time of an array's item.
    """
    counts = np.zeros(len(flags) + 1, dtype=np.int64)
    np.cumsum(flags, out=counts[1:])
    return memoryview(counts)  # type: ignore[arg-type]


def words_of(column: pa.ChunkedArray) -> tuple[NDArray, list[str]]:
    """A column of texts as numbers and the texts that they represent; null is ""."""
    words: dict[str, int] = {}
    numbers: list[NDArray] = []
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        local = [words.setdefault(str(word), len(words)) for word in chunk.dictionary.to_pylist()]
        codes, valid = to_numpy(chunk.indices)
        none = words.setdefault("", len(words)) if valid is not None else 0
        mapped = np.array([*local, none], dtype=np.int64)
        codes = np.asarray(codes, dtype=np.int64)
        numbers.append(mapped[codes if valid is None else np.where(valid, codes, len(local))])
    return (np.concatenate(numbers) if numbers else np.zeros(0, np.int64)), list(words)
