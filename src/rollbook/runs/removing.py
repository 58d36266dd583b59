"""Removed runs go into a bin next to their projects, from which they can be restored until it is emptied.

    runs/.bin/20261129-031022/cartpole/ppo-k3v9x2ab        was runs/cartpole/ppo-k3v9x2ab

A run moves by one rename, so it is here or there whenever somebody looks, also after SIGKILL. What is to be deleted is
renamed first (`runs/.bin/.going/…`): nothing that is half deleted can be restored, and the next emptying ends it. A run
that may be written is never moved: its main writer lives or cannot be judged, another process writes it, or its keeper
is not through.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollbook.book import Book
from rollbook.errors import BadInput, RollbookError, RunIsLive, RunNotFound
from rollbook.runs.space import in_bytes, space_of
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.schema.source import is_view
from rollbook.schema.status import derived
from rollbook.system.brief import brief
from rollbook.system.files import exists, is_folder, is_link, names_in, read_json, sync_folder, user_cache
from rollbook.system.files import remove as remove_file
from rollbook.system.liveness import is_alive
from rollbook.system.texts import amount

BIN = ".bin"
_GOING = ".going"


@brief
@dataclass(frozen=True, slots=True)
class Binned:
    """A run in the bin.

    Attributes:
      path: where it is now; home: where it was. removed: when, unix seconds.
    """

    path: str
    home: str
    id: str
    project: str
    name: str
    removed: float
    bytes: int


@brief
@dataclass(frozen=True, slots=True)
class Removal:
    """What `remove` did, or would do.

    Attributes:
      moved: the runs that went into the bin (with a dry run: that would go), as rows of a listing with `bytes`.
      refused: path of a run -> why it stayed.
      dry_run: nothing was changed.
    """

    moved: tuple[Mapping[str, object], ...]
    refused: Mapping[str, str]
    dry_run: bool

    def sentences(self) -> list[str]:
        """What went, what stayed and why, and how it comes back."""
        size = in_bytes(sum(int(str(row["bytes"])) for row in self.moved))
        many = amount(len(self.moved), "run")
        if self.dry_run:
            lines = [f"{many} would go into the bin ({size}). Nothing was changed."]
        else:
            lines = [f"{many} went into the bin ({size})."] if self.moved else []
        return [*lines, *(f"{path} stays: {why}" for path, why in self.refused.items())]


class Bin:
    """The removed runs of a folder of projects.

    Args:
      root: the folder that has the projects, such as "runs".
    Attributes:
      folder: the bin itself.
    """

    def __init__(self, root: str | os.PathLike[str] = "runs") -> None:
        self.folder = os.path.join(os.path.abspath(root), BIN)

    def __repr__(self) -> str:
        return f"<Bin {self.folder}: {amount(len(self.entries()), 'run')}>"

    def entries(self) -> list[Binned]:
        """The runs in it, those removed last first."""
        found = []
        for stamp, path in self._paths():
            about = manifest.look(path)
            project = os.path.basename(os.path.dirname(path))
            found.append(
                Binned(
                    path,
                    os.path.join(os.path.dirname(self.folder), project, os.path.basename(path)),
                    about.id,
                    project,
                    about.name or os.path.basename(path),
                    _moment_of(stamp),
                    sum(space_of(path).values()),
                )
            )
        return sorted(found, key=lambda entry: (-entry.removed, entry.path))

    def restore(self, word: str) -> list[str]:
        """Bring runs back to where they were.

        Args:
          word: an id, a name, project/name, or the folder's name.
        Returns:
          Their folders.
        Raises:
          RunNotFound: the bin has none of that name. BadInput: something is in the place of one; it stays in the bin.
        """
        chosen = [entry for entry in self.entries() if word in _names_of(entry)]
        if not chosen:
            raise RunNotFound(
                f"restore({word!r}): the bin {self.folder} has no such run.", "rollbook rm --bin lists it"
            )
        restored = []
        for entry in chosen:
            if os.path.lexists(entry.home):
                raise BadInput(
                    f"restore({word!r}): {entry.home} exists.", f"Move that away first; the run is in {entry.path}"
                )
            os.makedirs(os.path.dirname(entry.home), exist_ok=True)
            os.rename(entry.path, entry.home)
            restored.append(entry.home)
        self._tidy()
        return restored

    def empty(self, older_than_seconds: float = 0.0) -> int:
        """Delete what is in it, for good.

        Args:
          older_than_seconds: only runs that were removed at least this long ago.
        Returns:
          How many runs were deleted.
        """
        going = os.path.join(self.folder, _GOING)
        latest = time.time() - older_than_seconds
        count = 0
        for stamp, path in list(self._paths()):
            if _moment_of(stamp) <= latest:
                os.makedirs(going, exist_ok=True)
                os.rename(path, os.path.join(going, f"{os.path.basename(path)}.{os.urandom(4).hex()}"))
                count += 1
        shutil.rmtree(going, ignore_errors=True)
        self._tidy()
        return count

    def _paths(self) -> Iterator[tuple[str, str]]:
        """(when it was removed, as its folder says it; the run)."""
        for stamp in names_in(self.folder):
            if stamp.startswith("."):
                continue
            for project in names_in(os.path.join(self.folder, stamp)):
                for name in names_in(os.path.join(self.folder, stamp, project)):
                    path = os.path.join(self.folder, stamp, project, name)
                    if is_folder(path) and not is_link(path):
                        yield stamp, path

    def _tidy(self) -> None:
        """Remove folders that hold nothing."""
        for here, _folders, _names in os.walk(self.folder, topdown=False):
            if not exists(os.path.join(here, MANIFEST_FILE)):
                with contextlib.suppress(OSError):
                    if not os.listdir(here) and os.path.basename(os.path.dirname(here)) != "data":
                        os.rmdir(here)


def remove(rows: Sequence[Mapping[str, object]], *, dry_run: bool = False, force: bool = False) -> Removal:
    """See `RunSet.remove`."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    moved: list[Mapping[str, object]] = []
    refused: dict[str, str] = {}
    for row in rows:
        path = os.path.abspath(str(row["path"]))
        try:
            size = sum(space_of(path).values())
            if dry_run:
                check_removable(path, force=force)
            else:
                _move(path, stamp, force=force)
            moved.append({**row, "bytes": size})
        except (RollbookError, OSError) as err:
            refused[path] = str(err)
    return Removal(tuple(moved), refused, dry_run)


