"""The payload of a frame: one msgpack map with raw arrays. Encoding never raises for unusual data.

    data, problems = encode({"table": "samples", "n": 2, "columns": {"reward": numpy.zeros(2)}})
    decode(data)["columns"]["reward"].to_numpy()

Arrays are Ext code 1 (`dtype.str|shape|bytes`); integers beyond int64 are Ext code 2 (decimal digits). Decoding
executes nothing and allocates no more memory than the size of the data. numpy is not needed here.
"""

from __future__ import annotations

import sys

from rollbook.errors import Damaged
from rollbook.journal.small_frames import decode_small
from rollbook.system.guard import ours, raising, tolerating
from rollbook.values.arrays import host_array, plain_array
from rollbook.values.raw_array import ITEM_SIZES, RawArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.values.array_types import NDArray

ARRAY, BIG_INT = 1, 2

_DEEPEST = 64
_LONGEST_REPR = 10_000
_MOST_PROBLEMS = 8
_MOST_DIGITS = 4300
_MOST_EMPTY = 1 << 20
"""The longest side of an array with a side of 0: such an array has no bytes, so its row count is not checked by size.
"""

_MOST_DIMENSIONS = 32

_TIME_UNITS = frozenset(["Y]", "M]", "W]", "D]", "h]", "m]", "s]", "ms]", "us]", "ns]", "ps]", "fs]", "as]"])
_BUFFER_KINDS = {"d": "f8", "f": "f4", "e": "f2", "?": "b1", "c": "u1"}


def encode(payload: Mapping[str, object]) -> tuple[bytes, list[str]]:
    """The bytes of a frame's payload, and what had to be changed to write it.

    Numbers, text, bytes, lists, tuples, dicts and arrays on the host are stored unchanged. Anything that msgpack cannot
    store is replaced: broken text has its surrogates escaped, unknown objects become their repr, values that nest too
    deeply or contain themselves are cut. The list names each change (at most eight). Never raises for unusual data; a
    MemoryError or an interrupt passes through.
    """
    try:
        return _encoder()(payload), []
    except MemoryError:
        raise
    except ours(Exception):
        problems: list[str] = []
        clean = _clean(payload, "", problems, ())
        return _encoder()(clean), problems


