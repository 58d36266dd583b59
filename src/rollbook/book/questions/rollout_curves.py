"""The rollouts of each update counted: reward, length, failures, groups, staleness, waste."""

from __future__ import annotations

import pyarrow as pa

from rollbook.book.questions.asked import RolloutCurves
from rollbook.book.questions.prompts import axis_in
from rollbook.book.questions.rollouts import check_solved
from rollbook.book.questions.source import Queries, Source, kept
from rollbook.book.rollout_curves import RolloutQueries

_OF = ("rollouts", "fates")


def chosen_curves(question: RolloutCurves, source: Source) -> pa.Table:
    """A row for each update, in order; the column with its number is called as `x`.

    Raises:
      BadInput: another `x`, or a condition that cannot be understood.
    """
    return source.asked(_OF, lambda db: curves_in(db, question), frugal=True)


def curves_in(db: Queries, question: RolloutCurves, now: str = "") -> pa.Table:
    """The answer, of which the tables are open; `now` as in `RolloutQueries`."""
    check_solved(db, question.solved)
    queries = RolloutQueries(db.columns, db.streams and not now, now, db.empty)
    x = question.x
    if x is None and queries.has_no_version():
        x = "gradient_step"
    solved = queries.condition(question.solved)
    if x is None:  # the axis is in what the curves read: the files are read once for both
        tables, rows = ({}, f"select * from {now}") if now else queries.hold(solved)
        for name, query in tables.items():
            db.hold(name, query, _OF)
        x = axis_in(db.table(f"with now as ({rows}) select {queries.by_update} as by_update from now"))
    return kept(db, queries.curves(x, question.mode, solved), _OF)
