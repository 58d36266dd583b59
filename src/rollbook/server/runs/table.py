"""The table of runs: its rows, filtered, searched, sorted, folded into groups, in windows."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import msgspec

from rollbook.errors import BadInput
from rollbook.runs.group_rows import common, group_cell
from rollbook.runs.grouping import RunGroup
from rollbook.runs.ordering import by_value
from rollbook.runs.removing import binned_below
from rollbook.schema.expressions import LONGEST
from rollbook.server.runs.columns import (
    cell_of,
    ends_in_nan,
    facts_for,
    field_hint,
    filtered,
    group_value,
    groups_of,
    is_metric,
    last_of,
    metrics_in,
    progress_of,
    searched,
    settings_called,
    some_of,
    value_of,
)
from rollbook.server.shared.catalogue import RunRow, Snapshot
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import KeysAnswer, KeysAsk, axis_of, keys, own_words
from rollbook.server.shared.shapes import Answer, Ask, Cell, Refused, Sort, finite, plain
from rollbook.server.shared.state import Facts, ServerContext
from rollbook.system.files import pasted


class RunsAsk(Ask, kw_only=True):
    """Which rows of the table of runs.

    Attributes:
      filter: a condition, such as "config.lr < 3e-4 and status == 'running'".
      search: words that must all occur in name, project, id, tags, notes or group.
      runs: only these, as the table names them.
      sort: columns; newest first without.
      group_by: runs with equal values in these columns are a group; ["auto"]: by the run's own group (or its name) and
        by all settings that vary, except seeds.
      sections: a row per project before its runs.
      open: groups whose members are listed.
      columns: the cells to return.
      archived: also archived runs.
      offset, limit: a window of the flat rows.
      drawn: runs and groups whose keys are returned, too. draw_first: if none is named, those of the first so many rows
        of the first project.
    """

    filter: str | None = None
    search: str | None = None
    runs: list[str] | None = None
    sort: list[Sort] = []
    group_by: list[str] | None = None
    sections: bool | None = None
    open: list[str] = []
    columns: list[str] = []
    archived: bool = False
    offset: int = 0
    limit: int = 200
    drawn: list[str] = []
    draw_first: int = 0


class TableRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row of the table: a section (a project), a group, or a run.

    Attributes:
      kind: section, group or run; id: the name of the row.
      run: the id of the run; own: what distinguishes it from others of its name, such as "lr 3e-4"; "" if name and
        seed do.
      x, at, total: the usual axis of a run, its last position there, and its planned end. A group has x if its runs
        share an axis, and as `at` the median of their positions.
      runs: the members of a group; run_count: the number of runs in a section or group.
      values: what the members of a group have in common.
      status: of a run; counts: the number of runs with each status, in a section or group.
      done: the progress of a group, 0 to 1: that of its runs together.
      cells: column -> cell; in a group a metric is {centre, low, high, n, method, sentence}, and a setting that differs
        is {distinct, values}.
      pending: columns whose cells are still being read.
      ends_in_nan: column -> the number of runs whose last row of the key is NaN or infinite, if the cell does not show
        it.
      damaged: what cannot be read of a run, or how many members of a group have such damage; "" without damage.
    """

    kind: Literal["section", "group", "run"]
    id: str
    name: str
    run: str | None = None
    project: str = ""
    seed: int | None = None
    own: str = ""
    group: str | None = None
    job_type: str | None = None
    status: str = ""
    counts: dict[str, int] = {}
    created: float | None = None
    ended: float | None = None
    updated: float | None = None
    host: str = ""
    tags: list[str] = []
    notes: str = ""
    archived: bool = False
    attempts: int = 0
    x: str = ""
    at: int | None = None
    total: int | None = None
    runs: list[str] = []
    run_count: int = 0
    values: dict[str, Cell] = {}
    cells: dict[str, Cell] = {}
    pending: list[str] = []
    ends_in_nan: dict[str, int] = {}
    damaged: str = ""
    open: bool = False
    done: float | None = None
    section: str = ""
    member_of: str | None = None
    alerts: int = 0


