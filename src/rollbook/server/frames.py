"""Arrays for a browser: a small JSON header and raw little-endian numbers.

bytes 0-3    RBF1
bytes 4-7    uint32 H, bytes of the header
bytes 8-11   uint32 P, bytes of the payload
bytes 12-15  zero
H bytes      JSON, padded with spaces; 16 + H and P are multiples of 8
P bytes      arrays, each at a multiple of 8; arrays with identical bytes are stored once
"""

from __future__ import annotations

import struct
from typing import Any, Literal

import msgspec
import numpy as np

from rollbook.values.array_types import NDArray

__all__ = ["MEDIA_TYPE", "Array", "Frame", "unpack"]


class Array(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An array in the payload of a frame: value i is b + s * raw[i].

    Attributes:
      o: byte offset in the payload; n: length; t: f8, f4, u4, i4, u2 or u1.
    """

    o: int
    n: int
    t: Literal["f8", "f4", "u4", "i4", "u2", "u1"]
    b: float = 0.0
    s: float = 1.0


MEDIA_TYPE = "application/x-rollbook-frames"

_KINDS = {"f8": "<f8", "f4": "<f4", "u4": "<u4", "i4": "<i4", "u2": "<u2", "u1": "|u1"}
_HEAD = struct.Struct("<4sIII")
_SMALLEST_SPREAD = 1e-30


class Frame:
    """One frame while it is filled: entries with their arrays."""

    def __init__(self) -> None:
        self.entries: list[msgspec.Struct] = []
        self._parts: list[bytes] = []
        self._offsets: dict[bytes, int] = {}
        self._size = 0

    def exact(self, values: NDArray) -> Array:
        """An array as float64."""
        return self._add(np.ascontiguousarray(values, dtype="<f8"), "f8")

    def counts(self, values: NDArray) -> Array:
        """Integers from 0 on, in as few bytes as possible."""
        top = int(values.max()) if len(values) else 0
        kind = "u1" if top < 1 << 8 else "u2" if top < 1 << 16 else "u4"
        return self._add(np.minimum(values, 0xFFFFFFFF).astype(_KINDS[kind]), kind)

    def near(self, values: NDArray, base: float) -> Array:
        """An array as float32 around a base: the error is a ten-millionth of the distance from the base.

        Args:
          base: a number among the values; the same one for min, mean and max of a curve.
        """
        if not np.isfinite(base):
            return self.exact(values)
        with np.errstate(over="ignore", invalid="ignore"):
            small = (values - base).astype("<f4")
            finite = np.isfinite(small)
            if not finite.all() and not np.array_equal(finite, np.isfinite(values)):  # too large for float32
                return self.exact(values)
        array = self._add(small, "f4")
        array.b = float(base)
        return array

    def steps(self, values: NDArray) -> Array:
        """Positions along an axis as 65,535 equal steps: a thirtieth of a pixel on a wide screen."""
        finite = len(values) > 0 and bool(np.isfinite(values).all())
        low, high = (float(values.min()), float(values.max())) if finite else (0.0, 0.0)
        if not finite or not np.isfinite(high - low) or high - low < _SMALLEST_SPREAD:
            return self.exact(values)
        step = (high - low) / 65_535
        array = self._add(np.rint((values - low) / step).astype("<u2"), "u2")
        array.b, array.s = low, step
        return array

    def pack(self, *, last: bool, took_ms: float) -> bytes:
        """The frame as bytes."""
        header = msgspec.json.encode({"entries": self.entries, "last": last, "took_ms": took_ms})
        header += b" " * (-len(header) % 8)
        return b"".join([_HEAD.pack(b"RBF1", len(header), self._size, 0), header, *self._parts])

    def _add(self, values: NDArray, kind: Any) -> Array:
        raw = values.tobytes()
        offset = self._offsets.setdefault(raw, self._size)  # runs of one schedule share their positions along the axis
        if offset == self._size:
            self._parts += [raw, bytes(-len(raw) % 8)]
            self._size += len(raw) + -len(raw) % 8
        return Array(o=offset, n=len(values), t=kind)


def unpack(body: bytes) -> list[tuple[dict[str, object], dict[int, dict[str, NDArray]]]]:
    """Frames as (header, {number of the entry: {name: array}}). For tests and scripts.

    Args:
      body: the body of an answer: one frame or several, one after the other.
    Raises:
      ValueError: something else than a frame.
    """
    frames = []
    offset = 0
    while offset < len(body):
        magic, header_size, size, _ = _HEAD.unpack_from(body, offset)
        if magic != b"RBF1":
            raise ValueError(f"no frame at byte {offset}")
        start = offset + _HEAD.size + header_size
        header = msgspec.json.decode(body[offset + _HEAD.size : start])
        arrays = {
            number: {
                name: _array(body, start, entry)
                for group in ("arrays", "bad")
                for name, entry in (
                    ((f"{group}." if group == "bad" else "") + n, e) for n, e in (each.get(group) or {}).items()
                )
            }
            for number, each in enumerate(header["entries"])
        }
        frames.append((header, arrays))
        offset = start + size
    return frames


def _array(body: bytes, start: int, entry: dict[str, Any]) -> NDArray:
    raw = np.frombuffer(body, dtype=_KINDS[entry["t"]], count=entry["n"], offset=start + entry["o"])
    if "b" not in entry and "s" not in entry:
        return raw
    scaled: NDArray = entry.get("b", 0.0) + entry.get("s", 1.0) * raw.astype(np.float64)
    return scaled
