"""Converts a nested foreign value to plain data in one pass, part by part.

    class Lengths(Walk):
        def atom(self, value, path):
            return len(str(value))

    Lengths()({"a": [10, numpy.float32(0.5)]})      # {"a": [2, 3]}

The order of the type checks is defined here once: None, numbers, text and bytes; values that contain themselves or nest
too deeply; mappings and other named values; sequences and sets; single numbers and arrays of any framework. Each kind
has a method that converts it.
"""

from __future__ import annotations

import re

from rollbook.system.guard import ours
from rollbook.values.arrays import array_or_none
from rollbook.values.scalars import key_of, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.values.array_types import NDArray

    ValuePath = tuple[Any, ...]
    """The path to a value: () for the whole, (path of its container, name or number) for a part."""

ATOMS = frozenset((float, int, bool, str, bytes, type(None)))
"""Types whose values are plain and immutable."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Walk:
    """The pass. Call it with a value; override the methods that should differ.

    Attributes:
      deepest: the largest nesting depth; beyond it, `refused` is called.
    """

    deepest = 12

    def __call__(self, value: object) -> object:
        """`value` as plain data. Raises the exceptions of `refused` and of the value's own accessors."""
        return self.value(value, (), ())

    def value(self, value: object, path: ValuePath, above: tuple[int, ...]) -> object:
        """One part; `above` has the `id` of each enclosing container."""
        if type(value) in ATOMS:
            return self.atom(value, path)
        if isinstance(value, str):
            return self.atom(str.__str__(value), path)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.atom(bytes(value), path)
        if id(value) in above:
            return self.again(value, path, above)
        if len(above) > self.deepest:
            return self.refused(value, path)
        return self.other(value, path, (*above, id(value)))

    def other(self, value: Any, path: ValuePath, above: tuple[int, ...]) -> object:
        """A value that is neither plain nor too deep."""
        if isinstance(value, type):  # for example a mapping class: it has the methods but no parts
            return self.rest(value, path, above)
        fields = self.parts(value)
        if fields is not None:
            return self.mapping(fields, path, above)
        if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
            return self.sequence(value, path, above)
        number = scalar_of(value)
        if number is not None:
            return self.atom(number, path)
        array = array_or_none(value)
        if array is not None:
            return self.array(array, path, above)
        if hasattr(value, "__array_interface__"):  # an array of objects: each separately
            return self.value(value.tolist(), path, above)
        return self.rest(value, path, above)

    def parts(self, value: object) -> Iterable[tuple[Any, Any]] | None:
        """The named values in `value`, for mappings and named tuples; None for others."""
        fields = getattr(value, "_fields", None)
        if fields is not None and isinstance(value, tuple):
            return zip(fields, value, strict=True)
        return value.items() if hasattr(value, "items") and hasattr(value, "keys") else None

    def atom(self, value: object, path: ValuePath) -> object:
        """None, a Python number, text or bytes."""
        del path
        return value

    def key(self, name: object) -> object:
        """The name of a part of a mapping."""
        return key_of(name)

    def mapping(self, parts: Iterable[tuple[object, object]], path: ValuePath, above: tuple[int, ...]) -> object:
        """Named values."""
        return {self.key(name): self.value(inner, (path, name), above) for name, inner in parts}

    def sequence(self, items: Iterable[object], path: ValuePath, above: tuple[int, ...]) -> Any:
        """Values in a sequence or a set."""
        return [self.value(inner, (path, number), above) for number, inner in enumerate(items)]

    def array(self, array: NDArray, path: ValuePath, above: tuple[int, ...]) -> object:
        """A numpy array."""
        del path, above
        return array.tolist()

    def rest(self, value: object, path: ValuePath, above: tuple[int, ...]) -> object:
        """Any other value."""
        del above
        return str(value.isoformat()) if hasattr(value, "isoformat") else self.refused(value, path)

    def again(self, value: object, path: ValuePath, above: tuple[int, ...]) -> object:
        """A container inside itself."""
        del above
        return self.refused(value, path)

    def refused(self, value: object, path: ValuePath) -> object:
        """A value without a plain form."""
        del path
        return self.repr_of(value)

    @staticmethod
    def repr_of(value: object, longest: int | None = None) -> str:
        """`repr(value)` without memory addresses, so that it is the same in every run; an error becomes a text."""
        return _text_of(value, repr, longest)

    @staticmethod
    def text_of(value: object) -> str:
        """`str(value)` without memory addresses. An error becomes a text."""
        return _text_of(value, str, None)


def _text_of(value: Any, by: Any, longest: int | None) -> str:
    try:
        text = by(value)
    except ours(Exception) as err:
        text = f"<{type(value).__qualname__} whose {by.__name__} failed: {type(err).__name__}>"
    text = _ADDRESS.sub("", text)
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"
