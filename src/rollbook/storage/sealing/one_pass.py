"""The state of one sealing: what is already sealed, what is doubtful, late values, and where parts are written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import FrameFile, WriterInfo, decode
from rollbook.schema.run_files import PartName, data_folder, parse_name, part_folder, pyramid_path
from rollbook.storage.damage import files_set_aside, note
from rollbook.storage.durable import DurableMarks
from rollbook.storage.encode import write_part
from rollbook.storage.fills import Fills
from rollbook.storage.parts import OpenParts, Part, covers_of
from rollbook.storage.sealed_so_far import SealedSoFar, StreamName
from rollbook.storage.tabulate import Meta
from rollbook.system.files import make_folders, names_in, read_json
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray

PENDING_SECONDS = 5.0
"""How long a segment waits for values on a device; they are fetched within 2 s, or never."""

T = TypeVar("T")


class SealReport:
    """The results of one sealing. `str()` gives one line.

    Attributes:
      segments, frame_files: number of journal files sealed.
      rows: number of rows written to Parquet (lines, for rare rows).
      aside: number of rows set aside after a power loss.
      merged: number of parts merged into a larger one.
      problems: what could not be read or written; the files stay where they are.
    """

    def __init__(self) -> None:
        self.segments = self.frame_files = self.rows = self.aside = self.merged = 0
        self.problems: list[str] = []

    def add(self, other: dict[str, Any]) -> None:
        """Add the results of another process, by the names of the attributes."""
        for name, value in other.items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        sources = f"{amount(self.segments, 'segment')} and {amount(self.frame_files, 'frame file')}"
        text = f"sealed {amount(self.rows, 'row')} from {sources}"
        if self.merged:
            text += f", merged {amount(self.merged, 'part')}"
        if self.aside:
            text += f", set {amount(self.aside, 'row')} aside that a power loss made doubtful"
        return text + "".join(f"; {problem}" for problem in self.problems)


class SealPass:
    """One pass over the journal of a run, or of some of its writers.

    Args:
      up_to: a JSON file whose `cursor` is {writer: {lane: seq}}: later rows stay in the journal; "" for none.
    Attributes:
      run: the run's folder.
      report: the results so far.
      marks: how far rows are safe if the machine lost power.
      sealed: which rows are already in Parquet.
    """

    def __init__(self, run: str, report: SealReport, writers: Collection[str] | None = None, up_to: str = "") -> None:
        self.run, self.report = run, report
        self._up_to: dict[str, Any] | None = read_json(up_to).get("cursor", {}) if up_to else None
        self.marks = DurableMarks(run)
        self.sealed = SealedRanges(run, writers)
        self._fills: dict[str, Fills] = {}

    def attempt(self, work: Callable[..., T], *arguments: object) -> T | None:
        """The result of `work`; None and a problem if a file is damaged, only None if it is gone."""
        try:
            return work(*arguments)
        except FileNotFoundError:
            return None
        except (Damaged, NewerFormat) as err:
            self.report.problems.append(str(err))
            return None

    def last_of(self, writer: str, lane: int) -> int:
        """The last sequence number of a lane that may be sealed."""
        return 2**63 if self._up_to is None else int(self._up_to.get(writer, {}).get(str(lane), 0))

    def fills_of(self, info: WriterInfo) -> Fills:
        """The late values of one writer; read on first use."""
        if info.id not in self._fills:
            fills = self._fills[info.id] = Fills()
            for part in self.sealed.parts("fills"):
                if part.meta["writer"] == info.id:
                    table = self.attempt(part.read)
                    if table is not None:
                        fills.add_table(info.id, table)
            for lane, _, path in frame_files_in(info.folder, names_in(info.folder)):
                self.attempt(_collect_fills, path, info, lane, fills)
        return self._fills[info.id]

    def write(self, meta: Meta, table: pa.Table) -> None:
        """Write a part under its deterministic name, with a pyramid if it has numbers."""
        group = meta["group"]
        meta = {**meta, "after": self.sealed.before(meta)}
        name = PartName(meta["writer"], meta["lane"], group if group[0] == "S" else group[0], meta["first_seq"])
        is_wide = meta["table"] == "metrics" and group != "R"
        levels = pyramid_path(self.run, meta["table"], str(name)) if is_wide else ""
        folder = part_folder(self.run, meta["table"], group)
        make_folders(folder, inside=self.run)
        write_part(os.path.join(folder, str(name)), meta, table, levels)
        self.sealed.add(meta)


class SealedRanges:
    """What is already in Parquet, sealed before an interruption.

    Also records how far each stream was sealed: if a part was moved away, the next part must not be taken for a
    neighbour of the one before.
    """

    def __init__(self, run: str, writers: Collection[str] | None = None) -> None:
        self._run = run
        self._open_parts = OpenParts(run, writers)
        self._so_far = SealedSoFar(run)
        self._ranges: dict[str, dict[tuple[str, int, str], list[tuple[int, int]]]] = {}

    def of(self, table: str, writer: str, lane: int, group: str) -> list[tuple[int, int]]:
        """(first, last) sequence numbers of the readable parts of a group."""
        if table not in self._ranges:
            ranges = self._ranges[table] = {}
            for part in self.parts(table):
                for whose, number, kind, first, last in covers_of(part.meta):
                    ranges.setdefault((whose, number, kind), []).append((first, last))
        return self._ranges[table].get((writer, lane, group), [])

    def before(self, meta: Meta) -> int:
        """The last number in the part before a new one of its group; 0 if there is none."""
        own = (meta["writer"], meta["lane"], meta["group"])
        lasts = [last for _, last in self.of(meta["table"], *own)]
        lasts.append(self._so_far.lasts.get((meta["table"], *own), 0))
        return max((last for last in lasts if last < meta["first_seq"]), default=0)

    def add(self, meta: Meta) -> None:
        """Record a part that was written."""
        own = (meta["writer"], meta["lane"], meta["group"])
        known = self.of(meta["table"], *own)
        self._ranges[meta["table"]][own] = [*known, (meta["first_seq"], meta["last_seq"])]
        self._so_far.reaches((meta["table"], *own), max(last for _, last in self._ranges[meta["table"]][own]))

    def reached(self) -> list[tuple[StreamName, int]]:
        """The last number of each stream sealed in this pass."""
        return list(self._so_far.new.items())

    def remember(self, by_helpers: Iterable[tuple[StreamName, int]]) -> None:
        """Store how far the streams are sealed, here and by helpers.

        Raises:
          OSError: the disk is full, or the folder cannot be written.
        """
        for stream, last in by_helpers:
            self._so_far.reaches(stream, last)
        self._so_far.write(self._run)

    def parts(self, table: str) -> list[Part]:
        """The sealed parts of a table."""
        for _ in range(10):
            try:
                return self._open_parts.parts(table)
            except FileNotFoundError:
                continue
        return []


def inside(seqs: NDArray, ranges: list[tuple[int, int]]) -> NDArray:
    """Which numbers are in one of the ranges."""
    mask = np.zeros(len(seqs), dtype=bool)
    low, high = (int(seqs.min()), int(seqs.max())) if len(seqs) else (0, -1)
    for first, last in ranges:  # thousands for a long run, nearly all before these rows
        if first <= high and last >= low:
            mask |= (seqs >= first) & (seqs <= last)
    return mask


def _collect_fills(path: str, info: WriterInfo, lane: int, fills: Fills) -> None:
    with FrameFile(path) as file:
        for _, _, payload, _, _ in file.scan():
            if payload[1:6] == b"\xa4fill":
                fills.add_frame(info.id, lane, decode(payload))


def keep_aside(run: str, path: str, problem: str, *, lost: str | None = None, copy: bool = False) -> str:
    """Move a damaged file to data/aside, where readers ignore it; `rollbook repair` recovers what is readable.

    Args:
      run: the run's folder.
      path: the file.
      problem: why it cannot be used; noted for ever, see `storage.damage`.
      lost: what is lost with it, if that is known already.
      copy: leave the file in place: its writer uses it again.
    Returns:
      Its new path. The name begins with that of its former folder: its writer's, or its table's.
    """
    folder = os.path.join(data_folder(run), "aside")
    make_folders(folder, inside=run)
    name = f"{os.path.basename(os.path.dirname(path))}.{os.path.basename(path)}"
    taken = files_set_aside(run)
    while name in taken:
        name += "~"
    note(run, name, path, problem, lost)  # first: a file never goes without a word
    target = os.path.join(folder, name)
    if copy:
        shutil.copyfile(path, target)
    else:
        os.replace(path, target)
    return target


def frame_files_in(folder: str, names: list[str]) -> list[tuple[int, int, str]]:
    """(lane, number, path) of the frame files in a writer's folder, in order."""
    files = []
    for name in names:
        parsed = parse_name(name)
        if parsed is not None and parsed[0] == "log":
            files.append((parsed[1], parsed[3], os.path.join(folder, name)))
    return sorted(files)


def unlink(path: str) -> None:
    """Remove a file, if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
