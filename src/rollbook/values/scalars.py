"""A value as a number, and the leaves of nested mappings."""

from __future__ import annotations

from rollbook.system.guard import ours, tolerating
from rollbook.values.arrays import plain_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def flatten(values: Mapping[Any, object], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings, their names joined with "/": {"loss": {"pi": 1}} gives ("loss/pi", 1).

    A mapping that contains itself ends at its second occurrence (its `repr` becomes the leaf).

    Args:
      values: name -> value or mapping.
      prefix: put before each name, without a separator.
    """
    yield from _flatten(values, prefix, ())


def _flatten(values: Mapping[Any, Any], prefix: str, above: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    above = (*above, id(values))
    for name, value in values.items():
        key = f"{prefix}{name if type(name) is str else key_of(name)}"
        if not _is_mapping(value):
            yield key, value
        elif id(value) in above:
            yield key, repr(value)
        else:
            yield from _flatten(value, f"{key}/", above)


def key_of(name: Any) -> str:
    """The text of a key: the value of an enum's member, the letters of bytes, `str` of anything else."""
    if isinstance(name, str):
        return str.__str__(name)
    if hasattr(type(name), "__members__") and hasattr(name, "value"):
        return key_of(name.value)
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)


def is_missing(value: object) -> bool:
    """Whether a value means "missing": None, and NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_mapping(value: object) -> bool:
    try:
        if not (hasattr(value, "items") and hasattr(value, "keys")) or hasattr(value, "dtype"):  # a Series is an array
            return False
        for _ in value.items():
            break
    except ours(Exception):  # an object that raises at any access
        return False
    return True


def scalar_of(value: Any) -> float | int | bool | None:
    """`value` as a Python number, or None if it is not a single real number.

    Accepts Python numbers, numpy scalars, and anything in host memory with one element and an `item` method (0-d
    arrays, CPU tensors). Does not check devices: call `is_deferred` of the journal first.

    Args:
      value: anything.
    """
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return value  # type: ignore[no-any-return]
    if isinstance(value, (bool, int, float)):
        return float(value) if isinstance(value, float) else int(value)
    item = getattr(value, "item", None)
    if item is not None:
        if hasattr(value, "filled"):  # a masked array or element: masked data is not its value
            item = plain_array(value).item
        try:
            value = item()
        except ours(TypeError, ValueError, RuntimeError):
            return None
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            return value  # type: ignore[no-any-return]
    if isinstance(value, (complex, str, bytes, bytearray)) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return None
    try:
        if hasattr(value, "__index__"):
            return int(value.__index__())
        if hasattr(value, "__float__"):  # Decimal, Fraction, numpy.longdouble
            return float(value)
    except ours(TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return None


def as_float(value: Any) -> float:
    """The nearest float; an integer beyond the float range becomes an infinity."""
    with tolerating(OverflowError):
        return float(value)
    return float("inf") if value > 0 else float("-inf")
