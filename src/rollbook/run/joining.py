"""Finds the run that a process joins instead of creating one: its parent's, or that of the other ranks of its job.

Processes with the same id, seed and configuration write one run. The rank alone decides nothing: the ranks of a job may
train one model together, or one seed each. Ranks that belong together find each other by an id that each computes from
what they share, so that the first creates the run and no process lists a folder. A run is joined only while a process
writes it.
"""

from __future__ import annotations

import os
import time

from rollbook.errors import NotARun, RemoteError, RollbookError, RunExists, RunIsLive
from rollbook.run.ranks import is_on_one_host, own_rank, rendezvous
from rollbook.run.resuming import find_to_resume, living_writers
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE, RunFile, journal_folder
from rollbook.system import liveness
from rollbook.system.files import exists, is_folder, names_in
from rollbook.system.guard import tolerating
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rollbook.run.opening import Wanted
    from rollbook.schema.manifest import RunJson

_OF_A_RANK = frozenset(
    (
        "rank", "local_rank", "global_rank", "world_rank", "node_rank", "process_index", "local_process_index",
        "process_id", "worker_id", "device", "device_id", "gpu", "gpu_id", "host", "hostname", "node", "pid", "port",
    )
)  # fmt: skip
"""Settings in which the ranks of one training differ."""

_POLL_SECONDS = 0.05
_RECENT_SECONDS = 600.0
_MOST_MISSING = 3
_taken: set[str] = set()
"""Ids that an earlier run of the same addresses has in the remote, from a disk that is gone."""
_joined: set[str] = set()
"""The folders of the runs that this process has joined."""


class Elder:
    """What a process finds before it opens a run.

    Attributes:
      folder: of the run to join, None to open one.
      run_id: of the run to create, if others of the job look for that id; None for any.
      why: why this process gets its own run, "" if there is nothing to say.
    """

    __slots__ = ("folder", "run_id", "why")

    def __init__(self, folder: str | None = None, run_id: str | None = None, why: str = "") -> None:
        self.folder, self.run_id, self.why = folder, run_id, why


def elder(wanted: Wanted) -> Elder:
    """The run that this process should join instead of creating or continuing one."""
    found, why = _of_parent(wanted)
    if found is not None:
        return _joining(found)
    shared = rendezvous()
    if not shared or (wanted.resume == "takeover" and own_rank() == 0):
        return Elder(why=why)
    return _in_job(wanted, shared, why)


def is_taken(wanted: Wanted, found: Elder, error: BaseException) -> bool:
    """Whether another rank was faster with a run that could not be opened: `elder` then finds it, or another id."""
    if not isinstance(error, (RunExists, RunIsLive, RemoteError)):
        return False
    shared = rendezvous()
    if found.run_id is not None:
        if isinstance(error, RemoteError):
            _taken.add(found.run_id)
        return len(_taken) <= _MOST_MISSING
    if not shared or isinstance(error, RemoteError):
        return False
    target = _target(wanted)
    return target is not None and _is_open(target, shared) and own_rank() not in _ranks_in(target)


def _joining(folder: str) -> Elder:
    _joined.add(folder)
    return Elder(folder)


def _of_parent(wanted: Wanted) -> tuple[str | None, str]:
    folder = os.environ.get("ROLLBOOK_RUN_ID", "")
    if not folder or os.environ.get("ROLLBOOK_RUN_PID") == str(os.getpid()) or wanted.resume == "takeover":
        return None, ""
    if any(wanted.given[what] is not None for what in ("parent", "forked_from")):
        return None, ""
    with tolerating(NotARun, OSError):
        about = manifest.read(folder)
        is_same = (about.project, about.name) == (wanted.project, wanted.name)
        if wanted.run_id not in (None, about.id) or not is_same or about.status != "running":
            return None, ""
        if not living_writers(folder):
            return None, ""
        differs = contradiction(about, wanted.given) or (
            _what_it_adds(about, wanted.given) if not wanted.run_id else ""
        )
        if differs:
            return None, f"and not part of run {about.id} of its parent process: {differs}"
        return folder, ""
    return None, ""


def _in_job(wanted: Wanted, shared: str, why: str) -> Elder:
    rank = own_rank() or 0
    wait = TUNING.rank_seconds if is_on_one_host() else TUNING.distant_rank_seconds
    deadline = time.monotonic() + (wait if rank else 0.0)
    others = _others(wanted, shared)
    while True:
        target = _target(wanted)
        if target is not None and _is_open(target, shared) and rank not in _ranks_in(target):
            return _joining(target)
        new_id = None
        if target is None and wanted.run_id is None:
            folder, new_id, differs = _chain(wanted, shared, rank)
            if folder is not None:
                return _joining(folder)
            why = differs or why
            if why:  # the others are there, and train something else
                return Elder(run_id=new_id, why=why)
        if not rank:
            return Elder(run_id=new_id)
        if next(others):
            return Elder(run_id=new_id, why="because rank 0 of its job has opened another run")
        if time.monotonic() > deadline:
            why = f"because rank 0 of its job had opened none after {wait:g} s; ranks that say the same join it"
            return Elder(run_id=new_id, why=why)
        time.sleep(_POLL_SECONDS)


