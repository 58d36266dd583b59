"""`Run.write_rows`: rows that were made elsewhere, with their own clocks and times.

They go through a separate journal writer, in batches. A mark before each batch tells which rows of which source it
holds. A program that is killed and reads its source again then continues with exactly the missing rows: the mark tells
where the last batch began, and the number of frames after it how much of the batch was written.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
import time
import zlib
from itertools import pairwise

from rollbook.errors import BadInput
from rollbook.schema.clocks import UNKNOWN, as_clock
from rollbook.system.guard import ours
from rollbook.system.tuning import TUNING
from rollbook.values import flatten, scalar_of
from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Protocol, TypeAlias

    from rollbook.book import Book
    from rollbook.journal import Writer
    from rollbook.run.open_run import OpenRun

    _Rows: TypeAlias = "_RowsOfKeySet | _RowsOfKey"

    class WrittenRun(OpenRun, Protocol):
        """What else is needed of the run."""

        @property
        def book(self) -> Book: ...
        def count(self, cause: str, n: int = 1, message: str = "", name: str = "") -> None: ...
        def on_finish(self, work: Any) -> object: ...


_EARLIEST, _LATEST = 0.0, 7e9
"""Valid times in unix seconds: 1970 to 2191."""

_NS = 1_000_000_000
_ROWS_MARK = "rows"
_END: object = object()


class ForeignRows:
    """Writes rows with their own times. Created by the first `Run.write_rows`; one call at a time."""

    def __init__(self, run: WrittenRun) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._positions: dict[str, int] = {}
        run.on_finish(lambda status: self.close())

    def write(self, rows: object, table: str, source: str) -> int:
        """See `Run.write_rows`."""
        with self._lock:
            remaining = _Supply(rows)
            position, half_written = self._position_of(source) if source else (0, None)
            try:
                written = 0
                if half_written is not None:
                    written += self._go_on(remaining, table, source, half_written)
                    position = half_written["start"] + half_written["rows"]
                elif position:
                    remaining.pass_over(position, source)
                while True:
                    batch, blocks, taken = remaining.take()
                    if not taken:
                        break
                    groups, usable = self._grouped(batch, blocks, table)
                    self._mark(source, position, taken, groups)
                    for group in groups:
                        self._put(group)
                    written += usable
                    position += taken
                    if source:
                        self._positions[source] = position
            except BaseException:
                self._positions.pop(source, None)  # read the progress from disk again
                raise
            return written

    def close(self) -> None:
        """Close. A second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    # -- how far a source was read

    def _position_of(self, source: str) -> tuple[int, dict[str, Any] | None]:
        """(number of complete rows of the source, None), or (0, the last batch, which may be incomplete)."""
        known = self._positions.get(source)
        if known is not None:
            return known, None
        marks = [
            {**mark["payload"], **{name: mark[name] for name in ("writer", "lane", "seq")}}
            for mark in self._run._past.marks()
            if mark["mark"] == _ROWS_MARK and mark["payload"].get("source") == source
        ]
        if not marks:
            return 0, None
        newest = max(range(len(marks)), key=lambda n: (int(marks[n]["start"]), int(marks[n]["there"]), n))
        last = marks[newest]
        from rollbook.journal import JournalReader
        from rollbook.keeper.sealed import LazySealed

        tops: dict[str, dict[int, int]] = {}
        folder = str(self._run.folder)
        with JournalReader(folder, sealed=LazySealed(folder)) as reader:
            reader.skip(tops)
        behind = tops.get(str(last["writer"]), {}).get(int(last["lane"]), 0) - int(last["seq"])
        last["frames"] = int(last["there"]) + max(0, behind)
        return 0, last

    def _go_on(self, remaining: _Supply, table: str, source: str, begun: Mapping[str, Any]) -> int:
        """Write the missing rows of an incomplete batch."""
        start, rows = int(begun["start"]), int(begun["rows"])
        remaining.pass_over(start, source)
        batch, blocks, taken = remaining.take(exactly=rows)
        groups, _kept = self._grouped(batch, blocks, table)
        if taken < rows or _digest(groups) != begun.get("digest"):
            raise BadInput(
                f"write_rows(…, source={source!r}): its rows {start:,} to {start + rows:,} were written before and are "
                "others now. The source was changed: write it to a new run, or name it differently"
            )
        missing = groups[min(int(begun["frames"]), len(groups)) :]
        if missing:  # with a new mark: after another kill, frames are counted from here
            self._mark(source, start, rows, groups, len(groups) - len(missing))
        for group in missing:
            self._put(group)
        return sum(len(group) for group in missing)

    def _mark(self, source: str, start: int, rows: int, groups: list[_Rows], there: int = 0) -> None:
        if source:
            payload = {"source": source, "start": start, "rows": rows, "digest": _digest(groups), "there": there}
            self._frame({"mark": _ROWS_MARK, "scope": "", "at": "", "clocks": [], "keys": [], **payload})

    # -- rows into frames

    def _grouped(self, batch: list[object], blocks: list[Any], table: str) -> tuple[list[_Rows], int]:
        """The content of a batch, grouped by shared fields, rows before blocks; and the number of rows kept."""
        clocks = self._run.internals.writer.clocks
        if table != "metrics" or any(block.clock not in clocks for block in blocks):
            batch = [*batch, *(row for block in blocks for row in block.rows())]
            blocks = []
        groups, usable = self._sorted(batch, table)
        columns = _columns_of(blocks, clocks)
        return [*groups, *columns], usable + sum(len(column) for column in columns)

    def _sorted(self, batch: list[object], table: str) -> tuple[list[_RowsOfKeySet], int]:
        """The rows of a batch, grouped by shared fields in order of first appearance; and the number kept."""
        groups: dict[tuple[object, ...], _RowsOfKeySet] = {}
        usable = 0
        single: dict[tuple[object, ...], tuple[_RowsOfKeySet, int]] = {}  # rows of one number, by their other fields
        for row in batch:
            plain = _shape_of(row)
            if plain is not None and plain in single:
                known, clock = single[plain]
                if known.add_number(row, clock):
                    usable += 1
                    continue
            try:
                parts = self._parts_of(row, table)
            except ours(BadInput, TypeError, ValueError, AttributeError, OverflowError) as err:
                self._run.count("bad_row", message=f"write_rows(): a row was left out: {err}. The others are kept")
                continue
            usable += bool(parts)
            for to, scope, at, moment, clocks, cells in parts:
                kinds = tuple((name, type(cell)) for name, cell in cells.items())
                shape = (to, scope, at, kinds)
                group = groups.get(shape)
                if group is None:
                    group = groups[shape] = _RowsOfKeySet(to, scope, at)
                group.add(moment, clocks, cells)
            if plain is not None and len(parts) == 1 and plain[1] in self._run._writer.clocks:
                to, scope, at, _moment, _clocks, cells = parts[0]
                if [*cells] == [plain[0]]:
                    shape = (to, scope, at, tuple((name, type(cell)) for name, cell in cells.items()))
                    single[plain] = (groups[shape], self._run._writer.clocks.index(str(plain[1])))
        return list(groups.values()), usable

    def _parts_of(self, row: Any, table: str) -> list[tuple[str, str, str, int, list[int], dict[str, object]]]:
        """(table, scope, at, unix ns, clocks, cells) of each table that a row belongs to."""
        names = self._run._writer.clocks
        scope = at = ""
        if hasattr(row, "clocks") and hasattr(row, "values") and not callable(row.values):  # protocols.Row
            moment, given, values = _nanoseconds(row.time), dict(row.clocks), row.values
            scope, at, table = row.scope, row.at, row.table if table == "metrics" else table
        else:
            if not hasattr(row, "items"):
                raise BadInput(f"found {type(row).__name__} {row!r:.80}, which is neither a mapping nor a Row")
            values = dict(row)
            moment = _nanoseconds(values.pop("time", None))
            given = {name: values.pop(name) for name in names if name in values}
            scope = str(values.pop("scope", "") or "")
        clocks, cells = self._clocks(given, names), {}
        texts: dict[str, str] = {}
        parts: list[tuple[str, str, str, int, list[int], dict[str, object]]] = []
        if table != "metrics":
            from rollbook.schema.tables import is_of_numbers  # a training that imports nothing does not load it
        for name, value in flatten({**values, **clocks[1]}) if table == "metrics" else values.items():
            if value is None:
                continue
            number = value if type(value) in (float, int, bool) else scalar_of(value)
            if table != "metrics":
                cell = value if number is None else number
                if is_of_numbers(table, str(name)) and (cell := _number_in(cell)) is None:
                    self._run.count(
                        "unloggable",
                        message=f"write_rows(): found {type(value).__name__} {value!r:.80} under {name!r}, a column of "
                        f"numbers of the table {table}; it was left out, the rest of the row was kept",
                    )
                else:
                    cells[str(name)] = cell
            elif number is not None:
                cells[str(name)] = self._fitting(str(name), number)
            elif isinstance(value, (str, bytes)):
                texts[str(name)] = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
            elif (known := KINDS.of(value)) is not None:
                parts.append((known[1].table, scope, at, moment, clocks[0], known[1].cells(str(name), value)))
            else:
                self._run.count(
                    "unloggable",
                    message=f"write_rows(): found {type(value).__name__} under {name!r}, which is not a number, text "
                    "or another kind of value; it was left out, the rest of the row was kept",
                )
        parts += [("text", scope, at, moment, clocks[0], {"key": key, "text": text}) for key, text in texts.items()]
        if cells:
            parts.insert(0, (table, scope, at, moment, clocks[0], cells))
        return parts

    def _fitting(self, name: str, number: float) -> float:
        """The number; an integer too large for an integer column becomes a float."""
        if not isinstance(number, int) or -(2**63) <= number < 2**63:
            return number
        self._run.count(
            "changed_to_fit",
            message=f"write_rows(): {name} holds an integer beyond 64 bits; it was kept as the nearest float. Make "
            "it a text if its digits matter",
        )
        try:
            return float(number)
        except OverflowError:
            return float("inf") if number > 0 else float("-inf")

    def _clocks(self, given: Mapping[str, object], names: tuple[str, ...]) -> tuple[list[int], dict[str, Any]]:
        """All clocks of a row; invalid readings are returned as values `clock/<name>`."""
        readings, refused = [UNKNOWN] * len(names), {}
        for name, value in given.items():
            if value is None or value != value:
                continue
            reading = as_clock(value) if name in names else None
            if reading is None:
                refused[f"clock/{name}"] = value
                self._run.count(
                    "odd_clock",
                    message=f"write_rows(): {name}={value!r:.80} is not a reading of a clock of this run; it was kept "
                    f"as the value 'clock/{name}'. Clocks: {', '.join(names)}; declare others with init(clocks=…)",
                )
            else:
                readings[names.index(name)] = reading
        return readings, refused

    def _put(self, group: _Rows) -> None:
        self._frame(group.payload(self._own_writer()))

    def _frame(self, payload: Mapping[str, object]) -> None:
        if not self._own_writer().frame(payload):
            raise BadInput(
                "write_rows(): a batch could not be written; run.bill() says why. Nothing of it is lost in the source: "
                "free space, and write it again with the same source="
            )

    def _own_writer(self) -> Writer:
        main = self._run._writer
        if self._writer is None or self._writer.attempt != main.attempt:
            from rollbook.journal import Writer

            self.close()
            self._writer = Writer(
                str(self._run.folder), attempt=main.attempt, clocks=main.clocks, nonce=main.nonce, bill=main.bill
            )
            self._writer.open()
        return self._writer


