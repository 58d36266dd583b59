"""The Parquet side of a run for a forwarder, without loading pyarrow until rows are really read from there.

A sink that keeps up never needs it. One that was down, or a keeper that comes after another, finds part of its rows
sealed; only then is the store asked. What is in a file is told by its name and by the description in its last bytes.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.protocols import Row

__all__ = ["LazySealed"]

_NAME = re.compile(r"(?P<writer>.+)\.L(?P<lane>\d+)\.(?:S\d+|F|R)\.(?P<first>\d+)\.parquet")
_LAST = re.compile(rb'"last_seq":\s*(\d+)')
_FOOTER_BYTES = 1 << 20
_UNKNOWN = 2**62


class LazySealed:
    """See `rollbook.journal.reader.SealedRows`.

    Args:
      run_folder: the run's folder.
    """

    def __init__(self, run_folder: str) -> None:
        self._data = os.path.join(run_folder, "data")
        self._run_folder = run_folder
        self._tables: dict[str, int] = {}
        self._files: dict[str, tuple[str, int, int, int]] = {}  # path -> writer, lane, first seq, last seq
        self._store: Any = None

    def lanes(self) -> dict[str, dict[int, int]]:
        """{writer: {lane: highest sequence number in Parquet}}. Lists folders again only when they changed."""
        self._look()
        found: dict[str, dict[int, int]] = {}
        for writer, lane, _first, last in self._files.values():
            lanes = found.setdefault(writer, {})
            lanes[lane] = max(last, lanes.get(lane, 0)) if last < _UNKNOWN else lanes.get(lane, 0)
        return found

    def rows(self, writer: str, lane: int, after: int, up_to: int, tables: frozenset[str]) -> Iterator[Row]:
        """The rows of a lane with after < seq <= up_to, by seq. Asks the store only if a file may hold some."""
        self._look()
        folders = {os.path.join(self._data, table) for table in tables}
        for path, (whose, number, first, last) in self._files.items():
            overlaps = first <= up_to and last > after
            if overlaps and (whose, number) == (writer, lane) and os.path.dirname(path) in folders:
                break
        else:
            return
        yield from self._open_store().rows(writer, lane, after, up_to, tables)

    def _open_store(self) -> Any:
        if self._store is None:
            from rollbook.store.sealed import SealedRows

            self._store = SealedRows(self._run_folder)
        return self._store

    def _look(self) -> None:
        try:
            tables = [entry for entry in os.scandir(self._data) if entry.is_dir() and entry.name not in _NO_TABLES]
        except OSError:
            return
        for table in tables:
            try:
                stamp = os.stat(table.path).st_mtime_ns
                if self._tables.get(table.path) == stamp:
                    continue
                names = os.listdir(table.path)
            except OSError:
                continue
            self._tables[table.path] = stamp
            paths = {os.path.join(table.path, name): found for name in names if (found := _NAME.fullmatch(name))}
            for gone in [path for path in self._files if os.path.dirname(path) == table.path and path not in paths]:
                del self._files[gone]
            for path, found in paths.items():
                if path not in self._files:
                    self._files[path] = (found["writer"], int(found["lane"]), int(found["first"]), _last_seq(path))


_NO_TABLES = frozenset({"journal", "keeper", "pyramid"})


def _last_seq(path: str) -> int:
    """The highest sequence number that a file says it holds; "any" if it does not say."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _FOOTER_BYTES))
            numbers = _LAST.findall(file.read())
    except OSError:
        return _UNKNOWN
    return max(map(int, numbers)) if numbers else _UNKNOWN
