"""Fewer and larger parts: while a run continues, eight neighbours of a size become one; when it is over, one part per
stream (large parts stay unchanged).

A merged part replaces the part with the same first row: it is written to a temporary file, then renamed, and the other
parts are unlinked. After an interruption, parts that are left over are contained in the merged part, and readers skip
them. So only neighbours are merged: between two others there may be a part that cannot be read, or is not here yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged
from rollbook.schema.run_files import (
    HIDDEN_TABLES,
    PartName,
    RunFile,
    data_folder,
    journal_folder,
    part_folder,
    part_folders,
    pyramid_path,
)
from rollbook.storage.encode import PartWriter
from rollbook.storage.fills import Fills
from rollbook.storage.parts import OpenParts, Part, covers_of
from rollbook.storage.tabulate import Meta, long_table, stored_name
from rollbook.system.files import make_folders, own_files, remove
from rollbook.values.arrow import (
    cast,
    common_type,
    constant,
    from_numpy,
    join_tables,
    to_numpy,
    without_dictionaries,
)

SMALL_ROWS = 1000
"""Groups with fewer rows than this share one file when the run is over."""


class Sizes(NamedTuple):
    """The numbers from which sealing merges, tidies up and asks for help.

    Attributes:
      at_once: this many neighbouring parts of one tier are merged.
      first_tier: rows of the largest part of the first tier, divided by 8; each tier has eight times as many.
      largest: parts with this many rows are not merged. So each row is rewritten at most four times, and the end of a
        long run needs neither its size on disk again nor the time to rewrite it.
      many_small: this many small groups of closed writers share a file while the run continues.
      many_writers: this many folders of closed writers become one file while the run continues.
      helper_bytes: of the journal for each helping process: starting one costs as much as sealing 64 MiB.
    """

    at_once: int = 8
    first_tier: int = 8192
    largest: int = 8 * 1024 * 1024
    many_small: int = 64
    many_writers: int = 64
    helper_bytes: int = 128 * 1024 * 1024


SIZES = Sizes()


def merge(
    run: str,
    *,
    final: bool,
    problems: list[str],
    small_rows: int = SMALL_ROWS,
    writers: Collection[str] | None = None,
    sizes: Sizes = SIZES,
    open_parts: OpenParts | None = None,
) -> int:
    """Merge parts of a run; returns how many became part of another.

    Args:
      final: merge all that can be merged, because the run is over.
      problems: receives what could not be read.
      small_rows: groups with fewer rows share a file, if final.
      writers: only their parts, while other processes merge those of other writers; not if final.
      sizes: when to merge.
      open_parts: the run's parts, if they are open; not together with `writers`.
    Raises:
      OSError: the disk is full. Nothing is lost.
    """
    merged = 0
    open_parts = open_parts or OpenParts(run, writers)
    fills = _all_fills(open_parts, problems) if final else None
    for table in [*_tables(run), *(["marks"] if final else [])]:
        of_table = _TableParts(run, table, _listed(open_parts, table))
        for leftover in open_parts.contained(table):
            remove(leftover.path)
        unread = [PartName.parse(os.path.basename(path)) for path in open_parts.problems]
        try:
            stretches = of_table.stretches([name for name in unread if name is not None])
            if final:
                for n in _merge_at_the_end(of_table, stretches, small_rows, sizes.largest, fills):
                    merged += n
            else:
                merged += sum(_merge_tiers(stretch, sizes) for stretch in stretches)
                if writers is None:
                    merged += _merge_of_the_done(of_table, small_rows, problems, sizes)
        except (Damaged, FileNotFoundError) as err:
            problems.append(str(err))
    if final and not problems:
        for part in _listed(open_parts, "fills"):
            if not _has_segments(run, part.meta["writer"]):
                os.unlink(part.path)  # the merged file has their rows now
    if writers is None:
        _unlink_lone_pyramids(run)
    return merged


class _TableParts:
    """The parts of a table.

    Attributes:
      streams: (writer, lane, group) -> the parts of that stream.
      shared: the files that small groups of many streams share.
    """

    def __init__(self, run: str, table: str, parts: list[Part]) -> None:
        self.run, self.table = run, table
        self.streams: dict[tuple[str, int, str], list[Part]] = {}
        self.shared = [part for part in parts if part.name.kind == "merged"]
        for part in parts:
            if part.name.kind != "merged":
                stream = (part.meta["writer"], part.meta["lane"], part.meta["group"])
                self.streams.setdefault(stream, []).append(part)

    def stretches(self, unread: list[PartName]) -> list[list[Part]]:
        """The neighbours in each stream; `unread`: the files that cannot be read now.

        Raises:
          Damaged, FileNotFoundError: a part cannot be read, or was merged meanwhile.
        """
        for stream in self.streams.values():
            stream.sort(key=lambda part: int(part.meta["first_seq"]))
        return [stretch for stream in self.streams.values() for stretch in _neighbours(stream, unread)]

    def small_streams(self, rows: int) -> list[list[Part]]:
        """The streams with fewer rows than this."""
        return [stream for stream in self.streams.values() if sum(part.rows for part in stream) < rows]


def _merge_at_the_end(
    of_table: _TableParts, stretches: list[list[Part]], small_rows: int, largest: int, fills: Fills | None
) -> Iterator[int]:
    """Merge all that can be merged; yields how many parts each step has merged."""
    run, small, shared = of_table.run, of_table.small_streams(small_rows), of_table.shared
    together: list[Part] = []
    if len(small) + len(shared) > 1 or any(_is_old(run, part) for part in shared):
        together = [part for stream in small for part in stream]
        yield _merge_small(of_table, together, shared, fills)
    for neighbours in (piece for stretch in stretches for piece in _without_large(stretch, largest)):
        first = neighbours[0]
        if first not in together and (len(neighbours) > 1 or _can_fill(first, fills) or _is_old(run, first)):
            yield _merge_parts(neighbours, fills)


def _unlink_lone_pyramids(run: str) -> None:
    """Remove pyramids whose part was merged into another."""
    folder = os.path.join(data_folder(run), "pyramid")
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        table, _, part = name.removesuffix(".pyr").partition(".")
        if not any(os.path.exists(os.path.join(of_table, f"{part}.parquet")) for of_table in part_folders(run, table)):
            os.unlink(os.path.join(folder, name))


def _has_segments(run: str, writer: str) -> bool:
    try:
        return any(name.endswith((".seg", ".log")) for name in os.listdir(os.path.join(journal_folder(run), writer)))
    except OSError:
        return False


def _tables(run: str) -> list[str]:
    try:
        with os.scandir(data_folder(run)) as entries:
            return sorted(e.name for e in entries if e.is_dir() and e.name not in HIDDEN_TABLES)
    except OSError:
        return []


def _listed(open_parts: OpenParts, table: str) -> list[Part]:
    for _ in range(10):
        try:
            return list(open_parts.parts(table))
        except FileNotFoundError:
            continue
    return []


# -- parts of one stream


def _neighbours(stream: list[Part], unread: list[PartName]) -> list[list[Part]]:
    """The ranges of a stream whose parts have no rows between them; `unread` are the files that cannot be read now."""
    stretches: list[list[Part]] = []
    for part in stream:
        before = stretches[-1][-1] if stretches else None
        if (
            before is None
            or part.meta.get("after", before.meta["last_seq"]) != before.meta["last_seq"]
            or "covers" in part.meta
            or "covers" in before.meta
            or any(_is_between(name, before.name, part.name) for name in unread)
        ):
            stretches.append([])
        stretches[-1].append(part)
    return stretches


def _is_between(name: PartName, before: PartName, after: PartName) -> bool:
    same = (name.writer, name.lane, name.kind) == (before.writer, before.lane, before.kind)
    return name.kind == "merged" or (same and before.first < name.first < after.first)


def _without_large(stretch: list[Part], largest: int) -> Iterator[list[Part]]:
    """The neighbours between large parts, and each large part separately."""
    for is_large, parts in groupby(stretch, key=lambda part: part.rows >= largest):
        neighbours = list(parts)
        yield from [[part] for part in neighbours] if is_large else [neighbours]


def _merge_tiers(stream: list[Part], sizes: Sizes) -> int:
    """Merge eight or more neighbours of one size, the smallest sizes first."""
    done = 0
    again = True
    while again:
        again = False
        for start, stop in _runs(stream, sizes):
            if stop - start >= sizes.at_once:
                merged = _merge_parts(stream[start:stop], None)
                done += merged
                if merged:
                    first = stream[start]
                    stream[start:stop] = [Part(first.path, first.name)]
                    again = True
                break
    return done


def _runs(stream: list[Part], sizes: Sizes) -> Iterator[tuple[int, int]]:
    """Ranges of neighbours of the same tier."""
    start = 0
    for stop in range(1, len(stream) + 1):
        if stop == len(stream) or _tier(stream[stop], sizes) != _tier(stream[start], sizes):
            if stream[start].rows < sizes.largest:
                yield start, stop
            start = stop


def _tier(part: Part, sizes: Sizes) -> int:
    tier, rows = 0, part.rows
    while rows >= sizes.first_tier * 8 ** (tier + 1):
        tier += 1
    return tier


def _merge_parts(parts: list[Part], fills: Fills | None) -> int:
    """Write neighbouring parts of one stream as one, with the name of the first; returns how many were merged."""
    first, last = parts[0].meta, parts[-1].meta
    constants = {name: _common(parts, name) for name in ("scope", "at")}
    schema, samples = _schema(parts, constants)
    keys = list(dict.fromkeys(key for part in parts for key in part.meta["keys"]))
    types = {key: t for part in parts for key, t in zip(part.meta["keys"], part.meta["types"], strict=False)}
    meta: Meta = {
        **first,
        **constants,
        "last_seq": max(part.meta["last_seq"] for part in parts),
        "first_time": min(part.meta["first_time"] for part in parts),
        "last_time": max(part.meta["last_time"] for part in parts),
        "rows": sum(part.rows for part in parts),
        "keys": keys,
        "stored": _stored(parts),
        "types": "".join(types[key] for key in keys) if types else "",
        "clocks": list(dict.fromkeys(clock for part in parts for clock in part.meta["clocks"])),
        "fields": _fields(parts, schema),
    }
    if "last" in last:
        meta["last"], meta["last_clocks"] = last["last"], last["last_clocks"]
    run = _run_of(parts[0])
    folder = part_folder(run, meta["table"], meta["group"])
    make_folders(folder, inside=run)
    path = os.path.join(folder, os.path.basename(parts[0].path))
    _write(path, schema, samples, _aligned(parts, schema, constants, fills), meta, _levels_of(parts[0]))
    for part in parts:
        if part.path != path:
            os.unlink(part.path)
    return len(parts) if len(parts) > 1 else 0


def rewrite(part: Part, changed: Callable[[pa.Table], pa.Table]) -> None:
    """Replace a part by its rows with other cells; the rows themselves stay.

    Args:
      changed: gets the rows of a row group; all results have the columns of the first.
    """
    sample = changed(part.read(row_groups=[0]))
    tables = (changed(part.read(row_groups=[group])) for group in range(len(part.row_groups)))
    _write(part.path, sample.schema, sample, tables, part.meta)


def _run_of(part: Part) -> str:
    """The run's folder."""
    return part.path.rpartition(f"{os.sep}data{os.sep}")[0]


