"""Converts foreign values to what a journal frame can store: plain data and arrays.

Observations, infos, options and sample items come from the user's code. Parts that can be stored are stored as they
are. A part that cannot is named by its path, so that the caller can report it once and keep the rest.
"""

from __future__ import annotations

from rollbook.values.walk import ATOMS, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.values.array_types import NDArray


class _Unstorable:
    """The result of `plain` for a value that no frame can store."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSTORABLE"

    def __bool__(self) -> bool:
        return False


UNSTORABLE = _Unstorable()


class _Refused(Exception):
    """Some part of a value cannot be stored."""


class _Storing(Walk):
    """Converts to lists and dicts with text keys. A single array stays an array, one in a container becomes a list."""

    def array(self, array: NDArray, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        del above
        return array.tolist() if path or not array.ndim else array.copy()

    def refused(self, value: object, path: tuple[Any, ...]) -> object:
        raise _Refused


_store = _Storing()


def is_array(value: Any) -> bool:
    """Whether `value` is a numpy array of numbers with at least one axis, so it can be stored as raw bytes."""
    return hasattr(value, "__array_interface__") and value.ndim > 0 and value.dtype.kind in "biufcMm"


def plain(value: object) -> Any:
    """`value` as plain data or as a numpy array; UNSTORABLE as a whole if any part is."""
    try:
        return _store(value)
    except _Refused:
        return UNSTORABLE


def copied(value: Any) -> object:
    """A copy of `value`: environments may overwrite the same array at the next step."""
    if type(value) in ATOMS:
        return value
    if is_array(value):
        return value.copy()
    return plain(value)


def flat(name: str, value: Any, cells: dict[str, Any], tuples: bool = True, depth: int = 0) -> None:
    """Put the leaves of nested dicts and tuples into `cells`, named `name/key` and `name/0`. Leaves are copied.

    Lists are leaves, because their length may change from step to step. Tuples of plain numbers are leaves too, unless
    `tuples` is set (a Tuple space has a fixed number of parts).
    """
    kind = type(value)
    if kind in ATOMS:
        cells[name] = value
    elif kind is not dict and is_array(value):
        cells[name] = value.copy()
    elif depth > _store.deepest:
        cells[name] = UNSTORABLE
    elif hasattr(value, "items") and hasattr(value, "keys"):
        for key, inner in value.items():
            flat(f"{name}/{key}", inner, cells, tuples, depth + 1)
    elif isinstance(value, tuple) and value and (tuples or not all(type(inner) in ATOMS for inner in value)):
        fields = getattr(value, "_fields", None) or range(len(value))
        for key, inner in zip(fields, value, strict=True):
            flat(f"{name}/{key}", inner, cells, tuples, depth + 1)
    else:
        cells[name] = plain(value)
