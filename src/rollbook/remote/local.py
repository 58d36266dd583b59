"""A folder as a remote: a disk that other hosts mount, or a test. Conditions hold between processes that share its
locks."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rollbook.errors import NoPermission, RemoteError
from rollbook.remote.steps import Away, ListedObject, Missing, Refused, Stored, Unknown
from rollbook.system.files import sync_folder, try_lock, unlock

_LOCK = ".rollbook-place.lock"


class FolderRemote:
    """See `remote.Remote`. The etag of a file is a digest of its content.

    Args:
      url: its address.
      folder: an absolute path; made when something is put there.
      patience: seconds that a put waits for another process that puts something.
    """

    def __init__(self, url: str, folder: str, patience: float = 40.0) -> None:
        self.url, self._folder, self._patience = url, folder, patience

    def get(self, key: str, into: str = "") -> Stored:
        """See `remote.Remote`."""
        try:
            if into:
                shutil.copyfile(self._path(key), into)
                return Stored(b"", "")
            with open(self._path(key), "rb") as file:
                data, modified = file.read(), os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise Missing(key) from None
        except OSError as err:
            raise self._translated(err, Away) from None
        return Stored(data, _digest(data), modified)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `remote.Remote`."""
        try:
            with open(self._path(key), "rb") as file:
                ranges_read = []
                for start, stop in ranges:
                    file.seek(start)
                    ranges_read.append(file.read(stop - start))
                return ranges_read
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise Missing(key) from None
        except OSError as err:
            raise self._translated(err, Away) from None

    def put(self, key: str, data: Any, *, create: bool = False, etag: str | None = None) -> str:
        """See `remote.Remote`."""
        path = self._path(key)
        temporary = f"{path}.{os.urandom(4).hex()}.tmp"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            is_path = isinstance(data, (str, os.PathLike))
            if is_path:
                shutil.copyfile(data, temporary)
            else:
                with open(temporary, "wb") as file:
                    file.write(data)
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            new = _digest_of(temporary) if is_path else _digest(data)
            with self._alone(create or etag is not None):
                there = os.path.exists(path)
                if (create and there) or (etag is not None and (not there or _digest_of(path) != etag)):
                    raise Refused(key)
                os.replace(temporary, path)
            sync_folder(os.path.dirname(path))
            return new
        except OSError as err:
            raise self._translated(err, Unknown) from None
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)

    def listing(self, prefix: str, known: Sequence[str] = ()) -> Iterator[ListedObject]:
        """See `remote.Remote`."""
        start = self._path(prefix.rpartition("/")[0])
        entries: list[ListedObject] = []
        try:
            for folder, _folders, names in os.walk(start):
                for name in names:
                    path = os.path.join(folder, name)
                    key = os.path.relpath(path, self._folder).replace(os.sep, "/")
                    if not key.startswith(prefix) or name.endswith(".tmp") or name == _LOCK:
                        continue
                    try:
                        about = os.stat(path)
                        entries.append(
                            ListedObject(key, about.st_size, f"{about.st_mtime_ns}-{about.st_ino}", about.st_mtime)
                        )
                    except FileNotFoundError:
                        continue
        except OSError as err:
            raise self._translated(err, Away) from None
        yield from sorted(entries)

    def folders(self, prefix: str) -> list[str]:
        """See `remote.Remote`."""
        try:
            with os.scandir(self._path(prefix)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as err:
            raise self._translated(err, Away) from None

    def delete(self, key: str) -> None:
        """See `remote.Remote`."""
        try:
            os.unlink(self._path(key))
        except FileNotFoundError:
            return
        except OSError as err:
            raise self._translated(err, Unknown) from None

    def _path(self, key: str) -> str:
        if key.startswith("/") or ".." in key.split("/"):
            raise RemoteError(f"{self.url}: the name {key!r} leads out of the remote")
        return os.path.join(self._folder, *key.split("/")) if key else self._folder

    def _translated(self, err: OSError, otherwise: type[Exception]) -> Exception:
        if isinstance(err, PermissionError) or err.errno == errno.EROFS:
            return NoPermission(f"{self.url}: {err.strerror}. This user needs to read and write below it")
        return otherwise(f"{self.url}: {err.strerror or err}. Look at the disk, or try again later")

    @contextmanager
    def _alone(self, wanted: bool) -> Iterator[None]:
        if not wanted:
            yield
            return
        import time

        os.makedirs(self._folder, exist_ok=True)
        fd = os.open(os.path.join(self._folder, _LOCK), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            until = time.monotonic() + self._patience
            while try_lock(fd) is False:
                if time.monotonic() >= until:
                    raise Away(
                        f"{self.url}: another process has locked it for {self._patience:g} seconds. Look for one that "
                        "hangs, or try again later"
                    )
                time.sleep(0.002)
            yield
        finally:
            unlock(fd)
            os.close(fd)


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