def _is_old(run: str, part: Part) -> bool:
    """Whether a part is where format 1 put it."""
    return os.path.dirname(part.path) != part_folder(run, part.meta["table"], part.meta["group"])


def _fields(parts: list[Part], schema: pa.Schema) -> dict[str, Any]:
    """What the types of the merged columns do not express; columns without a common type have become JSON texts."""
    fields = {k: v for part in parts for k, v in (part.meta.get("fields") or {}).items()}
    for field in schema:
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            kinds = [part.schema.field(field.name).type for part in parts if field.name in part.schema.names]
            if not all(pa.types.is_string(k) or pa.types.is_large_string(k) or pa.types.is_null(k) for k in kinds):
                fields[field.name] = {"rollbook": "json"}
    return fields


def _stored(parts: list[Part]) -> dict[str, str]:
    """{key: its column}, if that has another name."""
    stored: dict[str, str] = {}
    for part in parts:
        if part.meta["group"][0] != "R":
            columns = part.columns
            stored |= {key: name for key in part.meta["keys"] if (name := stored_name(key, part.meta, columns)) != key}
    return stored


def _common(parts: list[Part], name: str) -> object:
    """A value common to all parts, or None if it varies."""
    values = {part.meta.get(name) for part in parts}
    return values.pop() if len(values) == 1 else None