def _target(wanted: Wanted) -> str | None:
    """The run that is to be continued, or that has the given id."""
    if wanted.run_id is None and wanted.resume == "never":
        return None
    seed = wanted.given["seed"]
    with tolerating(RollbookError):
        return find_to_resume(
            wanted.project_folder, wanted.name, wanted.run_id, seed if isinstance(seed, int) else None
        )
    return None


def _chain(wanted: Wanted, shared: str, rank: int) -> tuple[str | None, str, str]:
    """(The run of this job that says the same; else the id for a new one; why those that are there do not fit).

    Rank 0 creates a run under an id that all hosts compute; another rank, which does not see it, under one of its host:
    where hosts share no folder, two runs never have one id.
    """
    why, free = "", ""
    for salt in ("", str(liveness.identity().get("host"))):
        missing = 0
        for number in range(10_000):
            identity = manifest.id_from(shared, wanted.project, wanted.name, salt, str(number))
            folder = wanted.folder_of(identity)
            if not is_folder(folder):
                missing += 1
                is_better = not free or (rank and missing == 1)
                free = identity if is_better and identity not in _taken else free
                if missing > _MOST_MISSING:
                    break
                continue
            if folder in _joined or not _is_open(folder, shared):
                continue
            about = manifest.look(folder)
            differs = contradiction(about, wanted.given)
            if not differs and rank in _ranks_in(folder):
                differs = f"it has a rank {rank}"
            if not differs:
                return folder, "", ""
            why = why or f"and not part of run {about.id} of its job: {differs}"
    return None, free, why


def _is_open(folder: str, shared: str) -> bool:
    """Whether this job writes the run. One that is being created is waited for."""
    deadline = time.monotonic() + TUNING.rank_seconds
    while not exists(os.path.join(folder, MANIFEST_FILE)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    about = manifest.look(folder)
    return about.rendezvous == shared and about.status == "running" and bool(living_writers(folder))


def _ranks_in(folder: str) -> set[int]:
    """The ranks that write the run's newest attempt, or did."""
    import json

    ranks: dict[int, set[int]] = {}
    journal = journal_folder(folder)
    for name in names_in(journal):
        described = os.path.join(journal, name, RunFile.WRITER)
        with tolerating(OSError, ValueError), open(described, encoding="utf-8") as file:
            who = json.load(file)
            if isinstance(who.get("rank"), int) and not who.get("keeper"):
                ranks.setdefault(int(who.get("attempt") or 1), set()).add(who["rank"])
    return ranks[max(ranks)] if ranks else set()


def _others(wanted: Wanted, shared: str) -> Iterator[bool]:
    """Whether rank 0 of this job has opened another run below the same root: then it need not be waited for."""
    seen: set[str] = set()
    since = time.time() - _RECENT_SECONDS
    own = wanted.folder_of("")
    while True:
        found = False
        for project in _recent(wanted.root, since):
            for folder in _recent(project, since):
                if folder in seen or folder in _joined or not exists(os.path.join(folder, MANIFEST_FILE)):
                    continue
                seen.add(folder)
                is_own = folder.startswith(own) and os.path.sep not in folder[len(own) :]
                found = found or (not is_own and _is_open(folder, shared) and 0 in _ranks_in(folder))
        yield found


def _recent(folder: str, since: float) -> list[str]:
    """The folders in a folder that changed lately."""
    with tolerating(OSError), os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir() and entry.stat().st_mtime > since]
    return []


def contradiction(about: RunJson, given: Mapping[str, object]) -> str:
    """What a run says and this call says otherwise, in words; "" if nothing. What one leaves out is the same."""
    there, here = about.seed, given["seed"]
    if there is not None and here is not None and there != here:
        return f"its seed is {there}, here it is {here}"
    path = _difference(about.config, given["config"] or {}, "config")
    return f"its {path} is another one" if path else ""


def _what_it_adds(about: RunJson, given: Mapping[str, object]) -> str:
    """What a child says and its parent's run does not, in words; "" if nothing: a run without a seed or settings of its
    own may be that of a sweep, whose children train a seed or a setting each."""
    if about.seed is None and given["seed"] is not None:
        return f"it names no seed, here it is {given['seed']}"
    config: Any = given["config"] or {}
    added = (key for key in config if key not in about.config and str(key).casefold() not in _OF_A_RANK)
    path = next(added, None)
    return "" if path is None else f"it names no config.{path}"


def _difference(there: Any, here: Any, path: str) -> str:
    for key, value in here.items() if isinstance(here, dict) and isinstance(there, dict) else ():
        if key not in there or str(key).casefold() in _OF_A_RANK:
            continue
        if isinstance(value, dict) and isinstance(there[key], dict):
            if inner := _difference(there[key], value, f"{path}.{key}"):
                return inner
        elif there[key] != value and not (value != value and there[key] != there[key]):
            return f"{path}.{key}"
    return ""
