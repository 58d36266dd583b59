"""Rows of the table of runs: of one run, of a group, of a section."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rollbook.server.catalogue import RunRow
from rollbook.server.cells import finite, plain
from rollbook.server.columns import axis_of, cell_of, common, is_metric, metric_of, progress_of, value_of
from rollbook.server.facts import Facts
from rollbook.server.folding import RunGroup
from rollbook.server.group_numbers import group_cell
from rollbook.server.schemas.runs import RunsAsk, TableRow

__all__ = ["group_row", "section_row", "table_row"]


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


def table_row(row: RunRow, columns: Sequence[str], facts: Facts | None, member_of: str | None = None) -> TableRow:
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


def group_row(group: RunGroup, ask: RunsAsk, known: Callable[[RunRow], Facts | None]) -> TableRow:
    """A group as a row of the table; cells of metrics have the centre of its members."""
    cells: dict[str, object] = {}
    for column in ask.columns:
        values = [value_of(column, row, known(row)) for row in group.members]
        cells[column] = group_cell(values, len(values)) if is_metric(column) else common(values)
    damaged = sum(bool(_damage(known(row))) for row in group.members)
    heard = [facts.heard for row in group.members if (facts := known(row)) is not None and facts.heard is not None]
    created = [float(row.about["created"]) for row in group.members if finite(row.about.get("created")) is not None]
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
        damaged=f"{damaged} of {len(group.members)} runs have parts that cannot be read" if damaged else "",
        open=group.id in ask.open,
        done=_done(group.members, known),
        created=max(created, default=None),
        updated=max(heard, default=None),
    )


def _is_awaited(column: str, facts: Facts | None) -> bool:
    """Whether a cell is empty only because its number was not read yet."""
    if not is_metric(column):
        return False
    which, key = metric_of(column)
    return facts is None or (which != "last" and key in facts.latest and key not in facts.extremes)


def _text(value: object) -> str | None:
    return None if value is None else str(plain(str(value)))
