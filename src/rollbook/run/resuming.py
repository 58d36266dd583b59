"""Continuing a run: which one, whether another process still writes it, and where its rows end.

Used by `init(resume=...)` under the lock of run.json: if two processes continue a run at the same time, the second sees
the first.
"""

from __future__ import annotations

import os
import time

from rollbook.errors import ForeignManifest, NotARun
from rollbook.schema import manifest
from rollbook.schema.run_files import (
    HIDDEN_TABLES,
    MANIFEST_FILE,
    PartName,
    RunFile,
    heartbeat_path,
    journal_folder,
    part_folders,
    read_metadata,
)
from rollbook.system import liveness
from rollbook.system.bill import warn_caller
from rollbook.system.files import exists, names_in, on_disk
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.schema.manifest import Cut, RunJson


def find_to_resume(project: str, name: str, run_id: str | None, seed: int | None = None) -> str | None:
    """The folder of the run with this id, or of the newest run with this name.

    Seeds of one study often share a name. So if a seed is given, runs with another seed do not count, and runs whose
    seed is unknown count only if no run has this seed.
    """
    if run_id:  # nearly always there: a list of thousands of runs is not gone through for one
        usual = os.path.join(project, f"{on_disk(name)}-{run_id}")
        with tolerating(NotARun):
            if manifest.read(usual, to_continue=True).id == run_id:
                return usual
    fitting: list[tuple[bool, float, str]] = []
    for folder, about in _candidates(project, name, run_id):
        own = about.seed
        if about.id == run_id if run_id else seed is None or own in (None, seed):
            fitting.append((seed is not None and own == seed, float(about.created or 0.0), folder))
    return max(fitting, key=lambda found: found[:2])[2] if fitting else None


def _candidates(project: str, name: str, run_id: str | None) -> Iterator[tuple[str, RunJson]]:
    """The runs whose folders are named like the one to continue."""
    entries: list[str] = []
    with tolerating(OSError):
        entries = os.listdir(project)
    for entry in entries:
        if entry.endswith(f"-{run_id}") if run_id else entry.rpartition("-")[0] == on_disk(name):
            folder = os.path.join(project, entry)
            try:
                yield folder, manifest.read(folder, to_continue=True)
            except ours(NotARun) as raised:
                if not isinstance(raised, ForeignManifest) and exists(os.path.join(folder, MANIFEST_FILE)):
                    raise  # it may be the requested run: a new run, or an older one, would be wrong


def living_writers(folder: str) -> list[dict[str, Any]]:
    """The writers of a run that may still log: alive on this host, or on another one with a fresh heartbeat. A main
    writer on another host also counts as ended if run.json says so: its keeper there has seen it end.
    """
    import json

    journal = journal_folder(folder)
    living = []
    with tolerating(OSError) as missed:
        names = os.listdir(journal)
    if missed:
        return []
    attempts = manifest.look(folder).attempts
    ended = {entry.writer for entry in attempts if entry.status != "running" and entry.ended}
    for name in names:
        path = os.path.join(journal, name)
        if exists(os.path.join(path, RunFile.CLOSED)):
            continue
        described = os.path.join(path, RunFile.WRITER)
        with tolerating(OSError, ValueError) as missed, open(described, encoding="utf-8") as file:
            who = json.load(file)
        if missed:
            continue
        if who.get("keeper"):  # the keeper's writer ends with the run
            continue
        alive = liveness.is_alive(who)
        if alive is None and name in ended:
            continue
        if alive is None:
            alive = _heartbeat_age(folder) < _FRESH_SECONDS
        if alive:
            living.append({**who, "folder": path})
    return living


def _heartbeat_age(folder: str) -> float:
    """Seconds since the heartbeat, by the clock that stamps the files: this host's may be wrong by hours.

    A stamp of the future was set by another clock, such as that of a machine to which the disk belonged: it says
    nothing, and its age is infinite.
    """
    age = float("inf")
    with tolerating(OSError):
        stamped = os.stat(heartbeat_path(folder)).st_mtime
        age = _file_time(os.path.dirname(heartbeat_path(folder))) - stamped
    return age if age > -_FRESH_SECONDS else float("inf")