def _number_in(cell: object) -> object:
    """A number as it is, or the one number that a text or a list holds; None for anything else.

    One text among the rewards of a table would make all of them texts, and no question about it could be answered.
    """
    if isinstance(cell, str):
        with contextlib.suppress(ValueError):
            return float(cell)
        with contextlib.suppress(ValueError):
            cell = json.loads(cell)
    if isinstance(cell, (list, tuple)) and len(cell) == 1:
        cell = cell[0]
    return cell if isinstance(cell, (int, float)) else scalar_of(cell)


class _RowsOfKeySet:
    """Rows of one table, scope and key set."""

    __slots__ = ("at", "clocks", "columns", "scope", "table", "times")

    def __init__(self, table: str, scope: str, at: str) -> None:
        self.table, self.scope, self.at = table, scope, at
        self.times: list[int] = []
        self.clocks: list[list[int]] = []
        self.columns: dict[str, list[object]] = {}

    def add(self, moment: int, clocks: list[int], cells: Mapping[str, object]) -> None:
        """Add one row; it has the same keys as the others."""
        self.times.append(moment)
        self.clocks.append(clocks)
        for name, cell in cells.items():
            self.columns.setdefault(name, []).append(cell)

    def add_number(self, row: Any, clock: int) -> bool:
        """Add one row of one float and one clock, by number; False, without a change, if the row is not that simple."""
        ((name, number),) = row.values.items()
        (reading,) = row.clocks.values()
        moment = row.time
        if type(number) is not float or type(self.columns[name][0]) is not float or type(reading) is not int:
            return False
        if type(moment) is not float or not (_EARLIEST <= moment < _LATEST and 0 <= reading < 2**63):
            return False
        clocks = [UNKNOWN] * len(self.clocks[0])
        clocks[clock] = reading
        self.times.append(round(moment * _NS))
        self.clocks.append(clocks)
        self.columns[name].append(number)
        return True

    def __len__(self) -> int:
        return len(self.times)

    def payload(self, writer: Writer) -> dict[str, Any]:
        """The frame of these rows."""
        payload: dict[str, Any] = {
            "table": self.table,
            "scope": self.scope,
            "at": self.at,
            "clocks": list(self.clocks[0]),
            "n": len(self.times),
            "columns": {name: _packed(cells) for name, cells in self.columns.items()},
            "time_column": _packed([moment - writer.time_offset for moment in self.times]),
        }
        for index, name in enumerate(writer.clocks):
            readings = [row[index] for row in self.clocks]
            if any(reading != readings[0] for reading in readings):
                payload.setdefault("clock_columns", {})[name] = _packed(readings)
                payload["clocks"][index] = UNKNOWN  # else it would also apply to rows that do not know it
        return payload

    def checked(self, crc: int) -> int:
        """`crc` updated with the content of these rows, without their times."""
        return zlib.crc32(repr((self.table, self.scope, self.at, self.clocks, self.columns)).encode(), crc)


