"""Rollouts counted: curves (reward, length, failures, groups, staleness, waste, time) for each update, and prompts.

They are computed on reading. The facts of one update come late and from several processes (samplers, reward workers,
trainers), so no writing process could log the curves correctly; and rows abandoned by a rewind must not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from rollbook.book.completions import completions
from rollbook.book.late_facts import SEVERAL, columns_of, view
from rollbook.book.rollout_questions import (
    ABOVE,
    FATE,
    ROLLOUT_QUESTIONS,
    SOLVED,
    answer_query,
    wilson,
    words_of_high_advantage,
    worst_tokens,
)
from rollbook.errors import BadInput
from rollbook.schema.expressions import condition, literal, quoted
from rollbook.schema.solved import number_in, solved_sql, threshold_query
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
    "rollout/not_finite": "count(*) filter (not_finite)",
    "tokens/sampled": "sum(sampled_tokens)::bigint",
    "tokens/wasted": "coalesce(sum(sampled_tokens) filter (not used or reason is not null), 0)::bigint",
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
      SOLVED: default condition for a solved task: see `schema.solved`.
      ABOVE: the query of the reward above which a task is solved, and its answer.
      FATE: what became of a rollout, as an expression over `rollouts_now`.
      QUESTIONS: question -> what it asks.
      answer: the query for a question; `worst_tokens` and `words` ask those of several queries.
      interval: of a share, as two columns in SQL.
    """

    FATE: ClassVar = FATE
    QUESTIONS: ClassVar = ROLLOUT_QUESTIONS
    answer = staticmethod(answer_query)
    worst_tokens = staticmethod(worst_tokens)
    words = staticmethod(words_of_high_advantage)
    interval = staticmethod(wilson)
    ABOVE: ClassVar = ABOVE
    SOLVED: ClassVar = SOLVED

    def __init__(
        self,
        columns: Mapping[str, Collection[str]],
        in_one_pass: bool = False,
        now: str = "",
        empty: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._columns, self.in_one_pass, self._now, self._empty = columns, in_one_pass, now, empty or {}
        self._rows, self._facts = ("own", "facts") if in_one_pass else ("rollouts", "fates")
        self._is_held = False

    @classmethod
    def solved(cls, above: float | None) -> str:
        """The condition of a solved task: a reward above a number, or without one the default."""
        return cls.SOLVED if above is None else solved_sql(repr(float(above)))

    @staticmethod
    def condition(solved: str | float | None) -> str | None:
        """The SQL condition of a solved task; None for the default.

        Args:
          solved: a condition, or the number (also as text) that the reward is above.
        Raises:
          BadInput: it is neither.
        """
        if solved is None:
            return None
        above = number_in(solved)
        if above is not None:
            return solved_sql(repr(above))
        if isinstance(solved, str):
            return condition(solved, of_rows=True).text
        raise BadInput(f"solved={solved!r}: pass a number that the reward is above, or a condition like 'reward >= 1'")

    def now(self, of: str = "", sources: tuple[str, str] | None = None) -> str:
        """The view `rollouts_now`: each rollout with its newest fate.

        Args:
          of: a condition on the rollouts alone.
          sources: views to read instead of the tables rollouts and fates.
        """
        return view("rollouts_now", self._columns, of, sources)

    def slim(self, *, marked: bool = True) -> tuple[str, str, list[str]]:
        """The view `rollouts_now` without texts, errors and columns of the caller's: what questions over all need.

        Args:
          marked: see `late_facts.view`.
        Returns:
          A query without the columns that have no value, what selects all columns from its answer, and their names.
        """
        of_row = {name for name, kind in TABLES["rollouts"].columns.items() if kind != "text"} | _SHORT
        of_fate = {*TABLES["fates"].columns, *_STEPS, "epoch"}
        needed = {
            "rollouts": [
                name
                for name in self._columns["rollouts"]
                if name in of_row or name in _WHEN or name.startswith(("rewards/", "metrics/", "seconds/"))
            ],
            "fates": [name for name in self._columns["fates"] if name in of_fate or name in _WHEN],
        }
        return self._filled(needed, ["writer"], marked=marked)

    def completions(self) -> str:
        """The view `completions`; `columns` then include those of samples and tasks."""
        return completions(self._columns)

    def curves(self, x: str, mode: str | None = None, solved: str | None = None) -> str:
        """One row per reading of `x`.

        Args:
          x: "gradient_step": a rollout counts at the first update that handled it, or before that at its own clock. One
            without either counts at the first update of its policy version, or of the newest older one that has an
            update; x is null while there is no update. "policy_version": at the version that began it.
          mode: only rollouts of this mode; None: all except evaluations.
          solved: SQL condition for a solved task; the caller checks it. None: `SOLVED`.
        Raises:
          BadInput: another x.
        """
        if x not in _STEPS:
            raise BadInput(f"rollout_curves(x={x!r}): pass {' or '.join(map(repr, _STEPS))}")
        rewards = self._parts()
        parts = {f"rollout/{name[8:]}": f"avg({quoted(name)})" for name in sorted(rewards)}
        rows = [*list(_ROLLOUTS.items())[:2], *parts.items(), *list(_ROLLOUTS.items())[2:]]
        return f"""
    with {self._needed((solved or "reward").lower(), of_each=self.has_no_version())},
    r as ({self._placed(x, mode, solved)}),
    a as (select x, {_listed(dict(rows))} from r where {self._counts(x)} group by x),
    g as ({self._groups("r")}),
    b as (select x, {_listed(_GROUPS)} from g where {self._counts(x)} group by x),
    f as ({self._used(x, mode)}),
    c as (select x, {_listed(_FATES)} from f where x is not null group by x)
    select coalesce(a.x, c.x) as {quoted(x)}, a.* exclude (x), b.* exclude (x), c.* exclude (x)
    from a left join b on a.x is not distinct from b.x full join c on a.x = c.x order by 1 nulls last"""

    def _groups(self, source: str) -> str:
        """The groups at each `x` where one of their rollouts counts, each judged by all its rollouts.

        Rollouts of a group have its name, task and batch in common. If there is no batch, a name may be that of a
        later group, too: then its rollouts are in different updates.
        """
        names = ['"group"', *(name for name in ("task_id", "batch") if name in self._columns["rollouts"])]
        is_given = "batch is not null" if "batch" in names else "false"
        return f"""with chunks as materialized (
          select x, name, is_given, version is not null as has_version, version, own_step, min(began) as began,
            max(ended) as ended, bool_and(is_solved) as every_solved, bool_or(is_solved) as any_solved,
            min(reward) as low, max(reward) as high, coalesce(bool_or(used and reason is null), false) as any_used
          from (select *, hash({", ".join(names)}) as name, {is_given} as is_given
            from {source} where "group" is not null) group by all),
        several as (select name from chunks group by name having count(*) > 1)
      select x, every_solved, any_solved, low, high, any_used from chunks anti join several using (name) union all
      select x, every_solved, any_solved, low, high, any_used from (
        select distinct x, name, generation, bool_and(every_solved) over w as every_solved,
          bool_or(any_solved) over w as any_solved, min(low) over w as low, max(high) over w as high,
          bool_or(any_used) over w as any_used
        from (select *, sum(is_new::int) over (
              partition by name, has_version order by since, version, own_step) as generation
          from (select *, not is_given and coalesce(since > max(until) over (
                partition by name, has_version order by since, version, own_step
                rows between unbounded preceding and 1 preceding), false) as is_new
            from (select *, case when has_version then min(own_step) over v else began end as since,
                case when has_version then max(own_step) over v else ended end as until
              from chunks semi join several using (name) window v as (partition by name, version))))
        window w as (partition by name, has_version, generation))"""

    @property
    def by_update(self) -> str:
        """Whether rollouts stand at their update in training, as an expression over all of them: if at least half of
        them have one, or none has a version."""
        return "count(*) >= 0" if self.has_no_version() else "count(gradient_step) * 2 >= count(*)"

    def has_no_version(self) -> bool:
        """Whether no rollout has a version of its policy, judging by the columns alone."""
        return "policy_version" not in self._columns["rollouts"] or "policy_version" in self._empty.get("rollouts", ())

    @staticmethod
    def _counts(x: str) -> str:
        return "true" if x == "gradient_step" else "x is not null"

    def prompts(self, x: str | None, mode: str | None = None, solved: str | None = None, stretches: int = 0) -> str:
        """One row per prompt (task): how often it was tried and solved, in all and in the last fifth of training.

        Args:
          x, mode, solved: as for `curves`; the last fifth is by `x`. Without `x`: the update if at least half of all
            rollouts have one, or none has a version, else the version; the column `by_update` has which.
          stretches: at most this many equal parts of training, in `strip` as a list of {stretch, n, k}: k of n attempts
            solved it. Parts without an attempt are left out; `begin` and `width` are their positions. 0: no strip.
        Raises:
          BadInput: another x.
        """
        if x is not None and x not in _STEPS:
            raise BadInput(f"rollout_prompts(x={x!r}): pass {' or '.join(map(repr, _STEPS))}")
        same = [name for name in ("task_id", "group", "batch") if name in self._columns["rollouts"]]
        group = ", ".join(f"r.{quoted(name)}" for name in same)
        step, extra = "r.x", ""
        if x is None:
            step, extra = "case when (select by_update from axis) then r.own_step else r.version end", ", by_update"
        strips, with_strips = "", ""
        if stretches:
            strips = """, s as (select task_id, (x - first_x) // width as stretch, any_value(first_x) as first_x,
        any_value(width) as width, count(*) as n, count(*) filter (is_solved) as k
      from r, ends where task_id is not null and x is not null group by 1, 2),
    strips as (select task_id, any_value(first_x) as begin, any_value(width) as width,
        list({stretch: stretch, n: n, k: k} order by stretch) as strip from s group by 1)"""
            with_strips = " left join strips using (task_id)"
        return f"""
    with {self._needed((solved or "reward").lower())},
    axis as materialized (select {self.by_update} as by_update from now),
    r as materialized (select {step} as x, r.is_solved, r.reward, r.rollout_id, r.time, {group}
      from ({self._placed(x or _STEPS[0], mode, solved, late=False)}) r),
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
      p.recent_from, p.first, p.last, p.best, p.rollout_id{", begin, width, strip" if stretches else ""}{extra}
    from p left join g using (task_id){with_strips}{", axis" if extra else ""}"""

    def _used(self, x: str, mode: str | None) -> str:
        """The uses, each with its reading of `x`; of rollouts with one fate from `now`."""
        known, step, is_there = self._columns["rollouts"], self._step(), _in_mode(mode)
        if x == "policy_version":
            step = "r.policy_version"
        version = "policy_version" if "policy_version" in known else "null::bigint as policy_version"
        of_facts = f"""select {step} as x, {", ".join(f"f.{name}" for name in _OF_USE)},
        coalesce(f.staleness, f.trained_version - r.policy_version) as staleness
      from ({self._uses()}) f join (select rollout_id, mode, {version} from {self._rows}) r using (rollout_id)
      where f.used and {is_there}"""
        if self.in_one_pass:
            return of_facts
        return f"""select {x} as x, {", ".join(_OF_USE)}, staleness
      from now r where used and not {quoted(SEVERAL)} and {is_there} union all {of_facts}"""

    def _facts_of_several(self) -> str:
        """The fates that `now` does not have. Read in one pass: all."""
        if self.in_one_pass:
            return self._facts
        return f"(select * from {self._facts} where rollout_id in (select rollout_id from now where {quoted(SEVERAL)}))"

    def hold(self, solved: str | None) -> tuple[dict[str, str], str]:
        """Tables that the caller makes, as queries by name, and a query of `now` over them. `curves` then reads these.

        Args:
          solved: as for `curves`.
        """
        self._is_held = True
        return self._read((solved or "reward").lower(), of_each=self.has_no_version())

    def _needed(self, solved: str, *, of_each: bool = True) -> str:
        """`now`, and what it is made of, as parts of a `with`; see `_read`."""
        if self._now:
            return f"now as not materialized (select * from {self._now})"
        read, now = self._read(solved, of_each=of_each)
        made = "" if self._is_held else "".join(f"{name} as materialized ({query}), " for name, query in read.items())
        return f"{made}now as not materialized ({now})"

    def _read(self, solved: str, *, of_each: bool) -> tuple[dict[str, str], str]:
        """What must be read, as queries by name, and of that `now`: `rollouts_now` with the columns that a curve reads.

        All rows of these columns are in memory at once.

        Args:
          solved: columns that it names are there. of_each: also the time and the id of each rollout; without, the ids
            are there where all fates must be read.
        """
        read = {"rollout_id", "mode", "policy_version", "gradient_step", "group", "task_id", "batch", "used", "reason"}
        read |= {"reward", "sampled_tokens", "status", "turns", "tool_errors", "tool_calls"}
        read |= {"time", "fate_time"} if of_each else set()
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
        made, shown_of, _names = self._filled(needed, unread, (self._rows, self._facts), marked=not self.in_one_pass)
        if not (of_each or self.in_one_pass or "rollout_id" in solved):  # long texts
            made = f"select * replace (case when {quoted(SEVERAL)} then rollout_id end as rollout_id) from ({made})"
        if not self.in_one_pass:
            return {"gathered": made}, f"select {shown_of} from gathered"
        both = ((self._rows, "rollouts"), (self._facts, "fates"))
        tables = {name: f"select {', '.join(map(quoted, needed[table]))} from {table}" for name, table in both}
        return tables, f"select {shown_of} from ({made})"

    def _filled(
        self,
        needed: Mapping[str, Collection[str]],
        unread: Collection[str],
        sources: tuple[str, str] | None = None,
        *,
        marked: bool,
    ) -> tuple[str, str, list[str]]:
        """The view `rollouts_now` of some columns: a query of those with values, the list that selects all, and their
        names."""
        filled = {name for table, names in needed.items() for name in names if name not in self._empty.get(table, ())}
        lacking = {
            name: _TYPES[name] for names in needed.values() for name in names if name in _TYPES and name not in filled
        }
        of_both = {table: [name for name in names if name not in lacking] for table, names in needed.items()}
        made = view("rollouts_now", of_both, sources=sources, marked=marked)
        late = [name for name in lacking if name in TABLES["fates"].columns]  # the view has them in any case
        left_out = [*(name for name in unread if name not in lacking), *late]
        added = {name: kind for name, kind in lacking.items() if name not in unread}
        shown = ", ".join(["*", *(f"null::{kind} as {quoted(name)}" for name, kind in added.items())])
        there = [name for name in columns_of("rollouts_now", of_both) if name not in left_out]
        names = [*there, *([SEVERAL] if marked else []), *added]
        return f"select * exclude ({', '.join(map(quoted, left_out))}) from ({made})", shown, names

    def _step(self) -> str:
        return "f.gradient_step" if "gradient_step" in self._columns["fates"] else "null::bigint"

    def _parts(self) -> list[str]:
        return [name for name in self._columns["rollouts"] if name.startswith("rewards/")]

    def _placed(self, x: str, mode: str | None, solved: str | None, *, late: bool = True) -> str:
        """The rollouts of a mode, each with its reading of `x`, its update, and whether it solved its task.

        Rewards that are not finite are null, and `not_finite` is true.

        Args:
          x, mode, solved: as for `curves`.
          late: whether rollouts without an update have a reading, too.
        """
        limit = f"with t as materialized ({threshold_query(self._rows)})" if solved is None else "with t as (select 1)"
        condition = solved_sql("select above from t") if solved is None else f"coalesce(({solved}), false)"
        rewards = ["reward", *self._parts()]
        finite = ", ".join(
            f"case when isfinite({name}::double) then {name} end as {name}" for name in map(quoted, rewards)
        )
        odd = " or ".join(f"coalesce(not isfinite({name}::double), false)" for name in map(quoted, rewards))
        # If a rollout was used once, rollouts_now has its update.
        several = "group by rollout_id having count(*) > 1"
        first = f"select rollout_id, min({self._step()}) as first_step from {self._facts_of_several()} f {several}"
        no_version = late and self.has_no_version()
        began = "epoch_us(r.time)" if no_version else "null::bigint"
        ended = "epoch_us(greatest(r.time, r.fate_time))" if no_version else "null::bigint"
        version = "null::bigint" if self.has_no_version() else "r.policy_version"
        order = began if no_version else version
        placed = f"""select r.*, coalesce(u.first_step, r.gradient_step) as own_step, {version} as version,
          {order} as in_order, {began} as began, {ended} as ended
        from (select * replace ({finite}), {odd} as not_finite from now) r left join ({first}) u using (rollout_id)
        where {_in_mode(mode)}"""
        if x == "policy_version" or not late:
            x = "version" if x == "policy_version" else "own_step"
            return f"{limit} select {x} as x, *, {condition} as is_solved from ({placed})"
        # Rollouts that still wait count where rollouts of their version were first handled.
        return f"""{limit}, p as not materialized ({placed}),
        orders as materialized (select in_order, min(own_step) as begins, max(own_step) as ends,
            count(*) > count(own_step) as waits from p group by 1),
        handled as (select in_order, begins, ends from orders where begins is not null),
        late as materialized (select w.in_order, coalesce(
            case when w.in_order = h.in_order then h.begins else h.ends end,
            (select min(begins) from handled)) as own_step
          from (select in_order from orders where waits) w
            asof left join handled h on w.in_order >= h.in_order)
        select own_step as x, *, {condition} as is_solved from p where own_step is not null union all
        select late.own_step as x, p.*, {condition} as is_solved from (select * from p where own_step is null) p
          left join late on p.in_order is not distinct from late.in_order"""

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
