"""Sealed parts: Parquet files with metadata about their contents; found, opened and read column by column."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Sequence
from stat import S_ISDIR, S_ISREG
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import Damaged
from rollbook.schema import source
from rollbook.schema.run_files import (
    CONSTANTS,
    METADATA_CRC_KEY,
    METADATA_KEY,
    PartName,
    data_folder,
    part_folders,
    table_folder,
)
from rollbook.storage.parquet_files import LeafIndexes, ParquetFile, leaf_indexes_of, open_to_read
from rollbook.storage.tabulate import Meta
from rollbook.system.guard import ours, raising, tolerating
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import strings, to_numpy

_MUCH = 64 << 20
_ROWS_CHECKED = 1_024

_SAID: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("table", "group"), str),
    **dict.fromkeys(("keys", "clocks"), list),
    **dict.fromkeys(("first_time", "last_time"), int),
    **dict.fromkeys(("scope", "at"), (str, type(None))),
    "attempt": (int, type(None)),
    "types": (str, list),
}
"""What each part says of its rows. A name that a damaged byte has changed is missing."""


class Part:
    """One sealed file.

    Attributes:
      path, name: its path, and its parsed name.
      meta: its metadata; see `storage.tabulate.Meta`. Merged parts have `covers` instead of a single range.
      rows: number of rows.
      schema: of the stored columns; constant columns are only in `meta`.
      row_groups: the number of rows of each.
      pyramid: its levels, once opened.

    Raises:
      FileNotFoundError: it was merged into another one; list again.
      Damaged: not a Parquet file, or not one of ours.
    """

    __slots__ = (
        "_decoded",
        "_footer",
        "_is_view",
        "_leaves",
        "_names",
        "_nulls",
        "_ranges",
        "_stat",
        "_words",
        "meta",
        "name",
        "path",
        "pyramid",
        "row_groups",
        "rows",
        "schema",
    )

    def __init__(self, path: str, name: PartName) -> None:
        self.path, self.name = path, name
        self._stat = _stat(path)
        self._footer: pq.FileMetaData | None = None
        self._leaves: LeafIndexes | None = leaf_indexes_of(())
        self._decoded: int | None = None
        self._words: dict[str, dict[int, pa.Array]] = {}
        self._nulls: dict[str, int] = {}
        self._ranges: dict[tuple[str, int], tuple[object, object] | None] = {}
        self.pyramid: Any = None
        self._is_view = source.is_view(path)
        if self._is_view:
            source.ensure(path, footer=True)
        with self._open() as file:
            self._footer = file.metadata
            schema: pa.Schema = file.schema_arrow
        self.rows: int = self._footer.num_rows
        groups = self._footer.num_row_groups  # to ask for one takes as long as there are columns
        self.row_groups = [self.rows] if groups == 1 else [self._footer.row_group(i).num_rows for i in range(groups)]
        text = description_in(self._footer)
        foreign = Damaged(f"{path} does not say what it holds: it was not written by rollbook")
        if text is None:
            raise Damaged(f"{path}: the description of its content is damaged")
        with raising(lambda _: foreign, ValueError, KeyError, TypeError, RecursionError):
            meta: Meta = json.loads(text) if text else {}
            if not says_all(meta):
                raise foreign
        self.meta = meta
        with raising(lambda err: Damaged(f"{path}: a name of its columns cannot be read ({err})"), UnicodeDecodeError):
            self._names: list[str] = schema.names
        there = set(self._names)
        is_flat = self._footer.num_columns == len(there) == len(self._names)
        self._leaves = leaf_indexes_of(tuple(self._names)) if is_flat else None
        if gone := _columns_gone(meta, there):
            raise Damaged(f"{path} has no column {gone[0]!r}, of which its description speaks")
        constant = (schema.get_field_index(name) for name in CONSTANTS if meta.get(name) is not None)
        for index in sorted((index for index in constant if index >= 0), reverse=True):
            schema = schema.remove(index)
        self.schema = schema

    def is_same(self) -> bool:
        """Whether the file is still the one that was opened."""
        return _stat(self.path) == self._stat

    def _open(self, dictionaries: list[str] | None = None) -> pq.ParquetFile:
        try:
            file = ParquetFile(
                open_to_read(self.path),
                self._leaves,
                metadata=self._footer,
                read_dictionary=dictionaries,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        except FileNotFoundError:
            raise
        except ours(pa.ArrowException, OSError, ValueError) as err:
            raise Damaged(f"{self.path} cannot be read as Parquet: {err}") from None
        if not self.is_same():
            file.close()
            raise FileNotFoundError(f"{self.path} was replaced")
        return file

    @property
    def footer(self) -> pq.FileMetaData:
        """What the end of the file says of it."""
        assert self._footer is not None
        return self._footer

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.schema.names
        return names

    def read(self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of the part, all rows or those of some row groups.

        Raises:
          Damaged: the file's content does not match its footer.
        """
        known = self.schema.names
        there = set(known)
        names = known if columns is None else [name for name in columns if name in there]
        threads = self.rows > 50_000 and (row_groups is None or len(row_groups) > 1)
        self.have(names, row_groups)
        with self._open() as file, self._rows_are_whole():
            if row_groups is None:
                return file.read(columns=names, use_threads=threads)
            return file.read_row_groups(list(row_groups), columns=names, use_threads=threads)

    def _rows_are_whole(self) -> raising:
        """Around reading rows: failures are `Damaged`."""
        damaged = f"{self.path}: rows cannot be read"
        return raising(lambda err: Damaged(f"{damaged}: {err}"), pa.ArrowException, OSError, ValueError)

    def have(self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> None:
        """For a part in a remote: fetch these columns of these row groups into the cache."""
        if not self._is_view:
            return
        assert self._footer is not None
        wanted = None if columns is None else {*columns, "seq"}
        ranges: list[tuple[int, int]] = []
        next_to: list[tuple[int, int]] = []  # usually requested next: fetched along if small
        for group in range(self._footer.num_row_groups) if row_groups is None else row_groups:
            about = self._footer.row_group(group)
            for i in range(about.num_columns):
                column = about.column(i)
                name = column.path_in_schema
                start = column.data_page_offset
                if column.has_dictionary_page and column.dictionary_page_offset:
                    start = min(start, column.dictionary_page_offset)
                if wanted is None or name in wanted or name.partition(".")[0] in wanted:
                    ranges.append((start, start + column.total_compressed_size))
                elif name in ("time", "index"):
                    next_to.append((start, start + column.total_compressed_size))
        if sum(stop - start for start, stop in next_to) <= sum(stop - start for start, stop in ranges) // 10:
            ranges += next_to
        source.ensure(self.path, ranges)

    def check(self) -> None:
        """Check all pages, a few rows at a time and texts as dictionaries, so that memory stays small.

        Raises:
          Damaged: see `read`.
        """
        texts = [field.name for field in self.schema if pa.types.is_string(field.type)]
        with self._open(texts) as file, self._rows_are_whole():
            for _ in file.iter_batches(_ROWS_CHECKED, use_threads=False):
                pass

    def decoded_bytes(self) -> int:
        """The approximate memory of all its rows once read, never much less; from the footer alone.

        Repeated texts are stored once in the file, but take memory for each row. The longest text of such a column is
        unknown; if it could take much memory, that is counted.
        """
        if self._decoded is None:
            assert self._footer is not None
            self._decoded = 0
            unfolded: dict[str, int] = {}
            for group in range(len(self.row_groups)):
                about = self._footer.row_group(group)
                self._decoded += about.total_byte_size
                for i in range(about.num_columns):
                    column = about.column(i)
                    if column.has_dictionary_page:
                        more = column.num_values * column.total_uncompressed_size
                        unfolded[column.path_in_schema] = unfolded.get(column.path_in_schema, 0) + more
            self._decoded += sum(size for size in unfolded.values() if size > _MUCH)
        return self._decoded

    def stored_bytes(self, columns: Sequence[str]) -> int:
        """Bytes of columns in the file, compressed; from the footer alone."""
        assert self._footer is not None
        groups = [self._footer.row_group(group) for group in range(len(self.row_groups))]
        cells = [group.column(i) for group in groups for i in range(group.num_columns)]
        return sum(cell.total_compressed_size for cell in cells if cell.path_in_schema.partition(".")[0] in columns)

    def groups_with(self, column: str, word: str) -> list[int]:
        """The row groups in which a column of texts has `word`; all of them if it does not hold texts.

        Searches the column's dictionaries, which are read once and cached: a column with few distinct texts costs a few
        bytes for each of them, for any number of rows.

        Raises:
          Damaged: see `read`.
        """
        if column not in self.schema.names:
            return []
        groups = range(len(self.row_groups))
        if not pa.types.is_string(self.schema.field(column).type):
            return list(groups)
        words = self._words.setdefault(column, {})
        asked = [group for group in groups if self._may_have(column, group, word)]
        missing = [group for group in asked if group not in words]
        if missing:
            self.have([column], missing)
            with self._open([column]) as file, self._rows_are_whole():
                for group in missing:
                    words[group] = _words_of(file.read_row_group(group, columns=[column], use_threads=False)[column])
        return [group for group in asked if _has(words[group], word)]

    def _may_have(self, column: str, group: int, word: str) -> bool:
        """Whether a text can be in a column of a row group, by its extremes in the footer if it has them."""
        assert self._footer is not None
        about = self._footer.row_group(group).column(self._names.index(column))
        if about.path_in_schema != column or not about.is_stats_set or not about.statistics.has_min_max:
            return True
        low, high = about.statistics.min, about.statistics.max
        return not isinstance(low, str) or (low.encode() <= word.encode("utf-8", "surrogatepass") <= high.encode())

    def null_count(self, column: str) -> int:
        """How many rows lack a column; from the footer if possible."""
        if column not in self._nulls:
            known = self.known_null_count(column)
            self._nulls[column] = int(self.read([column])[column].null_count) if known is None else known
        return self._nulls[column]

    def known_null_count(self, column: str) -> int | None:
        """How many rows lack a column, if the footer has it; reads nothing."""
        if column in self._nulls:
            return self._nulls[column]
        if column not in self.schema.names:
            return self.rows
        assert self._footer is not None
        index, total = self._names.index(column), 0
        for group in range(self._footer.num_row_groups):
            chunk = self._footer.row_group(group).column(index)
            if chunk.path_in_schema != column or not chunk.is_stats_set or not chunk.statistics.has_null_count:
                return None
            total += chunk.statistics.null_count
        self._nulls[column] = total
        return total

    def column_range(self, column: str, row_group: int) -> tuple[Any, Any] | None:
        """(smallest, largest) of a column in a row group, if the footer has it."""
        if (column, row_group) not in self._ranges:  # footer access is slow, above all with thousands of row groups
            self._ranges[column, row_group] = self._range(column, row_group)
        return self._ranges[column, row_group]

    def _range(self, column: str, row_group: int) -> tuple[object, object] | None:
        assert self._footer is not None
        with tolerating(ValueError, IndexError) as missed:
            index = self._names.index(column)
            chunk = self._footer.row_group(row_group).column(index)
        if missed:
            return None
        if chunk.path_in_schema != column or not chunk.is_stats_set or not chunk.statistics.has_min_max:
            return None
        return chunk.statistics.min_raw, chunk.statistics.max_raw


class OpenParts:
    """The sealed parts of one run, opened once and cached while their files stay the same.

    Args:
      run: the run's folder.
      writers: only parts of these, and merged ones; None for all.
    Attributes:
      problems: path -> why a file could not be used.
    """

    def __init__(self, run: str, writers: Collection[str] | None = None) -> None:
        self._run, self._writers = run, writers
        self._data, self._data_stamp = data_folder(run), (0, 0)
        self._names: frozenset[str] | None = None
        self._folders: dict[str, list[str]] = {}  # by table: where its parts may be, its own folder first
        self._known: dict[str, dict[str, Part]] = {}
        self._stamps: dict[str, list[tuple[int, int]]] = {}
        self._listed: dict[str, list[Part]] = {}
        self.problems: dict[str, str] = {}

    def parts(self, table: str) -> list[Part]:
        """All parts of a table that are not contained in another part, in order of name.

        Raises:
          FileNotFoundError: a part was replaced while it was being opened; call again.
        """
        stamps, folders = [], []
        if table not in self._folders:
            self._folders[table] = part_folders(self._run, table)
        own = self._folders[table][0]
        for folder in self._folders[table] if self._may_hold(os.path.basename(own)) else ():
            with tolerating(FileNotFoundError, NotADirectoryError) as missed:
                stat = os.lstat(folder)
            if missed:
                continue
            if S_ISDIR(stat.st_mode):
                folders.append(folder)
                stamps.append((stat.st_mtime_ns, stat.st_ino))
            elif folder == own:  # a link leads out of the run: not followed, nor what is in it
                break
        if not folders:
            self._known.pop(table, None)
            self._stamps.pop(table, None)
            return []
        if self._stamps.get(table) == stamps:
            return self._listed[table]
        listed: dict[str, tuple[os.DirEntry[str], PartName]] = {}
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = PartName.parse(entry.name)
                    if name is not None and self._is_wanted(name):
                        listed[entry.path] = (entry, name)
        known = self._known.setdefault(table, {})
        for gone in known.keys() - listed.keys():
            del known[gone]
        for path in sorted(listed):
            self._open(table, known, *listed[path])
        parts = [known[path] for path in sorted(known, key=lambda path: (os.path.basename(path), path))]
        self._listed[table] = uncovered(parts)
        # A folder that changed within the resolution of timestamps is listed again next time.
        if _is_settled(max(changed for changed, _ in stamps)):
            self._stamps[table] = stamps
        return self._listed[table]

    def _may_hold(self, name: str) -> bool:
        """Whether the folder of data may have an entry of that name. Most runs have few of the fifteen tables, so it is
        listed when it has changed, instead of a look for each."""
        with tolerating(OSError) as missed:
            stat = os.stat(self._data)
            if self._data_stamp != (stat.st_mtime_ns, stat.st_ino):
                self._names = frozenset(os.listdir(self._data))
                self._data_stamp = (stat.st_mtime_ns, stat.st_ino) if _is_settled(stat.st_mtime_ns) else (0, 0)
        return bool(missed) or self._names is None or name in self._names

    def _is_wanted(self, name: PartName) -> bool:
        return self._writers is None or name.kind == "merged" or name.writer in self._writers

    def contained(self, table: str) -> list[Part]:
        """Parts that `parts` skipped because others hold their rows: remains of an interrupted merge."""
        given = {part.path for part in self._listed.get(table, ())}
        return [part for path, part in self._known.get(table, {}).items() if path not in given]

    def _open(self, table: str, known: dict[str, Part], entry: os.DirEntry[str], name: PartName) -> None:
        part = known.get(entry.path)
        if part is not None:
            if part.is_same():
                return
            del known[entry.path]
        try:
            known[entry.path] = belonging(Part(entry.path, name), table)
            self.problems.pop(entry.path, None)
        except Damaged as err:
            self.problems[entry.path] = str(err)


def _is_settled(changed: int) -> bool:
    """Whether a folder changed (at these unix ns) long enough ago that a further change would have another time."""
    return time.time_ns() - changed > 100_000_000


def belonging(part: Part, table: str) -> Part:
    """The part, if it is one of this table.

    Raises:
      Damaged: it has rows of another one.
    """
    if table_folder("", part.meta["table"]) != table_folder("", table):
        raise Damaged(f"{part.path} has rows of the table {part.meta['table']}: it belongs in another folder")
    if "covers" in part.meta and part.name.kind != "merged":
        raise Damaged(f"{part.path} has the rows of a merged file: it has another file's name")
    return part


def covers_of(meta: Meta) -> list[tuple[str, int, str, int, int]]:
    """The ranges that a part holds completely: (writer, lane, group, first seq, last seq)."""
    if "covers" in meta:
        return [(str(w), int(lane), str(g), int(a), int(b)) for w, lane, g, a, b in meta["covers"]]
    return [(meta["writer"], meta["lane"], meta["group"], meta["first_seq"], meta["last_seq"])]


def rows_by_lane(rows: pa.Table, meta: Meta) -> Iterator[tuple[tuple[str, int], NDArray]]:
    """((writer, lane), the indices of their rows); `rows` have these columns unless `meta` says them."""
    if meta.get("writer") is not None:
        yield (meta["writer"], meta["lane"]), np.arange(rows.num_rows)
        return
    writers, lanes = to_numpy(rows["writer"])[0].astype(str), to_numpy(rows["lane"])[0]
    for writer in np.unique(writers).tolist():
        for lane in np.unique(lanes[writers == writer]).tolist():
            yield (writer, int(lane)), np.flatnonzero((writers == writer) & (lanes == lane))


def uncovered(parts: Sequence[Part]) -> list[Part]:
    """The parts that no other part contains; the others are remains of an interrupted merge."""
    holders: dict[tuple[str, int, str], list[tuple[int, int, int]]] = {}
    ranges = [covers_of(part.meta) for part in parts]
    for i, own in enumerate(ranges):
        for writer, lane, group, first, last in own:
            holders.setdefault((writer, lane, group), []).append((first, last, i))

    def around(i: int, cover: tuple[str, int, str, int, int]) -> set[int]:
        first, last = cover[3:]
        return {j for a, b, j in holders[cover[:3]] if j != i and a <= first and last <= b}

    remaining = []
    for i, part in enumerate(parts):
        inside = set.intersection(*(around(i, cover) for cover in ranges[i])) if ranges[i] else set()
        # If two parts have the same rows, the first by name stays.
        if not any(j < i or ranges[j] != ranges[i] for j in inside):
            remaining.append(part)
    return remaining


def _words_of(column: pa.ChunkedArray) -> pa.Array:
    """The distinct texts of a column that was read with its dictionaries."""
    words = []
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):  # a dictionary may hold texts that no row of the group has
            words.append(chunk.dictionary.take(chunk.indices.unique().drop_null()))
        else:
            words.append(chunk.unique())
    return pa.concat_arrays(words) if words else pa.nulls(0, pa.string())


