"""Rows of the tables of rollouts: cells of the kinds that the tables have, many rows in one frame."""

from __future__ import annotations

import json
import os

from rollbook.capture.batch_columns import is_column, pieces
from rollbook.capture.samples.items import Items
from rollbook.capture.shared_clocks import clock_names
from rollbook.ground.clocks import UNKNOWN, as_clock
from rollbook.ground.content import fingerprint_of
from rollbook.ground.foreign import tolerating
from rollbook.ground.tables import table_of
from rollbook.ground.values import flatten
from rollbook.ground.values.arrays import array_or_none
from rollbook.ground.values.storable import UNSTORABLE, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from rollbook.protocols import Recorder

    Row: TypeAlias = tuple[dict[str, Any], dict[str, int]]

__all__ = ["RolloutRows", "conversation", "turns_of"]

_INLINE_BYTES, _APART_BYTES = 256 * 1024, 64 * 1024 * 1024
_MOST_TASKS = 20_000
_LONGEST_WORD = 10_000
_FORWARD = frozenset(("role", "content", "tool_calls", "name"))
_EXACT = {"text": str, "integer": int, "number": float, "boolean": bool}


class RolloutRows:
    """Makes and writes the rows of one process.

    Args:
      run: the run; asked for its folder, its clocks, its attempt and its bill.
    """

    def __init__(self, run: Recorder) -> None:
        self.run = run
        self._clocks = frozenset(clock_names(run))
        self._items = Items(run, _INLINE_BYTES, _APART_BYTES, "run.rollouts")
        self._tasks: set[str] = set()
        self._attempt = 0

    # -- cells

    def cells(self, table: str, columns: Mapping[str, object]) -> Row:
        """(cells of one row by column, its clocks): empty ones left out, each of the kind that the column has."""
        cells: dict[str, Any] = {}
        clocks: dict[str, int] = {}
        kinds = table_of(table).columns
        for name, value in columns.items():
            if value is None:
                continue
            kind = kinds.get(name, "")
            if type(value) is _EXACT.get(kind) and _fits(kind, value):  # nearly all cells
                cells[name] = value
                continue
            for flat, part in flatten({name: value}):
                if part is not None:
                    self._take(flat, part, kinds, cells, clocks)
        return cells, clocks

    def _take(
        self, name: str, value: object, kinds: Mapping[str, str], cells: dict[str, Any], clocks: dict[str, int]
    ) -> None:
        if name in self._clocks and name not in kinds:
            reading = as_clock(value)
            if reading is None:
                self.refused(name, value, "a clock, which takes an integer")
            else:
                clocks[name] = reading
            return
        kind = kinds.get(name, "number" if name.startswith(("rewards/", "metrics/")) else "")
        cell = self._cell(name, value, kind)
        if cell is not None:
            cells[name] = cell

    def _cell(self, name: str, value: Any, kind: str) -> Any:
        cell: object
        if kind == "numbers":
            cell = numbers(value)
        elif kind == "text":
            cell = _word(value)
            if len(cell) < len(value if isinstance(value, str) else cell):
                self.run.count("rollout_text", 1, f"run.rollouts: {name} was cut to {_LONGEST_WORD:,} characters")
        elif kind == "integer":
            cell = as_clock(value)
        elif kind == "number":
            cell = number(value)
        elif kind == "boolean":
            cell = bool(value)
        else:
            cell = plain(value)
            cell = None if cell is UNSTORABLE else cell
        if cell is None:
            self.refused(name, value, f"a column of kind {kind!r}" if kind else "something that a table can hold")
        return cell

    def refused(self, name: str, value: object, wanted: str) -> None:
        """Count a value that its column cannot hold; the rest of the row is kept."""
        self.run.count(
            "rollout_value",
            1,
            f"run.rollouts: {name}={value!r:.80} ({type(value).__name__}) was left out: {name} is {wanted}",
        )

    def text(self, name: str, value: object) -> dict[str, Any]:
        """The columns of a text: `name`, and where the whole of a long one lies (`item_path`, `item_size`)."""
        if value is None:
            return {}
        _prints, (text,), _sizes, special = self._items.read([value])
        return {name: text, **{column: cells[0] for column, cells in special.items()}}

    def json(self, name: str, value: object) -> str | None:
        """A structure as JSON; None (counted) where some part of it is no plain data."""
        content = plain(value)
        if content is UNSTORABLE:
            self.refused(name, value, "plain data: texts, numbers, lists and dicts")
            return None
        listed = content.tolist() if hasattr(content, "tolist") else content
        text = json.dumps(listed, ensure_ascii=False, default=repr)
        return text.encode("utf-8", "backslashreplace").decode()

    # -- tasks

    def task(self, task: object, task_id: object = None, env: object = None, tools: object = None) -> str | None:
        """The id of a task: 16 hexadecimal digits of its content, or the caller's. Its row is written once."""
        if task is None and task_id is None:
            return None
        if task_id is None:
            content = fingerprint_of(task if tools is None else [task, tools])
            if content is None:
                self.refused("task", task, "a text or a list of messages, known by its content")
                return None
            task_id = f"{content:016x}"
        name = _word(task_id)
        attempt = int(getattr(self.run, "attempt", 1))
        if attempt != self._attempt or len(self._tasks) >= _MOST_TASKS:  # a rewind hides the rows that were abandoned
            self._attempt = attempt
            self._tasks.clear()
        if name not in self._tasks:
            self._tasks.add(name)
            row: dict[str, Any] = {"task_id": name, "env": None if env is None else _word(env)}
            if isinstance(task, (list, tuple)):
                row["messages"] = self.json("task", task)
                task = rendered(task)
            row |= self.text("prompt", task)
            if tools is not None:
                row["tools"] = self.json("tools", tools)
            self.write("tasks", [({column: cell for column, cell in row.items() if cell is not None}, {})])
        return name

    # -- frames

    def write(self, table: str, rows: list[Row], **clocks: object) -> None:
        """Append rows to a table, in frames of a few megabytes at most."""
        if not rows:
            return
        now = self.run.clocks_now() if len(rows) > 1 else {}
        for start, stop in pieces([_bytes(cells) for cells, _ in rows]):
            part = rows[start:stop]
            names = dict.fromkeys(name for cells, _ in part for name in cells)
            own = dict.fromkeys(name for _, readings in part for name in readings)
            self.run.record(
                table,
                {name: [cells.get(name) for cells, _ in part] for name in names},
                stop - start,
                clock_columns={
                    name: [readings.get(name, now.get(name, UNKNOWN)) for _, readings in part] for name in own
                }
                or None,
                **clocks,
            )