class _RowsOfKey:
    """Rows of one key as arrays: numbers and readings of one clock."""

    __slots__ = ("clock", "clocks", "key", "numbers_R", "readings_R", "times_R")

    def __init__(self, key: str, clock: str, clocks: int, times_R: Any, readings_R: Any, numbers_R: Any) -> None:
        self.key, self.clock, self.clocks = key, clock, clocks
        self.times_R, self.readings_R, self.numbers_R = times_R, readings_R, numbers_R

    def __len__(self) -> int:
        return len(self.times_R)

    def payload(self, writer: Writer) -> dict[str, Any]:
        """The frame of these rows."""
        import numpy as np

        return {
            "table": "metrics",
            "scope": "",
            "at": "",
            "clocks": [UNKNOWN] * self.clocks,
            "n": len(self.times_R),
            "columns": {self.key: np.ascontiguousarray(self.numbers_R)},
            "time_column": np.rint(self.times_R * _NS).astype(np.int64) - writer.time_offset,
            "clock_columns": {self.clock: np.ascontiguousarray(self.readings_R)},
        }

    def checked(self, crc: int) -> int:
        """`crc` updated with the content of these rows, without their times."""
        crc = zlib.crc32(f"{self.key}\0{self.clock}".encode("utf-8", "backslashreplace"), crc)
        return zlib.crc32(self.numbers_R.tobytes(), zlib.crc32(self.readings_R.tobytes(), crc))


