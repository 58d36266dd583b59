"""The processes that wrote to a run: those with a folder in its journal."""

from __future__ import annotations

import json
import os

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal.segments import Segment
from rollbook.schema.run_files import RunFile, journal_folder, parse_name
from rollbook.system.files import is_folder, is_link, names_in, open_regular
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WriterInfo:
    """One process that wrote to the run, from its writer.json and closed.json.

    Attributes:
      id: the writer's name, equal to its folder's name.
      folder: its folder under data/journal.
      about: the content of writer.json; {} if it cannot be read.
      attempt, main, host, boot_id, pid_ns, pid, start_time, time_offset, clocks, rank: fields of it.
      closed: the content of closed.json, or None while the writer is open.
      problem: "" or why writer.json could not be read.
    """

    about: dict[str, Any]

    __slots__ = (
        "about",
        "attempt",
        "boot_id",
        "clocks",
        "closed",
        "folder",
        "host",
        "id",
        "main",
        "pid",
        "pid_ns",
        "problem",
        "rank",
        "start_time",
        "time_offset",
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.id = os.path.basename(folder)
        self.problem = ""
        about, self.problem = _read_json(os.path.join(folder, RunFile.WRITER))
        self.closed: dict[str, object] | None = None
        self.adopt(about or {})
        if not self.clocks:
            self._ask_a_segment()
        self.look_closed()

    def adopt(self, about: dict[str, object]) -> None:
        """Take the fields from the content of a writer.json."""
        self.about = about
        get = about.get
        self.attempt = _int(get("attempt"), 1)
        self.main = bool(get("main"))
        self.host, self.boot_id, self.pid_ns = str(get("host", "")), str(get("boot_id", "")), str(get("pid_ns", ""))
        self.pid, self.start_time = _int(get("pid"), 0), str(get("start_time", ""))
        self.time_offset = _int(get("time_offset"), 0)
        clocks = get("clocks")
        self.clocks = tuple(map(str, clocks)) if isinstance(clocks, list) else ()
        self.rank = get("rank")

    def look_closed(self) -> bool:
        """Check now whether the writer has closed."""
        if self.closed is None:
            self.closed = _read_json(os.path.join(self.folder, RunFile.CLOSED))[0]
        return self.closed is not None

    def last_seqs(self) -> dict[int, int]:
        """The last sequence number of each lane after a clean close; {} without one."""
        lanes = (self.closed or {}).get("lanes")
        if not isinstance(lanes, dict):
            return {}
        return {int(lane): _int(seq, 0) for lane, seq in lanes.items() if str(lane).isdigit()}

    def _ask_a_segment(self) -> None:
        """Without a writer.json, read the same from the heads of the segments."""
        for name in names_in(self.folder):
            if name.endswith(".seg"):
                with tolerating(OSError, Damaged), Segment(os.path.join(self.folder, name)) as segment:
                    header = segment.header
                    self.clocks, self.time_offset, self.attempt = header.clocks, header.time_offset, header.attempt
                    return


def list_writers(run_folder: str | os.PathLike[str]) -> list[WriterInfo]:
    """All writers with a folder in the run's journal, sorted by name (which begins with their start time)."""
    journal = journal_folder(run_folder)
    if is_link(journal):
        return []
    folders = [os.path.join(journal, name) for name in names_in(journal)]
    return [WriterInfo(folder) for folder in folders if is_folder(folder) and not is_link(folder)]


def last_numbers(info: WriterInfo) -> dict[int, int]:
    """The last sequence number of each lane that the journal has of a writer; those of sealed rows may be missing."""
    from rollbook.journal.progress import FileProgress

    lanes = info.last_seqs()
    for name in names_in(info.folder):
        parsed = parse_name(name)
        if parsed is None:
            continue
        path, (kind, lane, _, number) = os.path.join(info.folder, name), parsed
        last = 0
        with tolerating(OSError, Damaged, NewerFormat):
            if kind == "seg":
                with Segment(path) as segment:  # to its end: behind a hole, too
                    look = segment.look()
                    last = 0 if look is None else look.last_seq
            else:
                file = FileProgress(path, lane, number)
                file.look()
                file.let_go()
                last = file.last
        lanes[lane] = max(last, lanes.get(lane, 0))
    return lanes


def last_row_time(info: WriterInfo) -> int:
    """When the last row that the journal has of a writer was made, in unix ns by the writer's clock; 0 if unknown."""
    from rollbook.journal.frame_files import FrameFile

    newest = 0
    for name in names_in(info.folder):
        parsed, path = parse_name(name), os.path.join(info.folder, name)
        with tolerating(OSError, Damaged, NewerFormat):
            if parsed is not None and parsed[0] == "seg":
                with Segment(path) as segment:
                    newest = max([newest, *(row[1] for row in segment.committed())])
            elif parsed is not None:
                with FrameFile(path, info.time_offset) as file:
                    newest = max([newest, *(frame[1] for frame in file.scan())])
    return newest


def _read_json(path: str) -> tuple[dict[str, object] | None, str]:
    try:
        with open(open_regular(path), encoding="utf-8") as file:
            content = json.load(file)
    except ours(OSError, Damaged, ValueError, RecursionError) as err:
        return None, f"{path} is missing" if isinstance(err, FileNotFoundError) else f"{path} cannot be read ({err})"
    return (content, "") if isinstance(content, dict) else (None, f"{path} holds no JSON object")


def _int(value: object, default: int) -> int:
    return value if type(value) is int else default
