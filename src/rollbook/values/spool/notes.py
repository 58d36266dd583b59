"""The small files of the spool as types: the description of raw pixels, and the state of encoding.

For the type checker and for readers of the code; not loaded at run time.
"""

from __future__ import annotations

from typing import TypedDict


class PixelsNote(TypedDict):
    """The description file of raw pixels in media/.spool; checked when it is read.

    Attributes:
      path: of the file to create, below the run's folder.
      channels: 1, 3 or 4, one byte each. fps: of a video; 0 for an image.
    """

    format: int
    kind: str
    path: str
    width: int
    height: int
    channels: int
    frames: int
    fps: float


class MediaLedger(TypedDict):
    """The state of encoding a run's images and videos.

    Attributes:
      files, bytes: created here and still present. waiting: in the spool.
      errors: the last five, as text.
    """

    files: int
    bytes: int
    encoded: int
    evicted: int
    evicted_bytes: int
    failed: int
    errors: list[str]
    waiting: int
    keep_files: int
    keep_bytes: int
