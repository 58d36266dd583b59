"""Which runs are in a folder.

A listing stats one file per run. The contents of run.json are cached by size and time of that file: in memory and, for
large folders, in the user's cache folder (never in a run).
"""

from __future__ import annotations

import builtins
import hashlib
import itertools
import os
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from rollbook.errors import ForeignManifest, RollbookError, RunNotFound
from rollbook.runs.fields import FIELDS
from rollbook.runs.run_set import RunSet
from rollbook.schema import manifest
from rollbook.schema.addresses import is_address
from rollbook.schema.endings import why_ended
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.schema.status import ENDED_BADLY, derived
from rollbook.system.files import replacing, user_cache
from rollbook.system.tuning import TUNING

_DEEPEST = 3
"""How many folders below the root a run may be: <root>/<project>/<run>, and one more."""
_Stamp = tuple[int, int, int]
_known: dict[str, tuple[_Stamp, dict[str, Any]]] = {}


def open(path: str | os.PathLike[str] = "runs") -> RunSet:
    """All current runs below a folder, or the one run that the folder is.

    Args:
      path: a folder of projects, a project, or a run; or the address of one in a remote, such as "s3://bucket/prefix",
        or its path if the remote is a folder.
    Raises:
      RunNotFound: there is no such folder, or it is a file. A folder without runs gives an empty set.
      NotARun, NewerFormat: the folder is one run, and its run.json cannot be read. Among many runs such a run is left
        out and reported in `problems`.
    """
    if is_address(path):
        from rollbook.runs.remote import open_address

        return open_address(str(path))
    root = os.path.abspath(os.path.expanduser(os.fspath(path)))
    if not os.path.isdir(root):
        found = "this is a file" if os.path.exists(root) else "there is no such folder"
        raise RunNotFound(f"open({os.fspath(path)!r}): {found}.", "Pass a folder of runs, 'runs' or that of dir=")
    if os.path.lexists(manifest.path_of(root)):
        try:
            manifest.read(root)  # the caller named this run: raise if it cannot be read
        except ForeignManifest:  # treat it as a plain folder
            pass
    problems: list[str] = []
    folders = sorted(_find(root, 0, problems), key=itemgetter(0))
    others: dict[str, str] = {}
    rows = _load(root, folders, problems, others)
    runs = RunSet([row for row in rows if row is not None], root, [*problems, *of_others(others)])
    runs.not_ours = others
    return runs


def of_others(manifests: Mapping[str, str]) -> list[str]:
    """One sentence about folders whose run.json another tool wrote; [] without any.

    Args:
      manifests: folder -> the sentence about it alone.
    """
    if len(manifests) < 2:
        return [*manifests.values()]
    some = ", ".join([*manifests][:3])
    return [
        f"{len(manifests):,} files run.json were written by another tool, not by rollbook, and are left as they are, "
        f"in {some}{' and others' if len(manifests) > 3 else ''}. rollbook import brings in what an importer reads"
    ]


def found(root: str, most: int) -> int:
    """The number of folders with a run.json below a folder, counted up to `most`, without reading any."""
    return sum(1 for _ in itertools.islice(_find(os.path.abspath(root), 0), most))


def stamped(root: str) -> dict[str, tuple[_Stamp, dict[str, Any]]]:
    """folder -> ((time, size, inode) of run.json as read, the run's row), for all runs below a folder.

    Uses the user's cache, as `open` does; runs that cannot be read are left out.
    """
    folders = sorted(_find(root, 0), key=itemgetter(0))
    rows = _load(root, folders, [], {})
    return {str(row["path"]): (_known[str(row["path"])][0], row) for row in rows if row is not None}


def unlisted(folder: str, err: OSError) -> str:
    """One sentence about a folder that cannot be read, so that runs in it would be missing."""
    return (
        f"{folder} cannot be listed: {err.strerror or err}; runs in it are not among these. "
        f"Its owner lets all users read it with: chmod -R a+rX {shlex.quote(folder)}"
    )


