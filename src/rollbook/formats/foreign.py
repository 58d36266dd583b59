"""Folders of other tools, unchanged: `rollbook.open`, `ls`, `compare` and `ui` read them without an import.

    sources = found(root)          # {"wandb": [folder, …]}: by names alone, nothing is opened
    folder = laid_out(root)        # their runs, as rollbook reads runs, in the cache; up to date at each call

The tools' files are never changed. If the cache is lost, it is built again from them; when a file grows, its new data
is added. `rollbook import` creates permanent runs from the same sources.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rollbook.errors import BadInput, RollbookError
from rollbook.formats.importers._found import FoundRun
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._walk import Walk, found
from rollbook.runs.catalog import stamped
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system.files import loosely, read_json, try_lock, unlock, user_cache, write_json
from rollbook.system.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rollbook.protocols import ForeignRun

__all__ = ["Asked", "follow", "found", "is_laid_out", "laid_out"]

_PATIENCE, _GLANCE = 600.0, 1.0
"""Seconds to wait for another process that lays out the same folder; the same if some of its runs are enough."""

_RUNS, _ALSO_RECORDED, _MAKING = "runs", "also-recorded", "making"
"""Folders in the cache: the runs, those of trainings that rollbook recorded, too, and one that is not complete."""

_SILENT, _SAVED = 2.0, 5.0
"""Seconds until a terminal shows what it waits for, and seconds between two notes of what was read."""

_FIRST, _NEXT = 50, 2_000
"""How many new runs the page's thread reads at first, and then at once: others may read between."""

_lock = threading.Lock()
_one_at_a_time = threading.Lock()
_followed: set[str] = set()
"""The folders of the cache that a thread of this process keeps up to date."""


def laid_out(
    root: str | os.PathLike[str],
    problems: list[str] | None = None,
    own: Collection[str] = (),
    cache: str | None = None,
    newest: int | None = None,
    *,
    report: bool = True,
    asked: Asked | None = None,
    run_folders: set[str] | None = None,
) -> tuple[str | None, int]:
    """(folder, n): the folder in the user's cache that holds the runs of other tools below `root`, None if there are
    none; and how many of them are not read yet.

    Each is brought up to date with its files. If two formats describe one run (progress.csv and event files), the one
    with more data is read; a training that rollbook recorded, too, is left to rollbook's own run. One process at a time
    lays out a folder; the others wait for it.

    Args:
      problems: gets a sentence for each run that cannot be read, or only in part.
      own: the folders of the runs of rollbook there; see `found`.
      cache: the user's cache folder; None: as it is now.
      newest: beyond this many runs, those whose files changed last, none is read that never was; and none at all while
        another process reads there. None: all.
      report: print to a terminal how far it is, if it takes long.
      asked: runs that do not meet its condition are not read; they are put there.
      run_folders: gets the folders that are runs of other tools.
    """
    base = os.path.abspath(os.fspath(root))
    sources = found(base, own)
    if not sources:
        return None, 0
    in_cache = _cache_folder(base, cache)
    os.makedirs(os.path.join(in_cache, _RUNS), mode=0o700, exist_ok=True)
    with _lock, open(os.path.join(in_cache, "lock"), "wb") as lock:
        until = time.monotonic() + (_PATIENCE if newest is None else _GLANCE)
        while not (is_locked := try_lock(lock.fileno()) is not False) and time.monotonic() < until:
            time.sleep(0.05)
        if not is_locked and newest is not None:
            if problems is not None:
                problems.append(f"what another program has not yet read of the other tools' runs in {base}")
            return os.path.join(in_cache, _RUNS), 0
        try:
            with loosely():
                folder = _Folder(Path(base), in_cache, own, [] if problems is None else problems)
                unread = folder.bring_up_to_date(sources, newest, _Progress() if report else None, asked)
                if run_folders is not None:
                    run_folders |= folder.run_folders
        finally:
            unlock(lock.fileno())
    return os.path.join(in_cache, _RUNS), unread


