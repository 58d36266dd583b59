"""Boards: views of the page with a name, stored with the runs. The page saves them, and so does `RunSet.boards`.

    <folder of the runs>/.rollbook/boards.json     [{"name", "state", "modified", "first"}, …]

`state` has the words of the page's address: {"pin": "test/return~loss/policy", "x": "env_step", "s": "0.6", …}.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from rollbook.errors import BadInput, RollbookError, did_you_mean
from rollbook.runs.folder_files import FOLDER, alone_at
from rollbook.schema.addresses import is_address
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system.files import replacing
from rollbook.system.texts import amount

T = TypeVar("T")

_MOST = 500
_LARGEST = 8 << 20
_LONGEST_NAME = 120


class Board(msgspec.Struct, kw_only=True):
    """A saved view.

    Attributes:
      state: the words of the page's address.
      modified: when it was saved, in unix seconds.
      first: whether the page opens with it.
      saved: False: its charts are those that the program of a run put together (`add_custom_scalars`).
    """

    name: str
    state: dict[str, Any]
    modified: float = 0.0
    first: bool = False
    saved: bool = True


class Boards:
    """The boards of a folder of runs, which the page lists under "Board".

    Args:
      root: the folder that `rollbook ui` shows, such as "runs".
    Attributes:
      path: the file that holds them; for the folder of a single run, in the folder that contains it.
    """

    def __init__(self, root: str | os.PathLike[str] = "runs") -> None:
        folder = os.fspath(root)
        if os.path.isfile(os.path.join(folder, MANIFEST_FILE)):
            folder = os.path.dirname(os.path.abspath(folder))
        self.path = os.path.join(folder, FOLDER, "boards.json")
        self._is_remote = is_address(root)

    def __repr__(self) -> str:
        return f"<Boards {self.path}: {', '.join(board.name for board in self.entries()) or 'none'}>"

    def entries(self) -> list[Board]:
        """All of them, by name.

        Raises:
          RollbookError: their file cannot be read.
        """
        return sorted(self._by_name().values(), key=lambda board: board.name.casefold())

    def first(self) -> Board | None:
        """The board that the page opens with; None if there is none, or none that can be read."""
        try:
            return next((board for board in self.entries() if board.first), None)
        except RollbookError:
            return None

    def save(
        self,
        name: str,
        charts: str | Sequence[str | Sequence[str]] = (),
        *,
        x: str | None = None,
        smoothing: float = 0.0,
        log: bool = False,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        columns: Sequence[str] = (),
        sort: str | None = None,
        first: bool | None = None,
    ) -> Board:
        """Save a view of the page under a name, as "Save this view" of the page does.

        Args:
          name: of the board; one of the same name is replaced.
          charts: those that stand on top: keys ("test/return"), expressions with signs between blanks
            ("train/return - test/return"), or several keys for one chart (["loss/policy", "loss/value"]).
          x: the x-axis: a clock, "time", "relative", or a key. Default: the runs' own.
          smoothing: 0 (none) to 0.99.
          log: whether y is logarithmic.
          where: the text of the search: words, or a condition as in `RunSet.where`.
          group_by: "config.lr", several of these, "auto" or "none".
          columns: of the table, such as "config.lr" and "last:test/return".
          sort: a column; "-last:test/return" has the highest first.
          first: True: `rollbook ui` opens with this board, and with no other. None: as before.
        Returns:
          The board as it is stored.
        Raises:
          BadInput: the name cannot be one, a chart is neither a key nor an expression, or the runs are in a remote.
          RollbookError: the file cannot be read or written.
        """
        if not 0 <= smoothing <= 0.99:
            raise BadInput(f"smoothing={smoothing!r}: a number from 0 (none) to 0.99")
        every = [charts] if isinstance(charts, str) else charts
        words = {
            "pin": _pinned(every),
            "x": x or "",
            "s": f"{smoothing:g}" if smoothing else "",
            "ylog": "1" if log else "",
            "f": where or "",
            "g": group_by if isinstance(group_by, str) else ",".join(group_by or ()),
            "cols": "~".join(columns),
            "sort": sort or "",
        }
        return self.keep(name, {word: said for word, said in words.items() if said}, first=first)

    def keep(self, name: str, state: dict[str, Any], *, first: bool | None = None) -> Board:
        """Save a view by the words of the page's address.

        Args:
          name: of the board.
          state: the words, such as {"pin": "test/return", "s": "0.6"}.
          first: as in `save`.
        Raises:
          BadInput, RollbookError: as in `save`.
        """
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise BadInput(
                f"{name!r:.60} cannot be the name of a board: it has 1 to {_LONGEST_NAME} printable characters"
            )

        def saved(boards: dict[str, Board]) -> Board:
            opens = first if first is not None else name in boards and boards[name].first
            if opens:
                boards.update({other.name: msgspec.structs.replace(other, first=False) for other in boards.values()})
            boards[name] = Board(name=name, state=state, modified=time.time(), first=opens)
            if len(boards) > _MOST:
                raise BadInput(f"there are {amount(_MOST, 'board')} already.", "Remove some")
            return boards[name]

        return self._changed(saved)

    def remove(self, name: str) -> None:
        """Remove a board.

        Args:
          name: of the board.
        Raises:
          BadInput: there is no such board.
          RollbookError: the file cannot be read or written.
        """

        def removed(boards: dict[str, Board]) -> None:
            if name not in boards:
                raise BadInput(f"there is no board {name!r:.120}.{did_you_mean(name, [*boards])}")
            del boards[name]

        self._changed(removed)

    def _by_name(self) -> dict[str, Board]:
        try:
            if os.path.getsize(self.path) > _LARGEST:
                raise RollbookError(f"{self.path} is larger than {_LARGEST >> 20} MB.", "Move it away")
            with open(self.path, "rb") as file:
                stored = msgspec.json.decode(file.read(), type=list[Board])
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as err:
            raise RollbookError(f"{self.path} cannot be read: {err}.", "Mend it or move it away") from None
        return {board.name: board for board in stored}

    def _changed(self, change: Callable[[dict[str, Board]], T]) -> T:
        """What a change of the boards by name returns; no other process writes them meanwhile."""
        if self._is_remote:
            raise BadInput("the boards of a remote cannot be changed.", "Save them beside the runs")
        try:
            with alone_at(self.path):
                boards = self._by_name()
                answer = change(boards)
                with replacing(self.path) as temporary, open(temporary, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode([*boards.values()]), indent=1))
        except OSError as err:
            raise RollbookError(f"{self.path} cannot be written: {err.strerror or err}") from None
        return answer


def of_programs(layouts: Iterable[object], known: Sequence[str] = ()) -> list[Board]:
    """Boards of the charts that programs put together, by name; what several runs say alike stands there once.

    Args:
      layouts: of each run its field `boards`: name -> lists of keys, or, as in TensorBoard, of regular expressions.
      known: keys, for these.
    """
    boards: dict[str, list[list[str]]] = {}
    for layout in layouts:
        for name, charts in (layout if isinstance(layout, dict) else {}).items():
            fits = 0 < len(name.strip()) <= _LONGEST_NAME and name.isprintable()
            for chart in charts if fits and isinstance(charts, list) else ():
                said = [key for key in chart if isinstance(key, str) and key] if isinstance(chart, list) else []
                keys = [*dict.fromkeys(own for key in said for own in _meant(key, known))][:_MOST_KEYS]
                own = boards.setdefault(name, [])
                if keys and keys not in own and len(own) < _MOST_CHARTS:
                    own.append(keys)
    made = sorted(((name, charts) for name, charts in boards.items() if charts), key=lambda one: one[0].casefold())
    return [Board(name=name, state={"pin": _pinned([*map(_quoted, charts)])}, saved=False) for name, charts in made]


def _meant(key: str, known: Sequence[str]) -> list[str]:
    if key in known or not _PATTERN.search(key) or len(key) > _LONGEST_PATTERN:
        return [key]
    import pyarrow as pa
    import pyarrow.compute as pc

    try:  # RE2: its time is linear, whatever a run's file says
        fits = pc.match_substring_regex(pa.array(known, pa.string()), f"^(?:{key})$").to_pylist()
    except pa.ArrowException:
        return [key]
    return [one for one, does in zip(known, fits, strict=True) if does] or [key]


def _quoted(keys: Sequence[str]) -> list[str]:
    return [f'"{key}"' if '"' not in key else f"`{key}`" for key in keys if '"' not in key or "`" not in key]


def _pinned(charts: Sequence[str | Sequence[str]]) -> str:
    return "~".join(chart_name(chart).replace("%", "%25").replace("~", "%7E") for chart in charts)


_MOST_CHARTS, _MOST_KEYS = 60, 20
"""Of one board of a program, and of one of its charts."""
_PATTERN = re.compile(r"[*+?\[\](|)^$\\{}]")
_LONGEST_PATTERN = 200

_CALLS = "abs exp log log10 sqrt"
_PARTS = re.compile(
    r"\s*(?:"
    r"(?P<quoted>\"[^\"]+\"|`[^`]+`)"
    r"|(?P<call>abs|exp|log10|log|sqrt)\s*(?=\()"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=[\s,()]|$)"
    r"|(?P<sign>[-+*/^](?=[\s(]|$)|[(),])"
    r"|(?P<key>[^\s,()\"`]+)"
    r")"
)


def chart_name(chart: str | Sequence[str]) -> str:
    """What the page calls a chart: a key; of several keys, or of an expression, "=" and its keys in quotes.

    Args:
      chart: "loss", "train/return - test/return" (signs stand between blanks, because keys have slashes and hyphens),
        or several of these, which share a chart.
    Raises:
      BadInput: it is neither.
    """
    text = chart if isinstance(chart, str) else ", ".join(chart)
    parts = _parts(text)
    if [kind for kind, _ in parts] == ["key"]:
        return parts[0][1]
    wants, depth, said = True, 0, ""
    for kind, part in parts:
        opens = kind in ("key", "number", "call") or part == "("
        negates = wants and part == "-"
        if (opens != wants and not negates) or (part == ")" and depth == 0):
            raise _no_chart(
                text, f"found {part!r} where {'a key' if wants else 'a sign such as + or a comma'} is expected"
            )
        depth += (part == "(") - (part == ")")
        if part == "," and depth:
            raise _no_chart(text, "there is a comma inside parentheses")
        said += _written(kind, part, alone=opens or negates)
        wants = kind == "call" or (kind == "sign" and part != ")")
    if wants or depth:
        raise _no_chart(text, "a parenthesis is not closed" if depth else "a key is missing at its end")
    if not any(kind == "key" for kind, _ in parts):
        raise _no_chart(text, "there is no key in it")
    return f"={said}"


def _written(kind: str, part: str, *, alone: bool) -> str:
    """A part of an expression as the page writes it; alone: without blanks around it."""
    if kind == "key":
        return f'"{part}"'
    return part if alone or part == ")" else ", " if part == "," else f" {part} "


def _parts(text: str) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    at, rest = 0, text.strip().removeprefix("=").rstrip()
    while at < len(rest):
        found = _PARTS.match(rest, at)
        if found is None:
            raise _no_chart(text, "a quotation mark is not closed")
        kind = str(found.lastgroup)
        part = found[kind]
        parts.append(("key", part[1:-1]) if kind == "quoted" else (kind, part))
        at = found.end()
    return parts


def _no_chart(text: str, why: str) -> BadInput:
    return BadInput(
        f"chart {text!r:.200}: {why}.",
        'Name a key ("test/return"), several, or an expression with signs between blanks ("train/return - '
        f'test/return"; + - * / ^ ( ) {_CALLS}). A key with blanks, commas or parentheses stands in double quotes',
    )
