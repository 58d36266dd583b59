"""Shapes that several subjects use, values in a form that JSON can hold, and every error as an answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from rollbook.book.questions import cells_of
from rollbook.errors import (
    AmbiguousKey,
    AmbiguousRun,
    BadInput,
    Damaged,
    NewerFormat,
    NotARun,
    RollbookError,
    RunNotFound,
    UnknownKey,
)
from rollbook.values.json_values import Num as Num
from rollbook.values.json_values import finite as finite
from rollbook.values.json_values import num as num
from rollbook.values.json_values import plain as plain
from rollbook.values.json_values import seconds_of as seconds_of

Cell = Any
"""A value of a table: a number (as in Num), text, boolean, null, list, object; {"text", "length"}: a text cut short."""

Row = dict[str, Any]
"""Column -> cell."""

Status = str
"""running, finished, killed, crashed or stale; part: what a host keeps of a run whose folder it does not see."""


class Ask(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a request may say."""


class OfRun(Ask, kw_only=True):
    """A question about one run.

    Attributes:
      run: which, as the table of runs names it.
    """

    run: str


class Answer(msgspec.Struct, kw_only=True):
    """An answer that took work.

    Attributes:
      took_ms: milliseconds the server needed for it.
    """

    took_ms: float = 0.0


class ErrorWords(msgspec.Struct, kw_only=True):
    """Why there is no answer.

    Attributes:
      code: bad_input, no_token, forbidden, not_found, unknown_key, gone, too_large, too_many, timeout, unreadable,
        failed.
      message: what was asked and what was found.
      hint: what to do.
      at: the position in a filter or query that cannot be read, from 0.
    """

    code: str
    message: str
    hint: str | None = None
    at: int | None = None


class ErrorBody(msgspec.Struct, kw_only=True):
    """The body of every answer with status 400 and above."""

    error: ErrorWords


class Sort(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One column to sort by."""

    column: str
    descending: bool = False


class TableColumn(msgspec.Struct, kw_only=True):
    """A column of a table.

    Attributes:
      type: text, number, integer, boolean, time or other.
    """

    name: str
    type: str


class TablePage(Answer, kw_only=True):
    """A window of a table's rows.

    Attributes:
      total: rows of the table.
      matched: rows that fit.
      offset: position of the first row among those that fit.
    """

    total: int
    matched: int
    offset: int
    columns: list[TableColumn]
    rows: list[Row]


class Alert(msgspec.Struct, kw_only=True):
    """What a health rule found.

    Attributes:
      x: its position on the axis that was asked for.
      level: how urgent, as the rule says it.
      evidence: what it rests on.
      key: the key that it is about; "" if unknown or not asked for.
    """

    id: str
    run: str
    time: float | None
    x: Num
    clocks: dict[str, int]
    rule: str
    level: str
    message: str
    evidence: Any
    source: str
    attempt: int | None
    key: str = ""


class Media(msgspec.Struct, kw_only=True):
    """A picture or video.

    Attributes:
      kind: image, video or figure.
      url: where its bytes are, relative to the page; null if the file is not there.
      there: whether the file is there: neither evicted nor still to be encoded.
    """

    id: str
    key: str
    kind: str
    url: str | None
    path: str
    width: int | None
    height: int | None
    frames: int | None
    fps: float | None
    bytes: int | None
    episode_id: str | None
    time: float | None
    x: Num
    there: bool


class RunAsk(OfRun, kw_only=True):
    """Which run."""


STATUS = {
    "bad_input": 400,
    "no_token": 401,
    "forbidden": 403,
    "not_found": 404,
    "unknown_key": 404,
    "gone": 410,
    "too_large": 413,
    "unreadable": 422,
    "too_many": 429,
    "failed": 500,
    "timeout": 504,
}
"""code -> HTTP status."""


class Refused(RollbookError):
    """A request without an answer.

    Args:
      code: one of STATUS.
      message: what was asked and found.
      hint: what to do.
      at: the position in a filter or query, from 0.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, at: int | None = None) -> None:
        super().__init__(message, hint or "")
        self.code, self.hint, self.at = code, hint, at


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (UnknownKey, "unknown_key"),
    (AmbiguousKey, "bad_input"),
    (BadInput, "bad_input"),
    (NotARun, "gone"),
    (RunNotFound, "not_found"),
    (AmbiguousRun, "bad_input"),
    (NewerFormat, "unreadable"),
    (Damaged, "unreadable"),
    (FileNotFoundError, "gone"),
    (PermissionError, "unreadable"),
    (OSError, "unreadable"),
)
_LONGEST = 2_000


def words_of(err: BaseException) -> ErrorWords:
    """An exception in the words of the API. One that is not the client's mistake is only named by its kind."""
    if isinstance(err, Refused):
        return ErrorWords(code=err.code, message=err.message[:_LONGEST], hint=err.hint, at=err.at)
    code = next((code for kind, code in _CODES if isinstance(err, kind)), "failed")
    if isinstance(err, RollbookError):
        return ErrorWords(code=code, message=err.message[:_LONGEST], hint=err.advice[:_LONGEST] or None)
    if code == "failed":
        return ErrorWords(
            code=code,
            message=f"the server failed at this: {type(err).__name__}: {err}"[:_LONGEST],
            hint="Its terminal has the whole error; please report it.",
        )
    return ErrorWords(
        code=code,
        message=f"{type(err).__name__}: {err}"[:_LONGEST],
        hint="Ask again, or look at the run with: rollbook verify",
    )


def body_of(words: ErrorWords) -> ErrorBody:
    """The body of the answer."""
    return ErrorBody(error=words)


def column_kind(kind: pa.DataType) -> str:
    """text, number, integer, boolean, time or other."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_dictionary(kind):
        return column_kind(kind.value_type)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "time" if pa.types.is_temporal(kind) else "other"


def columns_of(table: pa.Table) -> list[TableColumn]:
    """The columns of a table and what they hold."""
    return [TableColumn(name=plain(field.name), type=column_kind(field.type)) for field in table.schema]


def rows_of(table: pa.Table, longest: int | None = 300) -> list[dict[str, object]]:
    """The rows of a (small) table as cells; times as unix seconds."""
    return [{plain(name): plain(cell, longest) for name, cell in row.items()} for row in cells_of(table)]