def _cache_folder(base: str, cache: str | None) -> str:
    """The folder of the cache for a folder of other tools."""
    name = hashlib.blake2b(base.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    return os.path.join(cache or user_cache(), "foreign", name)


def is_laid_out(folder: str) -> bool:
    """Whether a folder of the user's cache holds runs of other tools."""
    return folder.startswith(os.path.join(user_cache(), "foreign") + os.sep)


def follow(root: str | os.PathLike[str], *, seconds: float = 2.0, waits: bool = False) -> str | None:
    """Start a thread that calls `laid_out` every few seconds, at most a tenth of its time.

    Returns the folder in which runs appear as they are read; None if there are no files of other tools.

    Args:
      waits: until all are read; no thread is started.
    """
    base, cache = os.path.abspath(os.fspath(root)), user_cache()
    if not found(base, stamped(base)):
        return None
    if waits:
        return laid_out(base, own=stamped(base), cache=cache)[0]
    folder = os.path.join(_cache_folder(base, cache), _RUNS)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with _one_at_a_time:
        if folder in _followed:
            return folder
        _followed.add(folder)

    def look() -> None:
        most = _FIRST
        while True:
            unread, began = 0, time.thread_time()
            with contextlib.suppress(Exception):  # a disk that is temporarily unavailable
                _, unread = laid_out(base, own=stamped(base), cache=cache, newest=most, report=False)
            most += _NEXT
            time.sleep(0.2 if unread else max(seconds, 9 * (time.thread_time() - began)))

    threading.Thread(target=look, name="rollbook-foreign", daemon=True).start()
    return folder


class Asked:
    """A condition on runs. Runs of other tools are not read if the files next to their rows already decide it.

    Args:
      where: as `RunSet.where` takes it.
    Attributes:
      unread: what is known of the runs that do not meet it and were not read, as rows of a listing.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.unread: list[dict[str, object]] = []

    def unmet(self, new: dict[str, dict[str, object]], others: list[dict[str, object]]) -> set[str]:
        """Which of the runs, by identity, do not meet it; none if their rows are needed to say so.

        Args:
          new: identity -> what is known of each run that was never read.
          others: the rows of all other runs there: a field that is a text in one of them is compared as text.
        """
        from rollbook.formats.importers._into_runs import EARLY
        from rollbook.runs.conditions import answered_by

        answers = answered_by(EARLY, self._where, [*new.values(), *others])
        unmet = {identity for identity, answer in zip(new, answers or (), strict=False) if not answer}
        self.unread = [new[identity] for identity in unmet]
        return unmet


class _Progress:
    """Prints to a terminal how many runs are read, once that has taken seconds."""

    def __init__(self) -> None:
        self._due = time.monotonic() + _SILENT
        self._is_shown = False

    def __call__(self, n: int, most: int) -> None:
        """`n` of `most` runs are read."""
        if n == most and self._is_shown:
            sys.stderr.write("\r\x1b[K")
        elif n < most and time.monotonic() > self._due and sys.stderr.isatty():
            sys.stderr.write(f"\rreading the runs of other tools, once: {n:,} of {most:,} ")
            sys.stderr.flush()
            self._due, self._is_shown = time.monotonic() + 0.2, True


class _Folder:
    """A folder of other tools, and the folder of the cache in which their runs are laid out.

    Args:
      base: the folder.
      in_cache: its folder in the cache.
      own: the folders of the runs of rollbook there.
      problems: gets what cannot be read.
    """

    def __init__(self, base: Path, in_cache: str, own: Collection[str], problems: list[str]) -> None:
        self._base, self._cache, self._problems = base, in_cache, problems
        self._own = {path: manifest.look(path) for path in sorted(own)}
        self._listed: dict[str, dict[str, str]] = {}
        self.run_folders: set[str] = set()
        self._own_digest = hashlib.blake2b("\0".join(self._own).encode("utf-8", "surrogateescape")).hexdigest()

    def bring_up_to_date(
        self, sources: dict[str, list[str]], newest: int | None, report: _Progress | None, asked: Asked | None = None
    ) -> int:
        """Read what is new in those folders, by format, newest files first. Returns how many runs are not read."""
        from rollbook.formats.importers._into_runs import in_words
        from rollbook.formats.importers._recorded import Recorded

        shutil.rmtree(os.path.join(self._cache, _MAKING), ignore_errors=True)
        index = os.path.join(self._cache, "index.json")
        before = read_json(index)
        known: dict[str, Any] = before.get("runs", {})
        if before.get("read_by") != __version__:  # another version may read more of the same files
            for entry in known.values():
                _remove(entry)
            known = {}
        now: dict[str, Any] = {}
        walk = Walk(self._base, self._own, sources=sources, recorded=Recorded(self._own))
        self._problems += walk.problems
        if sentence := in_words(walk.strange, self._base):
            self._problems.append(sentence)
        self.run_folders = {os.path.abspath(one.run.folder) for one in walk.runs if one.run.folder is not None}
        every = sorted(walk.runs, key=lambda one: one.changed, reverse=True)
        later = [] if newest is None else every[newest:]
        unread = {one.identity for one in later if one.identity not in known}
        if asked is not None:
            unread |= self._unmet(asked, every, known)
        due = time.monotonic() + _SAVED
        for n, one in enumerate(every):
            if one.identity not in unread:
                now[one.identity] = self._one(one, known.get(one.identity, {}))
            if report is not None:
                report(n + 1, len(every))
            if time.monotonic() > due:
                write_json(index, {"read_by": __version__, "runs": {**known, **now}})
                due = time.monotonic() + _SAVED
        for identity in known.keys() - now.keys():
            _remove(known[identity])
        if now != known:
            write_json(index, {"read_by": __version__, "runs": now})
        return len(unread)

    def _unmet(self, asked: Asked, every: list[FoundRun], known: dict[str, Any]) -> set[str]:
        """The runs that were never read and need not be, since they do not meet a condition."""
        from rollbook.formats.importers._into_runs import early_fields, identity_of

        new: dict[str, dict[str, object]] = {}
        for one in every:
            if one.identity not in known:
                with contextlib.suppress(RollbookError, OSError, ValueError):  # reported when it is read
                    new[one.identity] = early_fields(one, identity_of(one), self._project_of(one.run))
        shown = [entry["folder"] for entry in known.values() if entry["folder"] and not entry.get("own_run")]
        read = [manifest.look(folder) for folder in shown]
        return asked.unmet(new, [manifest.listed(about) for about in (*self._own.values(), *read)]) if new else set()

    def _project_of(self, run: ForeignRun) -> str:
        from rollbook.formats.importers._names import as_name

        return as_name(run.project or self._base.name or "foreign")

    def _one(self, one: FoundRun, known: dict[str, Any]) -> dict[str, Any]:
        """The index entry of a run: stamps of its files, names, folder, rollbook's own run of it, and its problem.

        It is read again if the stamps differ, and from its beginning if rows changed that were read before.
        """
        from rollbook.formats.importers._into_runs import identity_of, import_one, is_half, stamp_of
        from rollbook.formats.importers._names import as_name
        from rollbook.formats.importers._tables import is_settled

        run, stamps = one.run, stamp_of(one.run)
        called = self._called(one)
        own_run = known.get("own_run")
        is_there = bool(known) and os.path.exists(os.path.join(known["folder"], MANIFEST_FILE))
        if is_there and _axis_in(known.get("called")) != _axis_in(called):  # its rows are other ones now
            _remove(known)
            known, is_there, own_run = {}, False, None
        is_read = known.get("files") == stamps and not (known.get("half") and is_settled(run.files))
        if is_there and is_read and (own_run in self._own or not own_run):
            if known.get("called") != called:
                self._write_description(one, known["folder"])
                known = {**known, "called": called}
            if not own_run and known["compared"] != self._own_digest:
                known = self._moved(known)
            self._problems += [known["problem"]] if known.get("problem") else []
            return known
        if own_run and own_run not in self._own:
            _remove(known)
            own_run = None
        root = os.path.join(self._cache, _ALSO_RECORDED if own_run else _RUNS)
        project = self._project_of(run)
        laid = self._laid(root, project)
        if identity_of(one) not in laid:
            root = os.path.join(self._cache, _MAKING)  # it appears among the others once it is whole
        try:
            try:
                done = import_one(one, root, project, as_name(run.name), laid=laid)
            except BadInput:
                if not is_there:
                    raise
                _remove(known)  # the file was rewritten
                done = import_one(one, root, project, as_name(run.name))
        except (RollbookError, OSError, ValueError) as err:
            self._problems.append(f"{run.folder or one.found_in}: {err}")
            return {"files": [], "folder": ""}
        if is_there:
            self._write_description(one, str(done.folder))
        problem = _problem_of(run, one.found_in, done.left_out)
        self._problems += [problem] if problem else []
        entry = {"files": stamps, "called": called, "folder": str(done.folder), "own_run": own_run, "problem": problem}
        entry["half"] = is_half(done.left_out, run.files)
        return entry if own_run and root.endswith(_ALSO_RECORDED) else self._moved(entry)

    def _called(self, one: FoundRun) -> list[Any]:
        """The current name of a run and its labels: both may change while its files stay the same."""
        labels = labels_of(one.labelled)
        facts = one.path_facts
        of_path = [] if facts is None else [facts.algo, facts.env, facts.other, facts.group]
        return [one.run.name, [[name, value] for name, (value, _file) in labels.items()], of_path]

    def _write_description(self, one: FoundRun, folder: str) -> None:
        """Write what is known of a run besides its rows to its run.json."""
        from rollbook.formats.importers._into_runs import early_fields

        about = early_fields(one, "", self._project_of(one.run))
        with manifest.ManifestLock(folder):
            known = manifest.read(folder)
            names = ("name", "seed", "group", "config", "algo", "env", "folder", "from_path")
            known.set(**{name: about[name] for name in names})
            manifest.write(folder, known)

    def _laid(self, root: str, project: str) -> dict[str, str]:
        """Run id -> folder of the runs that earlier calls made in a project; listed once, as there may be thousands."""
        folder = os.path.join(root, project)
        if folder not in self._listed:
            with contextlib.suppress(FileNotFoundError):
                self._listed[folder] = {
                    name.rpartition("-")[2]: os.path.join(folder, name) for name in os.listdir(folder)
                }
        return self._listed.setdefault(folder, {})

    def _moved(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The entry after its run was moved: a training that rollbook recorded, too, is not among the runs."""
        from rollbook.formats.same_training import run_of_same_training

        entry["compared"] = self._own_digest
        folder = entry["folder"]
        own_run = run_of_same_training(folder, self._own) if folder else None
        project, name = os.path.split(folder)
        to = os.path.join(self._cache, _ALSO_RECORDED if own_run else _RUNS, os.path.basename(project), name)
        if not folder or to == folder:
            return entry
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        os.rename(folder, to)
        return {**entry, "folder": to, "own_run": own_run}


def _axis_in(called: Any) -> object:
    """The x-axis that labels name, in what a run is called."""
    return next((value for name, value in called[1] if name == "x"), None) if called else None


def _remove(entry: dict[str, Any]) -> None:
    if entry.get("folder"):
        shutil.rmtree(entry["folder"], ignore_errors=True)


def _problem_of(run: ForeignRun, path: Path, left_out: dict[str, int]) -> str:
    """What is damaged in a run's files, and what to do; "" for a sound one."""
    lost = [f"{what} ({n:,})" for what, n in left_out.items() if what in run.lost]
    if not lost:
        return ""
    file = run.files[0] if len(run.files) == 1 else path
    return (
        f"{file}: {', '.join(lost)}. The rest is shown. If the file is sound where it was written, copy it from there "
        "again; if a newer version of the tool wrote it, use a newer rollbook"
    )
