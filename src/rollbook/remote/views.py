"""Runs of a store as folders in the local cache, so that all code that reads folders can read them.

    folder = folder_of("s3://bucket/prefix", "cartpole/ppo-k3v9x2ab")     # where it will be; nothing is fetched
    freshen(folder)                # creates the files that the manifests name: small ones whole, large ones as holes
    ensure(path, [(0, 4096)])      # these bytes of a file are there now

Pieces never change, so fetched bytes stay valid: a second read requests only manifests. The cache is bounded: the least
recently used files are removed first, and fetched again when needed. A folder outside the cache costs one comparison of
its path. Only `freshen` and `ensure` write here, and only here.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rollbook.errors import Damaged, NotARun, RemoteError, RemoteUnreachable, RollbookError
from rollbook.remote.commit import Commits, NotShipped, RemoteManifest
from rollbook.remote.opening import open_remote
from rollbook.remote.remote import Remote, perform
from rollbook.remote.steps import Away, Get, Missing, Steps, Stored, Unknown, message_of
from rollbook.schema.addresses import check_remote
from rollbook.schema.run_files import MANIFEST_FILE, PartName, RunFile, heartbeat_path
from rollbook.schema.source import cache_root, is_view
from rollbook.system.files import pasted, read_json, write_json

FRESH_SECONDS = 2.0
"""A run's manifests are requested at most once in this time."""

_WHOLE = 16 * 1024
"""Files up to this size are fetched whole when a run is opened."""

_JOIN = 4096
"""A request may include this many bytes that were not asked for, or an eighth of those that were."""

_MOST_TRIES = 5
_TRIM_EVERY = 64 * 1024 * 1024

_remotes: dict[str, Remote] = {}
_fresh: dict[str, float] = {}
_maps: dict[str, tuple[tuple[int, int], _Have]] = {}
_lock = threading.RLock()
_fetched = 0


def cache_limit() -> int:
    """The most bytes for views: $ROLLBOOK_CACHE_BYTES, else 20 GB."""
    try:
        return int(os.environ.get("ROLLBOOK_CACHE_BYTES", ""))
    except ValueError:
        return 20_000_000_000


def folder_of(url: str, run: str) -> str:
    """The folder of the view of a run (<project>/<run>), whether it exists or not."""
    return folders_of(url, [run])[0]


def folders_of(url: str, runs: Sequence[str]) -> list[str]:
    """The folders of the views of one remote's runs."""
    url = check_remote(url)
    mirror = os.path.join(cache_root(), hashlib.blake2b(url.encode(), digest_size=8).hexdigest())
    above = os.path.join(mirror, "runs", "")
    folders = []
    for run in runs:
        names = run.split("/")
        if len(names) != 2 or not all(_is_name(name) for name in names):
            raise NotARun(f"{url}: {run!r} cannot be the name of a run")
        folders.append(f"{above}{names[0]}{os.sep}{names[1]}")
    page = os.path.join(mirror, "place.json")
    if folders and not os.path.exists(page):
        with _in_cache():
            os.makedirs(cache_root(), mode=0o700, exist_ok=True)
            os.makedirs(mirror, exist_ok=True)
            write_json(page, {"url": url})
    return folders


