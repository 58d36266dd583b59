"""The questions about the rollouts of a run that have one answer each: what became of them, what broke, what was lost.

`rollout_questions.py` has their queries; here they are asked of a source.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rollbook.book.questions.asked import Prompts, RolloutAnswer, RolloutCurves
from rollbook.book.questions.prompts import chosen_prompts
from rollbook.book.questions.rollout_curves import chosen_curves
from rollbook.book.questions.rollouts import check_solved, see_rollouts
from rollbook.book.questions.source import Queries, Source, kept
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.errors import UnknownKey
from rollbook.schema.expressions import literal

ROLLOUTS = ("rollouts", "fates")
OTHER_TABLES = {"tools": ("turns",), "tokens": ("tokens", "fates"), "time": ("rollouts",)}
"""Question -> the tables that it reads, where they are not rollouts and fates."""


def answered(question: RolloutAnswer, source: Source) -> pa.Table:
    """The answer to a question; the most important row comes first.

    Raises:
      BadInput: there is no such question, or it lacks its rollout.
      UnknownKey: there is no such rollout.
    """
    if question.question == "prompts":
        return chosen_prompts(Prompts(solved=question.solved, limit=question.limit), source).table
    if question.question == "curves":
        return chosen_curves(RolloutCurves(solved=question.solved), source).slice(0, question.limit)
    names = OTHER_TABLES.get(question.question, ROLLOUTS)
    return source.asked(names, lambda db: answer_in(db, question))


def answer_in(db: Queries, question: RolloutAnswer) -> pa.Table:
    """The answer to a question, of which the tables are open."""
    of = OTHER_TABLES.get(question.question, ROLLOUTS)
    limit = question.limit

    def ask(query: str) -> pa.Table:
        return kept(db, query, of)

    check_solved(db, question.solved)
    if question.question == "tokens":
        return RolloutQueries.worst_tokens(ask, among(db, "tokens"), limit)
    if question.question not in ("tools", "time", "lost"):
        see_now(db, make=question.question != "words")
    if question.question == "words":
        own = None if db.keeps or not db.in_files else _joined_of(db)
        return RolloutQueries.words(ask, among(db, "rollouts"), limit, own)
    solved = RolloutQueries.condition(question.solved) or RolloutQueries.SOLVED
    most = "" if limit is None else f" limit {int(limit)}"
    answer = ask(f"{RolloutQueries.answer(question.question, question.rollout_id, solved)}{most}")
    if question.question == "history" and not answer.num_rows:
        there = db.table(f"select 1 from rollouts where rollout_id = {literal(str(question.rollout_id))} limit 1")
        if not there.num_rows:
            raise UnknownKey(f"there is no rollout {question.rollout_id!r:.80}.", "`rollouts` lists them")
    return answer


def see_now(db: Queries, *, make: bool = True) -> None:
    """Create the view `rollouts_now`, where a source keeps answers without texts; `make` as in `see_rollouts`."""
    if db.keeps:
        see_rollouts(db, make=make)
        db.view("rollouts_now", "select * from slim")
    else:
        db.view("rollouts_now", RolloutQueries(db.columns).now())


def among(db: Queries, table: str) -> Callable[[str, str], pa.Table]:
    """What answers one of our own queries (`with …`) where a table has only the rows that meet a condition."""

    def answer(query: str, condition: str) -> pa.Table:
        db.only("some_rows", table, condition)
        alone = f"with {table} as (select * from some_rows), {query.removeprefix('with ')}"
        return kept(db, alone, [table, condition])

    return answer


def _joined_of(db: Queries) -> Callable[[str, str], pa.Table]:
    """What answers a query where `rollouts_now` has only the rollouts that meet a condition."""

    def answer(query: str, condition: str) -> pa.Table:
        db.only("some_rollouts", "rollouts", condition)
        db.view("some_fates", "select * from fates where rollout_id in (select rollout_id from some_rollouts)")
        now = RolloutQueries(db.columns).now(sources=("some_rollouts", "some_fates"))
        return db.table(f"with rollouts_now as ({now}), {query.removeprefix('with ')}")

    return answer
