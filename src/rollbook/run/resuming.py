"""Continuing a run: which one, whether another process still writes it, and from which time.

Used by `init(resume=...)` under the lock of run.json: if two processes continue a run at the same time, the second sees
the first.
"""

from __future__ import annotations

import os
import time

from rollbook.errors import ForeignManifest, NotARun
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE, RunFile, heartbeat_path, journal_folder
from rollbook.system import liveness
from rollbook.system.files import exists
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.schema.shapes import RunJson


def find_to_resume(place: str, name: str, run_id: str | None, seed: int | None = None) -> str | None:
    """The folder of the run with this id, or of the newest run with this name.

    Seeds of one study often share a name: where a seed is given, a run of another seed is not meant, and one whose seed
    is not known only if there is none of this seed.
    """
    if run_id:  # nearly always there: a list of thousands of runs is not gone through for one
        usual = os.path.join(place, f"{name}-{run_id}")
        with tolerating(NotARun):
            if manifest.read(usual, to_continue=True)["id"] == run_id:
                return usual
    fitting: list[tuple[bool, float, str]] = []
    for folder, about in _candidates(place, name, run_id):
        own = about.get("seed")
        if about["id"] == run_id if run_id else seed is None or own in (None, seed):
            fitting.append((seed is not None and own == seed, float(about.get("created") or 0), folder))
    return max(fitting, key=lambda found: found[:2])[2] if fitting else None


def _candidates(place: str, name: str, run_id: str | None) -> Iterator[tuple[str, RunJson]]:
    """The runs whose folders are named like the one to continue."""
    entries: list[str] = []
    with tolerating(OSError):
        entries = os.listdir(place)
    for entry in entries:
        if entry.endswith(f"-{run_id}") if run_id else entry.rpartition("-")[0] == name:
            folder = os.path.join(place, entry)
            try:
                yield folder, manifest.read(folder, to_continue=True)
            except ours(NotARun) as raised:
                if not isinstance(raised, ForeignManifest) and exists(os.path.join(folder, MANIFEST_FILE)):
                    raise  # it may be the requested run: a new run, or an older one, would be wrong


def living_writers(folder: str) -> list[dict[str, Any]]:
    """The writers of a run that may still log: alive here, or elsewhere with a fresh heartbeat."""
    import json

    journal = journal_folder(folder)
    living = []
    with tolerating(OSError) as missed:
        names = os.listdir(journal)
    if missed:
        return []
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
        if alive is None:
            alive = _heartbeat_age(folder) < 60
        if alive:
            living.append({**who, "folder": path})
    return living


def _heartbeat_age(folder: str) -> float:
    with tolerating(OSError):
        return time.time() - os.stat(heartbeat_path(folder)).st_mtime
    return float("inf")


def fence(folder: str, living: list[dict[str, Any]]) -> None:
    """Set the fence word in every live segment of the writers that lose the run."""
    from rollbook.journal import Segment

    for who in living:
        for name in os.listdir(who["folder"]):
            if not name.endswith(".seg"):
                continue
            with tolerating(OSError):
                Segment.fence(os.path.join(who["folder"], name))


def last_time(folder: str, about: RunJson) -> int:
    """The latest time in the run's files, in unix ns. A new attempt never starts earlier."""
    last = 0
    for entry in about["attempts"]:
        seconds = max(_number(entry.get("ended")), _number(entry.get("started")))
        last = max(last, int(_number(entry.get("last"))), int(seconds * 1e9))
    data = os.path.join(folder, "data")
    paths = [heartbeat_path(folder), os.path.join(data, "metrics"), os.path.join(data, "journal")]
    for path in paths:
        with tolerating(OSError):
            last = max(last, os.stat(path).st_mtime_ns)
    return last + 1 if last else 0


def _number(value: object) -> float:
    """A finite number from a file, 0 for anything else."""
    return value if isinstance(value, (int, float)) and abs(value) < 2**63 else 0
