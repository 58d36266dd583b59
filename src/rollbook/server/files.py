"""The files of a run: lists; pictures and films as they are; all other files only for saving."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rollbook.errors import UnknownKey
from rollbook.ground.run_files import table_names
from rollbook.ground.tables import TABLES
from rollbook.server.alerts import media_of
from rollbook.server.cells import cells_of, columns_of, plain
from rollbook.server.endpoint import Download, Endpoint
from rollbook.server.locked_sql import Locked, in_time, quoted, with_tables
from rollbook.server.one_run import changes
from rollbook.server.refusals import Refused
from rollbook.server.rows import axis_values, default_axis, seconds_column, shown_rows, table_of
from rollbook.server.schemas.common import TablePage
from rollbook.server.schemas.files import (
    ConfigAnswer,
    ConfigAttempt,
    FileAsk,
    FileEntry,
    FilesAnswer,
    MediaAnswer,
    MediaAsk,
    RunTableAsk,
)
from rollbook.server.schemas.logs import TextAnswer, TextAsk, TextLine
from rollbook.server.schemas.runs import RunAsk
from rollbook.server.series import started
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "is_shown"]

_MOST_WORDS = 12
_MOST_KEYS = 1_000
_MOST_FILES = 2_000
_SHOWN = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
"""What a browser may show of a run: only types that it cannot execute. SVG and HTML are only ever saved."""

_MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "video/webm": (b"\x1aE\xdf\xa3",),
}


def files(hall: Hall, ask: RunAsk) -> FilesAnswer:
    """The files of a run and its checkpoints."""
    row = hall.row(ask.run)
    root = os.path.realpath(row.folder)
    entries: list[FileEntry] = []
    total = 0
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not os.path.islink(os.path.join(here, name)))
        for name in sorted(names):
            path = os.path.join(here, name)
            try:
                stat = os.lstat(path)
            except OSError:
                continue
            total += stat.st_size
            inside = os.path.relpath(path, root).replace(os.sep, "/")
            if len(entries) < _MOST_FILES and not os.path.islink(path):
                entries.append(
                    FileEntry(path=plain(inside), bytes=stat.st_size, modified=stat.st_mtime, kind=_kind(inside))
                )
    table = table_of(hall, row, "checkpoints")
    hidden = [name for name in ("positions", "state") if name in table.column_names]
    places = axis_values(table, default_axis(hall, row), started(row))
    return FilesAnswer(
        files=entries,
        checkpoints=list(reversed(shown_rows(table.drop_columns(hidden), places))),
        bytes=total,
        truncated=len(entries) >= _MOST_FILES,
    )


def _kind(path: str) -> Any:
    name = os.path.basename(path)
    if path.startswith(("ckpt/", "checkpoints/")) or name.endswith(
        (".pt", ".pth", ".pth.tar", ".ckpt", ".safetensors")
    ):
        return "checkpoint"
    if path.startswith("data/"):
        return "data"
    if path.startswith("media/"):
        return "media"
    if path.startswith(("log/", "logs/")) or name.endswith((".log", ".txt")):
        return "log"
    return "config" if name.endswith((".py", ".json", ".yaml", ".yml", ".toml", ".diff", ".patch")) else "other"


def inside(folder: str, path: str) -> str:
    """A file of a run by its path inside it.

    Raises:
      Refused: there is none, or the path leads out of the run.
    """
    root = os.path.realpath(folder)
    parts = path.split("/")
    if (
        not path
        or "\0" in path
        or "\\" in path
        or any(part in ("", ".", "..") for part in parts)
        or os.path.isabs(path)
    ):
        raise Refused("not_found", f"the run has no file {path!r:.100}")
    try:
        real = os.path.realpath(os.path.join(root, *parts))
    except (OSError, ValueError):
        raise Refused("not_found", f"the run has no file {path!r:.100}") from None
    if not real.startswith(root + os.sep) or not os.path.isfile(real):
        raise Refused(
            "not_found", f"the run has no file {path!r:.100}", "It may have been evicted, or not be encoded yet."
        )
    return real


def media_bytes(hall: Hall, ask: FileAsk) -> Download:
    """A picture or film as it is; other files only for saving."""
    path = inside(hall.row(ask.run).folder, ask.path)
    kind = _SHOWN.get(os.path.splitext(path)[1].lower())
    if kind is None or not _is_what_it_says(path, kind):
        return Download(path, "application/octet-stream", attachment=True)
    return Download(path, kind, attachment=False)


def is_shown(path: str) -> bool:
    """Whether a file is a picture or film that a browser may show."""
    kind = _SHOWN.get(os.path.splitext(path)[1].lower())
    return kind is not None and _is_what_it_says(path, kind)


def _is_what_it_says(path: str, kind: str) -> bool:
    with open(path, "rb") as file:
        head = file.read(12)
    if kind == "video/mp4":
        return head[4:8] == b"ftyp"
    return head.startswith(_MAGIC[kind])


def file_bytes(hall: Hall, ask: FileAsk) -> Download:
    """Any file of a run, for saving; never shown."""
    return Download(inside(hall.row(ask.run).folder, ask.path), "application/octet-stream", attachment=True)


def media(hall: Hall, ask: MediaAsk) -> MediaAnswer:
    """A window of the pictures and films, newest first."""
    _check_window(hall, ask.offset, ask.limit)
    row = hall.row(ask.run)

    def work(db: Locked) -> tuple[int, list[str], pa.Table]:
        return _newest(db, "media", {"key": ask.key, "kind": ask.kind}, (), ask.offset, ask.limit)

    total, keys, picked = with_tables(hall, row, ["media"], "effective", work)
    return MediaAnswer(
        total=total,
        keys=keys,
        media=media_of(hall, row, picked, ask.x or default_axis(hall, row)),
    )


def text(hall: Hall, ask: TextAsk) -> TextAnswer:
    """A window of the texts, newest first."""
    _check_window(hall, ask.offset, ask.limit)
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    words = (ask.search or "").lower().split()
    if len(words) > _MOST_WORDS:
        raise Refused("too_large", f"{len(words)} words to search for; at most {_MOST_WORDS}")

    def work(db: Locked) -> tuple[int, list[str], pa.Table]:
        return _newest(db, "text", {"key": ask.key}, words, ask.offset, ask.limit)

    total, keys, rows_of_text = with_tables(hall, row, ["text"], "effective", work)
    places, times = axis_values(rows_of_text, x, started(row)), seconds_column(rows_of_text)
    return TextAnswer(
        total=total,
        keys=keys,
        rows=[
            TextLine(
                time=float(times[n]),
                key=plain(str(cells.get("key") or "")),
                text=plain(str(cells.get("text") or "")[:20_000]),
                x=float(places[n]) if places[n] == places[n] else None,
                attempt=cells.get("attempt"),
            )
            for n, cells in enumerate(cells_of(rows_of_text))
        ],
    )


def _newest(
    db: Locked, name: str, equal: dict[str, str | None], words: Sequence[str], offset: int, limit: int
) -> tuple[int, list[str], pa.Table]:
    """(how many rows fit, the keys of the table, a window of those that fit, newest first)."""
    table, columns = quoted(name), db.columns[name]
    if "key" not in columns:
        return 0, [], db.table(f"select * from {table} limit 0")
    asked = [(column, said) for column, said in equal.items() if said is not None]
    conditions = [f"{quoted(column)} = ?" for column, _ in asked] + ["contains(lower(text), ?)" for _ in words]
    values = [*(said for _, said in asked), *words]
    where = f" where {' and '.join(conditions)}" if conditions else ""
    total = int(db.table(f"select count(*) as n from {table}{where}", values)["n"][0].as_py())
    keys = db.table(f"select distinct key from {table} where key is not null order by key limit {_MOST_KEYS}")
    window = f"select * from {table}{where}{in_time(columns, 'desc')} limit {limit} offset {offset}"
    return total, [plain(str(key)) for key in keys["key"].to_pylist()], db.table(window, values)


def config(hall: Hall, ask: RunAsk) -> ConfigAnswer:
    """The settings with which each attempt of a run was started."""
    row = hall.row(ask.run)
    with hall.book(row) as book:
        entries = book.attempts
        whole = book.config
    attempts: list[ConfigAttempt] = []
    before: dict[int, dict[str, object]] = {}
    for entry in sorted((e for e in entries if type(e.get("n")) is int), key=lambda e: int(e["n"])):
        said = entry.get("config")
        own: dict[str, object] = said if isinstance(said, dict) else whole
        parent = before.get(entry.get("parent") or 0)
        started_at = entry.get("started")
        attempts.append(
            ConfigAttempt(
                n=entry["n"],
                started=float(started_at) if isinstance(started_at, (int, float)) else None,
                config=plain(own),
                changes=changes(parent, own) if parent is not None else [],
                git=plain(entry["git"]) if isinstance(entry.get("git"), dict) else None,
                packages=plain(entry["packages"]) if isinstance(entry.get("packages"), dict) else None,
            )
        )
        before[entry["n"]] = own
    return ConfigAnswer(attempts=attempts)


def any_table(hall: Hall, ask: RunTableAsk) -> TablePage:
    """A window of any table except metrics, unchanged."""
    _check_window(hall, ask.offset, ask.limit)
    row = hall.row(ask.run)
    if ask.table == "metrics":
        raise Refused("bad_input", "the table metrics is asked for as curves", "POST api/series, or POST api/sql.")

    def work(db: Locked) -> tuple[int, pa.Table]:
        table = quoted(ask.table)
        n = int(db.table(f"select count(*) as n from {table}")["n"][0].as_py())
        window = f"select * from {table}{in_time(db.columns[ask.table])} limit {ask.limit} offset {ask.offset}"
        return n, db.table(window)

    if ask.table not in (*TABLES, *table_names(row.folder)):
        raise UnknownKey(f"the run has no table {ask.table!r:.80}")
    n, part = with_tables(hall, row, [ask.table], ask.attempts, work)
    return TablePage(total=n, matched=n, offset=ask.offset, columns=columns_of(part), rows=shown_rows(part))


def _check_window(hall: Hall, offset: int, limit: int) -> None:
    if offset < 0 or not 0 <= limit <= hall.limits.rows:
        raise Refused("too_large", f"offset={offset}, limit={limit}: a window has 0 to {hall.limits.rows:,} rows")


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/files", RunAsk, FilesAnswer, files, "The files of a run and its checkpoints"),
    Endpoint("GET", "/api/runs/{run}/media", MediaAsk, MediaAnswer, media, "A window of the pictures and films"),
    Endpoint("GET", "/api/runs/{run}/text", TextAsk, TextAnswer, text, "A window of the texts"),
    Endpoint("GET", "/api/runs/{run}/config", RunAsk, ConfigAnswer, config, "What each life of a run was started with"),
    Endpoint("GET", "/api/runs/{run}/table/{table}", RunTableAsk, TablePage, any_table, "A window of any table"),
    Endpoint(
        "GET",
        "/media/{run}/{path:path}",
        FileAsk,
        "application/octet-stream",
        media_bytes,
        "A picture or film as it is",
    ),
    Endpoint(
        "GET",
        "/files/{run}/{path:path}",
        FileAsk,
        "application/octet-stream",
        file_bytes,
        "Any file of a run, to be saved",
    ),
]
