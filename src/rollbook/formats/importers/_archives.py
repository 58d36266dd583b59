"""Zip archives in which tools keep runs that were never sent; the same files may lie in a folder instead."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    KeyError,
)
"""What a damaged, encrypted or oddly compressed archive raises."""

_LONGEST = 1 << 30
"""A file that says of itself to be longer is not unpacked."""


def holds(path: Path, wanted: set[str]) -> bool:
    """Whether an archive or a folder has files of such names."""
    if path.is_dir():
        return all((path / name).is_file() for name in wanted)
    try:
        with zipfile.ZipFile(path) as archive:
            return wanted <= set(archive.namelist())
    except UNREADABLE:
        return False


def content(path: Path, name: str) -> bytes:
    """A file of an archive or a folder; b"" if there is none.

    Raises:
      One of `UNREADABLE`: the file is damaged.
    """
    if path.is_dir():
        return (path / name).read_bytes() if (path / name).is_file() else b""
    with zipfile.ZipFile(path) as archive:
        if name not in archive.namelist():
            return b""
        if archive.getinfo(name).file_size > _LONGEST:
            raise ValueError(f"{name} has more than {_LONGEST >> 30} GiB")
        return archive.read(name)


def lines(path: Path, name: str) -> Iterator[bytes]:
    """The lines of a file of an archive or a folder, without those that are empty; as many as can be unpacked.

    Raises:
      One of `UNREADABLE`: the file is damaged, behind the lines that were given.
    """
    if path.is_dir():
        yield from (line for line in (path / name).read_bytes().split(b"\n") if line.strip())
        return
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        yield from (line for line in stream if line.strip())


def archives(path: Path, wanted: set[str]) -> list[Path]:
    """The archives at a path, and the folder that the path is, that have files of such names."""
    if path.is_file():
        return [path] if path.suffix == ".zip" and holds(path, wanted) else []
    found = [path] if holds(path, wanted) else []
    with contextlib.suppress(OSError):
        found += [file for file in sorted(path.glob("*.zip")) if file.is_file() and holds(file, wanted)]
    return found
