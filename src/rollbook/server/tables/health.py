"""Alerts of a run, and rules that found nothing; media, checkpoints, notes and attempts, as marks and lists."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book.questions import (
    Checkpoints,
    axis_values,
    cells_of,
    check_range,
    chosen_rows,
    clocks_of,
    row_id,
    seconds_column,
)
from rollbook.errors import Damaged, RollbookError
from rollbook.runs.checking import asked
from rollbook.runs.finding import key_of
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import contents, default_axis, started, table_of
from rollbook.server.shared.shapes import Alert, Answer, Ask, Media, Num, RunAsk, num, plain
from rollbook.server.shared.state import ServerContext
from rollbook.system.files import path_inside
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount


class QuietRule(msgspec.Struct, kw_only=True):
    """A rule that looked and found nothing."""

    rule: str
    label: str
    checked: str


class HealthAnswer(Answer, kw_only=True):
    """What is wrong, what was looked at and is quiet.

    Attributes:
      promise: how often the rules raise a false alarm, where that was measured.
      host_keys: keys of metrics about the machine; their curves are asked for with x = "time".
    """

    alerts: list[Alert]
    quiet: list[QuietRule]
    rules: int
    promise: str | None
    host_keys: list[str]


class MarksAsk(Ask, kw_only=True):
    """Of which runs, on which axis."""

    runs: list[str]
    x: str | None = None
    start: float | None = None
    stop: float | None = None


class Mark(msgspec.Struct, kw_only=True):
    """A checkpoint, alert, note or begin of an attempt on the axis."""

    run: str
    kind: Literal["checkpoint", "alert", "note", "attempt"]
    x: Num
    time: float | None
    id: str
    label: str
    text: str
    level: str | None


class MarksAnswer(Answer, kw_only=True):
    """Marks in order of x."""

    marks: list[Mark]
    truncated: bool


_MOST_MARKS = 5_000
_VIDEO_SUFFIXES = (".mp4", ".gif", ".png", ".webm")


def alerts_of(context: ServerContext, row: RunRow, x: str) -> list[Alert]:
    """All alerts of a run, oldest first."""
    return alerts_in(context, row, table_of(context, row, "alerts"), x)


def alerts_in(context: ServerContext, row: RunRow, table: pa.Table, x: str) -> list[Alert]:
    """Rows of the table of alerts, in the form of the API."""
    if not table.num_rows:
        return []
    with context.book(row) as book:
        clocks = book.clocks
    positions, times = axis_values(table, x, started(row)), seconds_column(table)
    known = context.facts.now(row).latest
    return [
        _alert(row, cells, float(positions[n]), float(times[n]), clocks, known)
        for n, cells in enumerate(cells_of(table))
    ]


def _alert(
    row: RunRow,
    cells: dict[str, Any],
    position: float,
    moment: float,
    clocks: tuple[str, ...],
    known: Mapping[str, object],
) -> Alert:
    attempt = cells.get("attempt")
    return Alert(
        id=row_id(cells),
        run=row.key,
        time=moment,
        x=num(position) if np.isfinite(position) else None,
        clocks=clocks_of(cells, clocks),
        rule=plain(str(cells.get("rule") or "")),
        level=plain(str(cells.get("level") or "note")),
        message=plain(str(cells.get("message") or "")),
        evidence=_evidence(cells.get("evidence")),
        source=plain(str(cells.get("source") or "")),
        attempt=attempt if isinstance(attempt, int) else None,
        key=plain(key_of(cells, known)),
    )


def _evidence(stored: object) -> object:
    if isinstance(stored, str):
        try:
            return plain(json.loads(stored))
        except (ValueError, RecursionError):
            return plain(stored)
    return plain(stored)


def media_of(context: ServerContext, row: RunRow, table: pa.Table, x: str) -> list[Media]:
    """Rows of `media` with the addresses of those files that exist."""
    if not table.num_rows:
        return []
    positions = axis_values(table, x, started(row))
    times = seconds_column(table)
    media = []
    for n, cells in enumerate(cells_of(table)):
        stored = str(cells.get("path") or "")
        path = there(row.folder, stored)
        media.append(
            Media(
                id=row_id(cells),
                key=plain(str(cells.get("key") or "")),
                kind=plain(str(cells.get("kind") or "image")),
                url=media_url(row, path) if path is not None else None,
                path=plain(stored),
                width=_whole(cells.get("width")),
                height=_whole(cells.get("height")),
                frames=_whole(cells.get("frames")),
                fps=float(cells["fps"])
                if isinstance(cells.get("fps"), (int, float)) and np.isfinite(cells["fps"])
                else None,
                bytes=os.path.getsize(os.path.join(row.folder, path)) if path is not None else None,
                episode_id=plain(str(cells["episode_id"])) if cells.get("episode_id") else None,
                time=float(times[n]),
                x=num(float(positions[n])) if np.isfinite(positions[n]) else None,
                there=path is not None,
            )
        )
    return media


def media_url(row: RunRow, path: str) -> str:
    """The address of a run's file, relative to the page."""
    return f"media/{quote(row.key, safe='~')}/{quote(path.replace(os.sep, '/'), safe='/')}"


