"""The sound columns of a damaged Parquet file: every column chunk is read alone, and what cannot be read is missing.

Each row needs its identity, so damaged columns of it are filled: sequence numbers from the extremes in the
file's footer, writer and attempt from the ranges that the file covers. What was filled is part of what is lost.
"""

from __future__ import annotations

import json
import mmap
import os
from collections import Counter
from collections.abc import Iterator, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import Damaged
from rollbook.schema import manifest
from rollbook.schema.clocks import STANDARD
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import (
    COLUMNS_FILE,
    CONSTANTS,
    LONG,
    RESERVED,
    WIDE,
    PartName,
    RunFile,
    journal_folder,
    table_folder,
    table_names,
)
from rollbook.storage.footers import may_be_asked
from rollbook.storage.parts import covers_of, description_in, says_all
from rollbook.storage.tabulate import LONG_COLUMNS, Meta, type_codes
from rollbook.system.files import open_regular, read_json
from rollbook.system.guard import ours, raising, tolerating
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import constant, empty_table, from_numpy, strings, take_table, to_numpy

_STEP = 1024
"""How many rows to read at a time of a damaged column chunk, up to the damage."""

_SEARCHED = 1 << 20
"""How many bytes to search at a time for the end of a file."""

_NO_FOOTER = "its end says where each column is, and cannot be read"


