"""Recovers readable rows from damaged files and adds them to the run's data, each row once.

Recovered rows become separate parts, in groups with a "+" in their name, so that the ranges covered by other parts do
not hide them. The damaged files stay in data/aside under names that no reader uses.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import FrameFile, Segment, SegmentHeader, WriterInfo, decode
from rollbook.schema.run_files import PartName, RunFile, data_folder, journal_folder, parse_name, part_folder
from rollbook.storage.encode import write_part
from rollbook.storage.frame_tables import FrameTables
from rollbook.storage.parts import OpenParts, Part
from rollbook.storage.tabulate import Meta, committed_words, segment_table, seq_range
from rollbook.system.files import make_folders, own_files, read_json
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import take_table, to_numpy

_MOST_BYTES = 1 << 30
_DONE = ".searched"
_SHARED = ("writer", "attempt", "lane", "stream", "table", "scope", "at", "types")


def rescue(run: str) -> list[str]:
    """Recover what is readable in the damaged files of data/aside; returns the actions, one sentence each."""
    folder = os.path.join(data_folder(run), "aside")
    done = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        base = name.rstrip("~")
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        try:
            if base.endswith(".log"):
                pieces = _of_log(run, path, base)
            elif base.endswith(".seg"):
                pieces = _of_segment(run, path, base)
            elif base.endswith(".parquet") and "." in base and PartName.parse(base.partition(".")[2]) is not None:
                pieces = _of_part(path, base)
            else:
                continue
            rows = sum(_adopt(run, meta, table) for meta, table in pieces)
        except (Damaged, NewerFormat, ValueError, KeyError, TypeError, struct.error, pa.ArrowException) as err:
            rows = 0
            done.append(f"{path} is beyond repair ({err})")
        os.replace(path, path + _DONE)
        done.append(f"{path}: {amount(rows, 'row')} that the book lacked came from it; it is kept as {name}{_DONE}")
    return done


def set_aside(run: str) -> Iterator[str]:
    """A sentence for each damaged file that sealing moved to data/aside and `rescue` has not searched yet."""
    folder = os.path.join(data_folder(run), "aside")
    for name in own_files(folder):
        if name.rstrip("~").endswith((".log", ".seg")):
            yield (
                f"{os.path.join(folder, name)} was damaged when it was sealed: the rows that could not be read are not "
                "in the book. `rollbook repair` looks for what is whole in it"
            )


def _adopt(run: str, meta: Meta, table: pa.Table) -> int:
    """Write the rows that the run does not have yet as a separate part; returns their number."""
    seqs = to_numpy(table["seq"])[0]
    known = _known_seqs(run, meta)
    new_rows = np.flatnonzero(~np.isin(seqs, known))
    if not len(new_rows):
        return 0
    table = take_table(table, new_rows)
    group = meta["group"]
    first = int(seqs[new_rows].min())
    meta = {**meta, "group": f"{group}+{first}", **seq_range(seqs[new_rows], to_numpy(table["time"])[0])}
    meta.pop("last", None)
    kind = group.partition("+")[0] if group[0] == "S" else group[0]
    name = PartName(meta["writer"], meta["lane"], kind, first)
    folder = part_folder(run, meta["table"], group)
    make_folders(folder, inside=run)
    path = os.path.join(folder, str(name))
    while os.path.lexists(path):  # never overwrite an existing part
        name.first += 1
        path = os.path.join(folder, str(name))
    write_part(path, meta, table)
    return len(new_rows)


def _known_seqs(run: str, meta: Meta) -> NDArray:
    """The sequence numbers of all rows of this lane in any table."""
    open_parts = OpenParts(run)
    known: list[NDArray] = []
    for part in open_parts.parts(meta["table"]):
        if part.meta.get("writer") not in (None, meta["writer"]) or part.meta.get("lane") not in (None, meta["lane"]):
            continue
        rows = part.read(["seq", "writer", "lane"])
        seqs = to_numpy(rows["seq"])[0]
        if part.meta.get("writer") is None:
            writers, lanes = to_numpy(rows["writer"])[0], to_numpy(rows["lane"])[0]
            seqs = seqs[(writers == meta["writer"]) & (lanes == meta["lane"])]
        known.append(seqs)
    return np.concatenate(known) if known else np.zeros(0, dtype=np.int64)


# -- frames


def _of_log(run: str, path: str, name: str) -> list[tuple[Meta, pa.Table]]:
    writer, parsed = _parsed(name)
    if parsed is None or os.path.getsize(path) > _MOST_BYTES:
        return []
    info = _writer(run, writer)
    with open(path, "rb") as file:
        data = file.read()
    tables = FrameTables(info, parsed[1])
    for seq, mono, payload in FrameFile.whole_in(data):
        try:
            tables.add(seq, mono + info.time_offset, decode(payload))
        except Damaged:
            continue
    return tables.tables()


# -- segments


def _of_segment(run: str, path: str, name: str) -> list[tuple[Meta, pa.Table]]:
    """The rows of a segment. If its header is damaged, uses that of another segment or part of its stream."""
    writer, parsed = _parsed(name)
    with open(path, "rb") as file:
        data = file.read()
    if parsed is None:
        return []
    try:
        header = Segment.header_in(data, path)
        first_seq = header.first_seq
    except (Damaged, ValueError, KeyError, TypeError, struct.error):
        sibling = _sibling(run, writer, parsed)
        if sibling is None:
            return []
        header, first_seq = sibling, 1
    if header.writer != writer or header.lane != parsed[1]:
        return []
    rows = data[header.header_size :]
    rows = rows[: len(rows) // (8 * header.row_words) * 8 * header.row_words]
    words, _ = committed_words(header, rows, first_seq)
    seqs = words[:, -1]
    # With a borrowed header the words may be anything: accept only rows with consecutive numbers.
    if len(seqs) < 1 or (first_seq == 1 and float(np.mean(np.diff(seqs) < 2**20)) < 0.9 and len(seqs) > 1):
        return []
    return [segment_table(header, words)]


def _sibling(run: str, writer: str, parsed: tuple[str, int, int, int]) -> SegmentHeader | None:
    """The header of another segment of the same stream: its slots have the same columns and width."""
    folders = [os.path.join(journal_folder(run), writer), os.path.join(data_folder(run), "aside")]
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            whose, other_name = writer, parse_name(name)
            if folder == folders[1]:
                whose, other_name = _parsed(name.removesuffix(_DONE).rstrip("~"))
            if whose != writer or other_name is None or other_name[:3] != parsed[:3]:
                continue
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    return Segment.header_in(file.read(1 << 20), name)
            except (OSError, Damaged, NewerFormat, ValueError, KeyError, TypeError, struct.error):
                continue
    return _head_from_part(run, writer, parsed)


def _head_from_part(run: str, writer: str, parsed: tuple[str, int, int, int]) -> SegmentHeader | None:
    """The same from a sealed part of the stream; clocks and offset come from the writer."""
    info = _writer(run, writer)
    for table in ("metrics", "timings"):
        for part in OpenParts(run).parts(table):
            meta = part.meta
            if (meta.get("writer"), meta.get("lane"), meta.get("stream")) != (writer, parsed[1], parsed[2]):
                continue
            if meta.get("deferred") or not info.clocks or table == "timings":
                continue
            about = {
                **{
                    name: meta[name]
                    for name in ("writer", "attempt", "lane", "stream", "table", "scope", "at", "types")
                },
                "keys": meta["keys"],
                "deferred": [],
                "clocks": list(info.clocks),
                "slot": parsed[3],
                "time_offset": info.time_offset,
            }
            return Segment.header_for(about, part.path)
    return None


# -- parts


def _of_part(path: str, name: str) -> list[tuple[Meta, pa.Table]]:
    """The readable row groups of a Parquet file."""
    parsed = PartName.parse(name.partition(".")[2])
    if parsed is None or parsed.kind == "merged":
        return []
    part = Part(path, parsed)
    seqs = []
    for group in range(len(part.row_groups)):
        try:
            table = part.read(row_groups=[group])
            table.validate(full=True)
            seqs.append((part.meta, table))
        except (Damaged, pa.ArrowException, OSError):
            continue
    return seqs


def _parsed(name: str) -> tuple[str, tuple[str, int, int, int] | None]:
    """(writer, parsed file name) of a file in data/aside."""
    writer, dot, rest = name.partition(".L")
    return writer, parse_name(f"L{rest}") if dot else None


def _writer(run: str, name: str) -> WriterInfo:
    """A writer whose folder may be gone already."""
    info = WriterInfo(os.path.join(journal_folder(run), name))
    if not info.about:
        known = read_json(os.path.join(data_folder(run), RunFile.WRITERS)).get(name)
        if isinstance(known, dict):
            info.adopt(known)
    return info
