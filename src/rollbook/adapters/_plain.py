"""Convert what frameworks configure, return or write as text to plain data that people can read and compare."""

from __future__ import annotations

import math

from rollbook.system.guard import tolerating
from rollbook.values.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.values.array_types import NDArray


class Described(Walk):
    """Constructor arguments of an algorithm: classes and functions by name, other objects as text without addresses."""

    deepest = 8

    def rest(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        """See `Walk`."""
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return f"{value.__module__}.{value.__qualname__}"
        return self.text_of(value)

    def refused(self, value: object, path: tuple[Any, ...]) -> object:
        """See `Walk`."""
        return self.text_of(value)


class JsonData(Walk):
    """Strict JSON: numbers that JSON lacks (NaN, infinities) become None, other objects their repr.

    Attributes:
      odd: the first value that became its repr; None if there was none.
    """

    def __init__(self) -> None:
        self.odd: object = None

    def atom(self, value: object, path: tuple[Any, ...]) -> object:
        """See `Walk`."""
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return self.refused(value, path) if isinstance(value, bytes) else value

    def array(self, array: NDArray, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        """See `Walk`."""
        return self.value(array.tolist(), path, above)

    def refused(self, value: object, path: tuple[Any, ...]) -> object:
        """See `Walk`."""
        self.odd = value if self.odd is None else self.odd
        return repr(value)


described = Described()
"""A configuration as plain data; see the class."""


def parsed(text: str, words: Mapping[str, object]) -> object:
    """A text from a file as a value: one of `words`, an integer, a float, else the text itself."""
    if text in words:
        return words[text]
    for kind in (int, float):
        with tolerating(ValueError):
            return kind(text)
    return text
