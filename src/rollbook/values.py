"""What can be logged, and what a sink can receive.

Numbers stay numbers (`float`, `int`, `bool`) and text stays `str`. The classes below are the other kinds. They are
plain and light: this file is imported by the training process and needs no numpy.
"""

from __future__ import annotations

from rollbook.foreign import is_foreign

__all__ = ["MAX_RAW_ARRAY", "Histogram", "Image", "Video", "flatten", "scalar_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

MAX_RAW_ARRAY = 4096
"""Arrays up to this many elements are kept raw and binned when read; larger ones are binned when logged."""


class _Slots:
    """Equality and repr for the small value classes."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inside})"


class Histogram(_Slots):
    """A distribution: how many values fell into each bin.

    Attributes:
      edges: the n + 1 increasing bin edges; bin i is [edges[i], edges[i + 1]), the last one closed.
      counts: n counts.
      low, high, total, total_squares: minimum, maximum, sum and sum of squares of the values themselves.
    """

    __slots__ = ("counts", "edges", "high", "low", "total", "total_squares")

    def __init__(
        self,
        edges: Sequence[float],
        counts: Sequence[float],
        *,
        low: float | None = None,
        high: float | None = None,
        total: float | None = None,
        total_squares: float | None = None,
    ) -> None:
        if len(edges) != len(counts) + 1 or not counts:
            raise ValueError(f"a histogram of n bins has n + 1 edges; got {len(counts)} counts and {len(edges)} edges")
        self.edges = tuple(map(float, edges))
        self.counts = tuple(map(float, counts))
        middles = [(a + b) / 2 for a, b in zip(self.edges, self.edges[1:], strict=False)]
        self.low = self.edges[0] if low is None else float(low)
        self.high = self.edges[-1] if high is None else float(high)
        if total is None:
            total = sum(m * c for m, c in zip(middles, self.counts, strict=True))
        if total_squares is None:
            total_squares = sum(m * m * c for m, c in zip(middles, self.counts, strict=True))
        self.total = float(total)
        self.total_squares = float(total_squares)

    @property
    def count(self) -> float:
        """How many values there were."""
        return sum(self.counts)


class Image(_Slots):
    """A picture kept as a file of the run. `path` is relative to the run folder."""

    __slots__ = ("height", "path", "width")

    def __init__(self, path: str, width: int, height: int) -> None:
        self.path, self.width, self.height = path, width, height


class Video(_Slots):
    """A film kept as a file of the run. `path` is relative to the run folder; `fps` is frames per second."""

    __slots__ = ("fps", "frames", "height", "path", "width")

    def __init__(self, path: str, width: int, height: int, frames: int, fps: float) -> None:
        self.path, self.width, self.height, self.frames, self.fps = path, width, height, frames, fps


def flatten(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings with their names joined by "/": {"loss": {"pi": 1}} gives ("loss/pi", 1).

    A mapping that contains itself ends at the second meeting (its `repr` becomes the leaf).
    """
    yield from _flatten(values, prefix, ())


def _flatten(values: Mapping[Any, Any], prefix: str, above: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    above = (*above, id(values))
    for name, value in values.items():
        key = f"{prefix}{name}"
        if not _is_mapping(value):
            yield key, value
        elif id(value) in above:
            yield key, repr(value)
        else:
            yield from _flatten(value, f"{key}/", above)


def _is_mapping(value: Any) -> bool:
    try:
        if not (hasattr(value, "items") and hasattr(value, "keys")):
            return False
        for _ in value.items():
            break
    except Exception as raised:  # an object that raises whatever it is asked for
        if is_foreign(raised):
            raise
        return False
    return True


def scalar_of(value: Any) -> float | int | bool | None:
    """The Python number that `value` stands for, or None if it is no single real number.

    Knows Python's numbers, numpy's scalars and anything with one element and an `item` method that lies in host
    memory (0-d arrays, CPU tensors). Does not look at devices: ask `is_deferred` of the journal first.
    """
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return value  # type: ignore[no-any-return]
    if isinstance(value, (bool, int, float)):
        return float(value) if isinstance(value, float) else int(value)
    item = getattr(value, "item", None)
    if item is not None:
        try:
            value = item()
        except (TypeError, ValueError, RuntimeError) as raised:
            if is_foreign(raised):
                raise
            return None
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            return value  # type: ignore[no-any-return]
    if isinstance(value, (complex, str, bytes, bytearray)):
        return None
    try:
        if hasattr(value, "__index__"):
            return int(value.__index__())
        if hasattr(value, "__float__"):  # Decimal, Fraction, numpy.longdouble
            return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as raised:
        if is_foreign(raised):
            raise
        return None
    return None
