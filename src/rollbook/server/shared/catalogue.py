"""Which runs there are, kept up to date by checking for changes: folders by their times, live runs by their
processes."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollbook.errors import ForeignManifest, RollbookError
from rollbook.formats.foreign import follow
from rollbook.runs.absent import no_run_called
from rollbook.runs.catalog import open as open_runs
from rollbook.runs.catalog import stamped, unlisted
from rollbook.runs.remote import open_address
from rollbook.schema import manifest
from rollbook.schema.addresses import is_address
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.schema.status import derived

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.schema.manifest import RunJson

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 3
_FULL_SECONDS = 5.0
"""How often every run.json is checked; new folders and live runs are checked each time."""

_LIST_SECONDS = 10.0
"""How old the list of a store's runs may be while somebody looks."""

_SETTLED_NS = 2_000_000_000
"""A folder that changed more recently than this may change again within the same tick of the clock."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the catalogue knows it.

    Attributes:
      key: its name in the API; folder: its path.
      about: the row of `RunSet.rows()`.
      stamp: of its run.json.
    """

    key: str
    folder: str
    about: dict[str, Any]
    stamp: tuple[int, ...]

    @property
    def status(self) -> str:
        """running, finished, killed, crashed or stale."""
        return str(self.about.get("status") or "")

    @property
    def is_live(self) -> bool:
        """Whether it is being written, as far as is known."""
        return self.status == "running"

    @property
    def is_archived(self) -> bool:
        """Whether its owner archived it."""
        return "archived" in self.about.get("tags", ()) or bool(self.about.get("archived"))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All runs at one moment.

    Attributes:
      rows: key -> row, by path; version: grows whenever anything changed.
      unreadable: why the run.json of some folders cannot be read, a sentence each.
    """

    rows: Mapping[str, RunRow]
    version: int
    server: str = ""
    unreadable: tuple[str, ...] = ()

    @property
    def live(self) -> int:
        """How many are running."""
        return sum(row.is_live for row in self.rows.values())


@dataclass(slots=True)
class _Folder:
    """A folder between the root and the runs."""

    time_ns: int = -1
    why: str = ""  # it cannot be listed
    runs: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


class Catalogue:
    """The runs below some roots, also those of other tools. Any thread may use it.

    Args:
      roots: folders of runs, or runs.
      waits: whether all runs of other tools are read first; else they appear as they are read.
    Attributes:
      roots: as above, without links.
    """

    def __init__(self, roots: Iterable[str], *, waits: bool = False) -> None:
        self.roots = tuple(root if is_address(root) else os.path.realpath(root) for root in roots)
        plain = [root for root in self.roots if not is_address(root) and not manifest.holds_a_run(root)]
        self._others = [_Others(root, waits=waits) for root in plain]
        self._stores = [_Store(root) for root in self.roots if is_address(root)]
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._rows: dict[str, RunRow] = {}  # by folder
        self._unreadable: dict[str, str] = {}  # by folder: the reason
        self._shut: dict[str, str] = {}  # folders between the root and the runs that cannot be listed
        self._keys: dict[str, str] = {}  # key -> folder, given once and never changed
        self._pages: dict[str, tuple[tuple[int, ...], RunJson]] = {}  # by folder: run.json of live runs
        self._early: dict[str, tuple[tuple[int, int, int], dict[str, object]]] = {}
        self._neighbours: dict[str, tuple[int, ...]] = {}  # by folder: the run.json of another tool
        self._full_at = 0.0
        self._looked_at = 0.0
        self._snapshot = Snapshot({}, 0)

    @property
    def folders(self) -> tuple[str, ...]:
        """Where runs are looked for: the roots, and where the runs of other tools below them are laid out."""
        return tuple(dict.fromkeys((*self.roots, *(others.folder for others in self._others if others.folder))))

    def snapshot(self, max_age: float = 1.0) -> Snapshot:
        """All runs as they were at most `max_age` seconds ago."""
        if time.monotonic() - self._looked_at > max_age:
            self.refresh()
        return self._snapshot

    def row(self, key: str) -> RunRow:
        """The run of that name.

        Raises:
          RunNotFound: there is none.
        """
        row = self.snapshot(5.0).rows.get(key) or self.snapshot(0.2).rows.get(key)
        if row is None:
            rows = [other.about for other in self._snapshot.rows.values()]
            raise no_run_called(key, rows, ", ".join(self.roots))
        return row

    def refresh(self, full: bool = False) -> list[RunRow]:
        """Check for changes. Returns the rows that are new, changed or (with status "gone") removed."""
        with self._lock:
            full = full or time.monotonic() - self._full_at > _FULL_SECONDS
            if full:
                for others in self._others:
                    others.look()
            local = [folder for folder in self.folders if not is_address(folder)]
            unreadable = [*self._unreadable.values(), *self._shut.values()]
            self._shut = {}
            folders = [folder for root in local for folder in self._find(root, 0)]
            if not self._looked_at:  # first time: thousands of runs are mostly unchanged since the last server
                self._early = {folder: known for root in local for folder, known in stamped(root).items()}
            changed: list[RunRow] = []
            rows: dict[str, RunRow] = {}
            for folder in folders:
                known = self._rows.get(folder)
                row = known if known is not None and not full and not _may_change(known) else self._look(folder, known)
                if row is not None:
                    rows[folder] = row
                    if row is not known:
                        changed.append(row)
            for store in self._stores:
                for about in store.rows():
                    row = self._stored(about)
                    rows[row.folder] = row
                    was = self._rows.get(row.folder)
                    if row is not was and (was is None or row.about != was.about):
                        changed.append(row)
                if store.why:
                    self._unreadable[store.url] = store.why
                else:
                    self._unreadable.pop(store.url, None)
            for folder, known in self._rows.items():
                if folder not in rows:
                    self._pages.pop(folder, None)
                    changed.append(RunRow(known.key, folder, {**known.about, "status": "gone"}, ()))
            self._rows = rows
            stores = {store.url for store in self._stores}
            for gone in self._unreadable.keys() - set(folders) - stores - self._neighbours.keys():
                del self._unreadable[gone]
            if full:
                self._full_at = time.monotonic()
            self._looked_at = time.monotonic()
            self._early = {}
            now_unreadable = [*self._unreadable.values(), *self._shut.values()]
            if changed or unreadable != now_unreadable or not self._snapshot.version:
                by_key = {row.key: row for row in rows.values()}
                self._snapshot = Snapshot(by_key, self._snapshot.version + 1, unreadable=tuple(now_unreadable))
            return changed

    def _stored(self, about: dict[str, Any]) -> RunRow:
        """The row of a run of a store: the same one as long as nothing of it changed."""
        folder = str(about["path"])
        known = self._rows.get(folder)
        if known is not None and known.about is about:
            return known
        return RunRow(known.key if known is not None else self._key(folder, str(about.get("id"))), folder, about, ())

    def _find(self, folder: str, depth: int) -> list[str]:
        """The run folders at or below a folder; a folder is listed again only when its time has changed."""
        try:
            now = os.stat(folder).st_mtime_ns
        except OSError:
            self._folders.pop(folder, None)
            return []
        known = self._folders.get(folder)
        if known is None or known.time_ns != now:
            known = _listed(folder, self.folders, self._is_run)
            # What may be read changes without a new time.
            known.time_ns = now if time.time_ns() - now > _SETTLED_NS and not known.why else -1
            self._folders[folder] = known
        if known.why:
            self._shut[folder] = known.why
        if depth >= _DEEPEST:
            return known.runs
        return known.runs + [run for inner in known.folders for run in self._find(inner, depth + 1)]

    def _is_run(self, folder: str) -> bool:
        """Whether a folder has a run.json that is not known to be another tool's."""
        if folder not in self._neighbours:
            return os.path.isfile(os.path.join(folder, MANIFEST_FILE))
        try:
            stat = os.stat(os.path.join(folder, MANIFEST_FILE))
        except OSError:
            return False
        return self._neighbours[folder] != (stat.st_mtime_ns, stat.st_size, stat.st_ino)

    def _look(self, folder: str, known: RunRow | None) -> RunRow | None:
        try:
            stat = os.stat(os.path.join(folder, MANIFEST_FILE))
        except PermissionError as err:
            self._unreadable[folder] = unlisted(folder, err)
            return None
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if known is not None and known.stamp == stamp:
            return known if not _may_change(known) else self._judged(folder, known)
        self._pages.pop(folder, None)
        early = self._early.get(folder)
        if early is not None and early[0] == stamp:
            return RunRow(self._key(folder, str(early[1].get("id"))), folder, early[1], stamp)
        try:
            (about,) = (row for row in open_runs(folder).rows() if row["path"] == folder)
        except (RollbookError, OSError, ValueError):
            try:
                manifest.read(folder)  # raises with the reason
            except (RollbookError, OSError) as err:
                self._unreadable[folder] = str(err)
                if isinstance(err, ForeignManifest):  # another tool's; next time, runs below it are found
                    self._neighbours[folder] = stamp
                    for listed in (folder, os.path.dirname(folder)):
                        self._folders.pop(listed, None)
            return None
        self._unreadable.pop(folder, None)
        if known is not None and known.stamp == stamp and known.about == about:
            return known
        return RunRow(known.key if known is not None else self._key(folder, str(about.get("id"))), folder, about, stamp)

    def _judged(self, folder: str, known: RunRow) -> RunRow:
        """A run with an unchanged run.json: only its status can differ."""
        page = self._pages.get(folder)
        if page is None or page[0] != known.stamp:
            try:
                page = self._pages[folder] = (known.stamp, manifest.read(folder))
            except (RollbookError, OSError):
                return known
        status = derived(folder, page[1])
        if status == known.status:
            return known
        return RunRow(known.key, folder, {**known.about, "status": status}, known.stamp)

    def _key(self, folder: str, identity: str) -> str:
        """A name for a run that no other run here has: its id if that is a plain word."""
        if not _PLAIN.fullmatch(identity):
            identity = "p" + hashlib.blake2b(os.fsencode(folder), digest_size=6).hexdigest()
        key, number = identity, 1
        while self._keys.get(key, folder) != folder:
            number += 1
            key = f"{identity}~{number}"
        self._keys[key] = folder
        return key


