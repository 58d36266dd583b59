"""Folders of other tools, unchanged: `rollbook.open`, `ls`, `compare` and `ui` read them without an import.

    sources = found(root)          # {"wandb": [folder, …]}: by names alone, nothing is opened
    folder = laid_out(root)        # their runs, as rollbook reads runs, in the cache; up to date at each call

The tools' files are never changed. If the cache is lost, it is built again from them; when a file grows, its new data
is added. `rollbook import` creates permanent runs from the same sources.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

from rollbook.errors import RollbookError
from rollbook.formats.importers._into_runs import as_name, import_one, stamp_of
from rollbook.formats.importers._registry import make, patterns
from rollbook.ground import manifest
from rollbook.ground.files import loosely, read_json, try_lock, unlock, user_cache, write_json
from rollbook.protocols import ForeignRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

__all__ = ["follow", "found", "is_laid_out", "laid_out"]

_DEEPEST = 8
_MOST_ENTRIES = 300_000
"""In a larger tree, only this many files and folders are searched."""

_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", ".git", ".venv", "venv", "artifacts"})
_PATIENCE = 60.0
"""Seconds to wait for another process that lays out the same folder."""

_lock = threading.Lock()


def found(root: str | os.PathLike[str], own: Container[str] = ()) -> dict[str, list[str]]:
    """The formats that other tools left below a folder, each with the folders that hold its files, by names alone.

    Runs of rollbook are skipped. Nothing is opened, so this costs one listing per folder.

    Args:
      own: folders that are known to be runs of rollbook; others are recognised by their run.json.
    """
    wanted, looks_for = patterns(), _any_of(patterns())
    sources: dict[str, list[str]] = {}
    for folder, names in _folders(os.path.abspath(os.fspath(root)), own):
        above = os.path.basename(folder)
        for name in names:
            match = looks_for.fullmatch(f"{above}/{name}")
            if match is not None:
                folders = sources.setdefault(str(match.lastgroup), [])
                if not folders or folders[-1] != folder:
                    folders.append(folder)
    return {name: sources[name] for name in wanted if name in sources}


def laid_out(root: str | os.PathLike[str], problems: list[str] | None = None, own: Container[str] = ()) -> str | None:
    """The folder in the user's cache that holds the runs of other tools below `root`; None if there are none.

    Each is brought up to date with its files. If two formats describe one run (progress.csv and event files), the one
    with more data is read. One process at a time lays out a folder; the others wait for it.

    Args:
      problems: gets a sentence for each run that cannot be read.
      own: see `found`.
    """
    base = os.path.abspath(os.fspath(root))
    sources = found(base, own)
    if not sources:
        return None
    name = hashlib.blake2b(base.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    home = os.path.join(user_cache(), "foreign", name)
    os.makedirs(home, mode=0o700, exist_ok=True)
    with _lock, open(os.path.join(home, "lock"), "wb") as lock:
        until = time.monotonic() + _PATIENCE
        while try_lock(lock.fileno()) is False and time.monotonic() < until:
            time.sleep(0.05)
        try:
            with loosely():
                _bring_up_to_date(Path(base), sources, home, [] if problems is None else problems)
        finally:
            unlock(lock.fileno())
    return os.path.join(home, "runs")


def is_laid_out(folder: str) -> bool:
    """Whether a folder of the user's cache holds runs of other tools."""
    return folder.startswith(os.path.join(user_cache(), "foreign") + os.sep)


def follow(root: str | os.PathLike[str], *, seconds: float = 2.0) -> str | None:
    """Call `laid_out` now and then every few seconds in a thread, to follow growing files."""
    folder = laid_out(root)
    if folder is not None:

        def look() -> None:
            while True:
                time.sleep(seconds)
                with contextlib.suppress(Exception):  # a disk that is temporarily unavailable
                    laid_out(root)

        threading.Thread(target=look, name="rollbook-foreign", daemon=True).start()
    return folder


def _bring_up_to_date(base: Path, sources: dict[str, list[str]], home: str, problems: list[str]) -> None:
    index = os.path.join(home, "index.json")
    known: dict[str, Any] = read_json(index).get("runs", {})
    now: dict[str, Any] = {}
    claimed: set[str] = set()
    for format_name, folders in sources.items():
        importer = make(format_name)
        whole = getattr(importer, "gathers", False)
        own: set[str] = set()
        for path in [base] if whole else [Path(folder) for folder in folders]:
            try:
                runs = list(importer.runs(path))
            except (RollbookError, OSError) as err:
                problems.append(f"{path}: {err}")
                continue
            for run in runs:
                homes = {str(file.parent) for file in run.files}
                if homes and (all(_is_within(home, claimed) for home in homes) or _is_of_rollbook(homes, base)):
                    continue
                own |= homes
                identity = f"{format_name}\0{path}\0{run.name}"
                now[identity] = _one(run, format_name, path, base, home, known.get(identity), problems)
        claimed |= own
    if now != known:
        write_json(index, {"runs": now})


def _one(
    run: ForeignRun, format_name: str, path: Path, base: Path, home: str, known: dict[str, Any] | None,
    problems: list[str],
) -> dict[str, Any]:  # fmt: skip
    """The index entry of a run: the stamps of its files and its folder. Read again if they differ."""
    stamps = stamp_of(run)
    if known is not None and known["files"] == stamps and os.path.exists(os.path.join(known["folder"], "run.json")):
        return known
    project = as_name(run.project or base.name or "foreign")
    try:
        done = import_one(run, format_name, path, os.path.join(home, "runs"), project, as_name(run.name), {})
    except (RollbookError, OSError) as err:
        problems.append(f"{path}: {err}")
        return {"files": [], "folder": ""}
    return {"files": stamps, "folder": str(done.folder)}


def _is_within(folder: str, claimed: set[str]) -> bool:
    """Whether a folder is one of those, or inside one."""
    while folder not in claimed:
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


def _is_of_rollbook(folders: set[str], base: Path) -> bool:
    """Whether files belong to a run of rollbook, which also writes event files."""
    top = str(base)
    for start in folders:
        folder = start
        while len(folder) > len(top):
            if manifest.holds_a_run(folder):
                return True
            folder = os.path.dirname(folder)
    return False


def _any_of(wanted: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    """One expression for "folder/file" whose last group is the format of a file name."""
    groups = []
    for name, globs in wanted.items():
        paths = [glob if "/" in glob else f"*/{glob}" for glob in globs]
        inside = "|".join(fnmatch.translate(path).removesuffix(r"\Z").removesuffix(r"\z") for path in paths)
        groups.append(f"(?P<{name}>{inside})")
    return re.compile("|".join(groups) or r"(?!)")


def _folders(root: str, own: Container[str]) -> Iterator[tuple[str, list[str]]]:
    """Each folder at or below the root that is not a run of rollbook, with the names of its files."""
    waiting = [(root, 0)]
    seen = 0
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        seen += len(entries)
        files = []
        below = []
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _PASSED_OVER and entry.path not in own:
                        below.append(entry.path)
                else:
                    files.append(entry.name)
            except OSError:
                continue
        if "run.json" in files and manifest.holds_a_run(folder):
            continue
        yield folder, sorted(files)
        if depth < _DEEPEST and seen < _MOST_ENTRIES:
            waiting += [(path, depth + 1) for path in sorted(below, reverse=True)]
