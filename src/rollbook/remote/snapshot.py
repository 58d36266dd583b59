"""What a run's folder holds at one moment, as files that can be shipped.

The journal is read first and everything else second, so a row that is sealed in between is in at least one of the two.
What a pull brought is read last, because a pull notes it before it brings it (`pull.note`): no file is taken for this
folder's own. Sealed parts and live segments state which rows they hold; other files are known by path and content.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rollbook.errors import Damaged, NewerFormat
from rollbook.remote.commit import Local, LocalFile, Named
from rollbook.remote.row_ranges import Cover
from rollbook.remote.steps import LookAgain
from rollbook.schema.addresses import pulled_from
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import MANIFEST_FILE, PartName, RunFile, journal_folder, parse_name, read_metadata
from rollbook.storage import settled
from rollbook.system.files import (
    is_regular,
    names_in,
    own_files,
    path_inside,
    read_json,
    read_regular,
    write_json,
)
from rollbook.system.guard import tolerating

_LARGE = 32 * 1024 * 1024
"""Larger files are read while they are put, and checked again afterwards."""

_SETTLED_NS = 2_000_000_000

_SKIPPED = frozenset({"page.lock", "keeper", "journal", "aside"})
_OTHERS = ("ckpt", "media")
_WRITERS = f"data/{RunFile.WRITERS}"
"""The file in a remote with the writers whose journal is sealed; a folder has them in finished.json."""
_WHEN_OVER = ("log",)
"""Text tables and event files grow with every line and can be made again: they are shipped when the run is over."""


class Snapshots:
    """Takes snapshots of one run's folder. Keeps the checksums of unchanged files in between.

    Args:
      run: the run's folder.
      final: include files that change all the time and are only useful when the run is over.
      url: the remote that the folder is shipped to: what a pull brought from there is not shipped again. What came
        from another remote is.
    """

    def __init__(self, run: str, *, final: bool = False, url: str = "") -> None:
        self.run, self.final, self.url = os.path.abspath(run), final, url
        self._cache_path = os.path.join(self.run, RunFile.KEEPER, RunFile.CHECKSUMS)
        self._known: dict[str, object] = read_json(self._cache_path)
        self._seen: dict[str, Any] = {}

    def look(self, named: dict[str, Named] | None = None) -> Local:
        """What the folder holds now.

        Args:
          named: what the manifest names, to find which of it is settled.
        """
        self._seen = {}
        files = {file.path: file for file in self._journal()}
        for file in self._sealed():
            files[file.path] = file
        for file in self._plain():
            files[file.path] = file
        came, covers = self._pulled()
        files = {path: file for path, file in files.items() if file.covers or came.get(path) != file.sha256}
        return Local(files, self._settled(named or {}, files), covers)

    def _pulled(self) -> tuple[dict[str, object], list[Cover]]:
        """What other origins have shipped, by the last pull: path -> sha256 of files, and rows."""
        pulled = pulled_from(self.run)
        if not self.url or pulled.get("url") != self.url:
            return {}, []
        files, covers = pulled.get("files"), pulled.get("covers")
        return (
            files if isinstance(files, dict) else {},
            [(str(c[0]), str(c[1]), int(c[2]), str(c[3]), int(c[4]), int(c[5])) for c in covers]
            if isinstance(covers, list)
            else [],
        )

    def keep(self) -> None:
        """Keep the checksums for the next snapshot."""
        if self._seen != self._known:
            try:
                write_json(self._cache_path, self._seen)
            except OSError:
                return
            self._known = self._seen

    # -- the journal

    def _journal(self) -> Iterator[LocalFile]:
        remote = journal_folder(self.run)
        for writer in names_in(remote):
            folder = os.path.join(remote, writer)
            if os.path.islink(folder) or not os.path.isdir(folder):
                continue
            for name in own_files(folder):
                parsed, path = parse_name(name), f"data/journal/{writer}/{name}"
                try:
                    if name in (RunFile.WRITER, RunFile.CLOSED):
                        yield _of_bytes(path, read_regular(os.path.join(folder, name)))
                    elif parsed is not None and parsed[0] == "seg":
                        file = _segment(path, os.path.join(folder, name))
                        if file is not None:
                            yield file
                    elif parsed is not None:
                        yield _of_bytes(path, read_regular(os.path.join(folder, name)), packed=True)
                except FileNotFoundError:  # just sealed: its rows are found afterwards
                    continue
                except (OSError, Damaged, NewerFormat):
                    continue

    def _settled(self, named: dict[str, Named], files: dict[str, LocalFile]) -> set[str]:
        """Names of the manifest whose content is in other files of the folder now."""
        settled = set()
        closed = former_writers(self.run)
        for path in named:
            if path in files:
                continue
            if path.startswith("data/journal/") and not named[path].covers:
                writer = path.split("/")[2]
                if writer in closed or os.path.exists(os.path.join(journal_folder(self.run), writer, RunFile.WRITER)):
                    settled.add(path)
            elif path.startswith("data/pyramid/"):
                settled.add(path)
        return settled

    # -- sealed parts

    def _sealed(self) -> Iterator[LocalFile]:
        data = os.path.join(self.run, "data")
        for table in names_in(data):
            if table in _SKIPPED or table == "pyramid":
                continue
            for folder in _part_folders(data, table):
                for name in own_files(folder):
                    if PartName.parse(name) is not None:
                        file = self._part(table, os.path.join(folder, name))
                        if file is not None:
                            yield file

    def _part(self, table: str, path: str) -> LocalFile | None:
        relative = self._relative(path)
        try:
            size, sha, more = self._checked(path, _facts_of_part)
        except (OSError, Damaged):
            return None
        if more is None:
            return None
        covers = tuple((table, str(w), int(lane), str(g), int(a), int(b)) for w, lane, g, a, b in more["covers"])
        return LocalFile(
            relative,
            size,
            sha,
            self._content(relative, path),
            covers,
            int(more["footer"]),
            cut=partial(self._cut, path, table),
        )

    def _cut(self, path: str, table: str, left: tuple[Cover, ...]) -> LocalFile:
        from rollbook.remote.cutting import cut_part

        data, name = cut_part(path, left)
        folder = self._relative(os.path.dirname(path))
        footer = struct.unpack("<I", data[-8:-4])[0] + 8
        sha = hashlib.sha256(data).hexdigest()
        return LocalFile(f"{folder}/{name}", len(data), sha, lambda: data, left, footer)

    # -- everything else

    def _plain(self) -> Iterator[LocalFile]:
        if writers := former_writers(self.run):
            yield _of_bytes(_WRITERS, json.dumps(writers, sort_keys=True).encode())
        for path in self._plain_paths():
            relative = self._relative(path)
            if relative == _WRITERS:
                continue
            try:
                size, sha, _ = self._checked(path, None)
            except (OSError, Damaged):
                continue
            yield LocalFile(relative, size, sha, self._content(relative, path))

    def _plain_paths(self) -> Iterator[str]:
        with os.scandir(self.run) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and entry.name != MANIFEST_FILE and _is_wanted(entry.name):
                    yield entry.path
        data = os.path.join(self.run, "data")
        for folder, folders, names in os.walk(data):
            if folder == data:
                folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in names:
                path = os.path.join(folder, name)
                if _is_wanted(name) and PartName.parse(name) is None and name not in _SKIPPED and is_regular(path):
                    yield path
        for top in (*_OTHERS, *(_WHEN_OVER if self.final else ())):
            for folder, folders, names in os.walk(os.path.join(self.run, top)):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in names:
                    path = os.path.join(folder, name)
                    if _is_wanted(name) and self._is_inside(path):
                        yield path

    def _is_inside(self, path: str) -> bool:
        """A regular file of the run, or a link to one (ckpt_best is one, where a framework wrote the file)."""
        with tolerating(OSError, Damaged):
            return bool(path_inside(self.run, path))
        return False

    # -- checksums

    def _content(self, relative: str, path: str) -> Callable[[], Any]:
        stamp, sha, _ = self._seen[relative]
        return partial(_content, path, str(sha), list(stamp))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.run).replace(os.sep, "/")

    def _checked(self, path: str, more: Callable[[str], object] | None) -> tuple[int, str, Any]:
        """(size, sha256, more(path)) of a file; from memory if the file has not changed."""
        relative, path = self._relative(path), path_inside(self.run, path)
        about = os.stat(path)
        stamp = _stamp(about)
        known = self._known.get(relative)
        if not (isinstance(known, list) and len(known) == 3 and known[0] == stamp):
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            known = [stamp, digest, more(path) if more is not None else None]
        self._seen[relative] = known
        return about.st_size, str(known[1]), known[2]


def _is_wanted(name: str) -> bool:
    return not name.endswith(".tmp") and not name.startswith(".")


def _part_folders(data: str, table: str) -> list[str]:
    folder = os.path.join(data, table)
    return [folder] if table != "metrics" else [folder, os.path.join(folder, "wide"), os.path.join(folder, "long")]


def _facts_of_part(path: str) -> Any:
    """{"covers", "footer"} of a sealed part; None if it is not one."""
    meta = read_metadata(path)
    if meta is None:
        return None
    try:
        covers = (
            meta["covers"]
            if "covers" in meta
            else [[meta["writer"], meta["lane"], meta["group"], meta["first_seq"], meta["last_seq"]]]
        )
        covers = [[str(w), int(lane), str(g), int(a), int(b)] for w, lane, g, a, b in covers]
    except (KeyError, TypeError, ValueError):
        return None
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        footer = struct.unpack("<I", file.read(4))[0] + 8
    return {"covers": covers, "footer": footer}


def _content(path: str, sha: str, stamp: list[int]) -> Any:
    """The content of a file that still matches its checksum; for a large one, its path. The checksum is not computed
    again if the file was not modified lately or since it was last read."""
    if stamp[0] > _LARGE:
        with open(path, "rb") as file:
            if not _is_untouched(path, stamp) and hashlib.file_digest(file, "sha256").hexdigest() != sha:
                raise LookAgain(path)
        return path
    data = read_regular(path)
    if not (_is_untouched(path, stamp) and len(data) == stamp[0]) and hashlib.sha256(data).hexdigest() != sha:
        raise LookAgain(path)
    return data


def _is_untouched(path: str, stamp: list[int]) -> bool:
    about = os.stat(path)
    same = _stamp(about) == stamp
    return same and time.time_ns() - about.st_mtime_ns > _SETTLED_NS  # a change after this one would be visible


def _stamp(about: os.stat_result) -> list[int]:
    return [about.st_size, about.st_mtime_ns, about.st_ino]


def _of_bytes(path: str, data: bytes, covers: tuple[Cover, ...] = (), *, packed: bool = False) -> LocalFile:
    sha = hashlib.sha256(data).hexdigest()
    if not packed:
        return LocalFile(path, len(data), sha, lambda: data, covers)
    thin = zlib.compress(data, 1)
    return LocalFile(path, len(data), sha, lambda: thin, covers, 0, "zlib", len(thin))


def _segment(relative: str, path: str) -> LocalFile | None:
    """The committed rows of a live segment as a finished segment file; None if it has none."""
    found = settled(path)
    if found is None:
        return None
    data, cover = found
    return _of_bytes(relative, data, (cover,), packed=True)


def another_name(path: str, n: int) -> str:
    """A name for a file whose own name is taken; readers understand it as well."""
    folder, _, name = path.rpartition("/")
    parsed = parse_name(name)
    if parsed is not None and parsed[0] == "seg":
        stream, slot, _ = name.rsplit(".", 2)
        return f"{folder}/{stream}.{int(slot) + 1000 * n}.seg"
    part = PartName.parse(name)
    if part is not None:
        if part.kind != "merged":
            covers = int(hashlib.sha256(f"{path}{n}".encode()).hexdigest()[:6], 16)
            return f"{folder}/merged.{900000000 + covers}.parquet"
        return f"{folder}/merged.{part.first + 1000 * n:03d}.parquet"
    return f"{path}.{n}"
