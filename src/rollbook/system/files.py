"""Small files: read only if they are regular, replaced atomically, locked. Standard library only.

    write_json(path, {"phase": "done"})          # readers never see half of it
    read_json(path)                              # {} if it cannot be read

A run folder may come from a stranger: pipes, devices and folders are refused, so that no read waits for them, and
`open_inside` also refuses links that lead out of it.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from contextlib import contextmanager

from rollbook.errors import Damaged
from rollbook.system.guard import is_foreign, ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_thread = threading.local()


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file.

    Raises:
      OSError: it cannot be read, or is a pipe, a device or a folder.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(path, flags)
    try:  # without a file object, which costs as much as the reading of a small file
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{os.fspath(path)} is not a regular file")
        pieces = []
        while piece := os.read(fd, max(status.st_size + 1, 4096)):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file; {} if it cannot be read. Its content is untrusted input."""
    with tolerating(OSError, ValueError, RecursionError) as missed:
        content = json.loads(read_regular(path))
    if missed:
        return {}
    return content if isinstance(content, dict) else {}


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. Never waits for a pipe, keeps a device open, or follows a link.

    Raises:
      FileNotFoundError: it is gone. Damaged: it is not a regular file. OSError: it cannot be opened.
    """
    for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOFOLLOW"):
        flags |= getattr(os, name, 0)
    try:
        fd = os.open(path, flags)
    except OSError as err:
        if not is_foreign(err) and err.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EMLINK):
            raise Damaged(f"{os.fspath(path)} is a link or not a regular file; it is not opened") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Damaged(f"{os.fspath(path)} is not a regular file; it is not opened")
    return fd


def path_inside(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> str:
    """The real path of a regular file of a folder that may come from a stranger, such as a run's.

    Links count if they lead to a file of the same folder.

    Args:
      path: in the folder, or relative to it.
    Raises:
      FileNotFoundError: there is none. Damaged: it leads out of the folder, or is not a regular file.
    """
    top = real_path(folder)
    wanted = os.path.join(top, path)
    try:
        real = os.path.realpath(wanted, strict=True)
        mode = os.lstat(real).st_mode
    except FileNotFoundError:
        raise
    except ours(OSError, ValueError) as err:
        raise Damaged(f"{wanted} is not opened ({err})") from None
    if not real.startswith(top + os.sep):
        raise Damaged(f"{wanted} leads out of {os.fspath(folder)}; it is not opened")
    if not stat.S_ISREG(mode):
        raise Damaged(f"{wanted} is not a regular file; it is not opened")
    return real


def open_inside(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file of a folder that may come from a stranger; see `path_inside`.

    Raises:
      FileNotFoundError: there is none. Damaged: it is none of its own files. OSError: it cannot be opened.
    """
    return open_regular(path_inside(folder, path))