def _has(words: pa.Array, word: str) -> bool:
    wanted = strings([word])[0]  # pa.scalar would load pandas
    return bool(words.index(wanted.cast(words.type)).as_py() >= 0)


def description_in(footer: pq.FileMetaData) -> bytes | None:
    """What a part says of its content, b"" if it says nothing; None if that is not what was written."""
    metadata = footer.metadata or {}
    text: bytes = metadata.get(METADATA_KEY.encode(), b"")
    crc = metadata.get(METADATA_CRC_KEY.encode())  # parts of earlier versions have none
    return text if crc is None or crc == str(crc32(text)).encode() else None


def says_all(meta: Meta) -> bool:
    """Whether a description says all that each part says of its rows.

    Raises:
      KeyError, TypeError, ValueError: it does not.
    """
    if not isinstance(meta, dict) or not meta["group"]:
        return False
    return all(isinstance(meta[name], kind) for name, kind in _SAID.items()) and bool(covers_of(meta))


def _columns_gone(meta: Meta, there: set[str]) -> list[str]:
    """The columns that a part has by its description, or that identify its rows, and that its file does not name."""
    identity = {"time", "seq", *(name for name in ("attempt", "writer", "lane") if meta.get(name) is None)}
    stored, group = meta.get("stored"), meta["group"][0]
    if group == "R":
        keys = {"key", "value"}
    elif meta["table"] == "timings":  # the keys of a timer are in the rows
        keys = set()
    else:  # parts of format 1 do not say under which names their keys are stored
        keys = {stored.get(key, key) for key in meta["keys"]} if stored else set(() if stored is None else meta["keys"])
    return sorted({*identity, *keys, *meta.get("clocks", ())} - there)


def _stat(path: str) -> tuple[int, int, int]:
    stat = os.lstat(path)
    if not S_ISREG(stat.st_mode):
        raise Damaged(f"{path} is a link or not a regular file; it is not opened")
    # Fetching data of a remote part changes only its time.
    return stat.st_size, 0 if source.is_view(path) else stat.st_mtime_ns, stat.st_ino