def _schema(parts: list[Part], constants: dict[str, object]) -> tuple[pa.Schema, pa.Table]:
    """The union of the parts' columns, and some rows of the largest part."""
    schemas = [_widened(part.schema, part.meta, constants) for part in parts]
    kinds: dict[str, list[pa.DataType]] = {}
    for each in schemas:
        for field in each:
            kinds.setdefault(field.name, []).append(field.type)
    schema = pa.schema([pa.field(name, common_type(types)) for name, types in kinds.items()])
    largest = max(parts, key=lambda part: part.rows)
    sample = largest.read(row_groups=[0])
    return schema, _align(sample, schema, largest.meta, constants)


def _widened(schema: pa.Schema, meta: Meta, constants: dict[str, object]) -> pa.Schema:
    """The schema with a column for each former constant that now varies."""
    for name, value in constants.items():
        if value is None and name not in schema.names and meta.get(name) is not None:
            schema = schema.append(pa.field(name, pa.string()))
    return schema


def _aligned(
    parts: list[Part], schema: pa.Schema, constants: dict[str, object], fills: Fills | None
) -> Iterator[pa.Table]:
    for part in parts:
        for group in range(len(part.row_groups)):
            yield filled(_align(part.read(row_groups=[group]), schema, part.meta, constants), part.meta, fills)


