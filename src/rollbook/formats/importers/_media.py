"""Pictures and videos that another tool stored: rows of the table `media`, and their files in the imported run.

An importer yields such a row with the file's bytes in `content`; the import writes them below the run's `media/`,
unchanged, and the row gets their `path`. The name of the file is a digest of its content, so that a repeated import
finds it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct

from rollbook.protocols import Row
from rollbook.system.files import make_folders, replacing
from rollbook.values.spool.picture_files import PNG_SIGNATURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAGIC = {
    PNG_SIGNATURE: "png",
    b"\xff\xd8\xff": "jpg",
    b"GIF87a": "gif",
    b"GIF89a": "gif",
    b"RIFF": "webp",
}
"""How the formats begin that a page shows."""


def media_row(
    moment: float, clocks: Mapping[str, int], key: str, content: bytes, width: int = 0, height: int = 0
) -> Row | None:
    """A row of `media` for a picture or video; None if its bytes are no PNG, JPEG, GIF or WebP.

    Args:
      content: the encoded bytes, as the tool stored them.
      width, height: in pixels, if the tool stored them.
    """
    suffix = next((suffix for magic, suffix in _MAGIC.items() if content.startswith(magic)), "")
    if not suffix:
        return None
    cells: dict[str, Any] = {"key": key, "kind": "image", "width": width, "height": height, "content": content}
    if suffix == "gif":
        frames, seconds = _frames_of(content)
        if frames > 1:
            cells |= {"kind": "video", "frames": frames, "fps": frames / seconds if seconds else 10.0}
    cells["path"] = f"media/{hashlib.blake2b(content, digest_size=16).hexdigest()}.{suffix}"
    return Row(moment, clocks, cells, table="media")


def filed(row: Row, folder: str | os.PathLike[str]) -> Row:
    """The row without its bytes, which are in the run's folder now.

    Raises:
      OSError: they cannot be written.
    """
    cells: dict[str, Any] = dict(row.values)
    content = cells.pop("content")
    path = os.path.join(folder, *str(cells["path"]).split("/"))
    if not os.path.exists(path):
        make_folders(os.path.dirname(path))
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(content)
    return dataclasses.replace(row, values=cells)


def _frames_of(data: bytes) -> tuple[int, float]:
    """(number of pictures, seconds that they last) of the readable part of a GIF.

    The blocks of a GIF are those of its specification, version 89a: an extension (0x21) or a picture (0x2C), each
    followed by pieces of at most 255 bytes behind their length.
    """
    frames, hundredths = 0, 0
    try:
        at = 13 + _colours(data[10])
        while data[at] != 0x3B:
            if data[at] == 0x2C:
                frames += 1
                at += 11 + _colours(data[at + 9])
            else:
                if data[at + 1] == 0xF9:
                    hundredths += struct.unpack_from("<H", data, at + 4)[0]
                at += 2
            while data[at]:
                at += 1 + data[at]
            at += 1
    except (IndexError, struct.error):
        pass
    return frames, hundredths / 100


def _colours(flags: int) -> int:
    """Bytes of a table of colours; 0 without one."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