def _columns_of(blocks: list[Any], clocks: tuple[str, ...]) -> list[_RowsOfKey]:
    """The rows of blocks by clock and key, in order of first appearance, independent of the block boundaries."""
    if not blocks:
        return []
    import numpy as np

    numbers: dict[tuple[str, str], int] = {}
    for block in blocks:
        for key in block.keys:
            numbers.setdefault((key, block.clock), len(numbers))
    ids = np.concatenate(
        [np.array([numbers[key, block.clock] for key in block.keys], dtype=np.int64)[block.key_R] for block in blocks]
    )
    times, readings, values = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("times_R", "readings_R", "numbers_R")
    )
    order = np.argsort(ids, kind="stable")
    edges = np.concatenate([[0], np.flatnonzero(np.diff(ids[order])) + 1, [len(order)]]).tolist()
    stretches = sorted((order[start:stop] for start, stop in pairwise(edges)), key=lambda rows: int(rows[0]))
    words = list(numbers)
    return [
        _RowsOfKey(*words[int(ids[rows[0]])], len(clocks), times[rows], readings[rows], values[rows])
        for rows in stretches
    ]


class _Supply:
    """Reads a source batch by batch: single rows, and blocks of rows."""

    def __init__(self, rows: object) -> None:
        self._items = _each(rows)
        self._held: list[Any] = []

    def take(self, exactly: int = -1) -> tuple[list[object], list[Any], int]:
        """(rows, blocks, total number of rows): the next batch, or this many rows if the source has them."""
        rows: list[object] = []
        blocks: list[Any] = []
        taken = 0
        most = exactly if exactly >= 0 else TUNING.block_rows
        while taken < most and (exactly >= 0 or len(rows) < TUNING.batch_rows):
            item: Any = self._held.pop() if self._held else next(self._items, _END)
            if item is _END:
                break
            if not hasattr(item, "key_R"):  # protocols.Scalars
                rows.append(item)
                taken += 1
                continue
            if taken + len(item) > most:
                self._held.append(item.part(most - taken, len(item)))
                item = item.part(0, most - taken)
            blocks.append(item)
            taken += len(item)
        return rows, blocks, taken

    def pass_over(self, rows: int, source: str) -> None:
        """Skip rows that were written before.

        Raises:
          BadInput: the source has fewer rows.
        """
        passed = 0
        while passed < rows:
            taken = self.take(exactly=min(rows - passed, TUNING.batch_rows))[2]
            passed += taken
            if not taken:
                break
        if passed < rows:
            raise BadInput(
                f"write_rows(…, source={source!r}): {rows:,} of its rows were written before, and has {passed:,} now. "
                "The source was changed: write it to a new run, or name it differently"
            )


