"""Configurations and results of frameworks as data that JSON holds, for people to read and compare."""

from __future__ import annotations

import math

from rollbook.ground.values.walk import Walk, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.ground.array_types import NDArray
    from rollbook.ground.values.walk import Place

__all__ = ["Described", "JsonData", "described", "json_data"]


class Described(Walk):
    """What an algorithm was made with: classes and functions by name, other objects by their text, no addresses."""

    deepest = 8

    def rest(self, value: object, place: Place, above: tuple[int, ...]) -> object:
        """See `Walk`."""
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return f"{value.__module__}.{value.__qualname__}"
        return text_of(value)

    def refused(self, value: object, place: Place) -> object:
        """See `Walk`."""
        return text_of(value)


class JsonData(Walk):
    """Strict JSON: numbers that it lacks (NaN, infinities) are None; what has no form is its repr.

    Attributes:
      odd: the first value that became its repr, None if there was none.
    """

    def __init__(self) -> None:
        self.odd: object = None

    def atom(self, value: object, place: Place) -> object:
        """See `Walk`."""
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return self.refused(value, place) if isinstance(value, bytes) else value

    def array(self, array: NDArray, place: Place, above: tuple[int, ...]) -> object:
        """See `Walk`."""
        return self.value(array.tolist(), place, above)

    def refused(self, value: object, place: Place) -> object:
        """See `Walk`."""
        self.odd = value if self.odd is None else self.odd
        return repr(value)


described = Described()
"""A configuration as plain data; see the class."""


def json_data(value: object) -> object:
    """A value as strict JSON data; see `JsonData`."""
    return JsonData()(value)
