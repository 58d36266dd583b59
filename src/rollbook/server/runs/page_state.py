"""What the page needs before anything else, and what it stores: colours and boards."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec

from rollbook.errors import BadInput, RollbookError
from rollbook.formats.foreign import is_laid_out
from rollbook.runs.boards import Board, Boards, of_programs
from rollbook.runs.colours import keep
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import KeysAsk, keys
from rollbook.server.shared.shapes import Answer, Ask, Refused, plain
from rollbook.server.shared.state import ServerContext
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


class BoardsAsk(Ask, kw_only=True):
    """Nothing to say."""


class BoardsAnswer(Answer, kw_only=True):
    """All saved views, by name."""

    boards: list[Board]


class BoardAsk(Ask, kw_only=True):
    """A view to save under a name.

    Attributes:
      first: whether the page opens with it; null: as before.
    """

    board: str
    state: dict[str, Any]
    first: bool | None = None


class BoardName(Ask, kw_only=True):
    """A saved view."""

    board: str


class Deleted(Answer, kw_only=True):
    """It is gone."""

    name: str


def boards_of(context: ServerContext) -> Boards:
    """The boards beside the runs that are shown; of several folders those of the first."""
    return Boards(context.catalogue.roots[0])


def boards(context: ServerContext, _: BoardsAsk) -> BoardsAnswer:
    """All saved views, by name; then what programs put together, where no view of that name is saved."""
    with _refusing():
        saved = boards_of(context).entries()
    names = {board.name for board in saved}
    return BoardsAnswer(boards=[*saved, *(board for board in _of_programs(context) if board.name not in names)])


def _of_programs(context: ServerContext) -> list[Board]:
    rows = [row for row in context.catalogue.snapshot().rows.values() if row.about.get("boards")]
    if not rows:
        return []
    known = keys(context, KeysAsk(runs=[row.key for row in rows[: context.limits.runs]])).keys
    return of_programs((row.about["boards"] for row in rows), [key.key for key in known])


def save(context: ServerContext, ask: BoardAsk) -> Board:
    """Save a view under its name."""
    with _refusing():
        return boards_of(context).keep(ask.board, ask.state, first=ask.first)


def delete(context: ServerContext, ask: BoardName) -> Deleted:
    """Delete a saved view."""
    with _refusing():
        boards_of(context).remove(ask.board)
    return Deleted(name=ask.board)


@contextmanager
def _refusing() -> Iterator[None]:
    """A file that cannot be read or written is refused; a name that cannot be one is the caller's."""
    try:
        yield
    except BadInput:
        raise
    except RollbookError as err:
        raise Refused("unreadable", str(err)) from None


def first_view(context: ServerContext, words: Collection[str] = ()) -> str:
    """The board that the page opens with, as words of its address; "" for none.

    Args:
      words: only these of them; all without.
    """
    first = boards_of(context).first()
    if first is None:
        return ""
    state = {word: said for word, said in first.state.items() if isinstance(said, str) and (not words or word in words)}
    return urlencode({**state, "board": first.name})


def boards_stamp(context: ServerContext) -> int:
    """Changes when the boards change."""
    try:
        return os.stat(boards_of(context).path).st_mtime_ns
    except OSError:
        return 0


ENDPOINTS = [
    Endpoint("PUT", "/api/colors", ColorsAsk, ColorsAnswer, keep_colors, "Keep the colours of some runs", edits=True),
    Endpoint("GET", "/api/hello", HelloAsk, Hello, hello, "What the page has to know first", lane="light"),
    Endpoint("GET", "/api/boards", BoardsAsk, BoardsAnswer, boards, "All saved views"),
    Endpoint("PUT", "/api/boards/{board}", BoardAsk, Board, save, "Save a view under its name", edits=True, large=True),
    Endpoint("DELETE", "/api/boards/{board}", BoardName, Deleted, delete, "Delete a saved view", edits=True),
]
