"""Boards: saved views, in a file next to the runs."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import msgspec

from rollbook.ground.files import replacing
from rollbook.server.endpoint import Endpoint
from rollbook.server.refusals import Refused
from rollbook.server.schemas.common import Answer, Ask
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "boards_stamp"]

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


def boards(hall: Hall, _: BoardsAsk) -> BoardsAnswer:
    """All saved views, by name."""
    boards_by_name = _read(hall)
    return BoardsAnswer(boards=[boards_by_name[name] for name in sorted(boards_by_name, key=str.casefold)])


def save(hall: Hall, ask: BoardAsk) -> Board:
    """Save a view under its name."""
    if not ask.board.strip() or len(ask.board) > 120 or not ask.board.isprintable():
        raise Refused("bad_input", f"{ask.board!r:.60} cannot be the name of a board", "1 to 120 printable characters.")
    with _lock:
        boards = _read(hall)
        boards[ask.board] = Board(name=ask.board, state=ask.state, modified=time.time())
        if len(boards) > _MOST:
            raise Refused("too_large", f"there are {_MOST} boards already", "Delete some.")
        _write(hall, boards)
        return boards[ask.board]


def delete(hall: Hall, ask: BoardName) -> Deleted:
    """Delete a saved view."""
    with _lock:
        boards = _read(hall)
        if ask.board not in boards:
            raise Refused("not_found", f"there is no board {ask.board!r:.120}")
        del boards[ask.board]
        _write(hall, boards)
    return Deleted(name=ask.board)


def boards_path(hall: Hall) -> str:
    """Where boards are kept: next to the runs; for a single run in its parent folder."""
    root = hall.catalogue.roots[0]
    if os.path.isfile(os.path.join(root, "run.json")):
        root = os.path.dirname(root)
    return os.path.join(root, ".rollbook", "boards.json")


def boards_stamp(hall: Hall) -> int:
    """Changes when the boards change."""
    try:
        return os.stat(boards_path(hall)).st_mtime_ns
    except OSError:
        return 0


def _read(hall: Hall) -> dict[str, Board]:
    path = boards_path(hall)
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


def _write(hall: Hall, boards: dict[str, Board]) -> None:
    path = boards_path(hall)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path) as beside, open(beside, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(list[Any](boards.values())), indent=1))
    except OSError as err:
        raise Refused("unreadable", f"{path} cannot be written: {err.strerror or err}") from None


ENDPOINTS = [
    Endpoint("GET", "/api/boards", BoardsAsk, BoardsAnswer, boards, "All saved views"),
    Endpoint("PUT", "/api/boards/{board}", BoardAsk, Board, save, "Save a view under its name", edits=True, large=True),
    Endpoint("DELETE", "/api/boards/{board}", BoardName, Deleted, delete, "Delete a saved view", edits=True),
]
