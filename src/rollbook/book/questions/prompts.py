"""The prompts of the rollouts: how often each was tried and solved, in all and in the last fifth of training."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pyarrow as pa

from rollbook.book.questions.asked import Prompts
from rollbook.book.questions.rollouts import check_solved, see_rollouts
from rollbook.book.questions.source import Queries, Source
from rollbook.book.questions.windows import check_columns, containing, words_of
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.schema.expressions import condition, order
from rollbook.schema.solved import number_in

SOLVED = {"never": "solved = 0", "sometimes": "solved > 0 and solved < rollouts", "always": "solved = rollouts"}
"""How often a prompt is solved, as a condition on its row."""
_APART = ("begin", "width", "strip", "by_update")
"""Columns that do not describe a prompt; conditions cannot use them."""


class PromptPage(NamedTuple):
    """Prompts of a run.

    Attributes:
      table: those of the window.
      x: the axis of the rollouts.
      above: a rollout with a reward above this solved its prompt, unless `solved` is a condition.
      recent_from: the position where the last fifth of training begins; last: that of the last rollout.
      begin, width: of the stretches, if there are any.
      total: number of prompts; never, sometimes, always: how many are solved that often; matched: how many match.
    """

    table: pa.Table
    x: str = "gradient_step"
    above: float | None = None
    recent_from: int | None = None
    last: int | None = None
    begin: int | None = None
    width: int | None = None
    total: int = 0
    never: int = 0
    sometimes: int = 0
    always: int = 0
    matched: int = 0


def chosen_prompts(question: Prompts, source: Source, *, counted: bool = False, text: str = "prompt") -> PromptPage:
    """The prompts that a question asks for.

    Args:
      counted: whether to count all prompts, the matching ones, and those solved never, sometimes and always.
      text: the SQL expression over `prompt` that is shown.
    Raises:
      BadInput: a condition or order that cannot be understood, an unknown column in it, or another `x`.
    """
    names = ["rollouts", "fates", "tasks"]
    return source.asked(names, lambda db: _page(db, question, counted, text), question.attempts)


def _page(db: Queries, question: Prompts, counted: bool, text: str) -> PromptPage:
    check_solved(db, question.solved)
    if db.keeps:
        see_rollouts(db)
    queries = RolloutQueries(db.columns, db.streams, "slim" if db.keeps else "", db.empty)
    each = queries.prompts(question.x, question.mode, queries.condition(question.solved), question.stretches)
    db.hold("counted", each, ["rollouts", "fates"])
    x = question.x or axis_in(db.table("select by_update from counted limit 1"))
    known = [name for name in db.table("select * from counted limit 0").column_names if name not in _APART]
    columns = [*known, "prompt"]
    words, given = words_of(question.search), None
    if question.where is not None:
        given = condition(question.where, of_rows=True)
    ordered = None if question.order_by is None else order(question.order_by)
    named = [name for each in (given, ordered) if each is not None for name in each.columns]
    check_columns(named, columns)
    # The texts are large: unless a condition needs them, only those of the window are read, last.
    every = "counted"
    if words or any(name.lower() == "prompt" for name, *_inside in named):
        whole = "select task_id, any_value(prompt) as prompt from tasks group by 1"
        every = f"(select * from counted left join ({whole}) using (task_id))"
    conditions = [*containing(words, ["prompt"]), *([given.text] if given is not None else [])]
    conditions += [] if question.only is None else [SOLVED[question.only]]
    where = f" where {' and '.join(conditions)}" if conditions else ""
    in_order = ", ".join([*([ordered.text] if ordered is not None else []), "rate", "rollouts desc", "task_id"])
    last = "" if question.limit is None else f" and rank <= {int(question.offset) + int(question.limit)}"
    apart = [*(["prompt"] if every != "counted" else []), *(["by_update"] if question.x is None else [])]
    shown = f" exclude ({', '.join(apart)})" if apart else ""
    table = db.table(
        f"""with w as (select *{shown}, row_number() over (order by {in_order}) as rank from {every}{where}
          qualify rank > {int(question.offset)}{last}),
        t as (select task_id, any_value({text}) as prompt from tasks
          where task_id in (select task_id from w) group by 1)
        select task_id, t.prompt, w.* exclude (task_id, rank) from w left join t using (task_id) order by rank"""
    )
    if not counted:
        return PromptPage(table, x)
    counts = ", ".join(f"count(*) filter ({fits}) as {name}" for name, fits in SOLVED.items())
    progress = "any_value(recent_from) as recent_from, max(last) as last"
    progress += ", min(begin) as begin, any_value(width) as width" if question.stretches else ""
    (row,) = db.table(f"select count(*) as total, {counts}, {progress} from counted").to_pylist()
    matched = row["total"] if not where else db.table(f"select count(*) as n from {every}{where}")["n"][0].as_py()
    above = db.table(queries.ABOVE)["above"][0].as_py() if question.solved is None else number_in(question.solved)
    return PromptPage(table, x, above, matched=int(matched), **row)


def axis_in(counted: pa.Table) -> Literal["gradient_step", "policy_version"]:
    """The axis of the rollouts, given the answer to `RolloutQueries.by_update`; without rollouts the update."""
    is_by_update = not counted.num_rows or counted["by_update"][0].as_py()
    return "gradient_step" if is_by_update else "policy_version"
