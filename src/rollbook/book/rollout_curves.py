"""Rollouts counted: curves (reward, length, failures, groups, staleness, waste, time) for each update, and prompts.

They are computed on reading. The facts of one update come late and from several processes (samplers, reward workers,
trainers), so no writing process could log the curves correctly; and rows abandoned by a rewind must not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from rollbook.book.completions import completions
from rollbook.book.late_facts import SEVERAL, view
from rollbook.book.rollout_questions import (
    FATE,
    ROLLOUT_QUESTIONS,
    answer_query,
    words_of_high_advantage,
    worst_tokens,
)
from rollbook.book.sql import apart
from rollbook.errors import BadInput
from rollbook.schema.expressions import literal, quoted
from rollbook.schema.tables import TABLES
from rollbook.storage import IDENTITY

_KINDS = {"text": "varchar", "number": "double", "integer": "bigint", "boolean": "boolean"}
_TYPES = {
    name: _KINDS[kind]
    for table in ("rollouts", "fates")
    for name, kind in TABLES[table].columns.items()
    if name not in ("rollout_id", "trained_version", "staleness")
}
"""Columns of the two tables that need not be read -> their types in SQL."""
_WHEN = ("time", "writer", "seq", "index")
_STEPS = ("gradient_step", "policy_version")
_SHORT = {"rollout_id", "task_id", "group", "batch", "mode", "status", *_STEPS}
_MIDDLE = "reward > (select (min(reward) + max(reward)) / 2 from {})"

_ROLLOUTS = {
    "rollout/n": "count(*)",
    "rollout/reward": "avg(reward)",
    "rollout/length": "avg(sampled_tokens)",
    "rollout/truncated": "avg((status = 'truncated')::int)",
    "rollout/failed": "avg((status in ('failed', 'aborted'))::int)",
    "rollout/turns": "avg(turns)",
    "rollout/tool_errors": "sum(tool_errors) / nullif(sum(tool_calls), 0)",
    "rollout/used": "avg((used and reason is null)::int)",
    "rollout/waiting": "count(*) filter (used is null)",
    "tokens/sampled": "sum(sampled_tokens)",
    "tokens/wasted": "coalesce(sum(sampled_tokens) filter (not used or reason is not null), 0)",
    "time/model_seconds": 'sum("seconds/model")',
    "time/tools_seconds": 'sum("seconds/tools")',
    "time/reward_seconds": 'sum("seconds/reward")',
    "time/queue_seconds": 'sum("seconds/queue")',
}
_GROUPS = {
    "group/n": "count(*)",
    "group/solved_all": "avg(every_solved::int)",
    "group/solved_none": "avg((not any_solved)::int)",
    "group/zero_std": "avg((low = high)::int)",
    "group/used": "avg(any_used::int)",
}
_FATES = {
    "policy/staleness_mean": "avg(staleness)",
    "policy/staleness_max": "max(staleness)",
    "policy/gap_mean": "avg(gap_mean)",
    "policy/gap_max": "max(gap_max)",
    "policy/clipped": "avg(clipped)",
    "policy/ratio_max": "max(ratio_max)",
    "policy/kl": "avg(kl)",
}
_OF_USE = ("gap_mean", "gap_max", "clipped", "ratio_max", "kl")
CURVES = (*_ROLLOUTS, *_GROUPS, *_FATES)
"""The columns that always exist; `rollout/<part>` of each part of the reward follows `rollout/reward`."""


class RolloutQueries:
    """Queries over the rollouts of a run.

    Args:
      columns: of the tables rollouts and fates.
      in_one_pass: read each of the two tables once, into memory: for rows of the journal, which take long to decode.
      now: a table with the rows of `slim`, which is read instead of joining the two.
      empty: columns of the two tables that have no value; they are not read.
    Attributes:
      SOLVED: default condition for a solved task: a reward above the middle of the run's lowest and highest.
      FATE: what became of a rollout, as an expression over `rollouts_now`.
      QUESTIONS: question -> what it asks.
      answer: the query for a question; `worst_tokens` and `words` ask those of several queries.
      apart: a condition as two: of what names none of some columns, and of what may.
    """

    FATE: ClassVar = FATE
    QUESTIONS: ClassVar = ROLLOUT_QUESTIONS
    answer = staticmethod(answer_query)
    worst_tokens = staticmethod(worst_tokens)
    words = staticmethod(words_of_high_advantage)
    apart = staticmethod(apart)
    SOLVED: ClassVar = _MIDDLE.format("rollouts")

    def __init__(
        self, columns: Mapping[str, Collection[str]], in_one_pass: bool = False, now: str = "",
        empty: Mapping[str, Collection[str]] | None = None,
    ) -> None:  # fmt: skip
        self._columns, self.in_one_pass, self._now, self._empty = columns, in_one_pass, now, empty or {}
        self._rows, self._facts = ("own", "facts") if in_one_pass else ("rollouts", "fates")

    def now(self, of: str = "", sources: tuple[str, str] | None = None) -> str:
        """The view `rollouts_now`: each rollout with its newest fate.

        Args:
          of: a condition on the rollouts alone.
          sources: views to read instead of the tables rollouts and fates.
        """
        return view("rollouts_now", self._columns, of, sources)

    def slim(self) -> tuple[str, str]:
        """The view `rollouts_now` without texts, errors and columns of the caller's: what questions over all need.

        Returns:
          A query without the columns that have no value, and what selects all columns from its answer.
        """
        of_row = {name for name, kind in TABLES["rollouts"].columns.items() if kind != "text"} | _SHORT
        of_fate = {*TABLES["fates"].columns, *_STEPS, "epoch"}
        needed = {
            "rollouts": [
                name for name in self._columns["rollouts"]
                if name in of_row or name in _WHEN or name.startswith(("rewards/", "metrics/", "seconds/"))
            ],
            "fates": [name for name in self._columns["fates"] if name in of_fate or name in _WHEN],
        }  # fmt: skip
        return self._filled(needed, ["writer"], marked=True)

    def completions(self) -> str:
        """The view `completions`; `columns` then include those of samples and tasks."""
        return completions(self._columns)

    def curves(self, x: str, mode: str | None = None, solved: str = SOLVED) -> str:
        """One row per reading of `x`.

        Args:
          x: "gradient_step": a rollout counts at the first update that handled it, or before that at its own clock;
            "policy_version": at the version that began it.
          mode: only rollouts of this mode; None: all except evaluations.
          solved: SQL condition for a solved task; the caller checks it.
        Raises:
          BadInput: another x.
        """
        if x not in _STEPS:
            raise BadInput(f"rollout_curves(x={x!r}): pass {' or '.join(map(repr, _STEPS))}")
        known = self._columns["rollouts"]
        rewards = [name for name in known if name.startswith("rewards/")]
        parts = {f"rollout/{name[8:]}": f"avg({quoted(name)})" for name in sorted(rewards)}
        rows = [*list(_ROLLOUTS.items())[:2], *parts.items(), *list(_ROLLOUTS.items())[2:]]
        same = ["x", '"group"', *(name for name in ("task_id", "batch") if name in known)]
        return f"""
    with {self._needed(solved.lower(), of_each=False)}, r as ({self._placed(x, mode, solved)}),
    a as (select x, {_listed(dict(rows))} from r where x is not null group by x),
    g as (select x, bool_and(is_solved) as every_solved, bool_or(is_solved) as any_solved, min(reward) as low,
        max(reward) as high, coalesce(bool_or(used and reason is null), false) as any_used
      from r where x is not null and "group" is not null group by {", ".join(same)}),
    b as (select x, {_listed(_GROUPS)} from g group by x),
    f as ({self._used(x, mode)}),
    c as (select x, {_listed(_FATES)} from f where x is not null group by x)
    select x as {quoted(x)}, a.* exclude (x), b.* exclude (x), c.* exclude (x)
    from a left join b using (x) full join c using (x) order by x"""

    def prompts(self, x: str, mode: str | None = None, solved: str = SOLVED, stretches: int = 0) -> str:
        """One row per prompt (task): how often it was tried and solved, in all and in the last fifth of training.

        Args:
          x, mode, solved: as for `curves`. The last fifth is that of the readings of `x`.
          stretches: at most so many equal parts of training, in `strip` as a list of {stretch, n, k}: k of n attempts
            solved it. Those without an attempt are left out; `begin` and `width` say where they lie. 0: without these.
        Raises:
          BadInput: another x.
        """
        if x not in _STEPS:
            raise BadInput(f"rollout_prompts(x={x!r}): pass {' or '.join(map(repr, _STEPS))}")
        same = [name for name in ("task_id", "group", "batch") if name in self._columns["rollouts"]]
        group = ", ".join(f"r.{quoted(name)}" for name in same)
        strips, with_strips = "", ""
        if stretches:
            strips = """, s as (select task_id, (x - first_x) // width as stretch, any_value(first_x) as first_x,
        any_value(width) as width, count(*) as n, count(*) filter (is_solved) as k
      from r, ends where task_id is not null and x is not null group by 1, 2),
    strips as (select task_id, any_value(first_x) as begin, any_value(width) as width,
        list({stretch: stretch, n: n, k: k} order by stretch) as strip from s group by 1)"""
            with_strips = " left join strips using (task_id)"
        return f"""
    with {self._needed(solved.lower())},
    r as materialized (select r.x, r.is_solved, r.reward, r.rollout_id, r.time, {group}
      from ({self._placed(x, mode, solved)}) r),
    ends as (select (floor(max(x) - (max(x) - min(x) + 1) / 5) + 1)::bigint as since, min(x)::bigint as first_x,
        greatest(1, ceil((max(x) - min(x) + 1) / {stretches or 1}))::bigint as width from r),
    g as (select task_id, count(*) as groups
      from (select distinct {group} from r where "group" is not null) group by 1),
    p as (select task_id, count(*) as rollouts, count(*) filter (is_solved) as solved,
        any_value(since) as recent_from, count(*) filter (x >= since) as recent_rollouts,
        count(*) filter (x >= since and is_solved) as recent_solved,
        min(x) as first, max(x) as last, max(reward) as best, max_by(rollout_id, (time, rollout_id)) as rollout_id
      from r, ends where task_id is not null group by 1){strips}
    select p.task_id, p.rollouts, coalesce(g.groups, 0) as groups, p.solved, p.solved / p.rollouts as rate,
      {self.interval("p.solved", "p.rollouts")}, p.recent_rollouts, p.recent_solved,
      p.recent_solved / nullif(p.recent_rollouts, 0) as recent_rate,
      {self.interval("p.recent_solved", "p.recent_rollouts", "recent_")},
      p.recent_from, p.first, p.last, p.best, p.rollout_id{", begin, width, strip" if stretches else ""}
    from p left join g using (task_id){with_strips}"""

    @staticmethod
    def interval(k: str, n: str, prefix: str = "") -> str:
        """Two columns, `low` and `high`: the 95 % interval of a share (Wilson 1927); null if n is 0.

        Args:
          k, n: columns; k of n are counted.
          prefix: of the names of the two columns.
        """
        z = 1.959964
        middle = f"({k} + {z * z / 2}) / ({n} + {z * z})"
        half = f"{z} / ({n} + {z * z}) * sqrt({k} * ({n} - {k}) / {n} + {z * z / 4})"
        return (
            f"case when {n} = 0 then null when {k} = 0 then 0.0 else {middle} - {half} end as {prefix}low, "
            f"case when {n} = 0 then null when {k} = {n} then 1.0 else {middle} + {half} end as {prefix}high"
        )

    def _used(self, x: str, mode: str | None) -> str:
        """The uses, each with its reading of `x`; of rollouts with one fate from `now`."""
        known, place, is_there = self._columns["rollouts"], self._step(), _in_mode(mode)
        if x == "policy_version":
            place = "r.policy_version"
        version = "policy_version" if "policy_version" in known else "null::bigint as policy_version"
        of_facts = f"""select {place} as x, {", ".join(f"f.{name}" for name in _OF_USE)},
        coalesce(f.staleness, f.trained_version - r.policy_version) as staleness
      from ({self._uses()}) f join (select rollout_id, mode, {version} from {self._rows}) r using (rollout_id)
      where f.used and {is_there}"""
        if self.in_one_pass:
            return of_facts
        return f"""select {x} as x, {", ".join(_OF_USE)}, staleness
      from now r where used and not {SEVERAL} and {is_there} union all {of_facts}"""

    def _facts_of_several(self) -> str:
        """The fates that `now` does not have. Read in one pass: all."""
        if self.in_one_pass:
            return self._facts
        return f"(select * from {self._facts} where rollout_id in (select rollout_id from now where {SEVERAL}))"

    def _needed(self, solved: str, *, of_each: bool = True) -> str:
        """`now`: the view `rollouts_now` with the columns that a curve reads; and both tables, if read in one pass.

        All rows of these columns are in memory at once.

        Args:
          solved: columns that it names are there. of_each: also the time and the id of each rollout; without, the ids
            are there where all fates must be read.
        """
        if self._now:
            return f"now as not materialized (select * from {self._now})"
        read = {"rollout_id", "mode", "policy_version", "gradient_step", "group", "task_id", "batch", "used", "reason"}
        read |= {"reward", "sampled_tokens", "status", "turns", "tool_errors", "tool_calls"}
        read |= {"time"} if of_each else set()
        read |= {name for name in self._columns["rollouts"] if name.startswith(("rewards/", "seconds/"))}
        fixed = {"rollouts": read, "fates": {*TABLES["fates"].columns, "gradient_step", "epoch", *_WHEN}}
        needed = {
            table: [name for name in self._columns[table] if name in [*fixed[table], "run"] or name.lower() in solved]
            for table in fixed
        }
        of_late = [name for name in needed["fates"] if name not in (*IDENTITY, "time")]
        shown = dict.fromkeys([*needed["rollouts"], *of_late, "staleness", "fate_time"])
        read |= set() if self.in_one_pass else {"staleness", *_OF_USE}
        unread = [name for name in shown if name not in read and name.lower() not in solved]
        own = [
            f"{name} as materialized (select {', '.join(map(quoted, needed[table]))} from {table}), "
            for name, table in ((self._rows, "rollouts"), (self._facts, "fates"))
            if self.in_one_pass
        ]
        made, shown_of = self._filled(needed, unread, (self._rows, self._facts), marked=not self.in_one_pass)
        if not (of_each or self.in_one_pass or "rollout_id" in solved):  # long texts
            made = f"select * replace (case when {SEVERAL} then rollout_id end as rollout_id) from ({made})"
        kept = "not materialized" if self.in_one_pass else "materialized"
        return f"""{"".join(own)}filled as {kept} ({made}), now as not materialized (select {shown_of} from filled)"""

    def _filled(
        self, needed: Mapping[str, Collection[str]], unread: Collection[str],
        sources: tuple[str, str] | None = None, *, marked: bool,
    ) -> tuple[str, str]:  # fmt: skip
        """The view `rollouts_now` of some columns: a query of those with values, and the list that selects all."""
        filled = {name for table, names in needed.items() for name in names if name not in self._empty.get(table, ())}
        lacking = {
            name: _TYPES[name] for names in needed.values() for name in names if name in _TYPES and name not in filled
        }
        of_both = {table: [name for name in names if name not in lacking] for table, names in needed.items()}
        made = view("rollouts_now", of_both, sources=sources, marked=marked)
        late = [name for name in lacking if name in TABLES["fates"].columns]  # the view has them in any case
        left_out = [*(name for name in unread if name not in lacking), *late]
        shown = [f"null::{kind} as {quoted(name)}" for name, kind in lacking.items() if name not in unread]
        return f"select * exclude ({', '.join(map(quoted, left_out))}) from ({made})", ", ".join(["*", *shown])

    def _step(self) -> str:
        return "f.gradient_step" if "gradient_step" in self._columns["fates"] else "null::bigint"

    def _placed(self, x: str, mode: str | None, solved: str) -> str:
        """The rollouts of a mode, each with its reading of `x`, and whether it solved its task."""
        place = "coalesce(u.first_step, r.gradient_step)" if x == "gradient_step" else "r.policy_version"
        solved = _MIDDLE.format(self._rows) if solved == self.SOLVED else solved
        # Of one use, rollouts_now has the update.
        several = "group by rollout_id having count(*) > 1"
        first = f"select rollout_id, min({self._step()}) as first_step from {self._facts_of_several()} f {several}"
        return f"""select {place} as x, r.*, coalesce(({solved}), false) as is_solved
      from now r left join ({first}) u using (rollout_id) where {_in_mode(mode)}"""

    def _uses(self) -> str:
        """The fates without those of a use that was reported again: the newest counts."""
        known = self._columns["fates"]
        if "gradient_step" not in known:
            return f"select * from {self._facts_of_several()}"
        by = ", ".join(quoted(name) for name in ("rollout_id", "gradient_step", "epoch", "run") if name in known)
        order = ", ".join(f"{quoted(name)} desc" for name in _WHEN if name in known)
        newest = f"row_number() over (partition by {by} order by {order}) = 1"
        return f"select * from {self._facts_of_several()} qualify gradient_step is null or {newest}"


def _in_mode(mode: str | None) -> str:
    return "r.mode is distinct from 'eval'" if mode is None else f"r.mode = {literal(mode)}"


def _listed(cells: Mapping[str, str]) -> str:
    return ", ".join(f"{cell} as {quoted(name)}" for name, cell in cells.items())
