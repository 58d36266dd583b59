"""Recovers readable rows from damaged files and adds them to the run's data, each row once.

What is recovered from a sealed part takes its place, with the same name. If other parts have some of its rows, or the
rows come from the journal, they become separate parts, in groups with a "+" in their name, so that the ranges covered
by other parts do not hide them. The damaged files stay in data/aside under names that no reader uses; `storage.damage`
remembers what could not be recovered.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import FrameFile, Segment, SegmentHeader, WriterInfo, decode
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import (
    PartName,
    data_folder,
    journal_folder,
    parse_name,
    part_folder,
    pyramid_path,
    table_names,
)
from rollbook.storage.damage import SEARCHED, is_back, settle, unsettled
from rollbook.storage.encode import PartWriter, write_part
from rollbook.storage.frame_tables import FrameTables
from rollbook.storage.parts import OpenParts, covers_of, rows_by_lane
from rollbook.storage.salvage_parts import DamagedPart
from rollbook.storage.sealing.writers_file import writers_named
from rollbook.storage.tabulate import Meta, committed_words, segment_table, seq_range
from rollbook.system.files import make_folders, open_regular, own_files
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import empty_table, take_table, to_numpy


def rescue(run: str) -> list[str]:
    """Recover what is readable in the damaged files of data/aside; returns the actions, one sentence each."""
    folder = os.path.join(data_folder(run), "aside")
    done = []
    for file in own_files(folder):
        path = os.path.join(folder, file)
        name = file.rstrip("~")
        search = next((search for ending, search in _SEARCHES.items() if name.endswith(ending)), None)
        if search is None:
            continue
        try:
            saved = search(run, path, file)
        except (Damaged, NewerFormat, ValueError, KeyError, TypeError, struct.error, pa.ArrowException) as err:
            lost = "" if is_back(run, file) else f"all that it held ({str(err).replace(path, 'it')})"
            saved = _Saved(0, lost)
            settle(run, file, lost)
        if saved is None:
            continue
        os.replace(path, path + SEARCHED)
        done.append(
            f"{path}: {amount(saved.rows, 'row')} that the book lacked came from it; it is kept as {file}{SEARCHED}"
            + (f". Lost for good: {saved.lost}" if saved.lost else "")
        )
    for file in unsettled(run):
        settle(run, file, "" if is_back(run, file) else "whatever it held, for it is not in data/aside any more")
    return done


class _Saved(NamedTuple):
    """How many rows came from a damaged file, and what could not be saved from it; "" for nothing."""

    rows: int
    lost: str


def _adopt(run: str, meta: Meta, table: pa.Table) -> int:
    """Write the rows that the run does not have yet as a separate part; returns their number."""
    seqs = to_numpy(table["seq"])[0]
    known = _known_rows(run, meta["table"]).get((meta["writer"], meta["lane"]), _NO_ROWS)
    new_rows = np.flatnonzero(~np.isin(seqs, known))
    if not len(new_rows):
        return 0
    table = take_table(table, new_rows)
    first = int(seqs[new_rows].min())
    meta = _apart({**meta, **seq_range(seqs[new_rows], to_numpy(table["time"])[0])}, first)
    path = _free_path(run, meta, first)
    write_part(path, meta, table)
    return len(new_rows)


def _apart(meta: Meta, first: int) -> Meta:
    """The description of rows that cover no range of their stream."""
    apart: Meta = {**meta, "group": f"{meta['group']}+{first}"}
    if "covers" in meta:
        apart["covers"] = [(writer, lane, f"{group}+{first}", a, b) for writer, lane, group, a, b in covers_of(meta)]
    apart.pop("last", None)
    return apart


def _free_path(run: str, meta: Meta, first: int) -> str:
    """An unused path for a part: no file is ever overwritten."""
    group = meta["group"]
    kind = "merged" if "covers" in meta else group.partition("+")[0] if group[0] == "S" else group[0]
    name = PartName("", -1, kind, 0) if kind == "merged" else PartName(meta["writer"], meta["lane"], kind, first)
    folder = part_folder(run, meta["table"], group)
    make_folders(folder, inside=run)
    while os.path.lexists(os.path.join(folder, str(name))):
        name.first += 1
    return os.path.join(folder, str(name))


_NO_ROWS: NDArray = np.zeros(0, dtype=np.int64)
_Rows = dict[tuple[str, int], NDArray]
"""{(writer, lane): sequence numbers}"""


def _known_rows(run: str, table: str) -> _Rows:
    """The sequence numbers of the rows of a table."""
    known: dict[tuple[str, int], list[NDArray]] = {}
    for part in OpenParts(run).parts(table):
        rows = part.read(["seq", "writer", "lane"])
        for whose, own in rows_by_lane(rows, part.meta):
            known.setdefault(whose, []).append(to_numpy(rows["seq"])[0][own])
    return {whose: np.concatenate(seqs) for whose, seqs in known.items()}


def _lost_numbers(run: str, writer: str, lane: int, stretches: list[tuple[int, int]]) -> int:
    """How many numbers of a lane no row has, of those between the two numbers of each stretch."""
    wanted = [(before + 1, after - 1) for before, after in stretches if after - before > 1]
    if not wanted:
        return 0
    known = [_known_rows(run, table).get((writer, lane), _NO_ROWS) for table in [*table_names(run), "fills", "marks"]]
    seqs = np.unique(np.concatenate(known))
    return sum(
        last - first + 1 - int(np.searchsorted(seqs, last, "right") - np.searchsorted(seqs, first, "left"))
        for first, last in wanted
    )


def _writes_here(run: str, writer: str) -> bool:
    """Whether a writer belongs to this run."""
    is_here = bool(_writer(run, writer).about) or os.path.isdir(os.path.join(journal_folder(run), writer))
    return is_here or writer in writers_named(run)


# -- frames


def _from_log(run: str, path: str, file: str) -> _Saved | None:
    writer, parsed = _parsed(file.rstrip("~"))
    if parsed is None:
        return None
    info = _writer(run, writer)
    data = _content(path)
    tables = FrameTables(info, parsed[1])
    stretches: list[tuple[int, int]] = []
    end, last, broken, undecodable = FrameFile.BEGIN, 0, 0, 0
    for seq, mono, payload, start in FrameFile.whole_in(data):
        if start != end:
            broken += start - end
            if last or parsed[3] == 0:  # a file behind another one does not say with which number it began
                stretches.append((last, seq))
        end, last = start + FrameFile.HEAD + len(payload), seq
        try:
            tables.add(seq, mono + info.time_offset, decode(payload))
        except Damaged:
            undecodable += 1
    rest = len(data) - end
    gone = _lost_numbers(run, writer, parsed[1], stretches)
    words = [f"{amount(gone, 'record')} in {amount(broken, 'damaged byte')}"] if gone else []
    words += [f"{amount(undecodable, 'record')} that cannot be decoded"] if undecodable else []
    words += [f"what was in the {amount(rest, 'byte')} behind its last whole record"] if rest > 0 else []
    lost = " and ".join(words)
    settle(run, file, lost)
    return _Saved(sum(_adopt(run, meta, table) for meta, table in tables.tables()), lost)


# -- segments


def _from_segment(run: str, path: str, file: str) -> _Saved | None:
    """The rows of a segment. If its header is damaged, uses that of another segment or part of its stream."""
    writer, parsed = _parsed(file.rstrip("~"))
    if parsed is None:
        return None
    data = _content(path)
    header, is_own = _header_of(run, data, path, writer, parsed)
    if header is None or not _writes_here(run, header.writer):
        lost = "its rows: what its columns are cannot be read" if header is None else "nothing of this run"
        settle(run, file, "" if header else lost)
        return _Saved(0, lost)
    first_seq = header.first_seq if is_own else 1
    rows = data[header.header_size :]
    rows = rows[: len(rows) // (8 * header.row_words) * 8 * header.row_words]
    words, damage = committed_words(header, rows, first_seq)
    seqs = words[:, -1]
    # With a borrowed header the words may be anything: accept only rows with consecutive numbers.
    if not is_own and len(seqs) > 1 and float(np.mean(np.diff(seqs) < 2**20)) < 0.9:
        words = words[:0]
    whole = header.header_size + 8 * header.row_words * header.capacity
    is_cut = len(data) < whole and is_own
    lost = ", ".join(filter(None, [damage, f"what was behind byte {len(data):,}" if is_cut else ""]))
    lost = lost or ("" if len(words) else "its rows, if it had any")
    settle(run, file, lost)
    return _Saved(_adopt(run, *segment_table(header, words)) if len(words) else 0, lost)


def _header_of(
    run: str, data: bytes, path: str, writer: str, parsed: tuple[str, int, int, int]
) -> tuple[SegmentHeader | None, bool]:
    """The header of a segment, and whether it is its own, at least its description."""
    with tolerating(Damaged, ValueError, KeyError, TypeError, struct.error):
        return Segment.header_in(data, path), True
    described = None
    with tolerating(Damaged, ValueError, KeyError, TypeError, struct.error):
        header, is_sure = Segment.header_by_description(data, path)
        if (header.writer, header.lane, header.stream) == (writer, *parsed[1:3]):
            if is_sure:
                return header, True
            described = header
    return _sibling(run, writer, parsed) or described, False


def _sibling(run: str, writer: str, parsed: tuple[str, int, int, int]) -> SegmentHeader | None:
    """The header of another segment of the same stream: its slots have the same columns and width."""
    folders = [os.path.join(journal_folder(run), writer), os.path.join(data_folder(run), "aside")]
    for folder in folders:
        for name in own_files(folder):
            whose, other_name = writer, parse_name(name)
            if folder == folders[1]:
                whose, other_name = _parsed(name.removesuffix(SEARCHED).rstrip("~"))
            if whose != writer or other_name is None or other_name[:3] != parsed[:3]:
                continue
            with tolerating(OSError, Damaged, NewerFormat, ValueError, KeyError, TypeError, struct.error):
                return Segment.header_in(_content(os.path.join(folder, name))[: 1 << 20], name)
    return _head_from_part(run, writer, parsed)


def _head_from_part(run: str, writer: str, parsed: tuple[str, int, int, int]) -> SegmentHeader | None:
    """The same from a sealed part of the stream; clocks and offset come from the writer."""
    info = _writer(run, writer)
    for part in OpenParts(run).parts("metrics"):
        meta = part.meta
        if (meta.get("writer"), meta.get("lane"), meta.get("stream")) != (writer, parsed[1], parsed[2]):
            continue
        if meta.get("deferred") or not info.clocks:
            continue
        about = {
            **{name: meta[name] for name in ("writer", "attempt", "lane", "stream", "table", "scope", "at", "types")},
            "keys": meta["keys"],
            "deferred": [],
            "clocks": list(info.clocks),
            "slot": parsed[3],
            "time_offset": info.time_offset,
        }
        return Segment.header_for(about, part.path)
    return None


# -- parts


def _from_part(run: str, path: str, file: str) -> _Saved | None:
    """The columns of a Parquet file that can be read, row group by row group."""
    folder, _, rest = file.rstrip("~").partition(".")
    name = PartName.parse(rest) or PartName("", -1, "merged", 0)  # rows may be in a file that should have none
    part = DamagedPart(run, path, folder, name)
    if not any(_writes_here(run, writer) for writer, *_ in covers_of(part.meta)):
        settle(run, file, "")  # a file of another run
        return _Saved(0, "")
    known = _known_rows(run, part.meta["table"])
    rows_of_groups = [_new_rows(table, part.meta, known if is_sure else {}) for table, is_sure in part.groups()]
    n = sum(len(own) for own in rows_of_groups)
    lost = "" if part.rows else "whatever it should have held: it has no rows"
    if n or not _are_elsewhere(part, known):
        lost = part.lost or lost
    settle(run, file, lost)
    if n:
        _write(run, part, rows_of_groups, is_whole=n == part.rows)
    return _Saved(n, lost)


def _are_elsewhere(part: DamagedPart, known: _Rows) -> bool:
    """Whether the run has as many rows as a part in the ranges that it covers: all of its rows are read from others."""
    there = 0
    for writer, lane, _, first, last in covers_of(part.meta):
        seqs = known.get((writer, lane), _NO_ROWS)
        own = seqs[(seqs >= first) & (seqs <= last)]
        there += len(own if part.is_long else np.unique(own))
    return there >= part.rows


def _new_rows(table: pa.Table, meta: Meta, known: _Rows) -> NDArray:
    """The indices of the rows that the run does not have."""
    seqs = to_numpy(table["seq"])[0]
    mask = np.ones(len(seqs), dtype=bool)
    for whose, own in rows_by_lane(table, meta):
        mask[own] = ~np.isin(seqs[own], known.get(whose, _NO_ROWS))
    return np.flatnonzero(mask)


def _write(run: str, part: DamagedPart, rows_of_groups: list[NDArray], *, is_whole: bool) -> None:
    """Write rows of a damaged part: in its place, if these are all of its rows."""
    meta = {**part.meta, "rows": sum(map(len, rows_of_groups))}
    name = part.name  # a file that was found under another's name gets its own
    if "covers" not in meta:
        kind = meta["group"].partition("+")[0] if meta["group"][0] == "S" else meta["group"][0]
        name = PartName(meta["writer"], meta["lane"], kind, meta["first_seq"])
    folder = part_folder(run, meta["table"], meta["group"])
    if "covers" in meta and name.kind != "merged":
        name = PartName.parse(os.path.basename(_free_path(run, meta, 0))) or name
    path, levels = os.path.join(folder, str(name)), ""
    if is_whole and not os.path.lexists(path):
        make_folders(folder, inside=run)
        if meta["table"] == "metrics" and meta["group"][0] != "R":
            levels = pyramid_path(run, "metrics", str(name))
    else:
        first = int(meta.get("first_seq") or 0)
        meta = _apart(meta, first)
        path = _free_path(run, meta, first)
    rows = (take_table(table, own) for (table, _), own in zip(part.groups(), rows_of_groups, strict=True))
    sample = next((table for table in rows if table.num_rows), empty_table(part.schema))
    writer = PartWriter(path, part.schema, sample, meta, levels)
    try:
        for (table, _), own in zip(part.groups(), rows_of_groups, strict=True):
            writer.write(take_table(table, own))
        writer.finish(meta)
    except BaseException:
        writer.abandon()
        raise


_SEARCHES: dict[str, Callable[[str, str, str], _Saved | None]] = {
    ".log": _from_log,
    ".seg": _from_segment,
    ".parquet": _from_part,
}


def _content(path: str) -> Any:
    """The bytes of a file, read as they are needed."""
    with open(open_regular(path), "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def _parsed(name: str) -> tuple[str, tuple[str, int, int, int] | None]:
    """(writer, parsed file name) of a file in data/aside."""
    writer, dot, rest = name.partition(".L")
    return writer, parse_name(f"L{rest}") if dot else None


def _writer(run: str, name: str) -> WriterInfo:
    """A writer whose folder may be gone already."""
    info = WriterInfo(os.path.join(journal_folder(run), name))
    if not info.about:
        known = former_writers(run).get(name)
        if known is not None:
            info.adopt(known)
    return info
