"""The slow path of `log`: new keys, other types, tensors, text, arrays."""

from __future__ import annotations

import time

from rollbook.journal.lane import NO_DESCRIPTOR
from rollbook.schema.clocks import STANDARD, UNKNOWN, as_clock, now
from rollbook.system.guard import handled_by, is_foreign, tolerating
from rollbook.values import Histogram, devices, flatten, is_missing, scalar_of
from rollbook.values.describe import histogram_columns
from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.journal.channel import Channel
    from rollbook.journal.lane import Lane
    from rollbook.journal.open_writer import OpenWriter
    from rollbook.journal.stream import Stream

RESERVED = frozenset(("time", "scope", "at", "attempt", "writer", "lane", "seq", "index"))
"""Columns of every sealed row; a value with such a name is stored as `value/<name>`."""

_PLAIN = {float: "d", int: "q", bool: "b"}
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class _Parts:
    """The values of one call, sorted by how they are stored."""

    __slots__ = ("arrays", "deferred", "device_arrays", "kinds", "numbers", "same_keys", "texts")

    def __init__(self) -> None:
        self.numbers: dict[str, float | int | bool] = {}
        self.deferred: dict[str, object] = {}
        self.texts: dict[str, str] = {}
        self.arrays: dict[str, Any] = {}
        self.device_arrays: dict[str, object] = {}
        self.kinds: dict[str, Any] = {}
        self.same_keys = True  # the row has exactly the keys of the call, all of them numbers


