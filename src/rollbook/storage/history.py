"""Attempts and rewinds: which rows are a run's effective history.

Attempt n+1 names its parent attempt and a cut in it: the exact sequence number per lane for the writers that made the
checkpoint, the time for all others. Rows of the parent after the cut are abandoned: hidden by default, never deleted.
The effective history is the newest attempt and its chain of parents, each up to its child's cut. Times are compared
only within one attempt, so clocks that step back and hosts with different clocks cannot mix attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rollbook.errors import BadInput, UnknownKey
from rollbook.schema.manifest import Attempts, EffectiveRows, RunJson
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, to_numpy

CheckpointRow: TypeAlias = tuple[int, str, int, int, int]
"""The position of a checkpoint's own row: attempt, writer, lane, seq, unix ns."""


IDENTITY = ("scope", "at", "attempt", "writer", "lane", "seq", "index")
"""Columns that identify a row; kept internally, and shown by `Book.table`."""


class History(EffectiveRows):
    """The attempts of one run, from run.json, for arrays of rows.

    Args:
      run: the content of run.json.
      checkpoints: returns the positions of checkpoint rows by id; called only if rows were logged at a checkpoint.
    """

    def __init__(self, run: RunJson, checkpoints: Callable[[], Mapping[str, CheckpointRow]]) -> None:
        super().__init__(run, checkpoints)
        self._entries = {entry.n: entry for entry in run.attempts}
        self._numbers = sorted(self._entries) or [1]

    def before(self, attempt: int) -> History:
        """The history at the moment when an attempt had rewound to its start."""
        entries = [entry for number, entry in self._entries.items() if number <= attempt]
        return History(RunJson(attempts=entries), self._saved)

    @property
    def is_simple(self) -> bool:
        """Whether there is only one attempt, so that every row counts."""
        return self.newest <= 1

    def chooses_all(self, attempts: Attempts) -> bool:
        """Whether a choice of attempts includes everything."""
        return attempts == "all" or (attempts == "effective" and self.is_simple)

    def chosen(self, table: pa.Table, attempts: Attempts) -> NDArray | None:
        """Which rows of a table (with identity columns and time) a choice of attempts takes; None for all."""
        if not table.num_rows:
            return None
        attempt, writer, lane, at = (_one_or_all(table[name]) for name in ("attempt", "writer", "lane", "at"))
        seq, time = to_numpy(table["seq"])[0], to_numpy(table["time"])[0]
        return self.mask(attempts, attempt, writer, lane, seq, time, at)

    def mask(
        self,
        attempts: Attempts,
        attempt: NDArray | int,
        writer: NDArray | str,
        lane: NDArray | int,
        seq: NDArray,
        time_ns: NDArray,
        at: NDArray | str = "",
    ) -> NDArray | None:
        """Which rows are chosen: a boolean array, or None for all of them.

        Args:
          attempts: "effective", "all" or numbers.
          attempt, writer, lane, at: of each row, or of all of them.
          seq, time_ns: of each row.
        Raises:
          BadInput: no such choice of attempts.
          UnknownKey: a number that the run does not have.
        """
        if isinstance(attempts, str):
            if attempts not in ("effective", "all"):
                raise BadInput(f"attempts={attempts!r}: choose 'effective', 'all', or numbers such as [1, 2]")
            if self.chooses_all(attempts):
                return None
        else:
            unknown = [number for number in attempts if number not in self._numbers]
            if unknown:
                raise UnknownKey(f"attempts={list(attempts)}: the run has no attempt {unknown[0]}; {self._known()}")
            chosen = np.isin(np.asarray(attempt), list(attempts))
            return np.full(len(seq), bool(chosen)) if chosen.ndim == 0 else chosen
        result = np.zeros(len(seq), dtype=bool)
        for rows, (number, who, lane_number) in _groups(len(seq), attempt, writer, lane):
            result[rows] = self.counts(number, who, lane_number, seq[rows], time_ns[rows])
        for rows, (checkpoint,) in _groups(len(seq), at):
            if checkpoint:
                own = self.checkpoint_counts(str(checkpoint))
                if own is not None:
                    result[rows] = own
        return result

    def _known(self) -> str:
        return f"it has {', '.join(map(str, self._numbers))}"


def _groups(n: int, *columns: NDArray | int | str) -> list[tuple[Any, tuple[Any, ...]]]:
    """(rows, the values of all columns in these rows) for each existing combination; rows is a slice or indices."""
    if not any(isinstance(column, np.ndarray) for column in columns):
        return [(slice(None), columns)]
    codes = np.zeros(n, dtype=np.int64)
    values: list[list[Any]] = []
    for column in columns:
        if isinstance(column, np.ndarray):
            words, own = np.unique(column, return_inverse=True)
            values.append(words.tolist())
        else:
            own = np.zeros(n, dtype=np.int64)
            values.append([column])
        codes = codes * len(values[-1]) + own
    groups = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        rest, combination = int(code), []
        for words in reversed(values):
            rest, index = divmod(rest, len(words))
            combination.append(words[index])
        groups.append((rows, tuple(reversed(combination))))
    return groups


def identity(table: pa.Table, meta: dict[str, Any]) -> pa.Table:
    """The rows with all identity columns, from the metadata if they are constant."""
    n = table.num_rows
    for name in IDENTITY:
        if name not in table.column_names:
            if name in ("scope", "at", "writer"):
                text = str(meta.get(name) or "")
                zeros = from_numpy(np.zeros(n, dtype=np.int32))
                words = pa.StringArray.from_buffers(
                    1, pa.py_buffer(np.array([0, len(text.encode())], dtype=np.int32)), pa.py_buffer(text.encode())
                )
                table = table.append_column(name, pa.DictionaryArray.from_arrays(zeros, words))
            else:
                number = int(meta.get(name) or 0)
                table = table.append_column(name, from_numpy(np.full(n, number, dtype=np.int64)))
    return table


def _one_or_all(column: pa.ChunkedArray) -> Any:
    """The value of a constant column, else an array (texts as numpy strings)."""
    if pa.types.is_dictionary(column.type) and column.num_chunks == 1 and len(column.chunk(0).dictionary) == 1:
        return column.chunk(0).dictionary[0].as_py()
    values = to_numpy(column)[0]
    if values.dtype == object:
        values = values.astype(str)
    return values[0].item() if bool(np.all(values == values[0])) else values
