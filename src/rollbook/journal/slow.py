"""What a call to `log` goes through when it is not the same as the last: new keys, other types, tensors, text,
arrays.
"""

from __future__ import annotations

import time

from rollbook.clocks import STANDARD, UNKNOWN, as_clock
from rollbook.errors import LoggingFailed
from rollbook.journal import deferred
from rollbook.values import MAX_RAW_ARRAY, Histogram, flatten, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.journal.lane import Lane
    from rollbook.journal.stream import Stream
    from rollbook.journal.writer import Channel, Writer

__all__ = ["Slow", "histogram_columns"]

_PLAIN = {float: "d", int: "q", bool: "b"}
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class _Parts:
    """The values of one call, by what becomes of them."""

    __slots__ = ("arrays", "deferred", "device_arrays", "numbers", "same_keys", "texts")

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.deferred: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.arrays: dict[str, Any] = {}
        self.device_arrays: dict[str, Any] = {}
        self.same_keys = True  # the numbers stand in the row under the very keys of the call, all of them


class Slow:
    """The slow path of one channel. Called by its log function; raises only under strict=True."""

    __slots__ = ("_channel", "_writer")

    def __init__(self, writer: Writer, channel: Channel) -> None:
        self._writer, self._channel = writer, channel

    def __call__(self, values: Mapping[str, Any], clocks: tuple[Any, ...], declared: Mapping[str, Any]) -> None:
        """Log one row the long way; `clocks` are the standard ones of the call, UNKNOWN where it gave none."""
        writer = self._writer
        start, ways, spent = time.perf_counter_ns(), writer.long_ways, writer.long_way_ns
        try:
            self._log(values, clocks, declared)
        except LoggingFailed:
            raise
        except Exception as err:
            writer.failed("log", err)
        finally:  # frames on the way are part of this one
            writer.long_ways = max(writer.long_ways, ways + 1)
            writer.long_way_ns = spent + time.perf_counter_ns() - start

    def set_declared(self, declared: Mapping[str, Any]) -> bool:
        """Set declared clocks if all are known and plain integers; False, with nothing counted, if one is not."""
        names = self._writer.clocks
        for name, value in declared.items():
            if type(value) is not int or name not in names:
                return False
        for name, value in declared.items():
            self._channel.current[names.index(name)] = value
        return True

    def take_declared(self, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Set the clocks that were declared in init; returns what was no clock reading, as values `clock/<name>`."""
        refused: dict[str, Any] = {}
        for name, value in declared.items():
            try:
                index = self._writer.clocks.index(name)
            except ValueError:
                self._writer.bill.count(
                    "unknown_clock",
                    message=f"log(…, {name}=…): no clock {name!r} was declared; the value is kept as 'clock/{name}'. "
                    f"Known clocks: {', '.join(self._writer.clocks)}. Declare it with init(clocks=[{name!r}])",
                )
                refused[f"clock/{name}"] = value
                continue
            self._set_clock(index, name, value, refused)
        return refused

    def clocks(self, given: tuple[Any, ...], declared: Mapping[str, Any]) -> tuple[list[int], dict[str, Any]]:
        """All clocks of a row, after setting those that were given; and the refused readings as values."""
        refused: dict[str, Any] = {}
        current = self._channel.current
        for index, value in enumerate(given):
            if value is not UNKNOWN and value != UNKNOWN:
                self._set_clock(index, STANDARD[index], value, refused)
        if declared:
            refused.update(self.take_declared(declared))
        return list(current), refused

    def _set_clock(self, index: int, name: str, value: Any, refused: dict[str, Any]) -> None:
        if value is None:
            return
        reading = as_clock(value)
        if reading is None:
            self._writer.bill.count(
                "odd_clock",
                message=f"log(…, {name}={value!r:.80}): a clock counts, so it takes an integer (or a float with an "
                f"integral value); this reading is kept as the value 'clock/{name}'",
            )
            refused[f"clock/{name}"] = value
        else:
            self._channel.current[index] = reading

    # -- one call

    def _log(self, values: Mapping[str, Any], given: tuple[Any, ...], declared: Mapping[str, Any]) -> None:
        writer, channel = self._writer, self._channel
        if not hasattr(values, "items"):
            writer.bill.count(
                "not_a_mapping",
                message=f"log() takes a dict of name -> value; it was given {type(values).__name__} {values!r:.80}",
            )
            return
        clocks, refused = self.clocks(given, declared)
        parts = self._sort(values)
        if refused:
            parts.same_keys = False
            for key, value in refused.items():
                number = scalar_of(value)
                if number is not None:
                    parts.numbers[f"{channel.prefix}{key}"] = number
                else:
                    parts.texts[f"{channel.prefix}{key}"] = str(value)
        if parts.numbers or parts.deferred:
            self._row(values, parts, clocks)
        common = {"scope": channel.scope, "at": channel.at, "clocks": clocks}
        if parts.texts:
            columns = {"key": list(parts.texts), "text": list(parts.texts.values())}
            writer.frame({"table": "text", **common, "n": len(parts.texts), "columns": columns})
        for key, array in parts.arrays.items():
            try:
                columns = {"key": [key], **histogram_columns(array)}
            except Exception as err:
                self._refuse(key, array, f" ({type(err).__name__}: {err})")
                continue
            writer.frame({"table": "histograms", **common, "n": 1, "columns": columns})
        for key, array in parts.device_arrays.items():
            writer.defer_array(key, array, {"table": "histograms", **common})

    def _sort(self, values: Mapping[str, Any]) -> _Parts:
        parts = _Parts()
        prefix = self._channel.prefix
        for name, value in flatten(values):
            if type(value) in _PLAIN:
                parts.numbers[f"{prefix}{name}"] = value
                continue
            try:
                self._sort_odd(parts, f"{prefix}{name}", value)
            except LoggingFailed:
                raise
            except Exception as err:  # an accessor of the caller's object failed
                self._refuse(name, value, f" ({type(err).__name__}: {err})")
        parts.same_keys = parts.same_keys and len(parts.numbers) == len(values) and not parts.deferred
        return parts

    def _sort_odd(self, parts: _Parts, key: str, value: Any) -> None:
        if value is None:
            parts.same_keys = False
        elif isinstance(value, (str, bytes, bytearray)):
            text = value if isinstance(value, str) else bytes(value).decode("utf-8", "backslashreplace")
            parts.texts[key] = text
        elif deferred.is_tracer(value):
            self._writer.bill.count(
                "tracer",
                message=f"log({{{key!r}: …}}) was called inside a JAX transformation, where there is no number yet; "
                "it was not kept. Use rollbook.adapters.jax.log there",
            )
        elif isinstance(value, Histogram):
            parts.arrays[key] = value
        elif deferred.is_deferred(value):
            single = deferred.elements(value) == 1
            (parts.deferred if single else parts.device_arrays)[key] = deferred.copy_on_device(value)
        elif (number := scalar_of(value)) is not None:
            parts.numbers[key] = number
        elif _is_array(value):
            parts.arrays[key] = value
        else:
            self._refuse(key, value)

    def _refuse(self, key: str, value: Any, why: str = "") -> None:
        self._writer.bill.count(
            "unloggable",
            message=f"log({{{key!r}: …}}): a {type(value).__name__} is no number, text or array of numbers{why:.300}; "
            "it was not kept, the rest of the row was. Convert it first",
        )

    def _row(self, values: Mapping[str, Any], parts: _Parts, clocks: list[int]) -> None:
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
            if stream is None:
                seq = self._rare_row(lane, numbers, parts.deferred, clocks)
            else:
                seq = self._stream_row(lane, stream, numbers, clocks)
                kinds = tuple(map(type, values.values()))
                if parts.same_keys and all(_packs(kind) for kind in kinds):
                    stream.types = kinds
                    lane.scopes.setdefault(channel.id, {})[tuple(values)] = stream
            if seq:
                for key, value in parts.deferred.items():
                    writer.defer(lane, seq, key, value)
        finally:
            writer.free.append(lane)

    def _stream_row(self, lane: Lane, stream: Stream, numbers: dict[str, Any], clocks: list[int]) -> int:
        from rollbook.journal.writer import now

        if stream.offset > stream.last:
            stream.roll(lane.seq + 1, may_keep=self._writer.may_keep_mapped())
        offset = stream.offset
        stream.offset = offset + stream.width
        seq = lane.seq = lane.seq + 1
        stream.pack(stream.buffer, offset, *clocks, now(), *numbers.values(), seq)
        return seq

    def _rare_row(self, lane: Lane, numbers: dict[str, Any], later: dict[str, Any], clocks: list[int]) -> int:
        from rollbook.journal.frames import encode
        from rollbook.journal.writer import now

        channel = self._channel
        payload: dict[str, Any] = {
            "table": channel.table,
            "scope": channel.scope,
            "at": channel.at,
            "clocks": clocks,
            "keys": list(numbers),
            "values": list(numbers.values()),
        }
        if later:
            payload["deferred"] = list(later)
        data, _problems = encode(payload)
        return lane.append(data, now())


def _packs(kind: type) -> bool:
    """Whether `struct` packs values of this type as they are: Python's numbers and numpy's 64-bit ones and below."""
    if kind in _PLAIN:
        return True
    return kind.__module__ == "numpy" and kind.__name__ in _NUMPY_PACKS


_NUMPY_PACKS = frozenset(
    ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
)


def _is_array(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(type(item) in _PLAIN or scalar_of(item) is not None for item in value)
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", ""))
    numeric = any(word in dtype for word in ("float", "int", "bool", "half", "double"))
    return shape is not None and numeric and deferred.elements(value) > 0


def histogram_columns(value: Any) -> dict[str, Any]:
    """The columns of one row of the `histograms` table: raw values up to `MAX_RAW_ARRAY` elements, else 64 bins."""
    if isinstance(value, Histogram):
        return {
            "edges": [list(value.edges)],
            "counts": [list(value.counts)],
            "low": [value.low],
            "high": [value.high],
            "total": [value.total],
            "total_squares": [value.total_squares],
        }
    if isinstance(value, (list, tuple)) and len(value) <= MAX_RAW_ARRAY:
        return {"values": [[float(item) for item in value]]}
    import numpy as np

    detached = value.detach() if hasattr(value, "detach") else value
    if str(getattr(detached, "dtype", "")).endswith("bfloat16"):  # numpy has no such type
        detached = detached.float()
    array = np.asarray(detached).reshape(-1)
    if array.dtype.kind == "O":
        array = np.array([float(item) for item in array.tolist()])
    elif array.dtype.kind not in "fiub":
        raise TypeError(f"its elements are {array.dtype}")
    if array.size <= MAX_RAW_ARRAY:
        return {"values": [array.tolist()]}
    array = array.astype(np.float64, copy=False)
    finite = array[np.isfinite(array)]
    if not finite.size:
        return {"values": [array[:MAX_RAW_ARRAY].tolist()]}
    counts, edges = np.histogram(finite, bins=64)
    return {
        "edges": [edges.tolist()],
        "counts": [counts.tolist()],
        "low": [float(finite.min())],
        "high": [float(finite.max())],
        "total": [float(finite.sum())],
        "total_squares": [float(np.square(finite).sum())],
        "non_finite": [int(array.size - finite.size)],
    }
