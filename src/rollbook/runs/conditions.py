"""Conditions on runs, in DuckDB's SQL: `config.lr < 3e-4 and status = 'finished' and tags has 'paper'`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rollbook.errors import BadInput
from rollbook.runs.fields import column_of, field_names, field_of, is_field, values_at
from rollbook.schema.expressions import condition
from rollbook.schema.sql_names import SqlNames, inner
from rollbook.system.duckdb_here import cursor
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa


def holds(
    text: str,
    rows: Sequence[Mapping[str, object]],
    evaluate: Callable[[str, pa.Table], list[bool | None]] | None = None,
) -> list[bool]:
    """For each run, whether a condition is true; false if the run lacks a compared value.

    Args:
      evaluate: returns the result column of a query over a table called `fields`, or raises BadInput; default: DuckDB
        in this process.
    Raises:
      BadInput: the condition is invalid, names a field that no run has, or compares values that have no order.
    """
    asked = f"condition {text!r:.200}"
    expression = condition(text)
    if not all(is_field(".".join(path), rows) for path in expression.columns):
        # A name with a slash or a hyphen needs no quotes; if all its parts are fields, too, it is a division.
        expression = condition(text, names=field_names(rows))
    names = {path: field_of(".".join(path), rows, asked) for path in expression.columns}
    if not rows:
        return []
    parts = SqlNames({"": [part for path in names for part in path]})
    table, view, mixed = _columns(names, rows, parts.confused)
    asked_of = parts.query(expression.text)
    query = f"select coalesce(({asked_of})::boolean, false) from (select {view} from fields) as runs"
    try:
        return [bool(wanted) for wanted in (evaluate or _evaluated)(query, table)]
    except BadInput as err:
        message = str(err).strip().partition("\n")[0]
        odd = f" Runs disagree about what {', '.join(mixed)} is, so it is compared as text." if mixed else ""
        raise BadInput(f"{asked} cannot be answered: {message}.{odd}") from None


def answered_by(fields: Collection[str], text: str, rows: Sequence[Mapping[str, object]]) -> list[bool] | None:
    """`holds` for runs of which only these fields are known; None if the condition names others, or is invalid."""
    try:
        if any(path[0] not in fields for path in condition(text).columns):
            return None
        return holds(text, rows)
    except BadInput:
        return None


def _evaluated(query: str, table: pa.Table) -> list[bool | None]:
    duckdb = need("duckdb", extra="sql", why="where()")
    try:
        with cursor("where()") as connection:
            connection.register("fields", table)
            (answer,) = connection.execute(query).fetchnumpy().values()
            values: list[bool | None] = answer.tolist()
            return values
    except duckdb.Error as err:
        raise BadInput(str(err)) from None


def _columns(
    names: Mapping[tuple[str, ...], str], rows: Sequence[Mapping[str, object]], confused: Collection[str]
) -> tuple[pa.Table, str, list[str]]:
    """The named fields as flat columns, SQL that restores their dotted names, and which columns became text."""
    import pyarrow as pa

    from rollbook.values.arrow import strings

    arrays: list[pa.Array] = []
    tree: dict[str, Any] = {}
    mixed: list[str] = []
    for index, (path, name) in enumerate(names.items()):
        values = values_at(rows, name)
        column = f'"{index}"'
        if name == "tags":
            array = strings(["\x1f".join(map(str, value or ())) for value in values])
            column = f"string_split({column}, '\x1f')"
        else:
            array, as_text = column_of(values)
            if as_text:
                mixed.append(name)
        arrays.append(array)
        branch = tree
        path = tuple(inner(part) if part in confused else part for part in path)
        for part in path[:-1]:
            branch = branch.setdefault(part, {})
            if not isinstance(branch, dict):
                raise BadInput(f"{name!r} is asked for as a value and as a group of values.", "Ask for one of them")
        branch[path[-1]] = column
    if not arrays:
        return pa.table({"none": pa.nulls(len(rows))}), "1", mixed
    table = pa.Table.from_arrays(arrays, names=[str(index) for index in range(len(arrays))])
    return table, ", ".join(f"{_packed(inner)} as {_quoted(name)}" for name, inner in tree.items()), mixed


def _packed(tree: object) -> str:
    if not isinstance(tree, dict):
        return str(tree)
    return "struct_pack(" + ", ".join(f"{_quoted(name)} := {_packed(inner)}" for name, inner in tree.items()) + ")"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
