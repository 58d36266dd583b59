"""Words that several subjects use."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "Alert",
    "Answer",
    "Ask",
    "Cell",
    "Column",
    "ErrorBody",
    "ErrorWords",
    "Media",
    "Num",
    "OfRun",
    "Row",
    "Sort",
    "Status",
    "TablePage",
]

Num = float | Literal["NaN", "Infinity", "-Infinity"] | None
"""A number; what JSON cannot write stands as text; null: there is none."""

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
      at: the place in a filter or query that cannot be read, from 0.
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


class Column(msgspec.Struct, kw_only=True):
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
      offset: place of the first row among those that fit.
    """

    total: int
    matched: int
    offset: int
    columns: list[Column]
    rows: list[Row]


class Alert(msgspec.Struct, kw_only=True):
    """What a health rule found.

    Attributes:
      x: its place on the axis that was asked for.
      level: how urgent, as the rule says it.
      evidence: what it rests on.
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


class Media(msgspec.Struct, kw_only=True):
    """A picture or film.

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
