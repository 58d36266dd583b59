"""Whether a checkpoint file is whole: the checksums that rollbook's and torch's formats have inside.

Reading a checkpoint takes what wrote it; this takes the standard library and msgspec. `capture.checkpoints.container`
draws the bytes of rollbook's own format.
"""

from __future__ import annotations

import os
import struct
import zlib

from rollbook.errors import Damaged, NewerFormat
from rollbook.system.files import is_folder, open_regular, real_path
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

MAGIC = b"RBKCKP1\n"
VERSION = 1
HEAD = struct.Struct("<8sIIQQ")
HEAD_SIZE = 64
CHUNK = 16 * 1024 * 1024

_ZIP = b"PK\x03\x04"


def damage_of(path: str | os.PathLike[str], kind: str = "") -> str:
    """What is damaged in a checkpoint file; "" if it is whole, or if only its own tool can check it.

    Args:
      path: the file; a folder is not looked into.
      kind: the format in its row: "ckpt" and "torch" have a known beginning.
    """
    real = real_path(path)
    if is_folder(real):
        return ""
    try:
        with open(open_regular(real), "rb") as file:
            begin = file.read(len(MAGIC))
            file.seek(0)
            if begin == MAGIC:
                _check_container(file, "")
            elif begin.startswith(_ZIP):
                return _damage_of_archive(file)
            elif kind in ("ckpt", "torch"):
                return f"it does not begin as a file of this kind: found {begin!r}"
    except ours(Damaged, OSError) as err:
        return str(err)
    except NewerFormat:
        return ""
    return ""


def _of(where: str) -> str:
    return f"{where}: " if where else ""


def meta_of(file: BinaryIO, where: str) -> tuple[bytes, int]:
    """The description of a container's content, and where it begins: everything else is before it.

    Args:
      where: begins the text of an error; "" where readers know which file it is.
    Raises:
      Damaged: the file is cut off, or a checksum differs. NewerFormat: a later rollbook wrote it. OSError: the disk
        fails.
    """
    size = os.fstat(file.fileno()).st_size
    head = file.read(HEAD_SIZE)
    if len(head) < HEAD_SIZE or head[:8] != MAGIC:
        raise Damaged(f"{_of(where)}it is not a checkpoint of rollbook: it does not begin with {MAGIC!r}")
    _, version, crc, meta_at, meta_size = HEAD.unpack_from(head)
    if zlib.crc32(head[: HEAD.size]) != struct.unpack_from("<I", head, HEAD.size)[0]:
        raise Damaged(f"{_of(where)}the head is damaged (checksum differs)")
    if version > VERSION:
        raise NewerFormat(f"{where} has format {version}; this rollbook reads up to {VERSION}. Upgrade rollbook.")
    if meta_at + meta_size != size:
        raise Damaged(f"{_of(where)}it has {size} bytes where {meta_at + meta_size} were written")
    file.seek(meta_at)
    meta = file.read(meta_size)
    if zlib.crc32(meta) != crc:
        raise Damaged(f"{_of(where)}the description of its content is damaged (checksum differs)")
    return meta, meta_at


def _check_container(file: BinaryIO, where: str) -> None:
    import msgspec

    meta, end = meta_of(file, where)
    try:
        parts = msgspec.msgpack.decode(meta)["blobs"]
        spans = [(int(at), int(size), int(crc)) for at, size, crc in parts]
    except ours(msgspec.MsgspecError, ValueError, TypeError, KeyError) as err:
        raise Damaged(f"{_of(where)}its content contradicts itself ({err})") from None
    for number, (at, size, crc) in enumerate(spans):
        if at < HEAD_SIZE or size < 0 or at + size > end:
            raise Damaged(f"{_of(where)}a part is outside the file")
        file.seek(at)
        found = 0
        for start in range(0, size, CHUNK):
            found = zlib.crc32(file.read(min(CHUNK, size - start)), found)
        if found != crc:
            raise Damaged(f"{_of(where)}part {number} is damaged (checksum differs)")


def _damage_of_archive(file: BinaryIO) -> str:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(file) as archive:
            bad = archive.testzip()
    except ours(BadZipFile, ValueError, NotImplementedError, RuntimeError, EOFError, zlib.error) as err:
        return f"the archive cannot be read ({err})"
    return f"its part {bad!r} is damaged (checksum differs)" if bad is not None else ""