@contextmanager
def _in_cache() -> Iterator[None]:
    """Report what cannot be written into the cache. A file that is gone is not such an error: readers list again."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as err:
        raise RemoteError(
            f"the cache of remote runs, {cache_root()}, cannot be written: {err.strerror or err}. Set "
            "ROLLBOOK_CACHE to a folder of yours on a disk with room"
        ) from None


def address_of(folder: str | os.PathLike[str]) -> tuple[str, str]:
    """(url of the remote, <project>/<run>) of a view."""
    mirror, run, _ = _split(os.path.abspath(os.fspath(folder)))
    url = read_json(os.path.join(mirror, "place.json")).get("url")
    if not isinstance(url, str):
        raise NotARun(f"{mirror} does not say which remote it shows; remove it")
    return url, run


def remote_of(url: str) -> Remote:
    """The remote of an address, opened once a process."""
    with _lock:
        if url not in _remotes:
            _remotes[url] = open_remote(url, patience=20.0)
        return _remotes[url]


def _split(path: str) -> tuple[str, str, str]:
    """(mirror, <project>/<run>, path in the run) of a path below the cache."""
    root = cache_root()
    names = path[len(root) + 1 :].split(os.sep)
    if len(names) < 4:
        raise NotARun(f"{path} is not in a run of a remote")
    return os.path.join(root, names[0]), "/".join(names[2:4]), "/".join(names[4:])


# -- bringing views up to date


def freshen(folder: str | os.PathLike[str], *, seconds: float = FRESH_SECONDS) -> bool:
    """Bring a view up to date with the manifests, if the folder is a view. Returns whether anything changed.

    Args:
      seconds: a view that was updated within this time is good enough.
    Raises:
      NotARun: there is no such run. RemoteError: the remote cannot be used; RemoteUnreachable only if nothing of the
        run is cached.
    """
    if not is_view(folder):
        return False
    path = os.path.abspath(os.fspath(folder))
    with _lock:
        if time.monotonic() - _fresh.get(path, -1e9) < seconds and os.path.exists(os.path.join(path, MANIFEST_FILE)):
            return False
        _fresh[path] = time.monotonic()
        try:
            for _ in range(_MOST_TRIES):
                with suppress(_Moved), _in_cache():
                    return _View(path).freshen()
            raise RemoteUnreachable(f"{address_of(path)[0]}: pieces of {path} keep moving; try again")
        except (Away, Unknown, NotShipped, RemoteUnreachable) as err:
            if os.path.exists(os.path.join(path, MANIFEST_FILE)):
                return False  # the remote does not answer: show what is cached
            _fresh.pop(path, None)
            raise RemoteUnreachable(
                f"{message_of(err, address_of(path)[0])}. Nothing of the run is in the cache"
            ) from None
        except BaseException:
            _fresh.pop(path, None)
            raise


class _Moved(Exception):
    """A piece that a manifest named was deleted before it was read: there is a newer manifest."""


class _View:
    """The cached folder of one run, and the facts kept next to it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.mirror, self.run, _ = _split(folder)
        self.url, _ = address_of(folder)
        self.index_path = os.path.join(self.mirror, "index", *self.run.split("/")) + ".json"

    def index(self) -> dict[str, Any]:
        """{"files": {path: [piece, size, footer, sha256, coding, stored]}, …} at the last update."""
        return read_json(self.index_path)

    def freshen(self) -> bool:
        remote = remote_of(self.url)
        run_json, manifests = perform(run_json_and_manifests(f"{self.run}/"), remote)
        if run_json is None:
            raise NotARun(
                f"{self.url}: there is no run {self.run!r}. Look what there is with: rollbook ls --dir "
                f"{pasted(self.url)}"
            )
        before = self.index().get("files") or {}
        files: dict[str, list[Any]] = {path: list(entry) for path, entry in laid_out(manifests).items()}
        seen = max((m.promised_until() for m in manifests.values()), default=0.0)
        new = {path: entry for path, entry in files.items() if before.get(path) != entry or not self._has(path)}
        self._fetch_small(remote, new, files)
        for path, entry in new.items():
            if not _is_eager(path, int(entry[1])):
                self._make_hole(path, int(entry[1]))
        self._write("data/writers.json", joined_writers(remote, self.run, manifests))
        self._write(MANIFEST_FILE, run_json.data)
        os.makedirs(os.path.join(self.folder, RunFile.KEEPER), exist_ok=True)
        beat = heartbeat_path(self.folder)
        if not os.path.exists(beat):
            self._write(os.path.relpath(beat, self.folder), b"{}")
        seen = seen or run_json.modified or _created(run_json.data)  # a reader's own activity here is no sign of life
        for name in (beat, os.path.join(self.folder, MANIFEST_FILE)):
            os.utime(name, (seen, seen))
        os.makedirs(os.path.dirname(self.index_path), exist_ok=True)
        if new or files != before:
            write_json(self.index_path, {"files": files, "origins": sorted(manifests)})
        for path in before.keys() - files.keys():
            if path not in (MANIFEST_FILE, "data/writers.json"):
                self._remove(path)
        return bool(new) or files.keys() != before.keys()

    def path(self, relative: str) -> str:
        return os.path.join(self.folder, *relative.split("/"))

    def _has(self, relative: str) -> bool:
        return os.path.exists(self.path(relative))

    def _write(self, relative: str, data: bytes | None) -> None:
        if data is None:
            return
        path = self.path(relative)
        try:
            with open(path, "rb") as file:
                if file.read() == data:
                    return
        except OSError:
            pass
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        with open(temporary, "wb") as whole:
            whole.write(data)
        os.replace(temporary, path)

    def _make_hole(self, relative: str, size: int) -> None:
        """A file of the right size without any content yet."""
        if not _is_lazy(relative):
            self._remove(relative)
            return
        path = self.path(relative)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.makedirs(os.path.dirname(_map_path(path)), exist_ok=True)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        with open(temporary, "wb") as file:
            file.truncate(size)
        inode = os.stat(temporary).st_ino
        with open(f"{_map_path(path)}.new", "w", encoding="ascii") as file:
            file.write(f"{inode}\n")
        os.replace(temporary, path)
        os.replace(f"{_map_path(path)}.new", _map_path(path))

    def _remove(self, relative: str) -> None:
        for path in (self.path(relative), _map_path(self.path(relative))):
            try:
                os.unlink(path)
            except OSError:
                continue

    def _fetch_small(self, remote: Remote, new: dict[str, list[Any]], files: dict[str, list[Any]]) -> None:
        """Fetch what is read whole: the journal, run.json, and small files."""
        wanted = [path for path, entry in new.items() if _is_eager(path, int(entry[1]))]
        answers = perform(_fetch([f"{self.run}/{new[path][0]}" for path in wanted]), remote)
        for path, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, Missing):
                raise _Moved
            if isinstance(answer, Exception):
                raise answer
            self._write(path, decoded(answer.data, files[path]))
            try:
                os.unlink(_map_path(self.path(path)))
            except OSError:
                pass