def decode(data: bytes | memoryview) -> dict[str, Any]:
    """The payload of a frame.

    Raises:
      Damaged: the bytes are not a msgpack map, nest too deeply, or contain an array whose shape and size disagree.
    """
    if len(data) <= _SMALL and "msgspec" not in sys.modules and _cached.get("small", 0) < _FEW:
        _cached["small"] = _cached.get("small", 0) + 1
        small = decode_small(data)
        if small is not None:
            return small
    import msgspec

    try:
        payload = _decoder()(data)
    except Damaged:
        raise
    except ours(msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as err:
        raise Damaged(f"a frame of {len(data)} bytes is not msgpack as rollbook writes it ({err})") from None
    if type(payload) is not dict:
        raise Damaged(f"a frame holds a {type(payload).__name__} where a map was expected")
    return payload


_cached: dict[str, Any] = {}

_SMALL, _FEW = 4096, 500
"""This many frames of at most this many bytes are decoded without msgspec, which takes memory for good. More would take
longer than it takes to load."""


def _encoder() -> Callable[[object], bytes]:
    encoder: Callable[[object], bytes] | None = _cached.get("encode")
    if encoder is None:
        import msgspec

        encoder = _cached["encode"] = msgspec.msgpack.Encoder(enc_hook=_replace).encode
    return encoder


def _decoder() -> Callable[[bytes | memoryview], Any]:
    decoder: Callable[[bytes | memoryview], Any] | None = _cached.get("decode")
    if decoder is None:
        import msgspec

        decoder = _cached["decode"] = msgspec.msgpack.Decoder(ext_hook=_from_ext).decode
    return decoder


def _ext(code: int, data: bytes) -> object:
    import msgspec

    return msgspec.msgpack.Ext(code, data)


def _replace(value: object) -> object:
    """The replacement for an object that msgspec does not know. Raises TypeError if only the slow path can help."""
    interface = getattr(value, "__array_interface__", None)
    if interface is not None and getattr(value, "shape", None) != ():
        return _array(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if interface is not None or hasattr(value, "dtype"):
        plain = _item(value)
        if plain is not value:
            return plain
    on_host = _host_array(value)
    if on_host is not None:
        return _array(on_host) if on_host.shape != () else _item(on_host)
    buffer = _buffer(value)
    if buffer is not None:
        return buffer
    raise TypeError(f"objects of type {type(value).__qualname__}")


def _item(value: Any) -> object:
    """The Python scalar of a numpy scalar, 0-d array or one-element tensor, or `value` itself."""
    plain = plain_array(value).item()
    if type(plain) in (float, int, bool, str, bytes, complex):
        return [plain.real, plain.imag] if type(plain) is complex else plain
    if hasattr(plain, "isoformat"):
        return plain.isoformat()
    with tolerating(TypeError, ValueError):
        return float(plain)  # numpy.longdouble is its own item()
    return value


def _host_array(value: object) -> NDArray | None:
    """A tensor in host memory as a numpy array, or None. Never waits for a device."""
    device = getattr(value, "__dlpack_device__", None)
    if device is None or not hasattr(value, "__array__") or int(device()[0]) not in (1, 3):  # host, pinned host
        return None
    return host_array(value)


def _array(value: Any) -> object:
    """A numpy array as Ext code 1, or as lists if its type has no raw form."""
    value = plain_array(value)
    dtype = value.dtype
    if dtype.kind not in "biufcMm" or dtype.itemsize > 16 or dtype.str[1:].partition("[")[0] not in ITEM_SIZES:
        if dtype.kind == "f":  # longdouble
            return _array(value.astype("<f8"))
        return value.tolist()
    if dtype.str[0] == ">":
        value = value.astype(dtype.newbyteorder("<"))
        dtype = value.dtype
    head = f"{dtype.str}|{','.join(map(str, value.shape))}|".encode()
    return _ext(ARRAY, head + value.tobytes())


def _buffer(value: Any) -> object:
    """Anything else with the buffer protocol (array.array, ctypes) as Ext code 1, or None."""
    with tolerating(TypeError) as missed:
        view = memoryview(value)
    if missed:
        return None
    code = view.format.lstrip("@=<")
    if view.format[:1] in ">!" or (sys.byteorder == "big" and view.itemsize > 1):
        return None
    kind = _BUFFER_KINDS.get(code)
    if kind is None and code in "bhilqn":
        kind = f"i{view.itemsize}"
    if kind is None and code in "BHILQN":
        kind = f"u{view.itemsize}"
    if kind is None:
        return None
    order = "|" if view.itemsize == 1 else "<"
    return _ext(ARRAY, f"{order}{kind}|{','.join(map(str, view.shape or ()))}|".encode() + view.tobytes())


def _clean(value: Any, where: str, problems: list[str], above: tuple[int, ...]) -> object:
    """`value` converted to types that msgpack can store."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        return _clean_int(value, where, problems)
    if isinstance(value, str):
        return _clean_text(value, where, problems)
    if kind in (bytes, bytearray, memoryview):
        return bytes(value)
    if id(value) in above:
        _note(problems, where, "contains itself; it was cut there")
        return "<contains itself>"
    if len(above) >= _DEEPEST:
        _note(problems, where, f"nests more than {_DEEPEST} levels; the rest is its repr")
        return _safe_repr(value)
    try:
        return _clean_other(value, where, problems, (*above, id(value)))
    except MemoryError:
        raise
    except ours(Exception) as err:  # the caller's object failed: a property, iterator or conversion
        _note(problems, where, f"could not be read ({type(err).__name__}); it was kept as its repr")
        return _safe_repr(value)


def _clean_other(value: object, where: str, problems: list[str], above: tuple[int, ...]) -> object:
    import collections.abc as abc

    if isinstance(value, abc.Mapping):
        result: dict[object, object] = {}
        for name, item in value.items():
            key = _clean_key(name, where, problems)
            result[key] = _clean(item, f"{where}.{key}" if where else str(key), problems, above)
        return result
    if isinstance(value, (list, tuple, set, frozenset, abc.KeysView, abc.ValuesView)):
        return [_clean(item, f"{where}[{i}]", problems, above) for i, item in enumerate(value)]
    try:
        plain = _replace(value)
    except ours(TypeError):
        if hasattr(value, "__fspath__"):
            return _clean(value.__fspath__(), where, problems, above)
        native = _native(value)
        if native is not None:
            return _clean(native, where, problems, above)
        _note(problems, where, f"is a {type(value).__qualname__}, which cannot be stored; its repr was kept")
        return _safe_repr(value)
    if type(plain).__name__ == "Ext":
        return plain
    return _clean(plain, where, problems, above)


def _native(value: object) -> object:
    """Dataclasses, enums, dates and the like as msgspec converts them, or None."""
    import msgspec

    with tolerating(Exception):
        plain = msgspec.to_builtins(value)
        return None if plain is value else plain
    return None


def _clean_key(name: object, where: str, problems: list[str]) -> object:
    if isinstance(name, str):
        return _clean_text(name, where, problems)
    if type(name) is int:
        return _clean_int(name, where, problems)
    if name is None or type(name) in (bool, float, bytes):
        return name
    return _clean_text(_safe_repr(name), where, problems)


def _clean_int(value: int, where: str, problems: list[str]) -> object:
    if -(2**63) <= value < 2**63:
        return value
    if value.bit_length() > _MOST_DIGITS * 3:
        _note(problems, where, f"is an integer of {value.bit_length()} bits; only that was kept")
        return f"<integer of {value.bit_length()} bits>"
    return _ext(BIG_INT, str(value).encode())


def _clean_text(value: str, where: str, problems: list[str]) -> str:
    value = str.__str__(value)
    with tolerating(UnicodeEncodeError):
        value.encode()
        return value
    _note(problems, where, "is text with lone surrogates; they were escaped")
    return value.encode("utf-8", "backslashreplace").decode()


def _safe_repr(value: object) -> str:
    try:
        text = repr(value)[:_LONGEST_REPR]
    except ours(Exception) as err:
        text = f"<{type(value).__qualname__} whose repr failed: {type(err).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()


def _note(problems: list[str], where: str, what: str) -> None:
    if len(problems) < _MOST_PROBLEMS:
        problems.append(f"{where[:200] or 'the frame'} {what}".encode("utf-8", "backslashreplace").decode())


def _from_ext(code: int, data: memoryview) -> object:
    """The value of a msgpack extension; an unknown one stays as bytes."""
    raw = bytes(data)
    if code == BIG_INT:
        digits = raw[1:] if raw[:1] == b"-" else raw
        if not digits.isdigit() or len(digits) > _MOST_DIGITS:
            raise Damaged(f"a frame holds an integer of {len(digits)} characters that is not one")
        return int(raw)
    if code != ARRAY:
        return raw
    dtype, _, rest = raw[:1024].partition(b"|") if raw[:1] != b"|" else _bar_first(raw)
    shape_text, bar, _ = rest.partition(b"|")
    name = dtype.decode("ascii", "replace")
    kind, _, unit = name[1:].partition("[")
    timed = kind in ("M8", "m8")
    known = name[:1] in ("<", "|") and kind in ITEM_SIZES and (not unit or (timed and unit in _TIME_UNITS))
    if not bar or not known:
        raise Damaged(f"a frame holds an array of type {name[:40]!r}, which rollbook does not write")
    with raising(lambda _: Damaged(f"a frame holds an array of shape {shape_text[:40]!r}"), ValueError):
        shape = tuple(map(int, shape_text.split(b","))) if shape_text else ()
    body = raw[len(dtype) + len(shape_text) + 2 :]
    size = ITEM_SIZES[kind]
    for length in shape:
        size *= length
    if len(shape) > _MOST_DIMENSIONS or any(length < 0 for length in shape) or size != len(body):
        raise Damaged(f"a frame holds an array of {len(body)} bytes whose shape {shape_text[:40]!r} needs {size}")
    if not body and max(shape, default=0) > _MOST_EMPTY:
        raise Damaged(f"a frame holds an array of shape {shape_text[:40]!r} that takes no bytes")
    return RawArray(name, shape, body)


def _bar_first(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Split after a dtype that itself begins with the separator ("|b1", "|u1", "|i1")."""
    dtype, bar, rest = raw[1:1024].partition(b"|")
    return b"|" + dtype, bar, rest