class DamagedPart:
    """A Parquet file of which some columns of some row groups cannot be read.

    Args:
      run: the run's folder.
      path: the file.
      folder: the name of the folder that it was in: a table's name, or the form of metrics.
      name: its parsed name.
    Attributes:
      meta: its description; made from its columns if it cannot be read.
      rows: their number.
      schema: of its rows, without the columns that are constant.
      lost: what cannot be read, in words, filled by `groups`.
    Raises:
      Damaged: nothing of it can be read.
    """

    def __init__(self, run: str, path: str, folder: str, name: PartName) -> None:
        self._run, self.name = run, name
        self._file = _opened(path)
        self._footer = self._file.metadata
        described = _described(self._footer)
        (self._has_chunks,) = may_be_asked([self._footer])
        names = _names_in(self._file.schema_arrow)
        if self._has_chunks:
            names = _column_names(self._file, self._known_names(described or {}))
        fields = zip(self._file.schema_arrow, names, strict=True)
        whole = pa.schema([field.with_name(name).with_nullable(True) for field, name in fields])  # as all parts have it
        self._in_file = dict(zip(names, _names_in(self._file.schema_arrow), strict=True))
        # A list has a column for its elements: only without one is a column where its name is.
        self._leaf_indexes = {name: k for k, name in enumerate(names)} if self._footer.num_columns == len(names) else {}
        table = "metrics" if folder in ("wide", "long") else folder
        is_misspelled = described is not None and self._is_misspelled(described["table"], table)
        if described is not None and is_misspelled:
            described["table"] = table
        self.meta: Meta = described or self._meta_from_columns(table, whole)
        self._constants = {column: self.meta[column] for column in CONSTANTS if self.meta.get(column) is not None}
        self.schema = pa.schema([field for field in whole if field.name not in self._constants])
        is_sound = described is not None and not is_misspelled
        self._missing: dict[str, int] = {} if is_sound else {"the description of its content": 0}
        self.rows: int = self._footer.num_rows
        self._is_counted_anew = False

    @property
    def lost(self) -> str:
        """What cannot be read, in words; "" for nothing."""
        return ", ".join(
            f"all of {amount(n, 'row')}"
            if what == "whole rows"
            else f"{what} in {amount(n, 'row')}"
            if n and n < self.rows
            else f"{what} in all of its rows"
            if n
            else what
            for what, n in self._missing.items()
        )

    @property
    def is_long(self) -> bool:
        """Whether it has one line per value."""
        return bool(self.meta["table"] == "metrics" and self.meta["group"][0] == "R")

    def groups(self) -> Iterator[tuple[pa.Table, bool]]:
        """The rows of each row group, null where nothing can be read, and whether their sequence numbers are theirs."""
        self._missing = {what: n for what, n in self._missing.items() if not n}
        before = self.meta.get("first_seq", 1) - 1 if "covers" not in self.meta else 0
        for group in range(self._footer.num_row_groups):
            n = self._footer.row_group(group).num_rows
            columns, read, self._is_counted_anew = {}, {}, False
            for field in self.schema:
                columns[field.name], read[field.name] = self._column(group, field, n)
            if not any(n for name, n in read.items() if name not in RESERVED or name == "time"):
                self._missing["whole rows"] = self._missing.get("whole rows", 0) + n
                yield empty_table(self.schema), True
                continue
            for name in sorted((name for name in read if read[name] < n), key=lambda name: name != "seq"):
                self._missing[name] = self._missing.get(name, 0) + n - read[name]
                columns[name] = self._filled(group, name, columns, read[name], before)
            if self.is_long and any(read[name] < n for name in LONG_COLUMNS):
                _complete(columns)
            table = pa.Table.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
            kept = self._usable(table)
            table = take_table(table, kept) if len(kept) < n else table
            if "seq" in table.column_names and table.num_rows:
                before = int(to_numpy(table["seq"])[0].max())
            yield table, not self._is_counted_anew

    # -- reading

    def _is_misspelled(self, described: str, table: str) -> bool:
        """Whether a damaged byte made another name of the table in whose folder the file was; no checksum covers it."""
        differ = sum(a != b for a, b in zip(described, table, strict=False))
        return len(described) == len(table) and differ == 1 and described not in table_names(self._run)

    def _known_names(self, described: Meta) -> set[str]:
        """The names that columns of this file may have: those of its description, and of every column of the run."""
        keys = {described.get("stored", {}).get(key, key) for key in described.get("keys", ())}
        known = {*RESERVED, *STANDARD, *described.get("clocks", ()), *keys}
        for form in (WIDE, LONG):
            with tolerating(pa.ArrowException, OSError, ValueError):
                known.update(pq.read_schema(os.path.join(table_folder(self._run, "metrics"), form, COLUMNS_FILE)).names)
        return known

    def _column(self, group: int, field: pa.Field, n: int) -> tuple[pa.ChunkedArray, int]:
        """A column of a row group, and how many of its rows were read; the others are null."""
        name = self._in_file[field.name]
        index = self._leaf_indexes.get(field.name)
        with tolerating(pa.ArrowException, OSError, ValueError, Damaged):
            if index is None:
                column = self._file.read_row_group(group, columns=[name], use_threads=False)[name]
            else:  # whatever its name is
                column = self._file.reader.read_row_group(group, column_indices=[index], use_threads=False).column(0)
            column.validate(full=True)
            if len(column) == n and column.type == field.type:
                return column, n
        chunks: list[pa.Array] = []
        rows = 0
        with tolerating(pa.ArrowException, OSError, ValueError, Damaged):
            how: dict[str, Any] = {"row_groups": [group], "use_threads": False}
            if index is None:
                batches = self._file.iter_batches(_STEP, columns=[name], **how)
            else:
                batches = self._file.reader.iter_batches(_STEP, column_indices=[index], **how)
            for batch in batches:
                batch.validate(full=True)
                if batch.column(0).type != field.type or rows + batch.num_rows > n:
                    break
                chunks.append(batch.column(0))
                rows += batch.num_rows
        return pa.chunked_array([*chunks, pa.nulls(n - rows, field.type)], field.type), rows

    def _usable(self, table: pa.Table) -> NDArray:
        """The rows that say something: one value in long form needs its key, and the value."""
        if not self.is_long:
            return np.arange(table.num_rows)
        return np.flatnonzero(_there(table["key"]) & _there(table["value"]))

    # -- identity

    def _filled(
        self, group: int, name: str, columns: dict[str, pa.ChunkedArray], read: int, before: int
    ) -> pa.ChunkedArray:
        """A damaged column, filled if rows cannot be identified without it."""
        column = columns[name]
        n = len(column)
        if name == "seq":
            made, is_sure = self._seqs(group, n, before)
            self._is_counted_anew = not is_sure
            if is_sure:
                del self._missing[name]
        elif name == "index":
            made = _repeats(to_numpy(columns["seq"])[0])
        elif name == "lane":
            lanes = {lane for _, lane, *_ in covers_of(self.meta)}
            made = np.full(n, min(lanes, default=0))
        elif name == "attempt":
            made = np.full(n, self._attempt())
        elif name in ("writer", "scope", "at"):
            writers = {writer for writer, *_ in covers_of(self.meta)}
            if name == "writer" and len(writers) > 1:
                texts = strings([f"unknown{k}" for k in _ways_apart(columns).tolist()[read:]])
            else:
                texts = constant("" if name != "writer" else writers.pop(), n - read).dictionary_decode()
            filled = texts.cast(column.type)
            return pa.chunked_array([*column.slice(0, read).chunks, filled], column.type)
        else:
            return column
        filled = from_numpy(np.ascontiguousarray(made[read:], dtype=np.int64)).cast(column.type)
        return pa.chunked_array([*column.slice(0, read).chunks, filled], column.type)

    def _seqs(self, group: int, n: int, before: int) -> tuple[NDArray, bool]:
        """The sequence numbers of the rows of a row group, and whether they can only be these."""
        low, high = before + 1, before + n
        about = self._footer.row_group(group)
        for number in range(about.num_columns) if self._has_chunks else ():
            column = about.column(number)
            is_seq = number == self._leaf_indexes.get("seq") if self._leaf_indexes else column.path_in_schema == "seq"
            if is_seq and column.is_stats_set and column.statistics.has_min_max:
                low, high = int(column.statistics.min), int(column.statistics.max)
        is_one_a_row = self.meta["group"][0] == "S"
        if not is_one_a_row or high - low + 1 < n:
            high = low + n - 1
        return np.linspace(low, high, n).astype(np.int64), is_one_a_row and high - low + 1 == n

    def _attempt(self) -> int:
        """The attempt of the rows, if a damaged file had more than one: that of its writers, or the first."""
        known = former_writers(self._run)
        attempts = set()
        for writer, *_ in covers_of(self.meta):
            about = known.get(writer) or read_json(os.path.join(journal_folder(self._run), writer, RunFile.WRITER))
            attempts.add(about.get("attempt") if isinstance(about, dict) else None)
        numbers = {number for number in attempts if type(number) is int}
        return min(numbers, default=1)

    def _meta_from_columns(self, table: str, schema: pa.Schema) -> Meta:
        """The description of a file whose own cannot be read."""
        self.meta = {"table": table, "group": self.name.kind if self.name.kind[0] == "S" else "F", "covers": []}
        self.schema = schema
        is_merged = self.name.kind == "merged"
        is_long = table == "metrics" and all(name in schema.names for name in LONG_COLUMNS)
        # Columns with one value: from any readable row, or from the file's name.
        constants: dict[str, object] = dict.fromkeys(CONSTANTS)
        if not is_merged:
            for name in CONSTANTS:
                constants[name] = self._only(name)
            constants["writer"], constants["lane"] = self.name.writer, self.name.lane
            constants["attempt"] = constants["attempt"] or 1
        # Which columns are clocks and which are keys; the keys of a long file are in its rows.
        declared = manifest.look(self._run).clocks
        clocks = [name for name in dict.fromkeys([*STANDARD, *declared]) if name in schema.names]
        columns = [name for name in schema.names if name not in RESERVED and name not in clocks]
        kinds = {name: type_codes(schema.field(name).type) for name in columns}
        if is_long:
            keys = sorted({str(key) for key in self._all("key") if key is not None})
        elif table == "metrics":
            keys = [name.removeprefix("value/") if name[6:] in (*RESERVED, *clocks) else name for name in columns]
        else:
            keys = columns
        seqs = [number for number in self._all("seq") if isinstance(number, int)]
        first, last = min(seqs, default=self.name.first), max(seqs, default=self.name.first)
        meta: Meta = {
            **constants,
            "table": table,
            "group": "R" if is_long else self.name.kind if self.name.kind[0] == "S" else "F",
            **({"stream": int(self.name.kind[1:])} if self.name.kind[0] == "S" else {}),
            "first_seq": first,
            "last_seq": last,
            "first_time": 0,
            "last_time": 0,
            "rows": self._file.metadata.num_rows,
            "keys": keys,
            "stored": {} if is_long else {key: name for key, name in zip(keys, columns, strict=True) if key != name},
            "types": "" if is_long else "".join(kinds.values()),
            "clocks": clocks,
            "fields": {},
        }
        # A merged file covers a stretch of each writer and lane.
        if is_merged:
            whose: dict[tuple[str, int], list[int]] = {}
            for writer, lane, seq in zip(self._all("writer"), self._all("lane"), self._all("seq"), strict=True):
                if writer is not None and lane is not None and seq is not None:
                    whose.setdefault((str(writer), int(lane)), []).append(seq)
            covers = [(writer, lane, meta["group"], min(own), max(own)) for (writer, lane), own in whose.items()]
            meta["covers"] = covers or [("unknown", 0, meta["group"], first, last)]
        return meta

    def _all(self, name: str) -> list[Any]:
        """The cells of a column, None where they cannot be read."""
        if name not in self.schema.names:
            return [None] * int(self._footer.num_rows)
        cells: list[Any] = []
        for group in range(self._footer.num_row_groups):
            n = self._footer.row_group(group).num_rows
            cells += self._column(group, self.schema.field(name), n)[0].to_pylist()
        return cells

    def _only(self, name: str) -> object:
        """The one value of a column; None if it has several, or none that can be read."""
        cells = set(self._all(name)) - {None}
        return cells.pop() if len(cells) == 1 else None


