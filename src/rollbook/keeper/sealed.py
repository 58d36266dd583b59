"""The Parquet side of a run for a forwarder. It loads pyarrow only when rows are read from Parquet.

A sink that keeps up never needs it. For a sink that was down, or a keeper that follows another, part of the rows is
already sealed; only then is the store read. A part's name and the description in its last bytes show what it holds.
"""

from __future__ import annotations

import os

from rollbook.schema.run_files import HIDDEN_TABLES, PartName, part_folders, read_metadata
from rollbook.system.files import own_files
from rollbook.system.guard import tolerating
from rollbook.system.optional import forks_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollbook.protocols import Row
    from rollbook.storage import SealedRows

_ANY = 2**62


class LazySealed:
    """The rows in Parquet, as `rollbook.storage.SealedRows` gives them; that is imported only when rows are asked for.

    Args:
      run_folder: the run's folder.
    """

    def __init__(self, run_folder: str) -> None:
        self._data = os.path.join(run_folder, "data")
        self._run_folder = run_folder
        self._stamps: dict[str, list[int]] = {}
        self._covers: dict[str, dict[str, list[tuple[str, int, int, int]]]] = {}
        self._store: SealedRows | None = None

    def lanes(self) -> dict[str, dict[int, int]]:
        """{writer: {lane: highest sequence number in Parquet}}. Lists a folder again only when it has changed."""
        self._look()
        covered: dict[str, dict[int, int]] = {}
        for parts in self._covers.values():
            for covers in parts.values():
                for writer, lane, _first, last in covers:
                    lanes = covered.setdefault(writer, {})
                    lanes[lane] = max(0 if last == _ANY else last, lanes.get(lane, 0))
        return covered

    def rows(
        self,
        writer: str,
        lane: int,
        after: int,
        up_to: int,
        tables: frozenset[str],
        *,
        most: int = 0,
        newest: bool = False,
    ) -> Iterator[Row]:
        """The rows of a lane with after < seq <= up_to, by seq. Reads the store only if a part may hold some."""
        self._look()
        asked = (
            cover for table in (*tables, "marks") for part in self._covers.get(table, {}).values() for cover in part
        )
        if any((w, i) == (writer, lane) and first <= up_to and last > after for w, i, first, last in asked):
            if self._store is None:
                with forks_wait():
                    from rollbook.storage import SealedRows

                self._store = SealedRows(self._run_folder)
            yield from self._store.rows(writer, lane, after, up_to, tables, most=most, newest=newest)

    def _look(self) -> None:
        tables: list[str] = []
        with tolerating(OSError), os.scandir(self._data) as entries:
            tables = [e.name for e in entries if e.is_dir() and (e.name == "marks" or e.name not in HIDDEN_TABLES)]
        for table in tables:
            stamps, paths = [], []
            for folder in part_folders(self._run_folder, table):
                with tolerating(OSError):
                    stamps.append(os.stat(folder).st_mtime_ns)
                    paths += [os.path.join(folder, name) for name in own_files(folder)]
            if self._stamps.get(table) == stamps:
                continue
            self._stamps[table] = stamps
            # A part that grew by merging keeps its name, so all descriptions are read again: a few kilobytes each.
            self._covers[table] = {path: _covers_of(path) for path in paths}


def _covers_of(path: str) -> list[tuple[str, int, int, int]]:
    """(writer, lane, first, last sequence number) of what a part holds; [] for other files."""
    name = PartName.parse(os.path.basename(path))
    if name is None:
        return []
    about = read_metadata(path)
    with tolerating(KeyError, TypeError, ValueError, AttributeError):
        if about is not None and name.kind == "merged":
            return [
                (str(writer), int(lane), int(first), int(last))
                for writer, lanes in about["writers"].items()
                for lane, (first, last) in lanes.items()
            ]
        if about is not None:
            return [(name.writer, name.lane, int(about["first_seq"]), int(about["last_seq"]))]
    return [(name.writer, name.lane, name.first, _ANY)] if name.kind != "merged" else []
