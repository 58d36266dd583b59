"""Cells of the rollout tables: columns with the types of the tables, many rows in one frame."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from array import array

from rollbook.capture.batch_columns import is_column, pieces
from rollbook.capture.rollouts.messages import rendered, task_of
from rollbook.capture.samples.items import Items
from rollbook.capture.shared_clocks import clock_names
from rollbook.capture.storable import UNSTORABLE, plain
from rollbook.schema.clocks import UNKNOWN, as_clock
from rollbook.schema.tables import table_of
from rollbook.system.guard import tolerating
from rollbook.values import flatten
from rollbook.values.arrays import array_or_none
from rollbook.values.content import fingerprint_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from rollbook.protocols import Recorder

    Columns: TypeAlias = dict[str, list[Any]]
    """Column -> one cell per row, None if missing."""
    Sampled: TypeAlias = dict[str, list[tuple[int, Any, bytes | None]]]
    """Rollout -> (index of its first token, log-probabilities of the sampler, mask) of each turn."""

_INLINE_BYTES, _APART_BYTES = 256 * 1024, 64 * 1024 * 1024
_MOST_TASKS = 20_000
_MOST_LENGTHS = 10_000
_MOST_SAMPLED = 16 << 20
"""Bytes of the sampler's log-probabilities that are remembered, at least; at most twice as many."""
_LONGEST_WORD = 10_000
_EXACT = {"text": str, "integer": int, "number": float, "boolean": bool}
_NONE = type(None)
_SMALL = frozenset((int, float, bool, _NONE))
_NUMBERS = frozenset((int, float, _NONE))
_AS_JSON = json.JSONEncoder(ensure_ascii=False).encode


