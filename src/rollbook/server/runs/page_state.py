"""What the page needs before anything else, and what it stores: colours and boards."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from rollbook.formats.foreign import is_laid_out
from rollbook.runs.colours import keep
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Refused, plain
from rollbook.server.shared.state import ServerContext
from rollbook.system.files import replacing
from rollbook.system.version import __version__


class HelloAsk(Ask, kw_only=True):
    """Nothing to say."""


class Limits(msgspec.Struct, kw_only=True):
    """How much may be asked for at once."""

    points: int
    rows: int
    runs: int
    series: int


class Hello(Answer, kw_only=True):
    """What the page has to know first.

    Attributes:
      title: a short name for the location of the runs.
      roots: the folders or addresses of the runs.
      runs, live: how many there are, and how many are running.
      writable: whether tags, notes and boards can be changed.
      labels: whether there are runs of other tools, which a person may label.
      edit_token: to be sent as X-Rollbook-Edit with every change.
      only: the run that the server was started for, if it was for one.
      colors: the kept colours of runs: [alone, in a group], from 1; 0: none yet.
    """

    version: str
    server: str
    title: str
    roots: list[str]
    runs: int
    live: int
    writable: bool
    labels: bool
    edit_token: str
    only: str | None
    limits: Limits
    colors: dict[str, list[int]]


class ColorsAsk(Ask, kw_only=True):
    """Colours to keep, from 1 to 12. A colour that is kept already stays, unless a person chose another.

    Attributes:
      alone: run -> its colour when it is drawn alone.
      grouped: run -> the colour of the group that it is drawn in.
      chosen: whether a person chose them.
    """

    alone: dict[str, int] = {}
    grouped: dict[str, int] = {}
    chosen: bool = False


class ColorsAnswer(Answer, kw_only=True):
    """The colours of these runs as they are kept now: [alone, in a group]; 0: none yet."""

    colors: dict[str, list[int]]


def kept_colors(rows: Sequence[RunRow]) -> dict[str, list[int]]:
    """Run -> [its colour alone, in a group], of those that have one."""
    known = keep([row.about for row in rows])
    return {row.key: [*known[row.about["id"]]] for row in rows if row.about["id"] in known}


def keep_colors(context: ServerContext, ask: ColorsAsk) -> ColorsAnswer:
    """Keep the colours of some runs."""
    rows = context.rows([*ask.alone, *ask.grouped])
    alone, grouped = (
        {str(row.about["id"]): colors[row.key] for row in rows if row.key in colors}
        for colors in (ask.alone, ask.grouped)
    )
    try:
        keep([row.about for row in rows], alone, grouped, chosen=ask.chosen)
    except OSError as err:
        raise Refused("unreadable", f"the colours cannot be kept: {err.strerror or err}") from None
    return ColorsAnswer(colors=kept_colors(rows))


def hello(context: ServerContext, _: HelloAsk) -> Hello:
    """What the page has to know first."""
    shot = context.catalogue.snapshot()
    limits = context.limits
    return Hello(
        version=__version__,
        server=context.identity,
        title=context.title,
        roots=[plain(root) for root in context.catalogue.roots],
        runs=len(shot.rows),
        live=shot.live,
        writable=context.settings.writable,
        labels=any(map(is_laid_out, context.catalogue.folders)),
        edit_token=context.settings.edit_token if context.settings.writable else "",
        only=context.only,
        limits=Limits(points=limits.points, rows=limits.rows, runs=limits.runs, series=limits.series),
        colors=kept_colors(list(shot.rows.values())),
    )


_MOST = 500
_LARGEST = 8 << 20
_lock = threading.Lock()


class BoardsAsk(Ask, kw_only=True):
    """Nothing to say."""


class Board(msgspec.Struct, kw_only=True):
    """A saved view.

    Attributes:
      state: whatever the page wants to find again.
    """

    name: str
    state: dict[str, Any]
    modified: float = 0.0


class BoardsAnswer(Answer, kw_only=True):
    """All saved views, by name."""

    boards: list[Board]


class BoardAsk(Ask, kw_only=True):
    """A view to save under a name."""

    board: str
    state: dict[str, Any]


class BoardName(Ask, kw_only=True):
    """A saved view."""

    board: str


class Deleted(Answer, kw_only=True):
    """It is gone."""

    name: str


def boards(context: ServerContext, _: BoardsAsk) -> BoardsAnswer:
    """All saved views, by name."""
    boards_by_name = _read(context)
    return BoardsAnswer(boards=[boards_by_name[name] for name in sorted(boards_by_name, key=str.casefold)])


def save(context: ServerContext, ask: BoardAsk) -> Board:
    """Save a view under its name."""
    if not ask.board.strip() or len(ask.board) > 120 or not ask.board.isprintable():
        raise Refused("bad_input", f"{ask.board!r:.60} cannot be the name of a board", "1 to 120 printable characters.")
    with _lock:
        boards = _read(context)
        boards[ask.board] = Board(name=ask.board, state=ask.state, modified=time.time())
        if len(boards) > _MOST:
            raise Refused("too_large", f"there are {_MOST} boards already", "Delete some.")
        _write(context, boards)
        return boards[ask.board]


def delete(context: ServerContext, ask: BoardName) -> Deleted:
    """Delete a saved view."""
    with _lock:
        boards = _read(context)
        if ask.board not in boards:
            raise Refused("not_found", f"there is no board {ask.board!r:.120}")
        del boards[ask.board]
        _write(context, boards)
    return Deleted(name=ask.board)


def boards_path(context: ServerContext) -> str:
    """Where boards are kept: next to the runs; for a single run in its parent folder."""
    root = context.catalogue.roots[0]
    if os.path.isfile(os.path.join(root, MANIFEST_FILE)):
        root = os.path.dirname(root)
    return os.path.join(root, ".rollbook", "boards.json")


def boards_stamp(context: ServerContext) -> int:
    """Changes when the boards change."""
    try:
        return os.stat(boards_path(context)).st_mtime_ns
    except OSError:
        return 0


def _read(context: ServerContext) -> dict[str, Board]:
    path = boards_path(context)
    try:
        if os.path.getsize(path) > _LARGEST:
            raise Refused("unreadable", f"{path} is larger than {_LARGEST >> 20} MB", "Move it away.")
        with open(path, "rb") as file:
            stored = msgspec.json.decode(file.read(), type=list[Board])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as err:
        raise Refused("unreadable", f"{path} cannot be read: {err}", "Mend it or move it away.") from None
    return {board.name: board for board in stored}


def _write(context: ServerContext, boards: dict[str, Board]) -> None:
    path = boards_path(context)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(list[Any](boards.values())), indent=1))
    except OSError as err:
        raise Refused("unreadable", f"{path} cannot be written: {err.strerror or err}") from None


ENDPOINTS = [
    Endpoint("PUT", "/api/colors", ColorsAsk, ColorsAnswer, keep_colors, "Keep the colours of some runs", edits=True),
    Endpoint("GET", "/api/hello", HelloAsk, Hello, hello, "What the page has to know first", lane="light"),
    Endpoint("GET", "/api/boards", BoardsAsk, BoardsAnswer, boards, "All saved views"),
    Endpoint("PUT", "/api/boards/{board}", BoardAsk, Board, save, "Save a view under its name", edits=True, large=True),
    Endpoint("DELETE", "/api/boards/{board}", BoardName, Deleted, delete, "Delete a saved view", edits=True),
]