def there(folder: str, path: str) -> str | None:
    """A path relative to the run, if the file exists and is inside the run; also in another video format."""
    if not path or "\0" in path:
        return None
    root = os.path.realpath(folder)
    stem = os.path.splitext(path)[0]
    for name in dict.fromkeys([path, *(stem + suffix for suffix in _VIDEO_SUFFIXES)]):
        with tolerating(OSError, Damaged, ValueError):
            return os.path.relpath(path_inside(root, name), root)
    return None


def _whole(value: object) -> int | None:
    return (
        int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**31 else None
    )


def marks(context: ServerContext, ask: MarksAsk) -> MarksAnswer:
    """Checkpoints, alerts, notes and starts of attempts on the axis."""
    check_range(ask.start, ask.stop)
    drawn: list[Mark] = []
    for row in context.rows(ask.runs):
        try:
            drawn += _marks_of(context, row, ask.x or default_axis(context, row))
        except (RollbookError, OSError):  # its curves show what is wrong with it
            continue
    low = -np.inf if ask.start is None else ask.start
    high = np.inf if ask.stop is None else ask.stop
    inside = [mark for mark in drawn if isinstance(mark.x, float) and low <= mark.x < high]
    inside.sort(key=lambda mark: mark.x if isinstance(mark.x, float) else 0.0)
    return MarksAnswer(marks=inside[:_MOST_MARKS], truncated=len(inside) > _MOST_MARKS)


def _marks_of(context: ServerContext, row: RunRow, x: str) -> list[Mark]:
    alerts = [
        _mark(row, "alert", alert.x, alert.time, alert.id, alert.rule, alert.message, alert.level)
        for alert in alerts_of(context, row, x)
        if isinstance(alert.x, float)
    ]
    return [*_checkpoints(context, row, x), *_notes(context, row, x), *alerts, *_attempts(context, row, x)]


def _checkpoints(context: ServerContext, row: RunRow, x: str) -> Iterator[Mark]:
    there = chosen_rows(Checkpoints(), KeptRun(context, row)).table
    for cells, position, moment in _rows_on_axis(row, there, x):
        label, score = "best" if cells.get("is_best") else "checkpoint", cells.get("score")
        text = os.path.basename(str(cells.get("path") or ""))
        text += f", score {score:g}" if isinstance(score, (int, float)) else ""
        yield _mark(row, "checkpoint", position, moment, str(cells.get("checkpoint_id") or row_id(cells)), label, text)


def _notes(context: ServerContext, row: RunRow, x: str) -> Iterator[Mark]:
    for cells, position, moment in _rows_on_axis(row, table_of(context, row, "text"), x):
        if cells.get("key") == "note":
            yield _mark(row, "note", position, moment, row_id(cells), "note", str(cells.get("text") or ""))


