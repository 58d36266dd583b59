"""The rows of a segment as columns, read directly from their bytes without row objects."""

from __future__ import annotations

from array import array
from math import isfinite

from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.columns import Piece
from rollbook.schema.tables import timing_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rollbook.journal.format import SegmentHeader
    from rollbook.schema.columns import Part, Where


class BlockPiece(Piece):
    """Committed rows of one segment, in order.

    Args:
      header: the segment's header; none of its keys may be deferred.
      data: whole rows, all of them committed.
    """

    def __init__(self, header: SegmentHeader, data: bytes) -> None:
        self.table, self.attempt, self._header, self._data = header.table, header.attempt, header, data
        self._width = header.row_words
        self.n = len(data) // (8 * self._width)
        first = len(header.clocks) + 1
        names = map(timing_key, header.keys) if header.table == "timings" else header.keys
        self.keys = self._columns_of = {name: first + i for i, name in enumerate(names)}
        self._words: array[int] | None = None
        self._clocks: dict[str, array[int]] = {}

    def part(self, key: str) -> Part:
        """See `Piece`."""
        column = self._columns_of[key]
        cells, kind = self._column(column), self._header.types[column - len(self._header.clocks) - 1]
        values = array("d")
        if kind == "d":
            values.frombytes(cells.tobytes())
        else:
            values.extend(map(float, cells))
        return self, values, range(self.n)

    def time(self, row: int) -> int:
        """See `Piece`."""
        return self._all()[row * self._width + len(self._header.clocks)] + self._header.time_offset

    def times(self, step: int = 1) -> list[int]:
        """See `Piece`."""
        offset, at = self._header.time_offset, len(self._header.clocks)
        return [time + offset for time in self._all()[at :: self._width * step]]

    def clocks(self, name: str) -> array[int]:
        """See `Piece`."""
        if name not in self._clocks:  # several keys are asked for the same one
            known = name in self._header.clocks
            self._clocks[name] = (
                self._column(self._header.clocks.index(name)) if known else array("q", [UNKNOWN]) * self.n
            )
        return self._clocks[name]

    def where(self, row: int) -> Where:
        """See `Piece`."""
        header = self._header
        cells = self._all()[row * self._width : (row + 1) * self._width]
        time = (cells[len(header.clocks)] + header.time_offset) / 1e9
        clocks = {name: reading for name, reading in zip(header.clocks, cells, strict=False) if reading != UNKNOWN}
        return {
            "clocks": clocks,
            "time": time,
            "row": {"writer": header.writer, "lane": header.lane, "seq": cells[-1]},
        }

    def scope(self, row: int) -> str:
        """See `Piece`."""
        return self._header.scope

    def values(self, row: int) -> Mapping[str, object]:
        """See `Piece`."""
        return {key: self.part(key)[1][row] for key in self.keys}

    def non_finite(self) -> Collection[str]:
        """See `Piece`. Fast: the last byte of a float is its sign and the upper part of its exponent. For a NaN or an
        infinity it is 7f or ff, which other values almost never have.
        """
        last_bytes = self._data[7::8]
        if b"\x7f" not in last_bytes and b"\xff" not in last_bytes:
            return ()
        odd = []
        for (key, column), kind in zip(self._columns_of.items(), self._header.types, strict=True):
            if kind == "d":
                own = last_bytes[column :: self._width]
                if (b"\x7f" in own or b"\xff" in own) and not all(map(isfinite, self.part(key)[1])):
                    odd.append(key)
        return odd

    def _all(self) -> array[int]:
        if self._words is None:
            self._words = array("q")
            self._words.frombytes(self._data)
        return self._words

    def _column(self, at: int) -> array[int]:
        return self._all()[at :: self._width]