class UnusualCalls:
    """The slow path of one channel. Called by its log function; raises only with strict=True and for wrong calls."""

    __slots__ = ("_array_keys", "_channel", "_writer")

    def __init__(self, writer: OpenWriter, channel: Channel) -> None:
        self._writer, self._channel = writer, channel
        self._array_keys: set[str] = set()

    def __call__(
        self, values: Any, clocks: tuple[object, ...], declared: Mapping[str, object], more: tuple[object, ...] = ()
    ) -> None:
        """Log one row on the slow path. `clocks` are the standard ones of the call, UNKNOWN if not given.

        Raises:
          TypeError: `more` arguments than log() takes, or none at all.
        """
        if more or values is None:
            raise TypeError(_wrong_call(values, declared, more))
        writer = self._writer
        start, rows, spent = time.perf_counter_ns(), writer.slow_path_rows, writer.slow_path_ns
        try:
            with handled_by(writer.failed, "log"):
                self._log(values, clocks, declared)
        finally:  # frames written meanwhile are part of this call
            writer.slow_path_rows = max(writer.slow_path_rows, rows + 1)
            writer.slow_path_ns = spent + time.perf_counter_ns() - start

    def set_declared(self, declared: Mapping[str, Any], row: list[int]) -> bool:
        """Set declared clocks, also in `row`, if all are known and plain integers; else change and count nothing."""
        names = self._writer.clocks
        for name, value in declared.items():
            if type(value) is not int or name not in names:
                return False
        for name, value in declared.items():
            index = names.index(name)
            row[index] = self._channel.current[index] = value
        return True

    def _take_declared(self, declared: Mapping[str, object], row: list[int]) -> dict[str, object]:
        """Set the clocks declared in init, also in `row`; returns invalid readings as values `clock/<name>`."""
        refused: dict[str, object] = {}
        for name, value in declared.items():
            if name not in self._writer.clocks:
                self._writer.bill.count(
                    "unknown_clock",
                    message=f"log(…, {name}=…): no clock {name!r} was declared; the value is kept as 'clock/{name}'. "
                    f"Known clocks: {', '.join(self._writer.clocks)}. Declare it with init(clocks=[{name!r}])",
                    name=name,
                )
                refused[f"clock/{name}"] = value
                continue
            self._set_clock(self._writer.clocks.index(name), name, value, row, refused)
        return refused

    def set_clocks(self, clocks: Mapping[str, object]) -> None:
        """Set clocks; readings that are none are kept as values, in a row of their own."""
        row, refused = self.clocks((), clocks)
        if refused:
            parts = _Parts()
            for key, value in refused.items():
                self._sort_reading(parts, f"{self._channel.prefix}{key}", value)
            self._write({}, parts, row)

    def clocks(self, given: tuple[object, ...], declared: Mapping[str, object]) -> tuple[list[int], dict[str, object]]:
        """All clocks of a row, after setting the given ones; and the refused readings as values.

        Other threads may set the current clocks meanwhile: the row has the readings that it was given.
        """
        refused: dict[str, object] = {}
        row = list(self._channel.current)
        for index, value in enumerate(given):
            if not (type(value) is int and value == UNKNOWN):
                self._set_clock(index, STANDARD[index], value, row, refused)
        if declared:
            refused.update(self._take_declared(declared, row))
        return row, refused

    def _set_clock(self, index: int, name: str, value: object, row: list[int], refused: dict[str, object]) -> None:
        if value is None:
            return
        reading = as_clock(value)
        if reading is None:
            if type(value) is int and self._channel.current[index] == value:
                # `log` had set it before it found that it fits into no row: what it was before is no longer known.
                row[index] = self._channel.current[index] = UNKNOWN
            self._writer.bill.count(
                "odd_clock",
                message=f"log(…, {name}={_shown(value)}): a clock counts, so it takes an integer (or a float with an "
                f"integral value); this reading is kept as the value 'clock/{name}'",
                name=name,
            )
            refused[f"clock/{name}"] = value
        else:
            row[index] = self._channel.current[index] = reading

    # -- one call

    def _log(self, values: Mapping[str, object], given: tuple[object, ...], declared: Mapping[str, object]) -> None:
        writer = self._writer
        if not hasattr(values, "items"):
            writer.bill.count(
                "not_a_mapping",
                message=f"log() takes a dict of name -> value, such as log({{'loss': 3}}, env_step=5); it was given "
                f"{type(values).__name__} {values!r:.80}",
            )
            return
        clocks, refused = self.clocks(given, declared)
        parts = self._sort(values)
        if refused:
            for key, value in refused.items():
                self._sort_reading(parts, f"{self._channel.prefix}{key}", value)
        self._write(values, parts, clocks)

    def _write(self, values: Mapping[str, object], parts: _Parts, clocks: list[int]) -> None:
        writer, channel = self._writer, self._channel
        if parts.numbers or parts.deferred:
            self._row(values, parts, clocks)
        common = {"scope": channel.scope, "at": channel.at, "clocks": clocks}
        if parts.texts:
            columns: dict[str, object] = {"key": list(parts.texts), "text": list(parts.texts.values())}
            writer.frame({"table": "text", **common, "n": len(parts.texts), "columns": columns})
        for key, array in parts.arrays.items():
            columns = {}
            with handled_by(self._unreadable, key, array):
                columns = {"key": [key], **histogram_columns(array)}
            if columns:
                writer.frame({"table": "histograms", **common, "n": 1, "columns": columns})
        for key, value in parts.kinds.items():
            _, kind = KINDS.of(value) or ("", None)
            if kind is not None:
                columns = {name: [cell] for name, cell in kind.cells(key, value).items()}
                writer.frame({"table": kind.table, **common, "n": 1, "columns": columns})
        for key, array in parts.device_arrays.items():
            writer.device_values.add_array(key, array, {"table": "histograms", **common})

    def _sort(self, values: Mapping[str, object]) -> _Parts:
        parts = _Parts()
        prefix = self._channel.prefix
        names: set[str] = set()
        for name, value in flatten(values):
            key = self._key(f"{prefix}{name}", parts)
            if key in names:
                self._clash(key, parts)
            names.add(key)
            if not prefix and "/" not in key and value is not None:
                self._named_as_a_column(key)
            if type(value) in _PLAIN:
                parts.numbers[key] = value
                continue
            with handled_by(self._unreadable, key, value):
                self._sort_odd(parts, key, value)
        parts.same_keys = parts.same_keys and len(parts.numbers) == len(values) and not parts.deferred
        return parts

    def _key(self, key: str, parts: _Parts) -> str:
        """`key` in a form that files can store: a lone surrogate (from `os.fsdecode`) is escaped and counted."""
        if key.isascii():
            return key
        escaped = key.encode("utf-8", "backslashreplace").decode()
        if escaped != key:
            parts.same_keys = False
            self._writer.bill.count(
                "changed_to_fit",
                message=f"the key {escaped!r} holds a lone surrogate, which no file can; it was escaped",
                name=escaped,
            )
        return escaped

    def _clash(self, key: str, parts: _Parts) -> None:
        parts.same_keys = False
        for kind in (parts.numbers, parts.deferred, parts.texts, parts.arrays, parts.device_arrays, parts.kinds):
            kind.pop(key, None)
        self._writer.bill.count(
            "key_twice",
            message=f"log() was given {key!r} twice in one row (nested dicts are joined with '/', and keys become "
            "text); the last value was kept. Rename one",
            name=key,
        )

    def _named_as_a_column(self, key: str) -> None:
        """Such a key is kept under another name. It counts once: later rows take the fast path and do not come here."""
        if self._channel.table != "metrics" or self._writer.native_keys:
            return
        if key in self._writer.clocks:
            cause = "clock_as_value"
            message = (
                f"{key} is a clock: pass it as {key}=, as in log({{'loss': 3}}, {key}=5). "
                f"This row keeps it as the value 'value/{key}'"
            )
        elif key in RESERVED:
            cause = "reserved_key"
            message = (
                f"every row has a column {key!r} of rollbook's own; the value logged under this key is kept as "
                f"'value/{key}'. Rename it"
            )
        else:
            return
        bill = self._writer.bill
        if key not in bill.names.get(cause, ()):
            bill.count(cause, message=message, name=key)

    def _sort_reading(self, parts: _Parts, key: str, value: object) -> None:
        """Keep a reading that is none as the value that it is, or as text."""
        parts.same_keys = False
        if not is_missing(value):
            with handled_by(lambda _err: None):
                if devices.is_deferred(value) or scalar_of(value) is not None or _is_array(value):
                    self._sort_odd(parts, key, value)
                    return
        parts.texts[key] = _shown(value, 1_000)

    def cells_of(self, refused: Mapping[str, object]) -> dict[str, object]:
        """Readings that are none as cells of a row: numbers, else text."""
        cells: dict[str, object] = {}
        for key, value in refused.items():
            number = None
            with handled_by(lambda _err: None):
                number = None if is_missing(value) or devices.is_deferred(value) else scalar_of(value)
            cells[key] = _shown(value, 1_000) if number is None else number
        return cells

    def _sort_odd(self, parts: _Parts, key: str, value: object) -> None:
        if is_missing(value):
            parts.same_keys = False
        elif isinstance(value, (str, bytes, bytearray)):
            text = value if isinstance(value, str) else bytes(value).decode("utf-8", "backslashreplace")
            parts.texts[key] = text
        elif devices.is_tracer(value):
            self._writer.bill.count(
                "tracer",
                message=f"log({{{key!r}: …}}) was called inside a JAX transformation, where there is no number yet; "
                "it was not kept. Use rollbook.adapters.jax.log there",
                name=key,
            )
        elif isinstance(value, Histogram):
            parts.arrays[key] = value
        elif devices.is_deferred(value):
            single = devices.elements(value) == 1
            (parts.deferred if single else parts.device_arrays)[key] = devices.copy_on_device(value)
        elif (number := self._number_in(key, value)) is not None:
            parts.numbers[key] = number
        elif _is_array(value):
            self._array_keys.add(key)
            parts.arrays[key] = value
        elif KINDS.of(value) is not None:
            parts.kinds[key] = value
        elif hasattr(type(value), "__members__") and hasattr(value, "value"):  # a member of an enum
            self._sort_odd(parts, key, value.value)
        elif hasattr(value, "total_seconds"):  # a timedelta
            parts.numbers[key] = float(value.total_seconds())
        elif hasattr(value, "isoformat") or hasattr(value, "__fspath__"):  # a moment, a path
            parts.texts[key] = str(value)
        else:
            self._refuse(key, value)

    def _number_in(self, key: str, value: Any) -> float | int | bool | None:
        """`value` as a number; also a list of one, as `scheduler.get_last_lr()` of torch returns its rate, until the
        key has had a list of several."""
        if key not in self._array_keys:
            while isinstance(value, (list, tuple)) and len(value) == 1:
                value = value[0]
        return scalar_of(value)

    def _unreadable(self, key: str, value: object, err: Exception) -> None:
        """The caller's object failed."""
        self._refuse(key, value, f" ({type(err).__name__}: {err})")

    def _refuse(self, key: str, value: object, why: str = "") -> None:
        kind, wrong = type(value).__name__, "which is not a number, text or array of numbers"
        with tolerating(Exception):
            if not why and len(value) == 0:  # type: ignore[arg-type]
                kind, wrong = f"an empty {kind}", "which holds no number"
        self._writer.bill.count(
            "unloggable",
            message=f"log({{{key!r}: …}}): found {kind}, {wrong}{why:.300}; it was not kept, the rest of the row was. "
            "Convert it first",
            name=key,
        )

    def _row(self, values: Mapping[str, object], parts: _Parts, clocks: list[int]) -> None:
        writer, channel = self._writer, self._channel
        numbers = parts.numbers
        types = "".join(_PLAIN[type(number)] for number in numbers.values())
        too_big = any(t == "q" and not _LOWEST <= v <= _HIGHEST for t, v in zip(types, numbers.values(), strict=True))
        shape = (channel.id, tuple(numbers), types, tuple(parts.deferred))
        lane = writer.take()
        if lane is None:
            return
        try:
            stream = None if too_big else lane.shapes.get(shape)
            if stream is None and not too_big and writer.earns_stream(shape):
                stream = writer.new_stream(lane, channel, shape)
            if stream is None or not self._has_room(lane, stream):
                holder, seq = self._rare_row(lane, numbers, parts.deferred, clocks)
            else:
                holder, seq = lane, self._stream_row(lane, stream, numbers, clocks)
                kinds = [*map(type, values.values())]
                # 1, True and 1.0 are one key of a dict, and three keys here.
                if parts.same_keys and all(_packs(kind) for kind in kinds) and all(isinstance(k, str) for k in values):
                    stream.types = kinds
                    lane.scopes.setdefault(channel.id, {})[tuple(values)] = stream
            for key, value in parts.deferred.items() if seq else ():
                writer.device_values.add(holder, seq, key, value)
        finally:
            writer.free.append(lane)

    def _has_room(self, lane: Lane, stream: Stream) -> bool:
        """Whether the next row fits into the stream's segment; creates another segment if necessary.

        False without a file descriptor for one: the row then goes to the open frame file.

        Raises:
          OSError: no segment is available.
        """
        if stream.offset <= stream.last:
            return True
        try:
            stream.roll(lane.seq + 1, may_keep=self._writer.may_keep_mapped())
        except OSError as err:
            if err.errno not in NO_DESCRIPTOR or is_foreign(err):
                raise
            self._writer.no_descriptor(err)
            return False
        return True

    def _stream_row(self, lane: Lane, stream: Stream, numbers: dict[str, float | int | bool], clocks: list[int]) -> int:
        offset = stream.offset
        stream.offset = offset + stream.width
        seq = lane.seq = lane.seq + 1
        stream.pack(stream.buffer, offset, *clocks, now(), *numbers.values(), seq)
        return seq

    def _rare_row(
        self, lane: Lane, numbers: dict[str, float | int | bool], later: dict[str, object], clocks: list[int]
    ) -> tuple[Lane, int]:
        from rollbook.journal.frames import encode

        channel = self._channel
        payload: dict[str, object] = {
            "table": channel.table,
            "scope": channel.scope,
            "at": channel.at,
            "clocks": clocks,
            "keys": list(numbers),
            "values": list(numbers.values()),
        }
        if later:
            payload["deferred"] = list(later)
        data, problems = encode(payload)
        self._writer.changed_to_fit(problems)
        return self._writer.append(lane, data, now())