class _Others:
    """Where the runs of other tools below a root are laid out. Until there are some a thread looks for them, at most a
    hundredth of its time: folders of other things may take seconds to go through, and no request waits.

    Attributes:
      folder: "" while there are none.
    """

    def __init__(self, root: str, *, waits: bool) -> None:
        self._root, self._due = root, 0.0
        self._thread: threading.Thread | None = None
        self.folder = ""
        self._look(waits)

    def look(self) -> None:
        """Look again, if there were none and it is time."""
        if not self.folder and self._thread is None and time.monotonic() >= self._due:
            self._thread = threading.Thread(target=self._look, name="rollbook-others", daemon=True)
            self._thread.start()

    def _look(self, waits: bool = False) -> None:
        began = time.perf_counter()
        try:
            folder = follow(self._root, waits=waits)
            self.folder = os.path.realpath(folder) if folder is not None else ""
        finally:
            self._due = time.monotonic() + 99 * (time.perf_counter() - began)
            self._thread = None


class _Store:
    """The runs of a store as its catalogue lists them. Listing takes a second or more: after the first time a thread
    does it, and no request waits.

    Args:
      url: its address, or that of a project in it.
    Attributes:
      why: why it could not be listed the last time; "" if it could. What was listed before stays.
    """

    def __init__(self, url: str) -> None:
        self.url, self.why = url, ""
        self._rows: list[dict[str, Any]] = []
        self._listed_at: float | None = None
        self._thread: threading.Thread | None = None

    def rows(self) -> list[dict[str, Any]]:
        """The runs as they were listed last."""
        if self._listed_at is None:
            self._list()
        elif time.monotonic() - self._listed_at > _LIST_SECONDS and self._thread is None:
            self._thread = threading.Thread(target=self._list, name="rollbook-store", daemon=True)
            self._thread.start()
        return self._rows

    def _list(self) -> None:
        try:
            self._rows, self.why = open_address(self.url, seconds=_LIST_SECONDS).rows(), ""
        except (RollbookError, OSError) as err:
            self.why = str(err)
        self._listed_at, self._thread = time.monotonic(), None


def _may_change(row: RunRow) -> bool:
    """Whether a run's status can change without its run.json changing."""
    return row.status in ("running", "stale")


def _is_inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a link leads to a path below the roots."""
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root + os.sep) for root in roots)


def _listed(folder: str, roots: tuple[str, ...], is_run: Callable[[str], bool]) -> _Folder:
    listing = _Folder()
    if is_run(folder):
        listing.runs.append(folder)
        return listing
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError as err:
        listing.why = unlisted(folder, err)
        return listing
    except OSError:
        return listing
    for entry in entries:
        try:
            if (
                entry.name.startswith(".")
                or not entry.is_dir()
                or (entry.is_symlink() and not _is_inside(entry.path, roots))
            ):
                continue
        except OSError:
            continue
        path = os.path.join(folder, entry.name)
        (listing.runs if is_run(path) else listing.folders).append(path)
    return listing