def run_json_and_manifests(base: str) -> Steps[tuple[Stored | None, dict[str, RemoteManifest]]]:
    """(run.json, the manifests by origin)."""
    manifests = yield from Commits(base, "").origins()
    try:
        run_json = yield Get(f"{base}{MANIFEST_FILE}")
    except Missing:
        return None, manifests
    return run_json, manifests


def _created(run_json: bytes) -> float:
    try:
        created = json.loads(run_json).get("created")
    except (ValueError, AttributeError, RecursionError):
        return 0.0
    return float(created) if isinstance(created, (int, float)) and 0 <= created < 2**33 else 0.0


def _fetch(keys: list[str]) -> Steps[list[Any]]:
    answers: list[object] = (yield [Get(key) for key in keys]) if keys else []
    return answers


def laid_out(manifests: dict[str, RemoteManifest]) -> dict[str, tuple[str, int, int, str, str, int]]:
    """path -> (piece, size, footer, sha256, coding, stored) of all origins together. If two have the same name, the
    home's file wins.

    Files with rows never replace each other: they get other names. Names come from strangers and are checked.
    """
    order = sorted(manifests, key=lambda id: (*_behind_home(manifests[id]), id))
    files: dict[str, tuple[str, int, int, str, str, int]] = {}
    for id in order:
        for path, file in sorted(manifests[id].files.items()):
            if not is_sound(path):
                continue
            target = path
            n = 1
            while file.covers and target in files and files[target][3] != file.sha256:
                folder, _, name = path.rpartition("/")
                part = PartName.parse(name)
                if part is None:
                    target = f"{path}.{n}"
                else:
                    digits = int(hashlib.blake2b(f"{id}{n}".encode(), digest_size=4).hexdigest(), 16)
                    target = f"{folder}/merged.{1_000_000 + digits}.parquet"
                n += 1
            files.setdefault(target, (file.piece, file.size, file.footer, file.sha256, file.coding, file.stored))
    return files