class RunsAnswer(Answer, kw_only=True):
    """A window of the table of runs.

    Attributes:
      total, matched, archived, live: the number of all runs, of matching, archived and running ones.
      rows_total: flat rows with this choice of groups.
      version: changes when any of this may have changed.
      pending: metric cells that are still being read.
      did_you_mean: where a filter names a field that no run has.
      conditions: where no run has the words of a search, and some have them as the value of a setting: those.
      unreadable: why folders with a run.json are not among the runs, 20 at most; unreadable_total: how many there are.
      binned: where there are no runs: how many of them are in the bin; bin_of: the folder that has it, as a command
        takes it.
      drawn: the keys and tables of the runs that are drawn; None if it was not asked for, or would delay the table.
    """

    total: int
    matched: int
    archived: int
    live: int
    rows_total: int
    offset: int
    rows: list[TableRow]
    version: str
    pending: int
    did_you_mean: str | None = None
    conditions: list[str] = []
    unreadable: list[str] = []
    unreadable_total: int = 0
    binned: int = 0
    bin_of: str = ""
    drawn: Drawn | None = None


class Drawn(msgspec.Struct, kw_only=True):
    """The runs that are drawn, in the order of the table, and what they hold; of very many runs, what some hold."""

    runs: list[str]
    keys: KeysAnswer
    is_part: bool = False


def section_row(name: str, rows: Sequence[RunRow]) -> TableRow:
    """The heading of a project's runs."""
    totals = [row.about.get("total") or {} for row in rows]
    same = totals[0] if totals and all(total == totals[0] for total in totals) else {}
    return TableRow(
        kind="section",
        id=f"section:{name}",
        name=plain(name),
        run_count=len(rows),
        counts=dict(Counter(row.status for row in rows)),
        values=plain(same),
    )


def table_row(
    row: RunRow, columns: Sequence[str], facts: Facts | None, own: str, member_of: str | None = None
) -> TableRow:
    """One run as a row of the table."""
    about = row.about
    at, total = progress_of(row, facts)
    name = str(about.get("name") or "")
    seed = about.get("seed")
    return TableRow(
        kind="run",
        id=row.key,
        run=row.key,
        name=plain(name),
        project=plain(str(about.get("project") or "")),
        own=own,
        seed=plain(seed) if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 2**53 else None,
        group=_text(about.get("group")),
        job_type=_text(about.get("job_type")),
        status=row.status,
        created=finite(about.get("created")),
        ended=finite(about.get("ended")),
        updated=facts.heard if facts is not None else finite(about.get("ended")),
        host=plain(str(about.get("host") or "")),
        tags=[plain(str(tag)) for tag in about.get("tags") or ()],
        notes=plain(str(about.get("notes") or "")),
        archived=row.is_archived,
        attempts=int(about.get("attempts") or 0),
        x=plain(axis_of(row, facts)),
        at=at if at is not None and abs(at) < 2**53 else None,
        total=total if total is not None and abs(total) < 2**53 else None,
        cells={column: cell_of(column, row, facts) for column in columns},
        pending=[column for column in columns if _is_awaited(column, facts)],
        ends_in_nan={column: 1 for column in columns if ends_in_nan(column, row, facts)},
        section=plain(str(about.get("project") or "")),
        member_of=member_of,
        damaged=plain(_damage(facts)),
    )


def _damage(facts: Facts | None) -> str:
    """What of a run cannot be read: a sentence about the first file."""
    if facts is None or not facts.damage:
        return ""
    more = len(facts.damage) - 1
    return facts.damage[0] + (f"; and {more} more" if more else "")


def _done(rows: Sequence[RunRow], known: Callable[[RunRow], Facts | None]) -> float | None:
    """The joint progress of some runs, 0 to 1; None if no run has a planned length."""
    shares = []
    for row in rows:
        at, total = progress_of(row, known(row))
        if total:
            shares.append(1.0 if row.status == "finished" else min(1.0, max(0, at or 0) / total))
    return sum(shares) / len(shares) if shares else None