def _there(column: pa.ChunkedArray) -> NDArray:
    """Which cells are not null."""
    valid = to_numpy(column)[1]
    return np.ones(len(column), dtype=bool) if valid is None else valid


def _complete(columns: dict[str, pa.ChunkedArray]) -> None:
    """Fill the damaged columns of values in long form from each other: an integer is there twice, with its type."""
    value, has_value = to_numpy(columns["value"])[0], _there(columns["value"])
    integer, has_integer = to_numpy(columns["integer"])[0], _there(columns["integer"])
    has_digits = _there(columns["digits"])
    kinds = columns["type"].to_pylist()
    exact = has_value & (np.abs(np.where(has_value, value, 0.0)) <= 2**53)
    for i, kind in enumerate(kinds):
        if kind is None:
            kinds[i] = "z" if has_digits[i] else "q" if has_integer[i] else "d"
        elif (kind in "qb" and not (has_integer[i] or exact[i])) or (kind == "z" and not has_digits[i]):
            kinds[i] = "d"
    needs = np.array([kind in "qb" for kind in kinds], dtype=bool) & ~has_integer & exact
    whole = np.where(needs, np.where(exact, value, 0.0), 0.0).astype(np.int64)
    filled = {
        "type": strings(kinds),
        "value": from_numpy(np.where(has_value, value, integer.astype(np.float64)), has_value | has_integer),
        "integer": from_numpy(np.where(needs, whole, integer), has_integer | needs),
    }
    for name, cells in filled.items():
        columns[name] = pa.chunked_array([cells.cast(columns[name].type)], columns[name].type)


