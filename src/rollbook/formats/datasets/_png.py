"""Encode and decode PNG with the standard library only: 8 bits, grey, RGB or RGBA, not interlaced."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from rollbook.errors import Damaged
from rollbook.values.array_types import NDArray
from rollbook.values.spool.picture_files import PNG_SIGNATURE, png_chunk

_COLOURS = {1: 0, 3: 2, 4: 6}
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """[height, width] or [height, width, 1, 3 or 4] as PNG."""
    cells = picture[..., None] if picture.ndim == 2 else picture
    height, width, channels = cells.shape
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # each line begins with its filter: 0, none
    lines[:, 1:] = cells.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    return b"".join(
        (
            PNG_SIGNATURE,
            png_chunk(b"IHDR", head),
            png_chunk(b"IDAT", zlib.compress(lines.tobytes(), 4)),
            png_chunk(b"IEND", b""),
        )
    )


def pixels(data: bytes) -> npt.NDArray[np.uint8]:
    """A PNG as [height, width] for grey, [height, width, channels] otherwise.

    Raises:
      Damaged: not a PNG, or one of another kind (16 bits, a palette, interlaced).
    """
    try:
        return _decode(data)
    except (ValueError, KeyError, IndexError, struct.error, zlib.error) as err:
        raise Damaged(f"a picture of {len(data)} bytes cannot be read here as a PNG ({err})") from None


def _decode(data: bytes) -> npt.NDArray[np.uint8]:
    if data[:8] != PNG_SIGNATURE:
        raise ValueError("other magic bytes")
    at, body, head = 8, [], b""
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            head = data[at + 8 : at + 8 + size]
        elif kind == b"IDAT":
            body.append(data[at + 8 : at + 8 + size])
        at += 12 + size
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if depth != 8 or interlaced or width * height > 1 << 28:
        raise ValueError(f"{depth} bits, interlaced: {bool(interlaced)}, {width} x {height}")
    channels = _CHANNELS[colour]
    stride = width * channels
    raw = zlib.decompressobj().decompress(b"".join(body), (stride + 1) * height)
    lines = np.frombuffer(raw, dtype=np.uint8).reshape(height, stride + 1)
    pixels = np.array(lines[:, 1:])
    if lines[:, 0].any():
        _unfilter(lines[:, 0], pixels, channels)
    cells = pixels.reshape(height, width, channels)
    return cells[..., 0] if channels == 1 else cells


def _unfilter(filters: NDArray, lines: NDArray, step: int) -> None:
    """Undo PNG's line filters in place."""
    above = np.zeros(lines.shape[1], dtype=np.uint8)
    for number, kind in enumerate(filters.tolist()):
        line = lines[number]
        if kind == 2:
            line += above
        elif kind == 1:
            cells = line.reshape(-1, step)
            cells[:] = np.cumsum(cells, axis=0, dtype=np.uint64).astype(np.uint8)
        elif kind in (3, 4):
            _predicted(line, above, step, kind)
        elif kind:
            raise ValueError(f"filter {kind}")
        above = line


def _predicted(line: NDArray, above: NDArray, step: int, kind: int) -> None:
    values, up = line.tolist(), above.tolist()
    for i in range(len(values)):
        left = values[i - step] if i >= step else 0
        if kind == 3:
            guess = (left + up[i]) // 2
        else:
            corner = up[i - step] if i >= step else 0
            a, b, c = abs(up[i] - corner), abs(left - corner), abs(left + up[i] - 2 * corner)
            guess = left if a <= b and a <= c else up[i] if b <= c else corner
        values[i] = (values[i] + guess) & 255
    line[:] = values