def is_inside(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Whether a file or folder exists below a folder, also with all links resolved."""
    with tolerating(OSError, ValueError):
        return os.path.realpath(path, strict=True).startswith(real_path(folder) + os.sep)
    return False


def _seek_and_read(fd: int, size: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


_pread = getattr(os, "pread", _seek_and_read)


def pread(fd: int, size: int, offset: int) -> bytes:
    """`size` bytes at `offset`, fewer only at the end of the file."""
    data: bytes = _pread(fd, size, offset)
    if len(data) in (size, 0):
        return data
    parts = [data]
    have = len(data)
    while have < size:
        data = _pread(fd, size - have, offset + have)
        if not data:
            break
        parts.append(data)
        have += len(data)
    return b"".join(parts)


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether the path exists. Unlike `os.path.exists`, lets exceptions from outside rollbook pass."""
    return _mode_of(path, os.stat) is not None


def lexists(path: str | os.PathLike[str]) -> bool:
    """Whether the path exists, including a broken link; see `exists`."""
    return _mode_of(path, os.lstat) is not None


def is_link(path: str | os.PathLike[str]) -> bool:
    """Whether it is a symbolic link; see `exists`."""
    return stat.S_ISLNK(_mode_of(path, os.lstat) or 0)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether it is a regular file, or a link to one; see `exists`."""
    return stat.S_ISREG(_mode_of(path, os.stat) or 0)


def is_regular(path: str) -> bool:
    """Whether a path is a regular file itself, not a link to one."""
    with tolerating(OSError):
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether it is a folder, or a link to one; see `exists`."""
    return stat.S_ISDIR(_mode_of(path, os.stat) or 0)


def _mode_of(path: str | os.PathLike[str], look: Callable[[str | os.PathLike[str]], os.stat_result]) -> int | None:
    with tolerating(OSError, ValueError):
        return look(path).st_mode
    return None


def real_path(path: str | os.PathLike[str]) -> str:
    """The path with links resolved; only made absolute if they cannot be resolved. See `exists`."""
    with tolerating(OSError):
        return os.path.realpath(path, strict=True)  # without `strict` it swallows exceptions raised meanwhile
    return os.path.abspath(path)


def on_disk(path: str) -> str:
    """A path or name as this process can give it to the system: in UTF-8, as everywhere else, where the locale's
    encoding has not all of its characters (ASCII, in containers and jobs)."""
    if not path.isascii():
        with tolerating(UnicodeEncodeError):
            os.fsencode(path)
            return path
        return os.fsdecode(path.encode("utf-8", "surrogateescape"))
    return path


def as_text(name: str) -> str:
    """A name that came from the system, as a word of the command or a folder's name: the reverse of `on_disk`."""
    with tolerating(UnicodeError):
        return os.fsencode(name).decode()
    return name


def run_name_of(folder: str | os.PathLike[str]) -> str:
    """What a run in that folder is called: as the folder; in Lightning's `<name>/version_<n>` as the one above, with n
    from 1 on."""
    above, name = os.path.split(os.path.abspath(folder))
    version, number = name[: len("version_")], name[len("version_") :]
    if version != "version_" or not number.isdecimal() or not os.path.basename(above):
        return name
    return os.path.basename(above) + ("" if number == "0" else f"-{name}")


def names_in(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a folder, sorted; empty if it cannot be read."""
    with tolerating(OSError):
        return sorted(os.listdir(folder))
    return []


def own_files(folder: str) -> list[str]:
    """The names of the regular files in a folder, sorted; empty if it is a link or missing."""
    if is_link(folder):
        return []
    with tolerating(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    return []


def make_folders(
    path: str | os.PathLike[str], mode: int = 0o777, *, inside: str | os.PathLike[str] | None = None
) -> None:
    """Create a folder and its parents, unless it exists. Exceptions from outside rollbook pass through.

    Args:
      inside: a folder above `path` that must exist: the run's. A run that was removed does not come back in part,
        however late a keeper, a sealing child or a sink still writes to it.
    Raises:
      OSError: it cannot be created. FileExistsError: something else has this path. FileNotFoundError: `inside` is gone.
    """
    try:
        _make_folder(path, mode)
        return
    except FileNotFoundError as raised:
        above = os.path.dirname(os.path.abspath(path))
        if is_foreign(raised) or above in (os.path.abspath(path), inside and os.path.abspath(inside)):
            raise
    make_folders(above, inside=inside)
    try:
        _make_folder(path, mode)
        return
    except FileNotFoundError as raised:
        if is_foreign(raised):
            raise
    make_folders(above, inside=inside)  # a keeper that finished the run has just removed the empty one
    _make_folder(path, mode)  # /proc raises FileNotFoundError for a folder in it, although /proc is there


def _make_folder(path: str | os.PathLike[str], mode: int) -> None:
    try:
        os.mkdir(path, mode)
    except FileExistsError as raised:
        if is_foreign(raised) or not is_folder(path):
            raise


def remove(path: str | os.PathLike[str]) -> None:
    """Remove a file, if it exists and can be removed."""
    with tolerating(OSError):
        os.unlink(path)


@contextmanager
def replacing(path: str | os.PathLike[str], *, ending: str = ".tmp") -> Iterator[str]:
    """A temporary file next to `path` that replaces it at the end, so that readers never see half of it.

        with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(text)

    If the block raises, the temporary file is removed and the old file stays. Threads and processes may write at once:
    the last one wins.

    Args:
      ending: the end of the name, for libraries that use the file extension.
    Raises:
      OSError: the file could not be renamed to `path`.
    """
    temporary = f"{os.fspath(path)}.{os.urandom(4).hex()}{ending}"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with tolerating(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def loosely() -> Iterator[None]:
    """Inside the block, this thread does not wait for the disk: for data that can be rebuilt, such as a cache."""
    before, _thread.loose = is_loose(), True
    try:
        yield
    finally:
        _thread.loose = before


def is_loose() -> bool:
    """Whether this thread's writes need not survive a power loss; see `loosely`."""
    return getattr(_thread, "loose", False)


def write_json(path: str | os.PathLike[str], data: object, *, durable: bool = False, indent: int | None = None) -> None:
    """Replace a file atomically, so that readers never see half of it; `durable` also survives a power loss.

    Values without a JSON form are stored as their repr. Threads and processes may write at once: the last one wins.

    Raises:
      OSError: no space, no permission. The old file then stays.
    """
    separators = (",", ":") if indent is None else None
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(json.dumps(data, default=repr, indent=indent, separators=separators).encode())
        if durable and not is_loose():
            file.flush()
            os.fsync(file.fileno())
    if durable:
        sync_folder(os.path.dirname(path) or ".")


def replace_file(temporary: str, path: str) -> None:
    """Flush a finished file to disk, rename it to `path`, and flush the folder to disk."""
    fd = os.open(temporary, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not is_loose():
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush a folder's names to disk, if the system can."""
    if is_loose():
        return
    with tolerating(OSError) as missed:  # Windows cannot open folders
        fd = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
    if missed:
        return
    try:
        with tolerating(OSError):  # some network file systems refuse
            os.fsync(fd)
    finally:
        os.close(fd)


def try_lock(fd: int, *, shared: bool = False) -> bool | None:
    """True: locked. False: another process has the lock. None: this system or file system has no locks."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return _try_lock_windows(fd)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except ours(OSError):
        return None
    return True


def is_same_file(fd: int, path: str | os.PathLike[str]) -> bool:
    """Whether a path still has the file of a descriptor: a lock on a file that was removed locks nothing."""
    with tolerating(OSError):
        here, there = os.fstat(fd), os.stat(path)
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    return False


def unlock(fd: int) -> None:
    """Release a lock at once; call it before the descriptor is closed.

    Closing alone releases it later: a lock lasts as long as any copy of the descriptor, and while another thread starts
    a program, the new process has one until the program runs.
    """
    with tolerating(OSError, ModuleNotFoundError):  # no locks on this file system; Windows, where closing is enough
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_UN)


def _try_lock_windows(fd: int) -> bool | None:
    try:
        import msvcrt
    except ModuleNotFoundError:
        return None
    lock: Any = msvcrt
    with tolerating(OSError) as missed:
        os.lseek(fd, 1 << 30, os.SEEK_SET)  # far after the text, which others may read
        lock.locking(fd, lock.LK_NBLCK, 1)
    return not missed


def pasted(path: str | os.PathLike[str]) -> str:
    """A path, an address or a name as one word of a command, to be pasted into a shell."""
    text = os.fspath(path)
    if text and text[0] != "~" and all(each.isascii() and (each.isalnum() or each in "_@%+=:,./-~") for each in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def user_cache() -> str:
    """The user's cache folder of rollbook; it may not exist.

    Create it with mode 0o700: it also stores data of private runs.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(home), "rollbook")