def _file_time(folder: str) -> float:
    """The current time of the clock that stamps the files of a folder; this host's, if none can be made there."""
    path = os.path.join(folder, f"{os.urandom(6).hex()}.tmp")
    with tolerating(OSError):
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            return os.fstat(fd).st_mtime
        finally:
            os.close(fd)
            os.unlink(path)
    return time.time()


def asked_to_resume(run_id: str, root: str, project: str, name: str, how: str) -> tuple[str, str | None, str]:
    """Name, id and `resume` of an `init` call under $ROLLBOOK_RESUME: that run, if it is in this project.

    It counts for one call: a program's later runs, and its children, are not that run.
    """
    ending = f"-{run_id}"
    found = [entry for entry in names_in(os.path.join(root, project)) if entry.endswith(ending) and run_id]
    if len(found) != 1:
        warn_caller(f"ROLLBOOK_RESUME={run_id}: {project} in {root} has no run of that id; this is a new run")
        return name, None, how
    os.environ.pop("ROLLBOOK_RESUME", None)
    return found[0].removesuffix(ending), run_id, how if how == "takeover" else "must"


def fence(folder: str, living: list[dict[str, Any]]) -> None:
    """Set the fence word in every live segment of the writers that lose the run."""
    from rollbook.journal import Segment

    for who in living:
        for name in os.listdir(who["folder"]):
            if not name.endswith(".seg"):
                continue
            with tolerating(OSError):
                Segment.fence(os.path.join(who["folder"], name))


def end_of(folder: str, about: RunJson) -> tuple[Cut, int]:
    """The cut behind everything that the newest attempt of a run has written, and the time of its last row (unix ns).

    If a writer has closed, or is known to be dead, every row of it counts, and the cut needs no position. One that may
    still live, here or elsewhere, is cut behind its last row: what it writes from now on does not count.
    """
    from rollbook.journal import last_numbers, list_writers

    attempt = manifest.newest(about).n
    writers: dict[str, dict[int, int]] = {}
    sealed: dict[str, dict[int, int]] | None = None
    for info in list_writers(folder):
        if info.attempt != attempt or info.closed is not None or liveness.is_alive(info.about) is False:
            continue
        if sealed is None:
            from rollbook.keeper.sealed import LazySealed

            sealed = LazySealed(folder).lanes()
        lanes = last_numbers(info)
        for lane, last in sealed.get(info.id, {}).items():
            lanes[lane] = max(last, lanes.get(lane, 0))
        if all(lanes.values()):  # 0: a part that does not say where it ends
            writers[info.id] = dict(sorted(lanes.items()))
    moment = last_time(folder, about)
    return manifest.Cut(moment=moment, writers=writers), moment


def last_time(folder: str, about: RunJson) -> int:
    """The latest time of a run's attempts and of the rows of its main writers, in unix ns. A new attempt never starts
    earlier, so that its rows come last in order of time, whatever the clock of this host says.
    """
    last = 0
    for entry in about.attempts:
        seconds = max(entry.ended or 0.0, entry.started or 0.0)
        last = max(last, int(_number(entry.last)), int(seconds * 1e9))
    newest = manifest.newest(about)
    if not newest.has("last"):  # it did not end cleanly
        from rollbook.journal import last_row_time, list_writers

        main = newest.writer
        own = [info for info in list_writers(folder) if info.id == main]
        last = max([last, *map(last_row_time, own), *_sealed_times(folder, main)])
    return last + 1 if last else 0


def _sealed_times(folder: str, writer: str) -> Iterator[int]:
    """The time of the last row in each sealed part with rows of a writer, in unix ns."""
    for table in names_in(os.path.join(folder, "data")):
        for parts in part_folders(folder, table) if table not in HIDDEN_TABLES else ():
            for name in names_in(parts):
                about = read_metadata(os.path.join(parts, name)) if PartName.parse(name) is not None else None
                if about is not None and (about.get("writer") == writer or writer in (about.get("writers") or ())):
                    yield int(_number(about.get("last_time")))


def _number(value: object) -> float:
    """A finite number from a file, 0 for anything else."""
    return value if isinstance(value, (int, float)) and abs(value) < 2**63 else 0


_FRESH_SECONDS = 60
"""Seconds after a heartbeat for which a writer of another host counts as alive."""
