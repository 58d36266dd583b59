"""What was not trained on: the groups of samples of one batch, by what became of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from rollbook.book.questions.asked import Unused
from rollbook.book.questions.positions import axis_of_rows, cells_of, position_in_sql, row_id
from rollbook.book.questions.rows_of_tables import see_samples
from rollbook.book.questions.source import Queries, Source
from rollbook.values.arrow import table_of

_MOST_NAMED = 50
_WHY = ("discard_reason", "discarded", "skip_reason", "not_trained")
"""Columns in which a program says why it did not train on a sample, the first that is set counts."""
_SCHEMA = [("reason", pa.string()), ("groups", pa.int64()), ("rows", pa.int64()), ("ids", pa.list_(pa.string()))]


class UnusedPage(NamedTuple):
    """The groups of a batch.

    Attributes:
      table: one row for each reason, those that were trained on first: the position of the batch, called as the axis,
        reason, groups, rows, and ids, a sample of each group, as `row_id` has them, at most 50.
      x: the axis; at: the position of the batch; None without samples in groups.
    """

    table: pa.Table
    x: str
    at: float | None = None


def groups_unused(question: Unused, source: Source) -> UnusedPage:
    """The groups of one batch: which were trained on, and which taught nothing.

    Raises:
      UnknownKey: the samples have no such axis.
    """

    def work(db: Queries) -> tuple[str, float | None, pa.Table]:
        columns = see_samples(db)
        x, began = axis_of_rows(source, question.x, columns, ())
        if "group" not in columns:
            return x, None, None
        position = position_in_sql(x, began, columns)
        away = "" if question.at is None else f"abs({position} - cast('{float(question.at)!r}' as double)), "
        order = f"order by {away}{position} desc limit 1"
        found = db.table(f"select {position} as x from seen where isfinite({position}) {order}")
        if not found.num_rows:
            return x, None, None
        at = float(found["x"][0].as_py())
        return x, at, db.table(f"select * from seen where {position} = cast('{at!r}' as double)")

    names = ["samples", *(["advantages"] if source.rows("advantages") else [])]
    x, at, here = source.asked(names, work) if source.rows("samples") else (question.x or "time", None, None)
    schema = pa.schema([(x, pa.float64()), *_SCHEMA])
    if here is None:
        return UnusedPage(table_of([], schema), x)
    groups: dict[object, list[dict[str, object]]] = {}
    for cells in cells_of(here):
        groups.setdefault(cells.get("group"), []).append(cells)
    reward = reward_column(here.column_names)
    fates: dict[str, list[list[dict[str, object]]]] = {}
    for members in groups.values():
        fates.setdefault(_fate(members, reward), []).append(members)
    rows = [
        {
            x: at,
            "reason": reason,
            "groups": len(those),
            "rows": sum(map(len, those)),
            "ids": [row_id(members[0]) for members in those[:_MOST_NAMED]],
        }
        for reason, those in sorted(fates.items(), key=lambda pair: (pair[0] != _TRAINED_ON, -len(pair[1])))
    ]
    return UnusedPage(table_of(rows, schema), x, at)


_TRAINED_ON = "trained on"


def reward_column(names: Sequence[str]) -> str | None:
    """The column with the score of a sample."""
    if "reward" in names:
        return "reward"
    return next((name for name in names if name.startswith(("rewards/", "reward"))), None)


def _fate(members: list[dict[str, object]], reward: str | None) -> str:
    """Why a group was not trained on: as the run reports it of most of its rows, else judged by its rewards."""
    reasons = Counter(_reason_of(cells) for cells in members)
    why = min(reasons, key=lambda reason: (-reasons[reason], reason is None, str(reason)))
    if why is not None:
        return why
    scores = [cells.get(reward) for cells in members] if reward else []
    known = [float(score) for score in scores if isinstance(score, (int, float)) and math.isfinite(score)]
    if len(known) > 1 and min(known) == max(known):
        return f"all rewards equal, {known[0]:g}"
    return _TRAINED_ON


def _reason_of(cells: Mapping[str, object]) -> str | None:
    for name in _WHY:
        given = cells.get(name)
        if given:
            return given if isinstance(given, str) else name.replace("_", " ")
    return None
