"""Views of rows with facts that became known later: `rollouts_now`.

A late fact is a separate row, so no row is ever rewritten. For each rollout its newest late fact counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollbook.schema.expressions import quoted
from rollbook.schema.tables import TABLES
from rollbook.storage import IDENTITY

VIEWS: dict[str, tuple[str, str, str]] = {"rollouts_now": ("rollouts", "fates", "rollout_id")}
"""View -> (table of the rows, table of the late facts, the column that joins them)."""


_OF_THE_UPDATE = ("gradient_step", "epoch")
"""Clocks taken from the late fact, if it has them."""


SEVERAL = "several facts"
"""Column: whether all late facts of a row must be read, because it has several or also shows values of its own."""


def view(
    name: str,
    columns: Mapping[str, Collection[str]],
    of: str = "",
    sources: tuple[str, str] | None = None,
    marked: bool = False,
) -> str:
    """The query of a view.

    It has every column of the rows and of their newest late fact. If both have a column, the late fact's value is used
    for fixed columns of the late table and clocks of the update, else the row's. A staleness that was not reported is
    computed as the difference of the versions.

    Args:
      columns: of the two tables, as they are now.
      of: a condition on the rows alone; late facts of other rows are not read.
      sources: views to read instead of the two tables.
      marked: with the column SEVERAL. The late facts are read twice, which is faster if there are many in files.
    """
    table, late, key = VIEWS[name]
    known, more = columns[table], columns[late]
    both = [key, *(["run"] if "run" in known and "run" in more else [])]  # for rows of several runs
    cells = _cells(name, columns)
    same = " and ".join(f"r.{quoted(column)} = f.{quoted(column)}" for column in both)
    order = ", ".join(f"{quoted(column)} desc" for column in ("time", "writer", "seq", "index") if column in more)
    by = ", ".join(map(quoted, both))
    table, late = sources or (table, late)
    rows = f"(select * from {quoted(table)} where {of})" if of else quoted(table)
    facts = quoted(late)
    if of:  # materialized: otherwise DuckDB reads the late facts of all rows
        facts = f"""(with own as materialized (select {quoted(key)} from {quoted(table)} where {of})
            select * from {quoted(late)} where {quoted(key)} in (select {quoted(key)} from own))"""
    newest = f"select * from {facts} qualify row_number() over (partition by {by} order by {order}) = 1"
    if marked:  # few rows have several: only theirs are sorted
        newest = f"""with several as materialized (select {by} from {facts} group by {by} having count(*) > 1)
            select *, false as is_of_several from {facts} anti join several using ({by}) union all
            select *, true as is_of_several from (select * from {facts} semi join several using ({by}))
            qualify row_number() over (partition by {by} order by {order}) = 1"""
        own_step = "r.gradient_step" if "gradient_step" in known else "null"
        step = "f.gradient_step" if "gradient_step" in more else "null"
        mixed = any(column in known for column in (*_of_late(name), "staleness"))  # then a row's own value may be shown
        is_apart = f"f.is_of_several or ({step} is null and {own_step} is not null)"
        cells[SEVERAL] = "true" if mixed else f"coalesce({is_apart}, false)"
    shown = ", ".join(f"{cell} as {quoted(column)}" for column, cell in cells.items())
    return f"select {shown} from {rows} r left join ({newest}) f on {same}"


def columns_of(name: str, columns: Mapping[str, Collection[str]]) -> list[str]:
    """The columns of a view, without asking for any row."""
    return list(_cells(name, columns))


def _cells(name: str, columns: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Column of a view -> what it is made of."""
    table, late, key = VIEWS[name]
    known, more = columns[table], columns[late]
    fixed = TABLES[late].columns
    own = [column for column in known if column not in _OF_THE_UPDATE]
    taken = {*own, *IDENTITY, "time", *_OF_THE_UPDATE}
    cells = {column: f"r.{quoted(column)}" for column in own if column not in fixed or column == key}
    for column in [*_of_late(name), *(column for column in more if column not in taken and column not in fixed)]:
        cells[column] = _first([("f", more), ("r", known)], column)
    version = 'r."policy_version"' if "policy_version" in known else "null::bigint"
    own_staleness = ', r."staleness"' if "staleness" in known else ""
    cells["staleness"] = f'coalesce(f."staleness", f."trained_version" - {version}{own_staleness})'
    cells.setdefault("policy_version", version)
    cells |= {column: _first([("f", more), ("r", known)], column) for column in _OF_THE_UPDATE}
    return {**cells, "fate_time": 'f."time"'}


def _of_late(name: str) -> list[str]:
    """The fixed columns of the late facts that a view shows as they are."""
    _table, late, key = VIEWS[name]
    return [column for column in TABLES[late].columns if column not in (key, "staleness")]


def _first(sources: list[tuple[str, Collection[str]]], column: str) -> str:
    """A column from the first source with a value in the row; null if none has one."""
    there = [f"{source}.{quoted(column)}" for source, columns in sources if column in columns]
    return f"coalesce({', '.join(there)})" if there else "null::bigint"