def _shape_of(row: Any) -> tuple[object, ...] | None:
    """The shared fields of a row of one number and one clock: key, clock, table, scope, at; None for other rows."""
    if type(getattr(row, "values", None)) is not dict or type(getattr(row, "clocks", None)) is not dict:
        return None
    if len(row.values) != 1 or len(row.clocks) != 1 or {type(row.table), type(row.scope), type(row.at)} != {str}:
        return None
    return (*row.values, *row.clocks, row.table, row.scope, row.at)


def _each(rows: Any) -> Iterator[object]:
    """The rows one by one, from an Arrow table, a reader of record batches, or any iterable."""
    if hasattr(rows, "to_batches") or hasattr(rows, "read_next_batch"):
        for batch in rows.to_batches() if hasattr(rows, "to_batches") else rows:
            yield from _of_batch(batch)
    elif hasattr(rows, "schema") and hasattr(rows, "to_pylist"):
        yield from _of_batch(rows)
    elif hasattr(rows, "items") or isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
        raise BadInput(
            f"write_rows({rows!r:.80}): pass an Arrow table, or a list (or another iterable) of mappings or Rows"
        )
    else:
        yield from rows


def _of_batch(batch: Any) -> Iterator[dict[str, object]]:
    """A record batch row by row. Times become whole nanoseconds, because Python's datetime has no nanoseconds."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if str(column.type).startswith("timestamp"):
            import pyarrow as pa

            unit = column.type.unit
            scale = {"s": _NS, "ms": 1_000_000, "us": 1000, "ns": 1}[unit]
            whole = column.cast(pa.int64()).to_pylist()
            columns[name] = [None if moment is None else _Nanoseconds(moment * scale) for moment in whole]
        else:
            columns[name] = column.to_pylist()
    names = list(columns)
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(names, cells, strict=True))


class _Nanoseconds(int):
    """A time that is exact to the nanosecond."""


def _nanoseconds(moment: object) -> int:
    """Unix nanoseconds of a row's time.

    Raises:
      BadInput: it is not a time between 1970 and 2191.
    """
    if moment is None:
        return time.time_ns()
    if isinstance(moment, _Nanoseconds):
        whole, seconds = int(moment), int(moment) / _NS
    elif isinstance(moment, datetime.datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        since = aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        whole = (since.days * 86_400 + since.seconds) * _NS + since.microseconds * 1000
        seconds = whole / _NS
    else:
        number = scalar_of(moment)
        if number is None or isinstance(number, bool) or number != number:
            raise BadInput(f"time={moment!r:.80} is not a time; pass unix seconds or a datetime")
        seconds = float(number)
        whole = number * _NS if isinstance(number, int) else round(seconds * _NS) if abs(seconds) < _LATEST else 0
    if not _EARLIEST <= seconds < _LATEST:
        raise BadInput(f"time={moment!r:.80} is not between 1970 and 2191; pass unix seconds or a datetime")
    return whole


def _digest(groups: Iterable[_Rows]) -> int:
    """A checksum of the content. Times are left out: a source without times gets new ones at each reading."""
    crc = 0
    for group in groups:
        crc = group.checked(crc)
    return crc


def _packed(cells: list[Any]) -> object:
    """A column as an array if it holds numbers of one type that fit; else unchanged."""
    import numpy as np

    kind = type(cells[0])
    if any(type(cell) is not kind for cell in cells):
        return cells
    if kind is float:
        return np.array(cells, dtype=np.float64)
    if kind is bool:
        return np.array(cells, dtype=np.bool_)
    if kind is int and all(-(2**63) <= cell < 2**63 for cell in cells):
        return np.array(cells, dtype=np.int64)
    return cells