def _align(table: pa.Table, schema: pa.Schema, meta: Meta, constants: dict[str, object]) -> pa.Table:
    """The rows of a part in the columns of the merged one."""
    arrays = []
    for field in schema:
        if field.name in table.column_names:
            arrays.append(cast(table[field.name], field.type))
        elif field.name in constants and meta.get(field.name) is not None:
            arrays.append(constant(str(meta[field.name]), table.num_rows).dictionary_decode())
        else:
            arrays.append(pa.nulls(table.num_rows, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _can_fill(part: Part, fills: Fills | None) -> bool:
    return bool(fills) and bool(part.meta.get("deferred"))


def filled(table: pa.Table, meta: Meta, fills: Fills | None) -> pa.Table:
    """The rows with the device values that came after they were sealed."""
    if fills is None or not fills or not meta.get("deferred"):
        return table
    seqs = to_numpy(table["seq"])[0]
    for key in meta["deferred"]:
        name = stored_name(key, meta, table.column_names)
        if name in table.column_names and table[name].null_count:
            late = fills.column(meta["writer"], meta["lane"], key, seqs)
            if late.null_count < table[name].null_count:
                values, valid = to_numpy(table[name])
                more, there = to_numpy(late)
                mask = np.zeros(len(values), dtype=bool) if valid is None else ~valid
                use = mask if there is None else mask & there
                joined = np.where(use, more, values).astype(values.dtype)
                known = np.ones(len(values), dtype=bool) if valid is None else valid | use
                column = table.column_names.index(name)
                table = table.set_column(column, table.schema.field(name), from_numpy(joined, known))
    return table


def _levels_of(part: Part) -> str:
    """The path of a part's pyramid."""
    if part.meta["table"] != "metrics" or part.meta["group"][0] == "R":
        return ""
    return pyramid_path(_run_of(part), part.meta["table"], os.path.basename(part.path))


def _write(
    path: str, schema: pa.Schema, sample: pa.Table, tables: Iterator[pa.Table], meta: Meta, pyramid: str = ""
) -> None:
    writer = PartWriter(path, schema, sample, meta, pyramid)
    try:
        for table in tables:
            writer.write(table)
        writer.finish({**meta, "rows": writer.rows or meta["rows"]})
    except BaseException:
        writer.abandon()
        raise


# -- small groups


def _merge_of_the_done(of_table: _TableParts, small_rows: int, problems: list[str], sizes: Sizes) -> int:
    """While a run continues: small groups of closed writers share a file, once there are many of them."""
    run, small = of_table.run, of_table.small_streams(small_rows)
    if len(small) < sizes.many_small or of_table.table in HIDDEN_TABLES:
        return 0
    done = {writer for writer in {str(stream[0].meta["writer"]) for stream in small} if _is_done(run, writer)}
    together = [part for stream in small if stream[0].meta["writer"] in done for part in stream]
    if len(together) < sizes.many_small:
        return 0
    former = [part for part in of_table.shared if _tier(part, sizes) == 0]
    present = [part for part in together if os.path.exists(part.path)]  # others were just merged with a neighbour
    return _merge_small(of_table, present, former, _all_fills(OpenParts(run), problems))


def _is_done(run: str, writer: str) -> bool:
    """Whether a writer has closed, and all of its journal is sealed."""
    folder = os.path.join(journal_folder(run), writer)
    names = own_files(folder)
    return set(names) <= {RunFile.WRITER, RunFile.CLOSED} and (not names or RunFile.CLOSED in names)


def _merge_small(of_table: _TableParts, parts: list[Part], former: list[Part], fills: Fills | None) -> int:
    """All small groups of a table in one file, metrics in long form; returns how many parts were merged."""
    run, table = of_table.run, of_table.table
    taken = [PartName.parse(name) for folder in part_folders(run, table) for name in own_files(folder)]
    number = 1 + max((name.first for name in taken if name is not None and name.kind == "merged"), default=-1)
    pieces = [part.read() for part in former]
    for part in parts:
        rows = filled(part.read(), part.meta, fills)
        if table == "metrics":
            rows = long_table(rows, part.meta)
        pieces.append(_with_identity(rows, part.meta))
    whole = join_tables([without_dictionaries(piece) for piece in pieces])
    whole = whole.sort_by([("time", "ascending"), ("seq", "ascending")])
    everything = [*former, *parts]
    keys = dict.fromkeys(key for part in everything for key in part.meta["keys"])
    meta: Meta = {
        "table": table,
        "group": "R" if table == "metrics" else "F",
        "writer": None,
        "lane": None,
        "attempt": None,
        "scope": None,
        "at": None,
        "first_time": min(part.meta["first_time"] for part in everything),
        "last_time": max(part.meta["last_time"] for part in everything),
        "rows": whole.num_rows,
        "keys": list(keys),
        "stored": {} if table == "metrics" else _stored(everything),
        "types": "",
        "clocks": list(dict.fromkeys(clock for part in everything for clock in part.meta["clocks"])),
        "fields": _fields(everything, whole.schema),
        "covers": sorted(cover for part in everything for cover in covers_of(part.meta)),
    }
    meta["writers"] = _lanes(meta["covers"])
    folder = part_folder(run, table, meta["group"])
    make_folders(folder, inside=run)
    path = os.path.join(folder, str(PartName("", -1, "merged", number)))
    _write(path, whole.schema, whole, iter([whole]), meta)
    for part in everything:
        os.unlink(part.path)
    return len(everything)


def _lanes(covers: list[tuple[str, int, str, int, int]]) -> dict[str, dict[str, list[int]]]:
    """{writer: {lane: [first seq, last seq]}} of a merged part."""
    lanes: dict[str, dict[str, list[int]]] = {}
    for writer, lane, _, first, last in covers:
        known = lanes.setdefault(writer, {}).setdefault(str(lane), [first, last])
        known[0], known[1] = min(known[0], first), max(known[1], last)
    return lanes


def _with_identity(table: pa.Table, meta: Meta) -> pa.Table:
    """The rows with the constants of their part as columns."""
    n = table.num_rows
    for name in ("writer", "scope", "at"):
        if name not in table.column_names:
            table = table.append_column(name, constant(str(meta.get(name) or ""), n))
    for name in ("lane", "attempt"):
        if name not in table.column_names:
            table = table.append_column(name, from_numpy(np.full(n, int(meta[name]), dtype=np.int64)))
    if "index" not in table.column_names:
        table = table.append_column("index", from_numpy(np.zeros(n, dtype=np.int64)))
    return table


def _all_fills(open_parts: OpenParts, problems: list[str]) -> Fills:
    fills = Fills()
    for part in _listed(open_parts, "fills"):
        try:
            fills.add_table(part.meta["writer"], part.read())
        except (Damaged, FileNotFoundError, KeyError) as err:
            problems.append(str(err))
    return fills
