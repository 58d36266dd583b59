"""From an episode to its video."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollbook.errors import UnknownKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.table_protocols import EpisodeTables

__all__ = ["media_file", "video_of_episode"]


def video_of_episode(book: EpisodeTables, episode: str = "best") -> Path:
    """The video file of an episode that was filmed.

    Args:
      episode: "best" or "worst" (by return, among those that were filmed), "last", or an episode's id.
    Raises:
      UnknownKey: the run has no such video; says what it has.
    """
    films = {
        str(row["episode_id"]): row
        for row in _rows(book.media())
        if row.get("episode_id") and row.get("kind") == "video"
    }
    if not films:
        raise UnknownKey(
            f"{book.project}/{book.name} {book.id} has no episode videos. Record some with "
            "RecordEpisodes(env, scope, video=...) and an environment of render_mode='rgb_array'"
        )
    if episode in films:
        return _file(book, films[episode])
    rows = [row for row in _rows(book.episodes()) if str(row.get("episode_id")) in films]
    if episode == "last" and rows:
        return _file(book, films[str(max(rows, key=lambda row: row["time"])["episode_id"])])
    if episode in ("best", "worst") and rows:
        sign = 1.0 if episode == "best" else -1.0
        chosen = max(rows, key=lambda row: _score(row.get("return"), sign))
        return _file(book, films[str(chosen["episode_id"])])
    raise UnknownKey(
        f"no video of episode {episode!r}; filmed: {', '.join(list(films)[:10])}. Or ask for best, worst, last"
    )


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dicts; times as ns, for Python's own times have none."""
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
    """The file behind a row of `media`, None if it is not there: evicted, not encoded yet, or outside the run."""
    root = Path(book.path).resolve()
    wanted = (root / path).resolve()
    # A film that could not be written in its format has the suffix of another one.
    for candidate in (wanted, *(wanted.with_suffix(suffix) for suffix in (".mp4", ".gif", ".png"))):
        if candidate.is_relative_to(root) and candidate.is_file():  # the path comes from the run: untrusted
            return candidate
    return None
