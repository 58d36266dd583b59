"""Logs of records in blocks of 32,768 bytes, as in LevelDB: W&B's and SwanLab's files.

The blocks are counted from the file's start, after a header of seven bytes. Each piece of a record has a header:
checksum (zlib's crc32 of the type byte and the data), length, and type (1 whole, 2 first, 3 middle, 4 last).
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK = 32_768
_WHOLE, _FIRST, _LAST = 1, 2, 4
_LONGEST = 256 * 1024 * 1024
"""The maximum length of a record; a longer one is treated as damaged."""


def blocks_of(file: Path, header: bytes, what: str, lose: Callable[[str], object]) -> Iterator[bytes]:
    """The records of a file in order; a partially written one is skipped.

    Args:
      header: the expected start of the file.
      what: description of what is left out if the start differs.
    """
    with open(file, "rb") as stream:
        if stream.read(len(header)) != header:
            lose(what)
            return
        parts: list[bytes] = []
        length = 0
        while True:
            left = _BLOCK - stream.tell() % _BLOCK
            if left < 7:
                stream.seek(left, 1)
            head = stream.read(7)
            if len(head) < 7:
                return
            checksum, size, form = struct.unpack("<IHB", head)
            data = stream.read(size)
            if len(data) < size:
                return  # half a piece: a run that is still writing, or was killed
            if zlib.crc32(data, zlib.crc32(head[6:7])) != checksum or not _WHOLE <= form <= _LAST:
                lose("blocks of 32 KiB with a wrong checksum")  # its length is not trusted, either
                stream.seek((stream.tell() - 7 - size) // _BLOCK * _BLOCK + _BLOCK)
                parts, length = [], 0
                continue
            if form in (_WHOLE, _FIRST):
                parts, length = [], 0
            elif not parts:
                continue  # the first piece was damaged
            parts.append(data)
            length += size
            if length > _LONGEST:
                lose("records of more than 256 MiB")
                parts, length = [], 0
            if form not in (_WHOLE, _LAST) or not parts:
                continue
            record = parts[0] if len(parts) == 1 else b"".join(parts)
            parts, length = [], 0
            yield record
