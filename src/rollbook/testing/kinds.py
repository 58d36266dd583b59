"""The contract of kinds of values."""

from __future__ import annotations

import json
from collections.abc import Callable

from rollbook.schema.tables import TABLES
from rollbook.testing.naming import naming
from rollbook.values.known import KINDS


def check_kind(value: object) -> None:
    """Run every check of `KIND_CHECKS` with a value of the kind.

    Args:
      value: a value of the kind.
    Raises:
      AssertionError: a check failed. A note names the rule, also at what the kind itself raises.
    """
    for name, check in KIND_CHECKS.items():
        with naming(name, check):
            check(value)


def is_listed_with_a_table(value: object) -> None:
    """Its class is in `KINDS`, and its table is one that sinks get rows of."""
    known = KINDS.of(value)
    if known is None:
        raise AssertionError(f"{type(value).__name__} is not in rollbook.values.known.KINDS: {', '.join(KINDS)}")
    table = TABLES.get(known[1].table)
    if table is None or not table.forwarded:
        raise AssertionError(f"its table {known[1].table!r} is not one that sinks get rows of")


def comes_back_from_its_row(value: object) -> None:
    """The row of its table returns an equal value under its key, also after conversion to JSON and back."""
    known = KINDS.of(value)
    assert known is not None
    cells = known[1].cells("scope/key", value)
    for way in (cells, json.loads(json.dumps(cells))):
        read_back = TABLES[known[1].table].values(way)
        if read_back != {"scope/key": value}:
            raise AssertionError(f"{value!r} came back as {read_back!r}")


def can_be_compared_and_shown(value: object) -> None:
    """It equals another one with the same fields, and its `repr` names them, for errors and tests."""
    known = KINDS.of(value)
    assert known is not None
    word, kind = known
    again = kind.value(kind.fields(value))
    if again != value or hash(again) != hash(value):
        raise AssertionError(f"a {word} made of the fields of {value!r} is another one: {again!r}")
    if not all(name in repr(value) for name in kind.columns):
        raise AssertionError(f"{value!r} does not name its fields {', '.join(kind.columns)}")


KIND_CHECKS: dict[str, Callable[[object], None]] = {
    check.__name__: check for check in (is_listed_with_a_table, comes_back_from_its_row, can_be_compared_and_shown)
}
"""Name -> check(a value of the kind)."""
