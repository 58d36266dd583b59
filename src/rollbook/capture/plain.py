"""Foreign values turned into what a frame of the journal holds: plain data and arrays.

Observations, infos, options and sample items come from other people's code. What can be stored is stored as it is,
what cannot is named by its path so that the caller can say so once and keep the rest.
"""

from __future__ import annotations

from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ATOMS", "UNSTORABLE", "copied", "flat", "is_array", "on_host", "plain"]

DEEPEST = 12
"""Nesting beyond this is refused; it also ends what contains itself."""


class _Unstorable:
    """What `plain` returns for a value that no frame can hold."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSTORABLE"

    def __bool__(self) -> bool:
        return False


UNSTORABLE = _Unstorable()

ATOMS = frozenset((float, int, bool, str, bytes, type(None)))
"""Types whose values are stored as they are, and never change."""

_RAW_KINDS = "biufcMm"


def is_array(value: Any) -> bool:
    """Whether `value` is a numpy array of numbers with at least one axis: it can be stored as raw bytes."""
    return hasattr(value, "__array_interface__") and value.ndim > 0 and value.dtype.kind in _RAW_KINDS


def on_host(value: Any) -> Any:
    """The numpy array of a tensor or array of any framework, or None. Waits for the device if there is one."""
    if hasattr(value, "__array_interface__"):
        return value
    if not (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return None
    try:
        for name in ("detach", "cpu"):
            method = getattr(value, name, None)
            if method is not None:
                value = method()
        if str(getattr(value, "dtype", "")).endswith("bfloat16"):  # numpy has no such type; every value fits a float32
            convert = getattr(value, "float", None)
            value = convert() if convert is not None else value.astype("float32")
        import numpy

        array = numpy.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in _RAW_KINDS else None


def copied(value: Any) -> Any:
    """`value` as it is now: environments may write into the same array again at the next step."""
    if type(value) in ATOMS:
        return value
    if is_array(value):
        return value.copy()
    return plain(value)


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as plain data or as a numpy array of its own, or UNSTORABLE, as a whole, if some part is."""
    if type(value) in ATOMS:
        return value
    if depth > DEEPEST:
        return UNSTORABLE
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if is_array(value):
        return value.copy() if depth == 0 else value.tolist()
    number = scalar_of(value) if not isinstance(value, (list, tuple, dict, set, frozenset)) else None
    if number is not None:
        return number
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and fields is not None:
        value = dict(zip(fields, value, strict=True))
    if hasattr(value, "items") and hasattr(value, "keys"):
        found = {}
        for name, inner in value.items():
            kept = plain(inner, depth + 1)
            if kept is UNSTORABLE:
                return UNSTORABLE
            found[str(name)] = kept
        return found
    if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
        items = []
        for inner in value:
            kept = plain(inner, depth + 1)
            if kept is UNSTORABLE:
                return UNSTORABLE
            items.append(kept)
        return items
    array = on_host(value)
    if array is not None:
        return array.copy() if depth == 0 and array.ndim else array.tolist()
    if hasattr(value, "__array_interface__") and value.dtype.kind in "OUS":
        return plain(value.tolist(), depth)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return UNSTORABLE


def flat(name: str, value: Any, found: dict[str, Any], tuples: bool = True, depth: int = 0) -> None:
    """Put the leaves of nested dicts and tuples into `found`, named `name/key` and `name/0`; leaves are copied.

    Lists are leaves: their length may change from step to step. So are tuples of plain numbers, unless `tuples` (a
    Tuple space has a fixed number of parts).
    """
    kind = type(value)
    if kind in ATOMS:
        found[name] = value
    elif kind is not dict and is_array(value):
        found[name] = value.copy()
    elif depth > DEEPEST:
        found[name] = UNSTORABLE
    elif hasattr(value, "items") and hasattr(value, "keys"):
        for key, inner in value.items():
            flat(f"{name}/{key}", inner, found, tuples, depth + 1)
    elif isinstance(value, tuple) and value and (tuples or not all(type(inner) in ATOMS for inner in value)):
        fields = getattr(value, "_fields", None) or range(len(value))
        for key, inner in zip(fields, value, strict=True):
            flat(f"{name}/{key}", inner, found, tuples, depth + 1)
    else:
        found[name] = plain(value)