def conversation(messages: object) -> tuple[object, list[dict[str, Any]]]:
    """(the task, the turns after it) of a list of messages; a text is one turn of the assistant.

    The task is what stands before the first message of the assistant: the text of a single message, else the messages.
    """
    if isinstance(messages, (str, bytes)) or not is_column(messages):
        return None, turns_of(messages)
    listed = [message for message in messages if hasattr(message, "get")]  # type: ignore[attr-defined]
    first = next((n for n, message in enumerate(listed) if message.get("role") == "assistant"), len(listed))
    before = listed[:first]
    plain_one = len(before) == 1 and isinstance(before[0].get("content"), str)
    task = before[0]["content"] if plain_one else [dict(message) for message in before] or None
    return task, turns_of(listed[first:])


def turns_of(completion: object) -> list[dict[str, Any]]:
    """The turns that a text or a list of messages stands for, as `OpenRollout.turn` takes them."""
    if isinstance(completion, (str, bytes)) or not is_column(completion):
        return [{"role": "assistant", "text": completion}]
    turns = []
    for message in completion:  # type: ignore[attr-defined]
        if hasattr(message, "get"):
            more = {str(name): value for name, value in message.items() if name not in _FORWARD}
            own = {"name": message.get("name"), "calls": message.get("tool_calls")}
            turns.append({**more, "role": message.get("role"), "text": message.get("content"), **own})
    return turns


def rendered(messages: Iterable[Any]) -> str:
    """Messages as one text, a paragraph each."""
    parts = []
    for message in messages:
        if hasattr(message, "get"):
            content = message.get("content")
            parts.append(f"{message.get('role')}: {content if isinstance(content, str) else repr(content)}")
        else:
            parts.append(str(message))
    return "\n\n".join(parts)


def number(value: Any) -> float | None:
    """A single number, None for what is none."""
    if isinstance(value, (str, bytes)):
        return None
    with tolerating(TypeError, ValueError, OverflowError, RuntimeError):
        return float(value)
    return None


def numbers(value: Any) -> Any:
    """A list of numbers: an array keeps its type, anything else becomes a list; None for what is none."""
    if isinstance(value, (str, bytes)):
        return None
    array = None if isinstance(value, (list, tuple, range)) else array_or_none(value)
    if array is not None:
        return array if array.ndim == 1 else None
    if not is_column(value):
        return None
    cells = plain(list(value))
    good = isinstance(cells, list) and all(cell is None or isinstance(cell, (int, float)) for cell in cells)
    return cells if good else None


def _fits(kind: str, value: Any) -> bool:
    """Whether a value of the very type of its column needs no further look."""
    if kind == "text":
        return len(value) <= _LONGEST_WORD and value.isascii()
    return kind != "integer" or -(2**53) < value < 2**53


def _word(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text[:_LONGEST_WORD].encode("utf-8", "backslashreplace").decode()


def _bytes(cells: Mapping[str, Any]) -> int:
    """About how much room a row takes in a frame."""
    return sum(
        4 * len(cell) if isinstance(cell, (str, bytes)) else 9 * len(cell) if hasattr(cell, "__len__") else 9
        for cell in cells.values()
    )


def new_prefix() -> str:
    """What the ids of one process begin with."""
    return os.urandom(5).hex()


def reported(run: Recorder, verb: str, err: Exception) -> None:
    """Count a failure of a verb."""
    run.count(
        "rollouts",
        1,
        f"run.rollouts: {verb} failed with {type(err).__name__}: {err}; training is not affected, (part of) this call "
        "is missing from the run",
    )
