"""The fingerprints of a run's samples on disk, so that "seen before" outlives the process.

    data/seen/<attempt>-<random>.bin      one block per batch, appended by a single write

A block is a head (magic, crc32 of the rest, number of fingerprints, batch, attempt, unix ns), the fingerprints of the
new items, and the position in the run at which it was written: the length of a JSON text {writer: {lane: seq}}, and the
text. Blocks with the magic SEN1, of an older rollbook, have no position. A torn block at the end is skipped. After a
resume only the run's effective history counts: blocks after an attempt's cut are left out.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from array import array

from rollbook.schema import manifest
from rollbook.system.files import make_folders
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

_HEAD = struct.Struct("<4sIIIIq")
_MAGIC, _MAGIC_OF_OLD = b"SEN2", b"SEN1"
_LENGTH = struct.Struct("<I")
_LARGEST_BLOCK = 1 << 24


class SeenFile:
    """Appends blocks of fingerprints for one process, and reads those of all processes.

    Args:
      folder: the run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._run, self._folder = folder, os.path.join(folder, "data", "seen")
        self._handle: int | None = None
        self._pid = 0

    def append(
        self, fingerprints: list[int], batch: int, attempt: int, time_ns: int, positions: Mapping[str, object]
    ) -> None:
        """Write one block.

        Args:
          positions: the writer's, once it has written the rows of the batch.
        Raises:
          OSError: it could not be written.
        """
        if self._handle is None or self._pid != os.getpid():
            make_folders(self._folder, inside=self._run)
            name = f"{attempt:04d}-{os.urandom(6).hex()}.bin"
            self._handle = os.open(
                os.path.join(self._folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            )
            self._pid = os.getpid()
        words = array("Q", fingerprints)
        if sys.byteorder == "big":
            words.byteswap()
        encoded = json.dumps(positions).encode()
        body = struct.pack("<IIIq", len(fingerprints), batch, attempt, time_ns) + words.tobytes()
        body += _LENGTH.pack(len(encoded)) + encoded
        os.write(self._handle, _MAGIC + struct.pack("<I", zlib.crc32(body)) + body)

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """(batch, fingerprints) of every whole block in the run's effective history, file by file."""
        with tolerating(OSError) as missed:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".bin"))
        if missed:
            return
        attempts = manifest.chain(manifest.look(self._run))
        for name in names:
            with open(os.path.join(self._folder, name), "rb") as file:
                for attempt, time_ns, positions, batch, prints in _read(file):
                    if not attempts or (attempt in attempts and _holds(attempts[attempt], positions, time_ns)):
                        yield batch, prints

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None and self._pid == os.getpid():
            os.close(self._handle)
        self._handle = None


def _holds(cut: manifest.Cut | None, positions: Mapping[str, Mapping[str, int]], time_ns: int) -> bool:
    """Whether a block was written before the cut; its own row is in one of the lanes."""
    if cut is None:
        return True
    if not positions:
        return cut.time is None or time_ns <= cut.time
    lanes = [(writer, int(lane), seq) for writer, own in positions.items() for lane, seq in own.items()]
    return all(cut.holds(writer, lane, seq, time_ns) for writer, lane, seq in lanes)


def _read(file: Any) -> Iterator[tuple[int, int, dict[str, Any], int, object]]:
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        magic, crc, n, batch, attempt, time_ns = _HEAD.unpack(head)
        if magic not in (_MAGIC, _MAGIC_OF_OLD) or n > _LARGEST_BLOCK:
            return
        body, encoded = file.read(8 * n), b""
        if magic == _MAGIC:
            length = file.read(_LENGTH.size)
            if len(length) < _LENGTH.size or _LENGTH.unpack(length)[0] > _LARGEST_BLOCK:
                return
            encoded = file.read(_LENGTH.unpack(length)[0])
            rest = length + encoded
        else:
            rest = b""
        if len(body) != 8 * n or zlib.crc32(body + rest, zlib.crc32(head[8:])) != crc:
            return
        words = array("Q")
        words.frombytes(body)
        if sys.byteorder == "big":
            words.byteswap()
        yield attempt, time_ns, json.loads(encoded or b"{}"), batch, words
