"""Which sealed rows are missing from a run's folder: a part that was moved away would hide its rows without a trace.

data/keeper/finished.json records how far each stream was sealed, and every part records the last number of the part
before it. Data that was joined or pulled from elsewhere is not recorded here: any part of it may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby

from rollbook.schema.finished import add, damage, finished_path, sealed_lasts
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import HIDDEN_TABLES, LONG, WIDE, PartName, data_folder, part_folders
from rollbook.storage.damage import files_set_aside
from rollbook.storage.parts import OpenParts, Part, covers_of
from rollbook.system.guard import tolerating

StreamName = tuple[str, str, int, str]
"""(table, writer, lane, group)"""


class SealedSoFar:
    """How far each stream of a run was sealed in this folder.

    Args:
      run: the run's folder.
    Attributes:
      lasts: {(table, writer, lane, group): the last sequence number}.
      new: entries that are not in the file yet.
    """

    def __init__(self, run: str) -> None:
        self.lasts: dict[StreamName, int] = {}
        self.new: dict[StreamName, int] = {}
        for writer, streams in sealed_lasts(run).items():
            for stream, last in streams.items():
                table, _, rest = stream.partition("/")
                lane, _, group = rest.partition("/")
                if type(last) is int and lane.isdecimal():
                    self.lasts[table, writer, int(lane), group] = last

    def reaches(self, stream: StreamName, last: int) -> None:
        """Record that a stream was sealed up to this number."""
        self.lasts[stream] = self.new[stream] = max(last, self.lasts.get(stream, 0))

    def write(self, run: str) -> None:
        """Write new entries to the file, and keep those that another host may have written meanwhile.

        Raises:
          OSError: the disk is full, or the folder cannot be written.
        """
        if not self.new:
            return
        now = SealedSoFar(run)
        for stream, last in self.new.items():
            now.reaches(stream, last)
        streams_of: dict[str, dict[str, int]] = {}
        for (table, writer, lane, group), last in now.lasts.items():
            streams_of.setdefault(writer, {})[f"{table}/{lane}/{group}"] = last
        add(run, "sealed", streams_of)
        self.new = {}


def missing_parts(run: str, open_parts: OpenParts | None = None) -> Iterator[Problem]:
    """A problem for each range of rows whose file is missing. Parts that were set aside are reported by `repair`.

    Args:
      run: the run's folder.
      open_parts: its open parts, if there are any.
    """
    data = data_folder(run)
    if damaged := damage(run):
        yield Problem(damaged, "unreadable", finished_path(run))
    aside = _parts_aside(data)
    open_parts = open_parts or OpenParts(run)
    remembered = sorted(SealedSoFar(run).lasts.items())  # read before the parts: more may be sealed meanwhile
    streams = {table: list(those) for table, those in groupby(remembered, key=lambda entry: entry[0][0])}
    with tolerating(OSError) as missed:
        tables = sorted({*streams, *os.listdir(data)} - HIDDEN_TABLES)
    if missed:
        return
    for table in tables:
        with tolerating(FileNotFoundError) as missed:
            parts = open_parts.parts(table)
        if missed:
            continue  # it is being merged
        if open_parts.problems:
            return  # the contents of an unreadable file are unknown
        gone = [name for folder in part_folders(run, table) for name in aside.get(os.path.basename(folder), ())]
        if any(name.kind == "merged" for name in gone):
            continue  # any range may have been in it
        ranges: _Ranges = {}
        for part in parts:
            for writer, lane, group, first, last in covers_of(part.meta):
                ranges.setdefault((writer, lane, group), []).append((first, last))
        for part in parts:
            yield from _missing_before(part, ranges, gone)
        for (_, writer, lane, group), sealed in streams.get(table, ()):
            here = max((last for _, last in ranges.get((writer, lane, group), ())), default=0)
            if here < sealed and not _is_aside(gone, (writer, lane, group), here, sealed):
                rest = f" (what is here ends with {here})" if here else ""
                words = (
                    f"{os.path.join(data, table)}: the file with the last rows of writer {writer}, lane {lane}, "
                    f"{group}, up to number {sealed}, is not here{rest}; put it back, and its rows are there again"
                )
                yield Problem(words, "missing", os.path.join(data, table), writer=writer)


_Ranges = dict[tuple[str, int, str], list[tuple[int, int]]]
"""{(writer, lane, group): (first, last) of each part}"""


def _parts_aside(data: str) -> dict[str, list[PartName]]:
    """{folder of a table: the parts of it that were set aside, and are not here again}"""
    aside: dict[str, list[PartName]] = {}
    for name in files_set_aside(os.path.dirname(data)):
        home, _, rest = name.rstrip("~").partition(".")
        part_name = PartName.parse(rest)
        folder = os.path.join(data, "metrics", home) if home in (WIDE, LONG) else os.path.join(data, home)
        if part_name is not None and not os.path.lexists(os.path.join(folder, rest)):
            aside.setdefault(home, []).append(part_name)
    return aside


def _missing_before(part: Part, ranges: _Ranges, gone: list[PartName]) -> Iterator[Problem]:
    """A problem if the part was sealed behind another one that is neither here nor set aside."""
    meta, after = part.meta, part.meta.get("after", 0)
    is_rescued = "+" in meta["group"]  # recovered from a part that was set aside
    if not after or "covers" in meta or is_rescued:
        return
    own = (meta["writer"], meta["lane"], meta["group"])
    if any(first <= after <= last for first, last in ranges[own]):
        return
    behind = max((last for _, last in ranges[own] if last < after), default=0)
    if not _is_aside(gone, own, behind, after):
        words = (
            f"{part.path}: the file with the rows before these, up to number {after} of writer "
            f"{meta['writer']}, is not here; put it back, and its rows are there again"
        )
        yield Problem(words, "missing", part.path, writer=meta["writer"])


def _is_aside(gone: list[PartName], stream: tuple[str, int, str], behind: int, upto: int) -> bool:
    """Whether a part that was set aside begins in this range of a stream."""
    writer, lane, group = stream
    kind = group if group[0] == "S" else group[0]
    return any(
        (name.writer, name.lane, name.kind) == (writer, lane, kind) and behind < name.first <= upto for name in gone
    )
