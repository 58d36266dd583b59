"""Which sequence numbers of a run no file has: a journal file that was deleted leaves nothing else behind.

The numbers of a lane are given one after the other, to rows and to frames. How many there were is known from a writer's
clean end, from the keeper's marks, and from the numbers that are there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import numpy as np

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import FrameFile, Segment, WriterInfo, list_writers
from rollbook.schema import manifest
from rollbook.schema.finished import former_writers
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import RunFile, heartbeat_path, parse_name, table_names
from rollbook.storage.damage import MissingNumbers
from rollbook.storage.parts import OpenParts, Part, rows_by_lane
from rollbook.storage.sealed_so_far import SealedSoFar
from rollbook.storage.tabulate import committed_words
from rollbook.system.files import own_files, read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

_TRIES = 10

_FEW = 2
"""At most this many numbers of a lane may have been given to calls that an exception interrupted."""

Lane = tuple[str, int]
"""(writer, lane)"""


def missing_numbers(run: str, damage: Collection[Problem] = ()) -> Iterator[MissingNumbers]:
    """The gaps in the lanes of writers that have ended or died, or that are still written: up to their last number.

    Late values of devices are no longer numbered once they are in their rows, so lanes that had some are passed over.

    Args:
      damage: other damage; a writer whose files or rows it is about is passed over, and all if a file of several is
        damaged.
    """
    if any(f"{os.sep}merged." in problem.path for problem in damage):
        return
    infos = {info.id: info for info in list_writers(run)}
    for writer, about in former_writers(run).items():
        if writer not in infos:
            infos[writer] = info = WriterInfo(os.path.join(run, "data", "journal", writer))
            info.adopt(about)
            info.closed = about.get("closed") if isinstance(about.get("closed"), dict) else {}
    with_fills = {(writer, lane) for table, writer, lane, _ in SealedSoFar(run).lasts if table == "fills"}
    tops = _tops(run, infos)  # first, so that rows written from now on do not count
    there = _there(run, infos)
    over = {writer for writer, info in infos.items() if info.closed is not None or is_alive(info.about) is False}
    for (writer, lane), seqs in there.items():
        if len(seqs) and writer in over:
            tops[writer, lane] = max(tops.get((writer, lane), 0), int(seqs[-1]))
    for (writer, lane), top in sorted(tops.items()):
        if (
            (writer, lane) in with_fills
            or writer not in infos
            or any(writer in (problem.writer or problem.path) for problem in damage)
        ):
            continue
        seqs = there.get((writer, lane), np.zeros(0, dtype=np.int64))
        seqs = seqs[seqs <= top]
        n = top - len(seqs) - _dropped(run, infos[writer])
        if n > _FEW or (n > 0 and not len(seqs)):
            gaps = np.flatnonzero(np.diff(np.r_[0, seqs, top + 1]) > 1)
            first = int(np.r_[0, seqs][gaps[0]]) + 1
            last = int(np.r_[seqs, top + 1][gaps[-1]]) - 1
            yield MissingNumbers(writer, lane, n, first, last, infos[writer].folder)


def _tops(run: str, infos: dict[str, WriterInfo]) -> dict[Lane, int]:
    """The last number that each lane is known to have had."""
    tops: dict[Lane, int] = {}
    marks = read_json(os.path.join(run, RunFile.KEEPER, RunFile.DURABLE)).get("marks")
    for noted in (marks, read_json(heartbeat_path(run))):
        for writer, lanes in noted.items() if isinstance(noted, dict) else ():
            for lane, seq in lanes.items() if isinstance(lanes, dict) else ():
                if str(lane).isdigit() and type(seq) is int and writer in infos:
                    tops[writer, int(lane)] = max(seq, tops.get((writer, int(lane)), 0))
    for writer, info in infos.items():
        for lane, seq in info.last_seqs().items():
            tops[writer, lane] = max(seq, tops.get((writer, lane), 0))
    return tops


def _there(run: str, infos: dict[str, WriterInfo]) -> dict[Lane, NDArray]:
    """The numbers of each lane that are in some file, in order."""
    found: dict[Lane, list[NDArray]] = {}
    for info in infos.values():
        for name in own_files(info.folder):
            parsed = parse_name(name)
            path = os.path.join(info.folder, name)
            if parsed is not None:
                with tolerating(OSError, Damaged, NewerFormat):
                    own = _of_segment(path) if parsed[0] == "seg" else _of_log(path)
                    found.setdefault((info.id, parsed[1]), []).append(own)
    for table in (*table_names(run), "fills", "marks", "aside"):
        for by_lane in _of_table(run, table):
            for lane, seqs in by_lane.items():
                found.setdefault(lane, []).append(seqs)
    return {lane: np.unique(np.concatenate(seqs)) for lane, seqs in found.items()}


def _of_table(run: str, table: str) -> list[dict[Lane, NDArray]]:
    """The numbers in each part of a table.

    Raises:
      Damaged: its files keep moving.
    """
    for _ in range(_TRIES):
        found: list[dict[Lane, NDArray]] = []
        with tolerating(FileNotFoundError) as moved:
            for part in OpenParts(run).parts(table):
                with tolerating(Damaged):
                    found += _of_part(part)
        if not moved:
            return found
    raise Damaged(f"the files of {table} keep moving while they are read; try again later")


def _of_part(part: Part) -> Iterator[dict[Lane, NDArray]]:
    for group in range(len(part.row_groups)):
        rows = part.read(["seq", "writer", "lane"], [group])
        seqs = to_numpy(rows["seq"])[0]
        yield {lane: np.unique(seqs[own]) for lane, own in rows_by_lane(rows, part.meta)}


def _of_segment(path: str) -> NDArray:
    with Segment(path) as segment:
        head = segment.head()
        words, _ = committed_words(segment.header, segment.all_rows(), head.first_seq)
        return np.array(words[:, -1])


def _of_log(path: str) -> NDArray:
    with FrameFile(path) as file:
        return np.array([seq for seq, *_ in file.scan()], dtype=np.int64)


def _dropped(run: str, info: WriterInfo) -> int:
    """How many calls of a writer were not kept, for example because the disk was full: they had numbers, too."""
    counts: list[object] = []
    for drops in ((info.closed or {}).get("drops"), manifest.look(run).drops):
        counts += drops.values() if isinstance(drops, dict) else ()
    numbers = [about.get("n") if isinstance(about, dict) else about for about in counts]
    return sum(number for number in numbers if type(number) is int)
