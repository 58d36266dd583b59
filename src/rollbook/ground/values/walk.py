"""One pass over a nested value of somebody else's, part by part, to plain data.

    class Lengths(Walk):
        def atom(self, value, place):
            return len(str(value))

    Lengths()({"a": [10, numpy.float32(0.5)]})      # {"a": [2, 3]}

The order in which a value is asked what it is stands here once: None, numbers, text and bytes; what contains itself or
nests too deeply; mappings and whatever is made of named values; sequences and sets; single numbers and arrays of any
framework. Each kind has a method that says what becomes of it.
"""

from __future__ import annotations

import re

from rollbook.ground.foreign import ours
from rollbook.ground.values.arrays import array_or_none
from rollbook.ground.values.scalars import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.ground.array_types import NDArray

    Place = tuple[Any, ...]
    """The way to a value: () for the whole, (place of what holds it, name or number) for a part."""

__all__ = ["ATOMS", "Walk"]

ATOMS = frozenset((float, int, bool, str, bytes, type(None)))
"""Types whose values are plain, and never change."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Walk:
    """The pass. Call it with a value; override what is to be different.

    Attributes:
      deepest: how many containers may lie in each other; beyond that, `refused` is asked.
    """

    deepest = 12

    def __call__(self, value: object) -> object:
        """`value` as plain data. Raises what `refused` raises, and what the value's own accessors do."""
        return self.value(value, (), ())

    def value(self, value: object, place: Place, above: tuple[int, ...]) -> object:
        """One part; `above` holds the `id` of each container around it."""
        if type(value) in ATOMS:
            return self.atom(value, place)
        if isinstance(value, str):
            return self.atom(str.__str__(value), place)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.atom(bytes(value), place)
        if id(value) in above:
            return self.again(value, place, above)
        if len(above) > self.deepest:
            return self.refused(value, place)
        return self.other(value, place, (*above, id(value)))

    def other(self, value: Any, place: Place, above: tuple[int, ...]) -> object:
        """What is neither plain nor too deep."""
        if isinstance(value, type):  # of a mapping, say: it has all the methods and none of the parts
            return self.rest(value, place, above)
        fields = self.parts(value)
        if fields is not None:
            return self.mapping(fields, place, above)
        if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
            return self.sequence(value, place, above)
        number = scalar_of(value)
        if number is not None:
            return self.atom(number, place)
        array = array_or_none(value)
        if array is not None:
            return self.array(array, place, above)
        if hasattr(value, "__array_interface__"):  # objects, each by itself
            return self.value(value.tolist(), place, above)
        return self.rest(value, place, above)

    def parts(self, value: object) -> Iterable[tuple[Any, Any]] | None:
        """The named values that `value` is made of, None if it is not: mappings and named tuples."""
        fields = getattr(value, "_fields", None)
        if fields is not None and isinstance(value, tuple):
            return zip(fields, value, strict=True)
        return value.items() if hasattr(value, "items") and hasattr(value, "keys") else None

    def atom(self, value: object, place: Place) -> object:
        """None, a Python number, text or bytes."""
        del place
        return value

    def key(self, name: object) -> object:
        """The name of a part of a mapping."""
        return str(name)

    def mapping(self, parts: Iterable[tuple[object, object]], place: Place, above: tuple[int, ...]) -> object:
        """Named values."""
        return {self.key(name): self.value(inner, (place, name), above) for name, inner in parts}

    def sequence(self, items: Iterable[object], place: Place, above: tuple[int, ...]) -> Any:
        """Values in a row, or in a set."""
        return [self.value(inner, (place, number), above) for number, inner in enumerate(items)]

    def array(self, array: NDArray, place: Place, above: tuple[int, ...]) -> object:
        """A numpy array."""
        del place, above
        return array.tolist()

    def rest(self, value: object, place: Place, above: tuple[int, ...]) -> object:
        """Whatever is none of these."""
        del above
        return str(value.isoformat()) if hasattr(value, "isoformat") else self.refused(value, place)

    def again(self, value: object, place: Place, above: tuple[int, ...]) -> object:
        """A container inside of itself."""
        del above
        return self.refused(value, place)

    def refused(self, value: object, place: Place) -> object:
        """What has no plain form."""
        del place
        return self.repr_of(value)

    @staticmethod
    def repr_of(value: object, longest: int | None = None) -> str:
        """`repr(value)` without memory addresses, so that it reads the same in every run; never raises for its own
        sake."""
        return _said(value, repr, longest)

    @staticmethod
    def text_of(value: object) -> str:
        """`str(value)` without memory addresses; never raises for its own sake."""
        return _said(value, str, None)


def _said(value: Any, by: Any, longest: int | None) -> str:
    try:
        text = by(value)
    except ours(Exception) as err:
        text = f"<{type(value).__qualname__} whose {by.__name__} failed: {type(err).__name__}>"
    text = _ADDRESS.sub("", text)
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"
