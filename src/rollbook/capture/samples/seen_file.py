"""The fingerprints of a run's samples on disk, so that "seen before" outlives the process.

    data/seen/<attempt>-<random>.bin      one block per batch, appended by a single write

A block is a head (magic, crc32 of the rest, number of fingerprints, batch, attempt, unix ns) and the fingerprints of
the new items. A torn block at the end is skipped. After a resume only the run's effective history counts: blocks after
an attempt's cut are left out.
"""

from __future__ import annotations

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
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

_HEAD = struct.Struct("<4sIIIIq")
_MAGIC = b"SEN1"
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

    def append(self, fingerprints: list[int], batch: int, attempt: int, time_ns: int) -> None:
        """Write one block.

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
        body = struct.pack("<IIIq", len(fingerprints), batch, attempt, time_ns) + words.tobytes()
        os.write(self._handle, _MAGIC + struct.pack("<I", zlib.crc32(body)) + body)

    def blocks(self) -> Iterator[tuple[int, int, int, Any]]:
        """(attempt, unix ns, batch, fingerprints) of every whole block, file by file."""
        with tolerating(OSError) as missed:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".bin"))
        if missed:
            return
        for name in names:
            with open(os.path.join(self._folder, name), "rb") as file:
                yield from _read(file)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None and self._pid == os.getpid():
            os.close(self._handle)
        self._handle = None


def _read(file: Any) -> Iterator[tuple[int, int, int, object]]:
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        magic, crc, n, batch, attempt, time_ns = _HEAD.unpack(head)
        if magic != _MAGIC or n > _LARGEST_BLOCK:
            return
        body = file.read(8 * n)
        if len(body) != 8 * n or zlib.crc32(body, zlib.crc32(head[8:])) != crc:
            return
        words = array("Q")
        words.frombytes(body)
        if sys.byteorder == "big":
            words.byteswap()
        yield attempt, time_ns, batch, words


def effective_until(folder: Path) -> dict[int, int] | None:
    """Which attempts count, and until which unix ns: {attempt: time}. None (everything counts) without a run.json.

    The newest attempt counts completely; each parent counts up to the cut in its child.
    """
    attempts = manifest.chain(manifest.look(folder))
    return {number: cut.time if cut is not None else 2**63 - 1 for number, cut in attempts.items()} or None