def _behind_home(manifest: RemoteManifest) -> tuple[bool, int, int]:
    """Sort key: the run's home first; among several, the one with the most advanced run.json."""
    page = manifest.about.get("page")
    numbers = [n for n in page if type(n) is int] if isinstance(page, list) else []
    attempt, revision = numbers if len(numbers) == 2 else (0, 0)
    return not manifest.about.get("home"), -attempt, -revision


def is_sound(path: str) -> bool:
    """Whether a name from a manifest stays inside the run's folder and is no file of ours."""
    names = path.split("/")
    return (
        bool(path)
        and all(_is_name(name) for name in names)
        and "/".join(names[:2]) != "data/keeper"
        and path != MANIFEST_FILE
    )


_FORBIDDEN = frozenset("\0\\/:")


def _is_name(name: str) -> bool:
    return (
        bool(name)
        and name not in (".", "..")
        and _FORBIDDEN.isdisjoint(name)
        and len(name.encode("utf-8", "replace")) < 250
    )


def decoded(data: bytes, entry: Sequence[Any]) -> bytes:
    """The content of a file from the content of its piece.

    Raises:
      Damaged: it does not match the manifest.
    """
    if entry[4] == "zlib":
        try:
            unpack = zlib.decompressobj()
            data = unpack.decompress(data, int(entry[1]) + 1)
        except zlib.error:
            raise Damaged(f"{entry[0]} cannot be unpacked") from None
    if len(data) != entry[1] or hashlib.sha256(data).hexdigest() != entry[3]:
        raise Damaged(f"{entry[0]} is not what its manifest says: the checksum differs")
    return data


def joined_writers(remote: Remote, run: str, manifests: dict[str, RemoteManifest]) -> bytes | None:
    """data/writers.json of all origins, merged."""
    name = "data/writers.json"
    having = [manifest.files[name] for manifest in manifests.values() if name in manifest.files]
    if len(having) < 2:
        return None
    joined: dict[str, object] = {}
    for file, answer in zip(having, perform(_fetch([f"{run}/{file.piece}" for file in having]), remote), strict=True):
        if isinstance(answer, Exception):
            return None
        try:
            joined.update(json.loads(decoded(answer.data, ("", file.size, 0, file.sha256, file.coding))))
        except (ValueError, RollbookError):
            continue
    return json.dumps(joined, sort_keys=True).encode()


def _is_lazy(path: str) -> bool:
    return path.endswith((".parquet", ".pyr"))


def _is_eager(path: str, size: int) -> bool:
    if path.startswith("data/journal/"):
        return True
    if _is_lazy(path):
        return size <= _WHOLE
    return not path.startswith(("ckpt/", "media/", "log/", "data/items/", "data/seen/")) or size <= _WHOLE


# -- parts of files


class _Have:
    """Which bytes of a file are present: disjoint ranges, in order."""

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.ranges: list[tuple[int, int]] = []

    def add(self, start: int, stop: int) -> None:
        merged: list[tuple[int, int]] = []
        for begin, end in sorted([*self.ranges, (start, stop)]):
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        self.ranges = merged

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        left: list[tuple[int, int]] = []
        for begin, end in self.ranges:
            if end <= start or begin >= stop:
                continue
            if begin > start:
                left.append((start, begin))
            start = max(start, end)
        if start < stop:
            left.append((start, stop))
        return left


