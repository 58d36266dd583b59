"""Values other than numbers and text, as a sink gets them: distributions, images and videos."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_RAW_ARRAY = 4096
"""Arrays up to this many elements are stored raw and binned when read; larger ones are binned when logged."""


class _Slots:
    """Equality and repr for the small value classes."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inside})"


class Histogram(_Slots):
    """A distribution: the number of values in each bin.

    Attributes:
      edges: the n + 1 increasing bin edges; bin i is [edges[i], edges[i + 1]); the last bin includes its upper edge.
      counts: n counts.
      low, high, total, total_squares: minimum, maximum, sum and sum of squares of the values.
    Raises:
      ValueError: there is no bin, or the number of edges is not one more than that of counts.
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
        """The number of values."""
        return sum(self.counts)


class Image(_Slots):
    """An image stored as a file of the run.

    Args:
      path: relative to the run's folder.
      width, height: pixels.
    """

    __slots__ = ("height", "path", "width")

    def __init__(self, path: str, width: int, height: int) -> None:
        self.path, self.width, self.height = path, width, height


class Video(_Slots):
    """A video stored as a file of the run.

    Args:
      path: relative to the run's folder.
      width, height: pixels.
      frames: how many.
      fps: frames per second.
    """

    __slots__ = ("fps", "frames", "height", "path", "width")

    def __init__(self, path: str, width: int, height: int, frames: int, fps: float) -> None:
        self.path, self.width, self.height, self.frames, self.fps = path, width, height, frames, fps


Value = float | int | bool | str | Histogram | Image | Video
"""The types of values that a sink gets. `str` is text."""