def group_row(group: RunGroup[RunRow], ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> TableRow:
    """A group as a row of the table; cells of metrics have the centre of its members."""
    cells: dict[str, object] = {}
    nan: dict[str, int] = {}
    for column in ask.columns:
        values = [value_of(column, row, known(row)) for row in group.members]
        if many := _not_finite(column, values, group.members, known):
            nan[column] = many
        cells[column] = group_cell(values, len(values)) if is_metric(column) else common(values)
    damaged = sum(bool(_damage(known(row))) for row in group.members)
    heard = [facts.heard for row in group.members if (facts := known(row)) is not None and facts.heard is not None]
    created = [float(row.about["created"]) for row in group.members if finite(row.about.get("created")) is not None]
    axes = {axis_of(row, known(row)) for row in group.members}
    reached = sorted(at for row in group.members if (at := progress_of(row, known(row))[0]) is not None)
    return TableRow(
        kind="group",
        id=group.id,
        name=plain(group.name),
        project=plain(group.section),
        section=plain(group.section),
        runs=[row.key for row in group.members],
        run_count=len(group.members),
        counts=dict(Counter(row.status for row in group.members)),
        values=plain(group.values),
        cells=cells,
        pending=[c for c in ask.columns if any(_is_awaited(c, known(row)) for row in group.members)],
        ends_in_nan=nan,
        damaged=f"{damaged} of {len(group.members)} runs have parts that cannot be read" if damaged else "",
        open=group.id in ask.open,
        done=_done(group.members, known),
        x=plain(min(axes)) if len(axes) == 1 else "",
        at=plain(reached[len(reached) // 2]) if len(axes) == 1 and reached else None,
        created=max(created, default=None),
        updated=max(heard, default=None),
    )


def _not_finite(
    column: str, values: Sequence[object], rows: Sequence[RunRow], known: Callable[[RunRow], Facts | None]
) -> int:
    """For a number of a key: how many of the runs have a last row that is not finite."""
    if not is_metric(column):
        return 0
    last = last_of(column)
    ends = values if last == column else [value_of(last, row, known(row)) for row in rows]
    return sum(isinstance(end, float) and not math.isfinite(end) for end in ends)


def _is_awaited(column: str, facts: Facts | None) -> bool:
    """Whether a cell is empty only because its number was not read yet."""
    if not is_metric(column):
        return False
    return facts is None or not facts.numbers.keys() >= facts_for([column])


def _text(value: object) -> str | None:
    return None if value is None else str(plain(str(value)))


_PATIENCE = 0.15
"""Seconds that a window of the table waits for numbers that were not read yet."""
_PATIENCE_FOR_NEWER = 0.03
"""Seconds that it waits for newer numbers of live runs that already have numbers."""
_FEW = 100
"""A group with more unread runs than this is not waited for: its numbers need all of them."""
MOST_COLUMNS = 60

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Section:
    """The heading of a project, and its runs."""

    name: str
    runs: list[RunRow]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, and the id of the open group it is shown in."""

    row: RunRow
    member_of: str | None = None


_Entry = _Section | RunGroup[RunRow] | _Run


@dataclass(slots=True)
class _Flat:
    """The table as one list."""

    entries: list[_Entry] = field(default_factory=list)
    matched: int = 0
    archived: int = 0
    hint: str | None = None


def table_of_runs(context: ServerContext, ask: RunsAsk) -> RunsAnswer:
    """A window of the table."""
    if not 0 <= ask.limit <= context.limits.rows:
        raise Refused("too_large", f"limit={ask.limit}: a window has 0 to {context.limits.rows:,} rows")
    if ask.offset < 0:
        raise BadInput(f"offset={ask.offset}: the first row is 0")
    if len(ask.columns) > MOST_COLUMNS:
        raise Refused("too_large", f"{len(ask.columns)} columns; at most {MOST_COLUMNS} at once")
    if len(ask.filter or "") > LONGEST:
        raise Refused("too_large", f"the filter has {len(ask.filter or ''):,} characters; at most {LONGEST:,}")
    if len(metrics_in(ask.filter or "")) > MOST_COLUMNS or len(ask.sort) > MOST_COLUMNS:
        raise Refused("too_large", f"a filter and an order may name {MOST_COLUMNS} metrics and columns at most")
    shot = context.catalogue.snapshot()
    flattened, pending = _flattened(context, shot, ask)
    window = flattened.entries[ask.offset : ask.offset + ask.limit]
    pending += _read_ahead(context, window, ask.columns)
    rows = [_row(context, entry, ask) for entry in window]
    removed = [] if shot.rows else binned_below(context.catalogue.roots)
    return RunsAnswer(
        total=len(shot.rows),
        matched=flattened.matched,
        archived=flattened.archived,
        live=shot.live,
        rows_total=len(flattened.entries),
        offset=ask.offset,
        rows=rows,
        version=f"{context.identity}.{shot.version}.{context.facts.version}",
        pending=pending,
        did_you_mean=flattened.hint,
        conditions=[] if flattened.matched or not ask.search else settings_called([*shot.rows.values()], ask.search),
        unreadable=[plain(why) for why in shot.unreadable[:20]],
        unreadable_total=len(shot.unreadable),
        binned=len(removed),
        bin_of=pasted(os.path.dirname(removed[0][0].folder)) if removed else "",
        drawn=_drawn(context, shot, flattened, ask),
    )


def _drawn(context: ServerContext, shot: Snapshot, flattened: _Flat, ask: RunsAsk) -> Drawn | None:
    """The keys of what will be drawn, so that its curves can be requested as soon as the table is there."""
    if not ask.drawn and not ask.draw_first:
        return None
    chosen: Sequence[RunGroup[RunRow] | RunRow | None] = _first_of(flattened, ask.draw_first)
    if ask.drawn:
        groups = {entry.id: entry for entry in flattened.entries if isinstance(entry, RunGroup)}
        chosen = [groups.get(name) or shot.rows.get(name) for name in ask.drawn]
    if not chosen or None in chosen:  # the page looks for it elsewhere
        return None
    members = [head.members if isinstance(head, RunGroup) else [head] for head in chosen if head is not None]
    first = some_of(members, context.limits.first_runs)
    runs, examples = ([row.key for rows in part for row in rows] for part in (members, first))
    return Drawn(runs=runs, keys=keys(context, KeysAsk(runs=examples)), is_part=len(examples) < len(runs))


def _first_of(flattened: _Flat, many: int) -> list[RunGroup[RunRow] | RunRow]:
    """The first groups and runs, only of their section and without the members of open groups."""
    first: list[RunGroup[RunRow] | RunRow] = []
    for entry in flattened.entries:
        if isinstance(entry, RunGroup):
            first.append(entry)
        elif isinstance(entry, _Section):
            if first:
                break
        elif entry.member_of is None:
            first.append(entry.row)
        if len(first) == many:
            break
    return first


def _flattened(context: ServerContext, shot: Snapshot, ask: RunsAsk) -> tuple[_Flat, int]:
    """The whole table as one list, kept until a run changes; and how many numbers are still missing."""
    by_metric = [*(sort.column for sort in ask.sort), *metrics_in(ask.filter or "")]
    metrics = [column for column in by_metric if is_metric(column) or column in ("updated", "duration", "progress")]
    same = msgspec.structs.replace(ask, offset=0, limit=0, columns=[], drawn=[], draw_first=0)
    key, stamp = ("table", msgspec.json.encode(same)), (shot.version, context.facts.version if metrics else 0)
    pending = 0
    if metrics:
        wanted = facts_for(metrics)
        missing = [row for row in shot.rows.values() if not context.facts.is_fresh(row, wanted)]
        pending = context.facts.fetch(missing, wanted) if missing else 0
    # An order made without some of the numbers is not kept: they may arrive before the next request.
    flattened: _Flat | None = None if pending else context.answers.get(key, stamp)
    if flattened is None:
        flattened = _flatten(shot, ask, context)
        if not pending:
            context.answers.put(key, stamp, flattened, 200 * len(flattened.entries) + 1_000)
    return flattened, pending


def _flatten(shot: Snapshot, ask: RunsAsk, context: ServerContext) -> _Flat:
    known = context.facts.known
    result = _Flat()
    rows = list(shot.rows.values())
    result.archived = sum(row.is_archived for row in rows)
    if not ask.archived:
        rows = [row for row in rows if not row.is_archived]
    if ask.runs is not None:
        named = set(ask.runs)
        rows = [row for row in rows if row.key in named]
    rows, result.hint = fitting(context, rows, ask.filter, ask.search)
    result.matched = len(rows)
    order = _order(ask, known)
    rows.sort(key=lambda row: row.about.get("created") or 0, reverse=True)
    for column, descending in reversed(order):
        rows = by_value(rows, lambda row, column=column: value_of(column, row, known(row)), descending)  # type: ignore[misc]
    with_sections = ask.sections if ask.sections is not None else len({row.about.get("project") for row in rows}) > 1
    sections: dict[str, list[RunRow]] = {}
    for row in rows:
        sections.setdefault(str(row.about.get("project") or "") if with_sections else "", []).append(row)
    open_groups = set(ask.open)
    for name, members in sections.items():
        if with_sections:
            result.entries.append(_Section(name, members))
        if ask.group_by is None:
            result.entries += [_Run(row) for row in members]
            continue
        groups = groups_of(members, ask.group_by)
        for column, descending in reversed(order):
            groups = by_value(groups, lambda group, column=column: group_value(group, column, known), descending)  # type: ignore[misc]
        for group in groups:
            if len(group.members) == 1:
                result.entries.append(_Run(group.members[0]))
                continue
            result.entries.append(group)
            if group.id in open_groups:
                result.entries += [_Run(row, group.id) for row in group.members]
    return result


def fitting(
    context: ServerContext, rows: list[RunRow], condition: str | None, search: str | None
) -> tuple[list[RunRow], str | None]:
    """The runs that match a filter and a search; and a suggestion if the filter names an unknown field."""
    hint = None
    if condition and condition.strip():
        hint = field_hint(rows, condition)
        rows = filtered(rows, condition, context.facts.known, context.limits) if hint is None else []
    return searched(rows, search) if search else rows, hint


def _order(ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> list[tuple[str, bool]]:
    if len(ask.sort) > 5:
        raise Refused("too_large", f"{len(ask.sort)} columns to sort by; at most 5")
    return [(sort.column, sort.descending) for sort in ask.sort]


def _read_ahead(context: ServerContext, window: Sequence[_Entry], columns: Sequence[str]) -> int:
    """Read the numbers of a window within a time limit and the others in the background. Returns how many are
    missing."""
    wanted = facts_for(columns)
    shown: list[RunRow] = []
    late: list[RunRow] = []
    for entry in window:
        if isinstance(entry, RunGroup):
            unread = sum(context.facts.known(row) is None for row in entry.members)
            (late if unread > _FEW else shown).extend(entry.members)
        elif isinstance(entry, _Run):
            shown.append(entry.row)
    began = time.perf_counter()
    longest = _PATIENCE_FOR_NEWER if context.facts.is_reading else _PATIENCE  # the background reads them already
    if context.drawing:
        longest = 0.0
    for row in shown:
        patience = _PATIENCE_FOR_NEWER if row.is_live and context.facts.known(row) is not None else longest
        if time.perf_counter() - began > patience:
            late.append(row)
            continue
        try:
            context.facts.now(row, wanted)
        except Exception:  # one damaged run must not hide the table; its page shows what is wrong
            continue
    late = [row for row in late if not context.facts.is_fresh(row, wanted)]
    return context.facts.fetch(late, wanted) if late else 0


def _row(context: ServerContext, entry: _Entry, ask: RunsAsk) -> TableRow:
    known = context.facts.known
    if isinstance(entry, RunGroup):
        return group_row(entry, ask, known)
    if isinstance(entry, _Section):
        return section_row(entry.name, entry.runs)
    row = entry.row
    return table_row(row, ask.columns, known(row), own_words(context, row), entry.member_of)


ENDPOINTS = [
    Endpoint("POST", "/api/runs", RunsAsk, RunsAnswer, table_of_runs, "A window of the table of runs"),
]