class RolloutRows:
    """Builds and writes the rows of one process, by column.

    Args:
      run: the run; provides its folder, clocks, attempt and bill.
    """

    def __init__(self, run: Recorder) -> None:
        self.run = run
        self._clocks = frozenset(clock_names(run))
        self._items = Items(run, _INLINE_BYTES, _APART_BYTES, "run.rollouts")
        self._tasks: set[str] = set()
        self._attempt = 0
        self._lengths: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._versions: tuple[dict[str, int | None], dict[str, int | None]] = ({}, {})
        self._sampled: tuple[Sampled, Sampled] = ({}, {})
        self._sampled_bytes = 0

    # -- cells

    def columns(self, table: str, given: Mapping[str, Sequence[Any]]) -> tuple[Columns, Columns]:
        """(columns, clocks) in the form of the table: each cell has the type of its column, empty columns are left out.

        Dicts become columns named "name/key". A value that does not fit its column is counted and left empty.
        """
        cells: Columns = {}
        clocks: Columns = {}
        kinds = table_of(table).columns
        for name, column in given.items():
            is_clock = name in self._clocks and name not in kinds
            into, kind = (clocks, "integer") if is_clock else (cells, _kind(kinds, name))
            if type(column) is list and _is_exact(kind, column):  # nearly all columns
                if column.count(None) < len(column):
                    into[name] = column
                continue
            for row, value in enumerate(column):
                for flat, part in () if value is None else flatten({name: value}):
                    if part is not None:
                        self._take(flat, part, kinds, cells, clocks, (row, len(column)))
        return cells, clocks

    def _take(
        self,
        name: str,
        value: object,
        kinds: Mapping[str, str],
        cells: Columns,
        clocks: Columns,
        at: tuple[int, int],
    ) -> None:
        """Put one value into row `at[0]` of `at[1]`."""
        into, row = cells, at[0]
        cell: object
        if name in self._clocks and name not in kinds:
            into, cell = clocks, as_clock(value)
            if cell is None:
                self.refused(name, value, "a clock, which takes an integer")
        else:
            cell = self._cell(name, value, _kind(kinds, name))
        if cell is not None:
            into.setdefault(name, [None] * at[1])[row] = cell

    def _cell(self, name: str, value: Any, kind: str) -> Any:
        cell: object
        if kind == "numbers":
            cell = numbers(value)
        elif kind == "text":
            cell = _word(value)
            if len(cell) < len(value if isinstance(value, str) else cell):
                self.run.count("rollout_text", 1, f"run.rollouts: {name} was cut to {_LONGEST_WORD:,} characters")
        elif kind == "integer":
            cell = as_clock(value)
        elif kind == "number":
            cell = number(value)
        elif kind == "boolean":
            cell = bool(value)
        else:
            cell = plain(value)
            cell = None if cell is UNSTORABLE else cell
        if cell is None:
            self.refused(name, value, f"a column of kind {kind!r}" if kind else "something that a table can hold")
        return cell

    def refused(self, name: str, value: object, wanted: str) -> None:
        """Count a value that does not fit its column; the rest of the row is stored."""
        self.run.count(
            "rollout_value",
            1,
            f"run.rollouts: {name}={value!r:.80} ({type(value).__name__}) was left out: {name} is {wanted}",
        )

    def texts(self, name: str, values: list[Any]) -> Columns:
        """The columns of texts: `name`, and for long texts the file with the whole text (`item_path`, `item_size`)."""
        columns: Columns = {name: values}
        copied = False
        for row, value in enumerate(values):
            if value is None or _is_short(value):
                continue
            if not copied:
                columns[name], copied = list(values), True
            _prints, (columns[name][row],), _sizes, special = self._items.read([value])
            for column, cells in special.items():
                columns.setdefault(column, [None] * len(values))[row] = cells[0]
        return columns

    def json(self, name: str, value: object) -> str | None:
        """A structure as JSON; None (counted) if some part is not plain data."""
        with tolerating(TypeError, ValueError, RecursionError, UnicodeEncodeError):
            text = _AS_JSON(value)
            text.encode()
            return text
        content = plain(value)
        if content is UNSTORABLE:
            self.refused(name, value, "plain data: texts, numbers, lists and dicts")
            return None
        listed = content.tolist() if hasattr(content, "tolist") else content
        text = json.dumps(listed, ensure_ascii=False, default=repr)
        return text.encode("utf-8", "backslashreplace").decode()

    # -- tasks

    def task(self, task: object, task_id: object = None, env: object = None, tools: object = None) -> str | None:
        """The id of a task: 16 hexadecimal digits of its content, or the caller's. Its row is written once."""
        if task is None and task_id is None:
            return None
        task = task_of(task)
        if task_id is None:
            content = fingerprint_of(task if tools is None else [task, tools])
            if content is None:
                self.refused("task", task, "a text or a list of messages, known by its content")
                return None
            task_id = f"{content:016x}"
        name = _word(task_id)
        attempt = int(getattr(self.run, "attempt", 1))
        if attempt != self._attempt or len(self._tasks) >= _MOST_TASKS:  # a rewind hides abandoned rows
            self._attempt = attempt
            self._tasks.clear()
        if name not in self._tasks:
            self._tasks.add(name)
            row: dict[str, Any] = {"task_id": name, "env": None if env is None else _word(env)}
            if isinstance(task, list):
                row["messages"] = self.json("task", task)
                task = rendered(task)
            if task is not None:
                row |= {column: cells[0] for column, cells in self.texts("prompt", [task]).items()}
            if tools is not None:
                row["tools"] = self.json("tools", tools)
            self.write("tasks", {column: [cell] for column, cell in row.items() if cell is not None}, {}, 1)
        return name

    # -- lengths and versions

    def remember_length(self, rollout_id: str, tokens: int) -> None:
        """Remember how many tokens the turns of a rollout have, of the newest 10,000 at least (about 2 MB)."""
        newest, _older = self._lengths
        newest[rollout_id] = tokens
        if len(newest) >= _MOST_LENGTHS:
            self._lengths = ({}, newest)

    def length(self, rollout_id: str) -> int | None:
        """The number of tokens of a rollout of this process; None if it is not known, or no longer."""
        newest, older = self._lengths
        return newest.get(rollout_id) or older.get(rollout_id)

    def remember_versions(self, ids: Iterable[str], versions: Iterable[int | None]) -> None:
        """Remember which version began each rollout, of the newest 10,000 at least."""
        newest, _older = self._versions
        newest.update(zip(ids, versions, strict=True))
        if len(newest) >= _MOST_LENGTHS:
            self._versions = ({}, newest)

    def version(self, rollout_id: str) -> int | None:
        """The version that began a rollout of this process; None if it is not known, or no longer."""
        newest, older = self._versions
        return newest.get(rollout_id, older.get(rollout_id))

    # -- gaps

    def remember_sampled(self, rollout_id: str, first: int, logprobs: Any, mask: Any) -> None:
        """Remember the sampler's log-probabilities of a turn that is trained on, for the gap to the trainer's."""
        own = logprobs.copy() if hasattr(logprobs, "dtype") else _doubles(logprobs)  # callers may change theirs
        newest, _older = self._sampled
        newest.setdefault(rollout_id, []).append((first, own, None if mask is None else bytes(map(bool, mask))))
        self._sampled_bytes += len(own) * own.itemsize
        if self._sampled_bytes >= _MOST_SAMPLED:
            self._sampled, self._sampled_bytes = ({}, newest), 0

    def gap(self, rollout_id: str, trainer: Any, sampler: Any, mask: Any) -> tuple[float, float] | None:
        """(mean, maximum) of the absolute differences between trainer and sampler, over the tokens that are trained on.

        Args:
          trainer: one log-probability per token of the rollout.
          sampler: the same of the sampler; None: as remembered, if `trainer` has a number for each token of the turns.
          mask: of the tokens that are trained on; None: that of the turns.
        Returns:
          None if the sampler's are not known here, or of another length, or no token has both.
        """
        n = len(trainer)
        if (sampler is None and n != self.length(rollout_id)) or (mask is not None and len(mask) != n):
            return None
        newest, older = self._sampled
        parts = [*older.get(rollout_id, ()), *newest.get(rollout_id, ())]
        if sampler is not None:
            parts = (
                [(0, sampler if hasattr(sampler, "dtype") else _doubles(sampler), None)] if len(sampler) == n else []
            )
        with tolerating(Exception):
            return _gap(trainer, parts, mask) if parts else None
        return None

    # -- frames

    def write(self, table: str, cells: Columns, clocks: Columns, n: int) -> None:
        """Append n rows to a table, in frames of a few megabytes at most."""
        now = self.run.clocks_now() if clocks and n > 1 else {}
        for start, stop in pieces(_sizes(cells, n)):
            self.run.record(
                table,
                {name: column[start:stop] for name, column in cells.items()},
                stop - start,
                clock_columns={
                    name: [now.get(name, UNKNOWN) if reading is None else reading for reading in column[start:stop]]
                    for name, column in clocks.items()
                }
                or None,
            )