def _find(folder: str, depth: int, problems: list[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """The run folders at or below `folder`, each with the stat result of its run.json: one stat per run.

    What cannot be listed is added to `problems`.
    """
    page = _page(folder)
    if page is not None:
        yield folder, page
        return
    yield from _below(folder, depth, problems)


def _below(folder: str, depth: int, problems: list[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    if depth >= _DEEPEST:
        return
    try:
        entries = list(os.scandir(folder))
    except PermissionError as err:
        if problems is not None:
            problems.append(unlisted(folder, err))
        return
    except OSError:
        return
    for entry in entries:
        try:
            if entry.name.startswith("."):
                continue
            page = _page(entry.path)
            if page is not None:
                yield entry.path, page
            elif depth + 1 < _DEEPEST and entry.is_dir():
                yield from _find(entry.path, depth + 1, problems)
        except OSError:
            continue


def _page(folder: str) -> os.stat_result | None:
    try:
        about = os.stat(f"{folder}{os.sep}{MANIFEST_FILE}")
    except (OSError, ValueError):
        return None
    return about if stat.S_ISREG(about.st_mode) else None


def _load(
    root: str, folders: list[tuple[str, os.stat_result]], problems: list[str], others: dict[str, str]
) -> list[dict[str, object] | None]:
    cache = _Cache(root) if len(folders) >= TUNING.cached_runs else None
    rows: list[dict[str, object] | None] = []
    waiting = folders[::-1]
    while waiting:
        folder, page = waiting.pop()
        try:
            rows.append(_row(folder, page, cache, problems))
        except ForeignManifest as err:  # another tool's file; there may be runs below it
            others[folder] = str(err)
            depth = os.path.relpath(folder, root).count(os.sep) + (folder != root)
            waiting += sorted(_below(folder, depth, problems), key=itemgetter(0), reverse=True)
    if cache is not None and cache.was_read:
        cache.save({folder: _known[folder] for folder, _ in folders if folder in _known})
    return rows


def _row(folder: str, page: os.stat_result, cache: _Cache | None, problems: list[str]) -> dict[str, Any] | None:
    stamp = (page.st_mtime_ns, page.st_size, page.st_ino)
    known = _known.get(folder) or (cache.get(folder) if cache is not None else None)
    if known is None or known[0] != stamp:
        try:
            known = (stamp, manifest.listed(manifest.read(folder)))
        except ForeignManifest:
            raise
        except (RollbookError, OSError) as err:
            problems.append(str(err))
            return None
    _known[folder] = known
    row = {"path": folder, **known[1]}
    if row["status"] == "running":  # the only field that can change without a change of run.json
        about = manifest.read(folder)
        row["status"] = derived(folder, about)
        if row["status"] == "running":
            row["worked"] = manifest.worked(about, time.time())
    if row["status"] in ENDED_BADLY and not row["cause"]:
        row["cause"] = why_ended(manifest.RunJson(), row["status"])[0]  # type: ignore[index]  # its process noted nothing
    return row


class _Cache:
    """The run.json contents below one root, in the user's cache folder. Losing the cache costs only time."""

    def __init__(self, root: str) -> None:
        name = hashlib.blake2b(root.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
        self._path = os.path.join(user_cache(), f"catalog-{name}.json")
        self._known: dict[str, tuple[_Stamp, dict[str, object]]] | None = None

    @property
    def was_read(self) -> bool:
        """Whether the cache file was read, because something was not in memory."""
        return self._known is not None

    def get(self, folder: str) -> tuple[_Stamp, dict[str, Any]] | None:
        """The cached entry of a run."""
        if self._known is None:
            self._known = self._read()
        return self._known.get(folder)

    def save(self, known: dict[str, tuple[_Stamp, dict[str, object]]]) -> None:
        """Store what was read, if anything was."""
        if self._known is not None and self._known == known:
            return
        if self._known is None:  # everything was in memory
            return
        import msgspec

        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with replacing(self._path) as temporary, builtins.open(temporary, "wb") as file:
                file.write(msgspec.json.encode({folder: [stamp, row] for folder, (stamp, row) in known.items()}))
        except (OSError, TypeError, ValueError):
            return

    def _read(self) -> dict[str, tuple[_Stamp, dict[str, object]]]:
        import msgspec

        try:
            with builtins.open(self._path, "rb") as file:
                content = msgspec.json.decode(file.read(), type=dict[str, tuple[tuple[int, int, int], dict[str, Any]]])
        except (OSError, ValueError, msgspec.MsgspecError):
            return {}
        return {folder: known for folder, known in content.items() if set(FIELDS) <= set(known[1])}
