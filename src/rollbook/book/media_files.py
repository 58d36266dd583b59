"""The files of rows of `media`: their paths, the video of an episode, and pixels that are not encoded yet."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.errors import Damaged, UnknownKey
from rollbook.schema import source
from rollbook.system.files import path_inside
from rollbook.system.guard import tolerating
from rollbook.values.arrow import strings
from rollbook.values.spool.encode import locate, read_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.table_protocols import EpisodeTables


def video_of(book: EpisodeTables, episode: str = "best") -> Path:
    """The video file of an episode.

    Args:
      episode: "best" or "worst" (by return, among the episodes that have a video), "last", or an episode's id.
    Raises:
      UnknownKey: the run has no such video; the message lists what it has.
    """
    videos = {
        str(row["episode_id"]): row
        for row in _rows(book.media())
        if row.get("episode_id") and row.get("kind") == "video"
    }
    if not videos:
        raise UnknownKey(
            f"{book.project}/{book.name} {book.id} has no episode videos.",
            "Record some with RecordEpisodes(env, scope, video=...) and an environment of render_mode='rgb_array'",
        )
    if episode in videos:
        return _file(book, videos[episode])
    rows = [row for row in _rows(book.episodes()) if str(row.get("episode_id")) in videos]
    if episode == "last" and rows:
        return _file(book, videos[str(max(rows, key=lambda row: row["time"])["episode_id"])])
    if episode in ("best", "worst") and rows:
        sign = 1.0 if episode == "best" else -1.0
        chosen = max(rows, key=lambda row: _score(row.get("return"), sign))
        return _file(book, videos[str(chosen["episode_id"])])
    raise UnknownKey(
        f"no video of episode {episode!r}; there are videos of {', '.join(list(videos)[:10])}.",
        "Or ask for best, worst, last",
    )


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dicts, with times as ns, because Python times have none."""
    if "time" in table.column_names:
        times = table["time"].cast(pa.timestamp("ns")).cast(pa.int64())
        table = table.set_column(table.column_names.index("time"), "time", times)
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def _score(value: object, sign: float) -> float:
    return sign * value if isinstance(value, (int, float)) and math.isfinite(value) else -math.inf


def _file(book: EpisodeTables, row: dict[str, object]) -> Path:
    path = media_file(book, str(row["path"]))
    if path is None:
        raise UnknownKey(f"the video {row['path']!r} is not in {book.path}: it was evicted, or not encoded yet")
    return path


def media_file(book: EpisodeTables, path: str) -> Path | None:
    """The file of a row of `media`; None if it was evicted, is not encoded yet, or is outside the run."""
    wanted = Path(path)
    # A video that could not be written in its format has another suffix.
    for candidate in (wanted, *(wanted.with_suffix(suffix) for suffix in (".mp4", ".gif", ".png") if wanted.name)):
        with tolerating(OSError, Damaged):  # the path is from the run: untrusted
            return Path(path_inside(book.path, candidate))
    return None


def with_files(table: pa.Table, folder: str) -> pa.Table:
    """The table with a column `file`: each row's existing file, relative to the run's folder; null if there is none."""
    if "path" not in table.column_names or "file" in table.column_names:
        return table
    root = os.path.realpath(folder)
    source.fetch(folder, [path for path in table["path"].to_pylist() if isinstance(path, str)])
    names: list[str | None] = []
    for path in table["path"].to_pylist():
        located = locate(root, path) if isinstance(path, str) and path else None
        names.append(None if located is None else os.path.relpath(located, root).replace(os.sep, "/"))
    return table.append_column("file", strings(names))


def waiting_pixels(folder: str, path: str) -> npt.NDArray[np.uint8]:
    """See `Book.pixels`."""
    waiting = read_waiting(folder, path)
    if waiting is None:
        located = locate(folder, path)
        where = (
            f"its file is {located}" if located is not None else "it has no file either: evicted, or never a picture"
        )
        raise UnknownKey(f"pixels({path!r}): no raw pixels of it wait in the spool; {where}")
    note, pixels = waiting
    shape = (note["frames"], note["height"], note["width"], note["channels"])
    return np.frombuffer(pixels, dtype=np.uint8).reshape(shape)