def _wrong_call(values: object, declared: Mapping[str, object], more: tuple[object, ...]) -> str:
    """The correct form for a call that log() cannot accept."""
    if isinstance(values, str) and len(more) == 1:
        call, instead = f"log({values!r}, {more[0]!r:.40})", f"log({{{values!r}: {more[0]!r:.40}}}, env_step=5)"
    elif hasattr(values, "items"):
        numbers = ", ".join(f"{value!r:.40}" for value in more)
        call, instead = f"log({{…}}, {numbers})", f"log({{…}}, env_step={numbers})"
    elif values is None and declared:
        pairs = ", ".join(f"{name}={value!r:.40}" for name, value in declared.items())
        row = ", ".join(f"{name!r}: {value!r:.40}" for name, value in declared.items())
        call, instead = f"log({pairs})", f"log({{{row}}}, env_step=5)"
    else:
        call, instead = f"log() with {len(more) + (values is not None)} arguments", "log({'loss': 3}, env_step=5)"
    return f"{call}: log takes one dict of name -> value, and clocks by name. Write {instead}"


def _shown(value: object, longest: int = 80) -> str:
    """A value in a message, whatever its own `repr` does."""
    from rollbook.values.walk import Walk

    return str(value)[:longest] if isinstance(value, str) else Walk.repr_of(value, longest)


def _packs(kind: type) -> bool:
    """Whether `struct` packs values of this type directly: Python numbers, and numpy numbers up to 64 bits."""
    if kind in _PLAIN:
        return True
    return kind.__module__ == "numpy" and kind.__name__ in _NUMPY_PACKS


_NUMPY_PACKS = frozenset(
    ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
)


def _is_array(value: object) -> bool:
    if isinstance(value, (list, tuple, range)):
        return bool(value) and all(type(item) in _PLAIN or scalar_of(item) is not None for item in value)
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", "")).lower()
    numeric = any(word in dtype for word in ("float", "int", "bool", "half", "double"))
    return shape is not None and numeric and devices.elements(value) > 0