def _rows_on_axis(row: RunRow, table: pa.Table, x: str) -> Iterator[tuple[dict[str, Any], float, float]]:
    """(cells, position, unix seconds) of the rows of a table that have a position on the axis."""
    if not table.num_rows:
        return
    positions, times = axis_values(table, x, started(row)), seconds_column(table)
    for cells, position, moment in zip(cells_of(table), positions.tolist(), times.tolist(), strict=True):
        if math.isfinite(position):
            yield cells, position, moment


def _attempts(context: ServerContext, row: RunRow, x: str) -> Iterator[Mark]:
    """Where each attempt went on from an earlier one."""
    with context.book(row) as book:
        attempts = book.attempts
    for entry in attempts:
        begun = entry.get("started")
        if entry.get("parent") is None or not isinstance(begun, (int, float)):
            continue
        position = _of_attempt(context, row, entry, x, started(row))
        if position is not None:
            name, text = f"attempt {entry['n']}", f"attempt {entry['n']} went on from attempt {entry['parent']}"
            yield _mark(row, "attempt", position, float(begun), f"attempt-{entry['n']}", name, text)


def _of_attempt(context: ServerContext, row: RunRow, entry: dict[str, Any], x: str, began: float) -> float | None:
    """The position on the axis where an attempt began: at its checkpoint, else by time."""
    if x in ("time", "relative"):
        return float(entry["started"]) - (began if x == "relative" else 0.0)
    checkpoint = entry.get("checkpoint")
    table = table_of(context, row, "checkpoints", "all")
    if checkpoint and table.num_rows and x in table.column_names:
        for cells in table.select(["checkpoint_id", x]).to_pylist():
            if cells["checkpoint_id"] == checkpoint and isinstance(cells[x], int):
                return float(cells[x])
    return None


def _mark(
    row: RunRow,
    kind: Any,
    x: float,
    moment: float | None,
    identity: str,
    label: str,
    text: str,
    level: str | None = None,
) -> Mark:
    return Mark(
        run=row.key,
        kind=kind,
        x=x,
        time=moment,
        id=plain(identity),
        label=plain(label),
        text=plain(text[:500]),
        level=level,
    )


def health(context: ServerContext, ask: RunAsk) -> HealthAnswer:
    """The alerts of a run, and the rules that found nothing."""
    row = context.row(ask.run)
    alerts = alerts_of(context, row, default_axis(context, row))
    held = contents(context, row)
    facts = context.facts.now(row)
    bad = [key for key, value in facts.latest.items() if isinstance(value, float) and value - value != 0]
    quiet = []
    if not bad and facts.latest:
        quiet.append(
            QuietRule(rule="finite", label="The newest values are numbers", checked=amount(len(facts.latest), "key"))
        )
    episodes = held.tables.get("episodes", 0)
    if episodes and not any(alert.source == "auditor" for alert in alerts):
        quiet.append(
            QuietRule(rule="audit", label="Return said equals return counted", checked=amount(episodes, "episode"))
        )
    rules, rows, promise = asked(row.folder)
    looked = amount(rows, "row") if rows else "no row yet"
    spoke = {alert.rule for alert in alerts}
    quiet += [
        QuietRule(rule=plain(name), label=plain(label), checked=looked)
        for name, label in rules.items()
        if name not in spoke
    ]
    return HealthAnswer(
        alerts=list(reversed(alerts)),
        quiet=quiet,
        rules=len(spoke) + len(quiet),
        promise=promise,
        host_keys=[plain(key) for key in held.keys if key.startswith("host/")],
    )


ENDPOINTS = [
    Endpoint("POST", "/api/marks", MarksAsk, MarksAnswer, marks, "Checkpoints, alerts, notes and attempts on the axis"),
    Endpoint("GET", "/api/runs/{run}/health", RunAsk, HealthAnswer, health, "The alerts of a run, and what is quiet"),
]