def ensure(path: str, ranges: Iterable[tuple[int, int]] | None = None, *, footer: bool = False) -> None:
    """Fetch these bytes of a file of a view, or all of it without `ranges`. Does nothing for files that are whole.

    Args:
      footer: also fetch its Parquet footer.
    Raises:
      FileNotFoundError: it has been replaced; list again. RemoteUnreachable: no answer.
    """
    if not is_view(path):
        return
    path = os.path.abspath(path)
    with _lock:
        have = _load_map(path)
        if have is None:
            return
        size = os.stat(path).st_size
        _, _, relative = _split(path)
        view = _View(path[: -len(relative) - 1])
        entry = view.index().get("files", {}).get(relative)
        if entry is None:
            raise FileNotFoundError(f"{path} is not named any more")
        wanted = [(0, size)] if ranges is None and not footer else list(ranges or ())
        if footer:
            wanted.append((max(0, size - (int(entry[2]) or 65536)), size))
        left = sorted(gap for start, stop in wanted for gap in have.missing(max(0, start), min(size, stop)))
        gaps = _near(left)
        if not gaps:
            return
        _get_gaps(view, path, have, entry, gaps)
        trim_if_due(sum(stop - start for start, stop in gaps), keep=path)


def _near(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in fewer ranges: the smallest gaps are fetched too, up to an eighth of what is wanted."""
    joined: list[tuple[int, int]] = []
    for start, stop in ranges:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    budget = max(_JOIN, sum(stop - start for start, stop in joined) // 8)
    closed = set()
    for gap, number in sorted((joined[n + 1][0] - joined[n][1], n) for n in range(len(joined) - 1)):
        budget -= gap
        if budget < 0:
            break
        closed.add(number)
    groups: list[tuple[int, int]] = []
    for number, (start, stop) in enumerate(joined):
        if groups and number - 1 in closed:
            groups[-1] = (groups[-1][0], stop)
        else:
            groups.append((start, stop))
    return groups


def _get_gaps(view: _View, path: str, have: _Have, entry: Sequence[object], gaps: list[tuple[int, int]]) -> None:
    key = f"{view.run}/{entry[0]}"
    remote = remote_of(view.url)
    try:
        if entry[4]:
            data = decoded(remote.get(key).data, entry)
            pieces, gaps = [data], [(0, len(data))]
        else:
            pieces = remote.get_ranges(key, gaps)
    except Missing:
        _fresh.pop(view.folder, None)
        with suppress(_Moved):
            view.freshen()
        raise FileNotFoundError(f"{path} was replaced") from None
    except (Away, Unknown) as err:
        raise RemoteUnreachable(f"{message_of(err, view.url)}. These rows are not in the cache") from None
    with _in_cache(), open(path, "r+b") as file:
        if os.fstat(file.fileno()).st_ino != have.inode:
            raise FileNotFoundError(f"{path} was replaced")
        for (start, stop), data in zip(gaps, pieces, strict=True):
            if len(data) != stop - start:
                raise RemoteUnreachable(f"{view.url}: {key} gave {len(data)} bytes instead of {stop - start}")
            file.seek(start)
            file.write(data)
    with _in_cache(), open(_map_path(path), "a", encoding="ascii") as file:
        file.write("".join(f"{start} {stop}\n" for start, stop in gaps))
    for start, stop in gaps:
        have.add(start, stop)
    _maps[path] = (_stamp(_map_path(path)), have)


def fetch(folder: str | os.PathLike[str], relatives: Iterable[str]) -> None:
    """Fetch these files of a view whole, such as pictures and checkpoints. Unknown files are skipped.

    Raises:
      RemoteUnreachable: no answer. Damaged: a file does not match the manifest.
    """
    if not is_view(folder):
        return
    with _lock:
        view = _View(os.path.abspath(os.fspath(folder)))
        files = view.index().get("files", {})
        for relative in dict.fromkeys(relatives):
            entry = files.get(relative)
            if entry is None or view._has(relative):
                continue
            path = view.path(relative)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            temporary = f"{path}.{os.getpid()}.tmp"
            try:
                remote_of(view.url).get(f"{view.run}/{entry[0]}", temporary)
            except Missing:
                continue
            except (Away, Unknown) as err:
                raise RemoteUnreachable(message_of(err, view.url)) from None
            check_file(temporary, entry)
            os.replace(temporary, path)
            trim_if_due(int(entry[1]), keep=path)


def check_file(path: str, entry: Sequence[object]) -> None:
    """Unpack a fetched piece into a file, and compare its checksum.

    Raises:
      Damaged: it does not match the manifest; the file is removed.
    """
    try:
        if entry[4]:
            with open(path, "rb") as file:
                data = decoded(file.read(), entry)
            with open(path, "wb") as file:
                file.write(data)
            return
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != entry[3]:
                raise Damaged(f"{entry[0]} is not what its manifest says: the checksum differs")
    except Damaged:
        os.unlink(path)
        raise


def has(folder: str | os.PathLike[str], relative: str) -> bool:
    """Whether the run of a view has a file of that name, cached or in its remote."""
    return is_view(folder) and relative in _View(os.path.abspath(os.fspath(folder))).index().get("files", {})


def _map_path(path: str) -> str:
    mirror, run, relative = _split(path)
    return os.path.join(mirror, "maps", *run.split("/"), *relative.split("/")) + ".map"


def _stamp(path: str) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_size, about.st_ino


def _load_map(path: str) -> _Have | None:
    """Which bytes of a file are present; None if it is whole."""
    where = _map_path(path)
    try:
        stamp = _stamp(where)
    except OSError:
        return None
    known = _maps.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    try:
        with open(where, encoding="ascii") as file:
            lines = file.read().split("\n")
        have = _Have(int(lines[0]))
        if os.stat(path).st_ino != have.inode:
            raise FileNotFoundError(f"{path} was replaced")
        for line in lines[1:-1]:
            start, stop = line.split(" ")
            have.add(int(start), int(stop))
    except ValueError:
        raise FileNotFoundError(f"{where} is damaged; the file is fetched again") from None
    _maps[path] = (stamp, have)
    return have


# -- the limit


def trim_if_due(fetched: int, keep: str = "") -> None:
    """Add up what was fetched, and check the limit now and then."""
    global _fetched
    _fetched += fetched
    if _fetched >= min(_TRIM_EVERY, max(1, cache_limit() // 8)):
        _fetched = 0
        trim(keep=keep)


def trim(limit: int | None = None, keep: str = "") -> int:
    """Bring the cache below its limit: the least recently used files that can be fetched again go. Returns the bytes
    freed.

    Args:
      limit: bytes; default: $ROLLBOOK_CACHE_BYTES.
      keep: a file that stays.
    """
    limit = cache_limit() if limit is None else limit
    files: list[tuple[float, int, str]] = []
    total = 0
    for folder, _, names in os.walk(cache_root()):
        for name in names:
            path = os.path.join(folder, name)
            try:
                about = os.stat(path)
            except OSError:
                continue
            size = about.st_blocks * 512 if hasattr(about, "st_blocks") else about.st_size
            total += size
            if size and f"{os.sep}runs{os.sep}" in path and path != keep:
                files.append((max(about.st_atime, about.st_mtime), size, path))
    freed = 0
    for _, size, path in sorted(files):
        if total - freed <= limit:
            break
        try:
            mirror, run, relative = _split(path)
            view = _View(os.path.join(mirror, "runs", *run.split("/")))
            entry = view.index().get("files", {}).get(relative)
            if entry is None or _is_eager(relative, int(entry[1])):
                continue
            view._make_hole(relative, int(entry[1]))
            freed += size
        except (OSError, NotARun):
            continue
    return freed


def forget() -> None:
    """Forget what this process knows of remotes and views; the files stay."""
    with _lock:
        _remotes.clear()
        _fresh.clear()
        _maps.clear()
