"""The files of a run: lists; pictures and videos as they are; all other files only for saving; tables as CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from rollbook.book.questions import (
    Checkpoints,
    MediaQuestion,
    Rows,
    Text,
    Window,
    axis_values,
    cells_of,
    check_range,
    chosen_rows,
    in_seconds,
    seconds_column,
)
from rollbook.errors import BadInput, Damaged, RollbookError
from rollbook.schema.run_files import is_own
from rollbook.schema.tables import TABLES
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.runs.one_run import Change, changes
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Download, Endpoint, Streamed
from rollbook.server.shared.rows import check_window, default_axis, shown_rows, started
from rollbook.server.shared.shapes import (
    Answer,
    Ask,
    Media,
    Num,
    OfRun,
    Refused,
    Row,
    RunAsk,
    TablePage,
    columns_of,
    plain,
)
from rollbook.server.shared.sql import with_tables
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.health import media_of
from rollbook.system.files import is_regular, path_inside
from rollbook.values.spool.picture_files import PNG_SIGNATURE


class FileEntry(msgspec.Struct, kw_only=True):
    """A file of a run."""

    path: str
    bytes: int
    modified: float
    kind: Literal["checkpoint", "config", "log", "media", "data", "other"]


class FilesAnswer(Answer, kw_only=True):
    """The files of a run and its checkpoints.

    Attributes:
      files: those that people use, without those that only rollbook reads.
      bytes: of all files; truncated: more files than are listed.
    """

    files: list[FileEntry]
    checkpoints: list[Row]
    bytes: int
    truncated: bool


class FileAsk(OfRun, kw_only=True):
    """A file by its path inside the run."""

    path: str


MediaAsk = shape_of_one(MediaQuestion, defaults={"limit": 100})


class MediaAnswer(Answer, kw_only=True):
    """A window of the pictures and videos."""

    total: int
    keys: list[str]
    media: list[Media]


RowsAsk = shape_of_one(Rows, defaults={"limit": 100})
CheckpointsAsk = shape_of_one(Checkpoints, defaults={"limit": 100})


class ConfigAttempt(msgspec.Struct, kw_only=True):
    """What one attempt of a run was started with, and what that changed."""

    n: int
    started: float | None
    config: dict[str, Any]
    changes: list[Change]
    git: dict[str, Any] | None
    packages: dict[str, Any] | None


class ConfigAnswer(Answer, kw_only=True):
    """The configuration of each attempt, oldest first."""

    attempts: list[ConfigAttempt]


class PatchAnswer(Answer, kw_only=True):
    """The uncommitted changes of the program's code when the newest attempt began.

    Attributes:
      text: as `git diff` prints them, secrets hidden; "" if there were none.
      file: of the run that has them. left_out: files that did not fit. untracked: names that git does not know, and
        files_untracked, how many there are.
    """

    text: str
    file: str
    left_out: list[str]
    untracked: list[str]
    files_untracked: int


class TextLine(msgspec.Struct, kw_only=True):
    """A logged text or note."""

    time: float | None
    key: str
    text: str
    x: Num
    attempt: int | None = None


TextAsk = shape_of_one(Text, defaults={"limit": 200})


class TextAnswer(Answer, kw_only=True):
    """A window of the texts."""

    total: int
    keys: list[str]
    rows: list[TextLine]


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
    "image/png": (PNG_SIGNATURE,),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "video/webm": (b"\x1aE\xdf\xa3",),
}


def files(context: ServerContext, ask: RunAsk) -> FilesAnswer:
    """The files of a run and its checkpoints."""
    row = context.row(ask.run)
    root = os.path.realpath(row.folder)
    entries: list[FileEntry] = []
    total = listed = 0
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
            if is_own(inside) or not is_regular(path):
                continue
            listed += 1
            if listed <= _MOST_FILES:
                entries.append(
                    FileEntry(path=plain(inside), bytes=stat.st_size, modified=stat.st_mtime, kind=_kind(inside))
                )
    table = chosen_rows(Checkpoints(everything=True), KeptRun(context, row)).table
    hidden = [name for name in ("positions", "state") if name in table.column_names]
    positions = axis_values(table, default_axis(context, row), started(row))
    return FilesAnswer(
        files=entries,
        checkpoints=list(reversed(shown_rows(table.drop_columns(hidden), positions))),
        bytes=total,
        truncated=listed > _MOST_FILES,
    )


def patch(context: ServerContext, ask: RunAsk) -> PatchAnswer:
    """The uncommitted changes of the program's code."""
    with context.book(context.row(ask.run)) as book:
        text, git = book.patch(), book.info.git or {}

    def names(field: str) -> list[str]:
        given = git.get(field)
        return [plain(str(name)) for name in given] if isinstance(given, list) else []

    unknown = git.get("files_untracked")
    return PatchAnswer(
        text=str(plain(text, None)),
        file=plain(str(git.get("patch") or "")),
        left_out=names("left_out"),
        untracked=names("untracked"),
        files_untracked=unknown if type(unknown) is int else 0,
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
        return path_inside(folder, os.path.join(*parts))
    except (OSError, Damaged, ValueError):
        raise Refused(
            "not_found", f"the run has no file {path!r:.100}", "It may have been evicted, or not be encoded yet."
        ) from None


def media_bytes(context: ServerContext, ask: FileAsk) -> Download:
    """A picture or video as it is; other files only for saving."""
    path = inside(context.row(ask.run).folder, ask.path)
    kind = _SHOWN.get(os.path.splitext(path)[1].lower())
    if kind is None or not _is_what_it_says(path, kind):
        return Download(path, "application/octet-stream", attachment=True)
    return Download(path, kind, attachment=False)


def is_shown(path: str) -> bool:
    """Whether a file is a picture or video that a browser may show."""
    kind = _SHOWN.get(os.path.splitext(path)[1].lower())
    return kind is not None and _is_what_it_says(path, kind)


def _is_what_it_says(path: str, kind: str) -> bool:
    with open(path, "rb") as file:
        head = file.read(12)
    if kind == "video/mp4":
        return head[4:8] == b"ftyp"
    return head.startswith(_MAGIC[kind])


def file_bytes(context: ServerContext, ask: FileAsk) -> Download:
    """Any file of a run, for saving; never shown."""
    return Download(inside(context.row(ask.run).folder, ask.path), "application/octet-stream", attachment=True)


def media(context: ServerContext, ask: OfRun) -> MediaAnswer:
    """A window of the pictures and videos."""
    question, row = of_one_run(ask, MediaQuestion), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rows(question, KeptRun(context, row), counted=True)
    return MediaAnswer(
        total=page.matched,
        keys=_keys(context, row, "media"),
        media=media_of(context, row, page.table, default_axis(context, row)),
    )


def text(context: ServerContext, ask: OfRun) -> TextAnswer:
    """A window of the texts."""
    question, row = of_one_run(ask, Text), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rows(question, KeptRun(context, row), counted=True)
    positions = axis_values(page.table, default_axis(context, row), started(row))
    times = seconds_column(page.table)
    return TextAnswer(
        total=page.matched,
        keys=_keys(context, row, "text"),
        rows=[
            TextLine(
                time=float(times[n]),
                key=plain(str(cells.get("key") or "")),
                text=plain(str(cells.get("text") or "")[:20_000]),
                x=float(positions[n]) if positions[n] == positions[n] else None,
                attempt=cells.get("attempt"),
            )
            for n, cells in enumerate(cells_of(page.table))
        ],
    )


def _keys(context: ServerContext, row: RunRow, table: str) -> list[str]:
    """The keys of a table's rows."""
    query = f"select distinct key from {table} where key is not null order by key limit {_MOST_KEYS}"
    keys = with_tables(context, row, [table], "effective", lambda db: db.table(query))
    return [plain(str(key)) for key in keys["key"].to_pylist()]


def config(context: ServerContext, ask: RunAsk) -> ConfigAnswer:
    """The settings with which each attempt of a run was started."""
    row = context.row(ask.run)
    with context.book(row) as book:
        entries = book.attempts
        whole = book.config
    attempts: list[ConfigAttempt] = []
    before: dict[int, dict[str, object]] = {}
    for entry in sorted((e for e in entries if type(e.get("n")) is int), key=lambda e: int(e["n"])):
        attempt_config = entry.get("config")
        own: dict[str, object] = attempt_config if isinstance(attempt_config, dict) else whole
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


def rows(context: ServerContext, ask: OfRun) -> TablePage:
    """A window of any table, unchanged."""
    return _window(context, ask, of_one_run(ask, Rows))


def checkpoints(context: ServerContext, ask: OfRun) -> TablePage:
    """A window of the checkpoints."""
    return _window(context, ask, of_one_run(ask, Checkpoints))


def _window(context: ServerContext, ask: OfRun, question: Window) -> TablePage:
    row = context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rows(question, KeptRun(context, row), counted=True)
    return TablePage(
        total=page.total,
        matched=page.matched,
        offset=question.offset,
        columns=columns_of(page.table),
        rows=shown_rows(page.table),
    )


class CsvAsk(Ask, kw_only=True):
    """Rows of a table as CSV.

    Attributes:
      run, key: repeated; key only for metrics.
      table: which table.
    """

    run: list[str]
    key: list[str] = []
    x: str | None = None
    start: float | None = None
    stop: float | None = None
    table: str = "metrics"


_ROWS_A_PIECE = 2_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_csv(context: ServerContext, ask: CsvAsk) -> Streamed:
    """Rows of a table of some runs as CSV; times in unix seconds."""
    check_range(ask.start, ask.stop)
    if ask.table not in TABLES:
        raise BadInput(f"table={ask.table!r:.60}: choose one of {', '.join(TABLES)}")
    rows = context.rows(ask.run)
    name = f"{ask.table}-{rows[0].key if len(rows) == 1 else f'{len(rows)}-runs'}.csv"
    return Streamed("text/csv; charset=utf-8", _pieces(context, rows, ask), name)


def _pieces(context: ServerContext, rows: Sequence[RunRow], ask: CsvAsk) -> Iterator[bytes]:
    header: list[str] | None = None
    for row in rows:
        try:
            with context.book(row) as book:
                if ask.table == "metrics":
                    shift = started(row) if ask.x == "relative" else 0.0
                    x = "time" if ask.x in ("time", "relative") else ask.x
                    start = None if ask.start is None else ask.start + shift
                    stop = None if ask.stop is None else ask.stop + shift
                    known = set(book.keys()) | set(book.canonical())
                    keys = [key for key in ask.key if key in known]
                    if ask.key and not keys:
                        continue
                    table = book.metrics(keys or None, x=x, start=start, stop=stop)
                else:
                    table = book.table(ask.table)
        except RollbookError as err:
            yield _line([f"# {row.key}: {err}"])
            continue
        table = in_seconds(table)
        own = ["run", "name", "seed", *table.column_names]
        if own != header:
            header = own
            yield _line(own)
        constants = [row.key, str(row.about.get("name") or ""), row.about.get("seed")]
        for first in range(0, table.num_rows, _ROWS_A_PIECE):
            part = table.slice(first, _ROWS_A_PIECE)
            columns = [part.column(n).to_pylist() for n in range(part.num_columns)]
            yield b"".join(_line([*constants, *cells]) for cells in zip(*columns, strict=True))


def _line(cells: Sequence[object]) -> bytes:
    """One line. A text that a spreadsheet would take for a formula is marked as text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return out.getvalue().encode("utf-8", "replace")


def _cell(cell: object) -> object:
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return "'" + cell
    return "" if cell is None else cell


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/files", RunAsk, FilesAnswer, files, "The files of a run and its checkpoints"),
    Endpoint("GET", "/api/runs/{run}/patch", RunAsk, PatchAnswer, patch, "The uncommitted changes of its code"),
    Endpoint("POST", "/api/runs/{run}/media", MediaAsk, MediaAnswer, media, "A window of the pictures and videos"),
    Endpoint("POST", "/api/runs/{run}/text", TextAsk, TextAnswer, text, "A window of the texts"),
    Endpoint("GET", "/api/runs/{run}/config", RunAsk, ConfigAnswer, config, "What each attempt was started with"),
    Endpoint(
        "POST",
        "/api/runs/{run}/checkpoints",
        CheckpointsAsk,
        TablePage,
        checkpoints,
        "A window of the checkpoints, one row each",
        lane="question",
    ),
    Endpoint("POST", "/api/runs/{run}/rows", RowsAsk, TablePage, rows, "A window of any table", lane="question"),
    Endpoint(
        "GET",
        "/media/{run}/{path:path}",
        FileAsk,
        "application/octet-stream",
        media_bytes,
        "A picture or video as it is",
    ),
    Endpoint(
        "GET",
        "/files/{run}/{path:path}",
        FileAsk,
        "application/octet-stream",
        file_bytes,
        "Any file of a run, to be saved",
    ),
    Endpoint("GET", "/api/export.csv", CsvAsk, "text/csv", export_csv, "Rows of a table of some runs as CSV"),
]