def bin_of(root: str) -> Bin:
    """The bin for a folder of projects, or for one project of it."""
    above = os.path.dirname(os.path.abspath(root))
    return Bin(above if not is_folder(os.path.join(root, BIN)) and is_folder(os.path.join(above, BIN)) else root)


def bins_of(paths: Sequence[str]) -> list[Bin]:
    """The bins of some runs."""
    roots = dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(path))) for path in paths)
    return [Bin(root) for root in roots if is_folder(os.path.join(root, BIN))]


def binned_below(roots: Iterable[str]) -> list[tuple[Bin, Binned]]:
    """The removed runs that were below these folders, each with its bin; a folder is one of projects, or a project."""
    return [
        (one, entry)
        for root in map(os.path.abspath, roots)
        for one in bins_of([os.path.join(root, "p", "r"), os.path.join(root, "r")])
        for entry in one.entries()
        if entry.home.startswith(root + os.sep)
    ]


def check_removable(path: str, *, force: bool = False) -> None:
    """Nothing, if the run can be removed.

    Args:
      force: also what cannot be judged from this host.
    Raises:
      RunIsLive: it may be written. BadInput: it is not a folder of rollbook. NotARun: its run.json cannot be read.
    """
    about = manifest.read(path)
    if is_view(path) or os.path.abspath(path).startswith(user_cache() + os.sep):
        raise BadInput("its files belong to another tool or place, and are left as they are")
    if is_link(path):
        raise BadInput("it is a link.", "Remove what it leads to")
    status = derived(path, about)
    states = {str(writer["state"]) for writer in Book(path).writers}
    if status == "running" or "writing" in states:
        raise RunIsLive("a process writes it.", "End that first")
    if not force and (status in ("stale", "part") or "unknown" in states):
        raise RunIsLive(
            "another host may still be writing it, which cannot be seen from here.", "If not, use --force (force=True)"
        )
    for name in names_in(os.path.join(path, RunFile.KEEPER)):
        if name.startswith("state-") and name.endswith(".json"):
            keeper = read_json(os.path.join(path, RunFile.KEEPER, name))
            if keeper.get("phase") not in ("done", "gone") and is_alive(keeper):
                raise RunIsLive("its keeper is still at work.", "Try again in a moment")


def _move(path: str, stamp: str, *, force: bool) -> None:
    project = os.path.dirname(path)
    bin_folder = os.path.join(os.path.dirname(project), BIN, stamp, os.path.basename(project))
    with manifest.ManifestLock(path):  # an attempt that begins now is first, or finds nothing
        check_removable(path, force=force)
        os.makedirs(bin_folder, exist_ok=True)
        target = os.path.join(bin_folder, os.path.basename(path))
        if os.path.lexists(target):
            raise BadInput(f"the bin has {target} already")
        os.rename(path, target)
    remove_file(os.path.join(target, "data", "page.lock"))
    for folder in (bin_folder, project):
        sync_folder(folder)


def _moment_of(stamp: str) -> float:
    try:
        return time.mktime(time.strptime(stamp, "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return 0.0


def _names_of(entry: Binned) -> tuple[str, ...]:
    folder = os.path.basename(entry.path)
    return (entry.id, entry.name, folder, f"{entry.project}/{entry.name}", f"{entry.project}/{folder}", entry.path)