def _ways_apart(columns: dict[str, pa.ChunkedArray]) -> NDArray:
    """For rows whose writers are lost: a number for each of the times that the rows with a sequence number have."""
    seqs = to_numpy(columns["seq"])[0]
    if not _there(columns["time"]).all():
        return _repeats(seqs)
    times = to_numpy(columns["time"])[0].astype(np.int64)
    order = np.lexsort((times, seqs))
    begins = np.r_[True, np.diff(seqs[order]) != 0]
    differs = np.r_[False, np.diff(times[order]) != 0] & ~begins
    steps = np.cumsum(differs)
    ways: NDArray = np.empty(len(seqs), dtype=np.int64)
    ways[order] = steps - np.maximum.accumulate(np.where(begins, steps, 0))
    return ways


def _repeats(seqs: NDArray) -> NDArray:
    """For each row how many rows before it have its sequence number."""
    order = np.argsort(seqs, kind="stable")
    ordered = seqs[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(seqs)])
    repeats: NDArray = np.empty(len(seqs), dtype=np.int64)
    repeats[order] = np.arange(len(seqs)) - np.repeat(starts, lengths)
    return repeats


def _names_in(schema: pa.Schema) -> list[str]:
    """The names of a file's columns as its schema has them; "" for one that is no text."""
    names = []
    for field in schema:
        name = ""
        with tolerating(UnicodeDecodeError):
            name = field.name
        names.append(name)
    return names


def _column_names(file: pq.ParquetFile, known: Set[str]) -> list[str]:
    """The names of a file's columns: the schema and each row group say them, and no checksum covers any of these.

    Where they differ, the name is the one that most of them say, and of two names the one that is known.
    """
    names = _names_in(file.schema_arrow)
    if file.metadata.num_columns != len(names):  # a list has a column for its elements, with a name of its own
        return names
    candidates = [names]
    with tolerating(UnicodeDecodeError):
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            candidates.append([about.column(k).path_in_schema for k in range(len(names))])
    votes = [Counter(own) for own in zip(*candidates, strict=True)]
    chosen = [max(own, key=lambda name: (own[name], name in known)) for own in votes]
    return chosen if len(set(chosen)) == len(chosen) else names


def _described(footer: pq.FileMetaData) -> Meta | None:
    """The description of a part in its footer, if it makes sense."""
    text = description_in(footer)
    with tolerating(ValueError, KeyError, TypeError, RecursionError, AttributeError):
        meta: Meta = json.loads(text or "")
        if says_all(meta):
            return meta
    return None


def _opened(path: str) -> pq.ParquetFile:
    """The file; without what was added behind its end, if that hides its footer.

    Raises:
      Damaged: it has no readable footer.
    """
    with open(open_regular(path), "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise Damaged(f"{_NO_FOOTER} (it is empty)")
        data = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    with raising(lambda err: Damaged(f"{_NO_FOOTER} ({err})"), pa.ArrowException, OSError, ValueError):
        try:
            return _parquet(data)
        except ours(pa.ArrowException, OSError, ValueError):
            end = _end_of(data)
            if end in (0, data.size):
                raise
            return _parquet(data.slice(0, end))


def _end_of(data: pa.Buffer) -> int:
    """The offset where a Parquet file ends if further bytes follow it; 0 if no end is found."""
    with memoryview(data) as view:
        for start in range(max(0, len(view) - _SEARCHED), -1, -_SEARCHED):
            at = bytes(view[start : start + _SEARCHED + 3]).rfind(b"PAR1")
            if at >= 0 and start + at > 8:
                return start + at + 4
    return 0


def _parquet(data: pa.Buffer) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, page_checksum_verification=True)
