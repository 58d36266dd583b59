"""An array as stored in a frame, readable with and without numpy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

_STRUCT_CODES = {
    "f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b",
    "u8": "Q", "u4": "I", "u2": "H", "u1": "B", "b1": "?", "M8": "q", "m8": "q",
}  # fmt: skip
ITEM_SIZES = {**{code: int(code[1:]) for code in _STRUCT_CODES}, "c8": 8, "c16": 16}
"""Bytes of one value, by the dtype's letter and size."""


class RawArray:
    """An array as stored in a frame: a dtype string, a shape and little-endian bytes in C order.

    Attributes:
      dtype: numpy's `dtype.str`, such as "<f8"; always a plain number, boolean or time type.
      shape: its lengths, () for a single value.
      data: the bytes.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes) -> None:
        self.dtype, self.shape, self.data = dtype, shape, data

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawArray) and (self.dtype, self.shape, self.data) == (
            other.dtype,
            other.shape,
            other.data,
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape, self.data))

    def __repr__(self) -> str:
        return f"RawArray({self.dtype!r}, {self.shape})"

    def to_numpy(self) -> numpy.ndarray:
        """The same values as a read-only numpy array over the same bytes."""
        import numpy

        return numpy.frombuffer(self.data, dtype=numpy.dtype(self.dtype)).reshape(self.shape)

    def flat(self) -> tuple[object, ...]:
        """All values in C order as Python numbers, without numpy. Times are integers, complex values are pairs."""
        import struct

        kind = self.dtype[1:].partition("[")[0]
        if kind in ("c8", "c16"):
            code, size = ("f", 4) if kind == "c8" else ("d", 8)
            parts = struct.unpack(f"<{len(self.data) // size}{code}", self.data)
            return tuple(zip(parts[::2], parts[1::2], strict=True))
        return struct.unpack(f"<{len(self.data) // ITEM_SIZES[kind]}{_STRUCT_CODES[kind]}", self.data)

    def rows(self) -> list[object]:
        """The items along the first axis: Python numbers for one axis, smaller RawArrays for more."""
        if len(self.shape) <= 1:
            return list(self.flat())
        n, inner = self.shape[0], self.shape[1:]
        width = len(self.data) // n if n else 0
        return [RawArray(self.dtype, inner, self.data[i * width : (i + 1) * width]) for i in range(n)]