def number(value: Any) -> float | None:
    """A single number, None for anything else."""
    if isinstance(value, (str, bytes)):
        return None
    with tolerating(TypeError, ValueError, OverflowError, RuntimeError):
        return float(value)
    return None


def numbers(value: Any) -> Any:
    """A list of numbers: an array keeps its type, other input becomes a list; None if it is not numbers."""
    if isinstance(value, (str, bytes)):
        return None
    if type(value) is list and set(map(type, value)) <= _NUMBERS:
        return value
    array = None if isinstance(value, (list, tuple, range)) else array_or_none(value)
    if array is not None:
        return array if array.ndim == 1 else None
    if not is_column(value):
        return None
    cells = plain(list(value))
    good = isinstance(cells, list) and all(cell is None or isinstance(cell, (int, float)) for cell in cells)
    return cells if good else None


def _doubles(values: list[Any]) -> array[float]:
    """A list of numbers as 8 bytes each, None as NaN."""
    return array("d", values if None not in values else [math.nan if cell is None else cell for cell in values])


def _gap(trainer: Any, parts: Iterable[tuple[int, Any, bytes | None]], mask: Any) -> tuple[float, float] | None:
    """(mean, maximum) of the absolute differences, without those that are NaN. Uses numpy only if it is loaded."""
    numpy = sys.modules.get("numpy")
    sampler: Any = [math.nan] * len(trainer) if numpy is None else numpy.full(len(trainer), math.nan)
    for first, own, kept in parts:
        cells = (
            own if kept is None else [cell if is_kept else math.nan for cell, is_kept in zip(own, kept, strict=True)]
        )
        sampler[first : first + len(own)] = cells
    if numpy is not None:
        with numpy.errstate(all="ignore"):
            gaps = abs(numpy.asarray(trainer, "f8") - sampler)
        kept = gaps == gaps if mask is None else (gaps == gaps) & numpy.asarray(mask, bool)
        some = gaps[kept]
        return (float(some.mean()), float(some.max())) if len(some) else None
    rows = zip(trainer, sampler, itertools.repeat(1) if mask is None else mask, strict=False)
    gaps = [abs(a - b) for a, b, is_kept in rows if is_kept and a is not None]
    known = [gap for gap in gaps if gap == gap]
    return (float(sum(known) / len(known)), float(max(known))) if known else None


def _kind(kinds: Mapping[str, str], name: str) -> str:
    return kinds.get(name, "number" if name.startswith(("rewards/", "metrics/")) else "")


def _is_exact(kind: str, column: list[Any]) -> bool:
    """Whether every cell has exactly the type of its column, or is None, so that no check is needed."""
    kinds = set(map(type, column)) - {_NONE}
    if kinds - {_EXACT.get(kind)}:
        return not kind and len(kinds) == 1 and kinds <= _SMALL  # a column of the caller's
    if kind == "text":
        return all(word is None or (len(word) <= _LONGEST_WORD and word.isascii()) for word in set(column))
    if kind == "integer":
        known = [cell for cell in column if cell is not None]
        return not known or (min(known) > -(2**53) and max(known) < 2**53)
    return True


def _is_short(value: object) -> bool:
    """Whether a value is a text that a table stores directly."""
    if type(value) is not str or 4 * len(value) > _INLINE_BYTES:
        return False
    if value.isascii():
        return True
    with tolerating(UnicodeEncodeError):
        value.encode()
        return True
    return False


def _word(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text[:_LONGEST_WORD].encode("utf-8", "backslashreplace").decode()


def _sizes(cells: Columns, n: int) -> list[int]:
    """The approximate size of each row in a frame."""
    sizes = [9 * len(cells)] * n
    for column in cells.values():
        kinds = set(map(type, column))
        if kinds == {str}:
            sizes = [size + 4 * length for size, length in zip(sizes, map(len, column), strict=True)]
        elif not kinds <= _SMALL:
            sizes = [
                size + 9 * len(cell) if hasattr(cell, "__len__") else size
                for size, cell in zip(sizes, column, strict=True)
            ]
    return sizes


def new_prefix() -> str:
    """The prefix of the ids of one process."""
    return os.urandom(5).hex()


def reported(run: Recorder, verb: str, err: Exception) -> None:
    """Count a failure of a verb."""
    run.count(
        "rollouts",
        1,
        f"run.rollouts: {verb} failed with {type(err).__name__}: {err}; training is not affected, (part of) this call "
        "is missing from the run",
    )
