"""Rollouts with their prompts and newest fates: searched, filtered, ordered; one by one, or by group."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.late_facts import columns_of
from rollbook.book.questions.asked import Rollouts
from rollbook.book.questions.source import Queries, Source
from rollbook.book.questions.windows import check_columns, words_of
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.book.sql import apart
from rollbook.schema.expressions import condition, literal, named_tables, order, quoted
from rollbook.schema.run_files import table_names
from rollbook.schema.solved import number_in
from rollbook.schema.tables import TABLES
from rollbook.values.arrow import table_of, take_table

_STEPS = ("gradient_step", "policy_version")
_TIES = ("time", "seq", "index", "rollout_id")
"""Sorting by these columns gives the order of writing, without ties."""
_FEW_ROWS = 1_000
"""For a window of at most this many rollouts, their ids are found first; then only their texts are read."""
_MANY_ROWS = 100_000
"""If at most this many rollouts meet the other conditions, only their texts are searched."""
_MOST_LISTED = 4_000
"""Ids in a query; DuckDB splits a text of more of them faster than it reads them one by one."""
_MOST_FATES = 30
_MOST_MARKS = 64
_TASKS = "select task_id, any_value(prompt) as prompt from tasks group by task_id"
_OF_BOTH = ["rollouts", "fates", "tasks"]


class RolloutPage(NamedTuple):
    """Rollouts of a run.

    Attributes:
      table: the rollouts of the window. With `by_group` the newest rollout of each group, with these columns about the
        matching rollouts of the group: `group_n`, their number; `group_marks`, one character each (1 solved, 0 not
        solved, x no reward; solved ones first); `group_mean` and `group_spread` (standard deviation) of their rewards;
        `group_stale`, the largest staleness; `group_turns`, the median; `group_tokens`, the sum of sampled tokens;
        `group_fates`, the number of each fate, most frequent first.
      total: number of rollouts; matched: of matching ones; groups: with `by_group`, of groups with a matching one.
      fates: fate -> number of rollouts, most frequent first, after `search`, `group`, `task` and the parts of `where`
        about updates and versions; {} beyond the first window. Without `counted` the numbers are 0.
    """

    table: pa.Table
    total: int = 0
    matched: int = 0
    groups: int | None = None
    fates: Mapping[str, int] = {}


def chosen_rollouts(question: Rollouts, source: Source, *, counted: bool = False) -> RolloutPage:
    """The rollouts that a question asks for.

    Args:
      counted: whether to count all rollouts, the matching ones, and their fates.
    Raises:
      BadInput: a condition or order that cannot be understood, or an unknown column in it.
    """
    more = named_tables(question.where or "", [*TABLES, *table_names(source.folder)])
    names = [*dict.fromkeys([*_OF_BOTH, *more])]
    return source.asked(names, lambda db: _Window(db, question, counted).page(), question.attempts)


def see_rollouts(db: Queries, *, make: bool = True) -> None:
    """Create the view `slim`: all rollouts with their newest fates, without texts.

    Args:
      make: whether a source that keeps answers keeps this one from now on.
    """
    query, columns, _names = RolloutQueries(db.columns, empty=db.empty).slim(marked=db.keeps)
    db.keep("filled", query, ["rollouts", "fates"], make=make)
    db.view("slim", f"select {columns} from filled")


def see_with_prompts(db: Queries, name: str, sources: tuple[str, str] | None = None) -> None:
    """Create a view of the rollouts with all columns, those of their newest fates and their prompts included.

    Args:
      sources: views of some of the rollouts, and of fates; default: all.
    """
    own = "r.* exclude (prompt)" if "prompt" in {*db.columns["rollouts"], *db.columns["fates"]} else "r.*"
    now = RolloutQueries(db.columns).now(sources=sources)
    db.view(name, f"select {own}, t.prompt from ({now}) r left join ({_TASKS}) t using (task_id)")


def judged_by(solved: str | float | None) -> list[str]:
    """The columns in the condition that defines a solved task; [] if a number defines it."""
    if not isinstance(solved, str) or number_in(solved) is not None:
        return []
    return [name for name, *_inside in condition(solved, of_rows=True).columns]


def check_solved(db: Queries, solved: str | float | None) -> None:
    """Raises: BadInput: the condition that defines a solved task names a column that rollouts do not have."""
    if names := judged_by(solved):
        known = db.table(f"select * from ({RolloutQueries(db.columns).now()}) limit 0").column_names
        check_columns([[name] for name in names], known)


def listed(names: Sequence[object]) -> str:
    """Ids as the SQL inside of `in (…)`."""
    texts = [str(name) for name in names]
    if len(texts) <= _MOST_LISTED:
        return ", ".join(map(literal, texts)) or "null"
    letters = set().union(*texts)
    end = next(letter for letter in map(chr, range(32, 0x10000)) if letter not in letters)
    return f"select unnest(string_split({literal(end.join(texts))}, {literal(end)}))"


class _Window:
    """A window of the rollouts of some tables, computed in three steps, so that few texts are read.

    First the conditions that need no texts are applied to `slim`, which a server keeps in memory. Then the texts of
    the remaining rollouts are searched. At last the whole rows are read, but only those of the window.
    """

    def __init__(self, db: Queries, question: Rollouts, counted: bool) -> None:
        self._db, self._ask, self._counted = db, question, counted
        self._solved = RolloutQueries.condition(question.solved) or RolloutQueries.SOLVED
        self._judged = judged_by(question.solved) if question.by_group else []
        self._words = words_of(question.search)
        self._wide = [*(name for name in columns_of("rollouts_now", db.columns) if name != "prompt"), "prompt"]
        given = None if question.where is None else condition(question.where, of_rows=True)
        ordered = None if question.order_by is None else order(question.order_by)
        for each in (given, ordered):
            if each is not None:
                check_columns(each.columns, self._wide)
        check_columns([[name] for name in self._judged], self._wide)
        self._order = "" if ordered is None else ordered.text
        self._sorts = [*dict.fromkeys(name for name, *_inside in (ordered.columns if ordered is not None else ()))]
        alike = [
            *self._alike(question.group, ("group", "task_id", "batch")),
            *self._alike(question.task, ("task_id",)),
        ]
        self._is_alike = bool(alike)
        self._chooses = bool(given or self._words or not self._is_of_rows(self._sorts) or (alike and question.by_group))
        self._slim = [name.lower() for name in RolloutQueries(db.columns, empty=db.empty).slim(marked=db.keeps)[2]]
        wide = [name.lower() for name in self._wide]
        steps, rest = (None, None) if given is None else apart(given.text, [n for n in wide if n not in _STEPS])
        first, rest = (None, None) if rest is None else apart(rest, [n for n in wide if n not in self._slim])
        self._bounds = [*alike, *filter(None, [steps])]
        self._first, self._rest = [*filter(None, [first])], rest

    @functools.cached_property
    def _all(self) -> str:
        """The view `slim`. A window of one group or of one prompt does not need it."""
        see_rollouts(self._db, make=self._is_alike or self._chooses)
        return "slim"

    @functools.cached_property
    def _seen(self) -> str:
        """The view of all rollouts with all columns. Few windows need it."""
        see_with_prompts(self._db, "seen")
        return "seen"

    @functools.cached_property
    def _schema(self) -> pa.Schema:
        return self._db.table(f"select * from {self._seen} limit 0").schema

    def _alike(self, identity: str | None, columns: Sequence[str]) -> list[str]:
        """Conditions for the rollouts that share columns with one; only itself if it lacks them."""
        if identity is None:
            return []
        own = [name for name in columns if name in self._db.columns["rollouts"]]
        row = self._db.table(
            f"select {', '.join(map(quoted, own))} from rollouts where rollout_id = {literal(identity)} limit 1"
        )
        cells: dict[str, Any] = next(iter(row.to_pylist()), {})
        shared = {name: cell for name, cell in cells.items() if cell is not None}
        if columns[0] not in shared:
            shared = {"rollout_id": identity}
        return [f"{quoted(name)} = {literal(str(cell))}" for name, cell in shared.items()]

    def _is_of_rows(self, names: Sequence[str]) -> bool:
        """Whether the table of rollouts alone knows these columns: no fate changes them."""
        late = {*TABLES["fates"].columns, "gradient_step", "epoch", "staleness"}
        known = {name.lower() for name in self._db.columns["rollouts"] if name not in late}
        return all(name.lower() in known for name in names)

    def page(self) -> RolloutPage:
        """The answer."""
        db, ask = self._db, self._ask
        if self._words:
            self._bounds.append(f"rollout_id in (select rollout_id from {self._found()})")
        fates = self._fates() if self._counted and not ask.offset else None
        source, where = self._source()
        total = matched = 0
        if self._counted:
            total = _count(db, "rollouts")
            if not where and source != "narrow":
                matched = total
            elif fates is not None and not self._first and not self._rest and len(fates) < _MOST_FATES:
                matched = sum(fates.values())  # counted already
            else:
                matched = _count(db, f"{source}{where}")
        if ask.by_group:
            table, groups = self._groups(source, where)
        else:
            table, groups = self._rows(source, where), None
        return RolloutPage(table, total, matched, groups, fates or {})

    def _found(self) -> str:
        """A table of the rollouts whose last answer or prompt has all words. Rollouts that other conditions exclude
        are not searched."""
        bounds = self._bounds if self._counted else [*self._bounds, *self._first]
        among, own = " and ".join(bounds), "rollouts"
        if among:
            own = "searched"
            self._db.only(own, "rollouts", f"rollout_id in (select rollout_id from {self._all} where {among})")
        each = " and ".join(
            f"(contains(lower(item), {literal(word)}) or task_id in"
            f" (select task_id from tasks where contains(lower(prompt), {literal(word)})))"
            for word in self._words
        )
        self._db.hold("found", f"select rollout_id from {own} where {each}", [*_OF_BOTH, among])
        return "found"

    def _fates(self) -> dict[str, int]:
        among = f" where {' and '.join(self._bounds)}" if self._bounds else ""
        counted = f"select {RolloutQueries.FATE} as fate, count(*) as n from {self._all}{among} group by 1"
        rows = self._db.table(f"{counted} order by n desc, fate limit {_MOST_FATES}").to_pylist()
        return {str(row["fate"]): row["n"] for row in rows}

    def _source(self) -> tuple[str, str]:
        """(the view to choose rollouts from, the condition). Without a condition on texts the view is `slim`."""
        conditions = [*self._bounds, *self._first]
        where = f" where {' and '.join(conditions)}" if conditions else ""
        if not self._rest and all(name.lower() in self._slim for name in [*self._sorts, *self._judged]):
            return (self._all if self._chooses else "rollouts"), where
        if not self._chooses:
            return "rollouts", where
        if conditions and self._rest:
            self._db.hold("fitting", f"select rollout_id from {self._all}{where}", [*_OF_BOTH, where])
            if _count(self._db, "fitting") <= _MANY_ROWS:
                self._see("narrow", "select rollout_id from fitting")
                return "narrow", f" where {self._rest}"
        every = [*conditions, *filter(None, [self._rest])]
        return self._seen, f" where {' and '.join(every)}" if every else ""

    def _see(self, name: str, ids: str) -> None:
        """Create a view of some rollouts with all columns; `ids`: the SQL inside of `in (…)`."""
        for table in ("rollouts", "fates"):
            self._db.only(f"{name}_{table}", table, f"rollout_id in ({ids})")
        see_with_prompts(self._db, name, (f"{name}_rollouts", f"{name}_fates"))

    def _rows(self, source: str, where: str) -> pa.Table:
        limit, offset = self._ask.limit, self._ask.offset
        ties = [quoted(name) for name in _TIES if name in self._wide]
        in_order = f" order by {', '.join([*filter(None, [self._order]), *ties])}"
        window = in_order + ("" if limit is None else f" limit {int(limit)}") + (f" offset {offset}" if offset else "")

        def whole() -> pa.Table:
            return self._db.table(f"select * from {source if source == 'narrow' else self._seen}{where}{window}")

        is_many = limit is None or limit > _FEW_ROWS
        if source == "narrow" or (is_many and not self._is_alike):
            return whole()
        ids = self._db.table(f"select rollout_id from {source}{where}{window}")["rollout_id"].to_pylist()
        table, is_each = self._of(ids)
        return table if is_each else whole()

    def _of(self, ids: Sequence[str]) -> tuple[pa.Table, bool]:
        """The rollouts with these ids, in that order; and whether the ids are unique."""
        self._see("few", listed(ids))
        table = self._db.table("select * from few")
        index_of = {name: index for index, name in enumerate(table["rollout_id"].to_pylist())}
        rows = np.array([index_of[name] for name in ids if name in index_of], np.int64)
        return take_table(table, rows), len(index_of) == len(ids) == table.num_rows

    def _groups(self, source: str, where: str) -> tuple[pa.Table, int]:
        """The newest rollout of each group of a window, in order, with the columns about the group; and the number of
        groups. A rollout without a group is a group of one."""
        db, limit, offset = self._db, self._ask.limit, self._ask.offset
        known = db.columns["rollouts"]
        group = 'coalesce("group", rollout_id)' if "group" in known else "rollout_id"
        same = [group, *(name if name in known else "null::text" for name in ("task_id", "batch"))]
        when = ", ".join(f"{name}: {quoted(name)}" for name in _TIES if name in known)
        sorts = [f", {self._of_group(name)} as {quoted(name)}" for name in self._sorts]
        db.hold(
            "grouped",
            f"""select {same[0]} as its_group, {same[1]} as its_task, {same[2]} as its_batch,
              max({{{when}}}) as newest{"".join(sorts)}
            from {source}{where} group by 1, 2, 3""",
            [*_OF_BOTH, *self._bounds, *self._first],
        )
        groups = _count(db, "grouped")
        last = "" if limit is None else f" and its_rank <= {int(offset) + int(limit)}"
        in_order = ", ".join([*filter(None, [self._order]), "newest"])
        window = f"""select *, row_number() over (order by {in_order}) as its_rank from grouped
            qualify its_rank > {int(offset)}{last}"""
        rows = f"{source}{where}"
        # The groups were chosen without fates: read fates only for the groups of the window.
        if source == "rollouts" and limit is not None and limit <= _FEW_ROWS:
            names = db.table(f"select its_group from ({window})")["its_group"].to_pylist()
            db.only("grouped_rollouts", "rollouts", f"{group} in ({listed(names)})")
            ids = "select rollout_id from grouped_rollouts"
            db.view("grouped_fates", f"select * from fates where rollout_id in ({ids})")
            see_with_prompts(db, "own", ("grouped_rollouts", "grouped_fates"))
            rows = "own"
        elif source == "rollouts":
            rows = f"{self._seen if self._judged else self._all}{where}"
        mark = f"""case when reward is null or not isfinite(reward::double) then 'x'
          when {self._solved} then '1' else '0' end"""
        found = db.table(
            f"""with w as ({window}), f as (select * from {rows})
            select arg_max(f.rollout_id, {{{when}}}) as rollout_id, count(*) as n,
              left(string_agg({mark}, '' order by translate({mark}, '10x', '012')), {_MOST_MARKS}) as marks,
              list(f.reward order by f.reward) filter (isfinite(f.reward::double)) as rewards,
              max(f.staleness) as stale, median(f.turns) as turns, sum(f.sampled_tokens)::bigint as tokens,
              list({RolloutQueries.FATE} order by {RolloutQueries.FATE}) as fates
            from f join (select its_group, its_task, its_batch, its_rank from w) w on {same[0]} = its_group
              and {same[1]} is not distinct from its_task and {same[2]} is not distinct from its_batch
            group by its_rank order by its_rank"""
        )
        ids = found["rollout_id"].to_pylist()
        return _with_groups(self._of(ids)[0], found.to_pylist()), groups

    def _of_group(self, name: str) -> str:
        """A column of a group: the mean of numbers, the newest time, the first text."""
        kind = next(field.type for field in self._schema if field.name.lower() == name.lower())
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        return f"{'avg' if is_number else 'max' if pa.types.is_timestamp(kind) else 'min'}({quoted(name)})"


_GROUP = pa.schema(
    [
        ("group_n", pa.int64()),
        ("group_marks", pa.string()),
        ("group_mean", pa.float64()),
        ("group_spread", pa.float64()),
        ("group_stale", pa.int64()),
        ("group_turns", pa.float64()),
        ("group_tokens", pa.int64()),
        ("group_fates", pa.list_(pa.struct([("fate", pa.string()), ("n", pa.int64())]))),
    ]
)


GROUP_COLUMNS = _GROUP.names
"""The columns about its group that a rollout has with `by_group`."""


def _with_groups(table: pa.Table, groups: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The newest rollouts of groups, and what the groups are."""
    columns = table_of([_group(cells) for cells in groups], _GROUP)
    for name in columns.column_names:
        table = table.append_column(name, columns[name])
    return table


def _group(cells: Mapping[str, Any]) -> dict[str, Any]:
    rewards = np.array(cells["rewards"] or [], np.float64)
    mean = spread = None
    if len(rewards):
        with np.errstate(all="ignore"):
            mean, spread = float(rewards.mean()), 0.0 if rewards[0] == rewards[-1] else float(rewards.std())
    fates = [{"fate": fate, "n": n} for fate, n in Counter(cells["fates"]).most_common(_MOST_FATES)]
    own = {name: cells[name] for name in ("n", "marks", "stale", "turns", "tokens")}
    return {f"group_{name}": cell for name, cell in {**own, "mean": mean, "spread": spread, "fates": fates}.items()}


def _count(db: Queries, source: str) -> int:
    return int(db.table(f"select count(*) as n from {source}")["n"][0].as_py())
