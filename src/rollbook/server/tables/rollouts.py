"""Rollouts: searched and sorted in DuckDB; one as a conversation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book import RolloutQueries
from rollbook.book.questions import Window, cells_of, words_of
from rollbook.schema.expressions import condition, literal, quoted
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import IDENTITY, check_window, order_by
from rollbook.server.shared.shapes import (
    Answer,
    Cell,
    Column,
    Num,
    OfRun,
    Refused,
    Row,
    Sort,
    columns_of,
    num,
    plain,
    rows_of,
)
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext


class RolloutsAsk(OfRun, kw_only=True):
    """Which rollouts.

    Attributes:
      search: words that must all occur in the last answer or the prompt.
      where: a condition in SQL over rollouts_now, such as reward > 1 and not used. Parts joined by `and` that name
        gradient_step or policy_version alone also bound the search and the counts of fates.
      group: only those of the group of this rollout; task: only those of its task.
      by_group: a row for each group of them, and the order is that of groups: by the mean of a number.
      above: a rollout with a reward above this solved its prompt; null: as `Book.solved_above` says.
    """

    search: str | None = None
    where: str | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100
    group: str | None = None
    task: str | None = None
    by_group: bool = False
    above: float | None = None


class RolloutGroup(msgspec.Struct, kw_only=True):
    """Those of a group that fit.

    Attributes:
      marks: a sign for each: 1 solved, 0 not, x without a reward; the solved first.
      mean, spread: of their rewards (standard deviation); stale: the largest staleness; turns: the median; tokens:
        sampled ones, all together.
      fates: fate -> how many, most first.
    """

    n: int
    marks: str
    mean: Num
    spread: Num
    stale: Num
    turns: Num
    tokens: Num
    fates: dict[str, int]


class RolloutRow(msgspec.Struct, kw_only=True):
    """One rollout with its newest fate: its id, and its cells. With by_group, the newest one of its `group`."""

    id: str
    cells: Row
    group: RolloutGroup | None = None


class RolloutsAnswer(Answer, kw_only=True):
    """A window of the rollouts.

    Attributes:
      fates: what became of those that search, group and task leave, whatever `where` says: fate -> how many, most
        first; {} beyond the first window.
      groups: with by_group, how many groups those that fit are of.
    """

    total: int
    matched: int
    groups: int | None = None
    offset: int
    columns: list[Column]
    rows: list[RolloutRow]
    fates: dict[str, int] = {}


class OneRolloutAsk(OfRun, kw_only=True):
    """One rollout by its id.

    Attributes:
      above: as in `RolloutsAsk`.
    """

    id: str
    above: float | None = None


class RolloutTokens(msgspec.Struct, kw_only=True):
    """The tokens of a turn.

    Attributes:
      text: ids, as texts; columns: a number for each (sampler, trainer, gap, entropy, advantage, mask).
      texts: the text of each, where it was recorded (`token_texts=` of the turn); else empty.
    """

    text: list[str]
    texts: list[str]
    columns: dict[str, list[Num]]


class RolloutTurn(msgspec.Struct, kw_only=True):
    """One turn.

    Attributes:
      calls: the tool calls, as JSON. length: characters of the whole text, where the text was cut short.
      trimmed, tokens_trimmed: retention has removed its text, or its token lists.
    """

    turn: int
    parent: int | None
    role: str
    name: str | None
    text: str | None
    length: int | None
    calls: str | None
    n_tokens: int | None
    trained: bool | None
    trimmed: bool
    tokens_trimmed: bool
    seconds: Num
    finish_reason: str | None
    error: str | None
    reward: Num
    policy_version: int | None
    tokens: RolloutTokens | None


class RolloutVersion(msgspec.Struct, kw_only=True):
    """A task at one version of the policy.

    Attributes:
      solved: with a reward above that of the question, or as `Book.solved_above` says; low, high: of their share, 95 %
        (Wilson).
    """

    version: int | None
    n: int
    mean: Num
    solved: int
    low: Num
    high: Num
    used: int


class OneRolloutAnswer(Answer, kw_only=True):
    """One rollout with its turns, all its fates, and its task over training.

    Attributes:
      odd_lists: sentences about lists of the trainer whose length is not that of the rollout's tokens.
    """

    id: str
    cells: Row
    prompt: Cell
    messages: str | None
    tools: str | None
    turns: list[RolloutTurn]
    tokens: RolloutTokens | None
    fates: list[Row]
    history: list[RolloutVersion]
    turns_left_out: int
    odd_lists: list[str]


T = TypeVar("T")

_CUT = 300
_LONGEST = 100_000
_MOST_FATES = 30
_MOST_TURNS = 400
_MOST_TOKENS = 20_000
_TOKENS = {
    "sampler": "sampler_logprobs",
    "trainer": "trainer_logprobs",
    "entropy": "entropy",
    "advantage": "advantages",
    "mask": "mask",
}
_STEPS = ("gradient_step", "policy_version")
_MOST_MARKS = 64
_MOST_LISTED = 4_000
"""Ids in a query; DuckDB joins more of them faster than it looks for them one by one."""
_PROMPTS = "select task_id, any_value(prompt) as prompt from tasks group by task_id"


def ask_rollouts(context: ServerContext, row: RunRow, names: Sequence[str], work: Callable[[Locked], T]) -> T:
    """The result of `work` on the tables of rollouts and the view rollouts_now, which has their newest fates."""

    def joined(db: Locked) -> T:
        db.view("rollouts_now", RolloutQueries(db.columns).now())
        return work(db)

    return with_tables(context, row, ["rollouts", "fates", *names], "effective", joined)


def slim(db: Locked, *, make: bool = True) -> str:
    """All rollouts with their newest fates and without texts: a table, made once while the run does not change."""
    query, columns = RolloutQueries(db.columns, empty=db.empty).slim()
    db.keep("filled", query, ["rollouts", "fates"], make=make)
    db.view("slim", f"select {columns} from filled")
    return "slim"


def rollouts(context: ServerContext, ask: RolloutsAsk) -> RolloutsAnswer:
    """A window of the rollouts, each with its prompt and newest fate."""
    check_window(context.limits, Window(where=ask.where, limit=ask.limit, offset=ask.offset))
    words = words_of(ask.search)

    def work(db: Locked) -> tuple[int, int, pa.Table, pa.Table | None, pa.Table | None]:
        db.view("seen", f"select r.*, t.prompt from rollouts_now r left join ({_PROMPTS}) t using (task_id)")
        conditions = []
        for identity, columns in ((ask.group, ("group", "task_id", "batch")), (ask.task, ("task_id",))):
            conditions += [] if identity is None else _alike(db, identity, columns)
        given = condition(ask.where, of_rows=True).text if ask.where and ask.where.strip() else None
        chooses = bool(conditions or given or words or ask.sort)
        source = "rollouts"
        if chooses or ask.offset == 0:
            slim(db, make=chooses)
            source = "slim" if chooses else source
        names = db.table(f"select * from {source} limit 0").column_names
        if given is not None:
            wide = db.table("select * from seen limit 0").column_names
            steps, given = RolloutQueries.apart(given, [name for name in wide if name not in _STEPS])
            conditions += [] if steps is None else [steps]
        if words:
            conditions.append(f"rollout_id in (select rollout_id from {_found(db, words, conditions)})")
        among = f" where {' and '.join(conditions)}" if conditions else ""
        fates = None
        if ask.offset == 0:
            counted = f"select {RolloutQueries.FATE} as fate, count(*) as n from slim{among} group by 1"
            fates = db.table(f"{counted} order by n desc, fate limit {_MOST_FATES}")
        where = f" where {' and '.join([*conditions, given])}" if given else among
        if (given and not _binds(db, given)) or any(sort.column not in names for sort in ask.sort):
            source = "seen"
            names = db.table("select * from seen limit 0").column_names
        newest = [name for name in ("time", "seq", "index") if name in names]
        order = order_by(ask.sort, names)
        order += "".join(
            f"{',' if order or n else ' order by'} {name} desc" for n, name in enumerate(map(quoted, newest))
        )
        total = int(db.table("select count(*) as n from rollouts")["n"][0].as_py())
        if not where:
            matched = total
        elif fates is not None and where == among and fates.num_rows < _MOST_FATES:  # counted already
            matched = sum(fates["n"].to_pylist())
        else:
            matched = int(db.table(f"select count(*) as n from {source}{where}")["n"][0].as_py())
        # Which ones, then all of these: the texts of the others are not read.
        window = f"{order} limit {ask.limit} offset {ask.offset}"
        grouped = None
        if ask.by_group:
            named, grouped = _groups(db, ask, f"{source}{where}", names, newest, joins=not chooses)
        else:
            named = db.table(f"select rollout_id from {source}{where}{window}")
        ids = [str(name) for name in named["rollout_id"].to_pylist()] if named.num_rows else []
        own = f"rollout_id in ({_listed(ids)})"
        few = RolloutQueries(db.columns).now(sources=(db.only("rollouts", own), db.only("fates", own)))
        db.view("few", f"select r.*, t.prompt from ({few}) r left join ({_PROMPTS}) t using (task_id)")
        table = db.table("select * from few")
        if table.num_rows == len(ids):
            places = {name: place for place, name in enumerate(ids)}
            there = [places[str(name)] for name in table["rollout_id"].to_pylist()]
            table = table.take(pa.array(sorted(range(len(there)), key=there.__getitem__), pa.int64()))
        elif grouped is None:  # several rows with one id
            table = db.table(f"select * from seen{where}{window}")
        return total, matched, table, fates, grouped

    total, matched, table, fates, grouped = ask_rollouts(context, context.row(ask.run), ["tasks"], work)
    shown = table.select([name for name in table.column_names if name not in (*IDENTITY, "rollout_id")])
    identities = table["rollout_id"].to_pylist() if table.num_rows else []
    own = {str(cells["rollout_id"]): cells for cells in (cells_of(grouped) if grouped is not None else ())}
    rows = [
        RolloutRow(id=plain(str(name)), cells=cells, group=_group(own.get(str(name))))
        for name, cells in zip(identities, rows_of(shown, _CUT), strict=True)
    ]
    return RolloutsAnswer(
        total=total,
        matched=matched,
        groups=None if grouped is None else next(iter(grouped["groups"].to_pylist()), 0),
        offset=ask.offset,
        columns=columns_of(shown),
        rows=rows,
        fates={str(plain(cells["fate"])): cells["n"] for cells in (fates.to_pylist() if fates is not None else ())},
    )


def _groups(
    db: Locked, ask: RolloutsAsk, source: str, names: Sequence[str], newest: Sequence[str], *, joins: bool
) -> tuple[pa.Table, pa.Table]:
    """The newest rollout of each group of a window, in order, and what the group is; one without a group is its own.

    Args:
      source: the rollouts, with a condition. names: their columns. newest: those that order them.
      joins: the source has no fates; those of the window are joined.
    """
    schema = db.table("select * from seen limit 0").schema
    order_by(ask.sort, schema.names)  # refuses what is no column
    sorts = {}
    for place, sort in enumerate(ask.sort[:5]):
        kind = schema.field(sort.column).type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        sorts[f"sort{place}"] = f"{'avg' if is_number else 'min'}({quoted(sort.column)})"
    order = [
        f"{name} {'desc' if sort.descending else 'asc'} nulls last"
        for name, sort in zip(sorts, ask.sort[:5], strict=True)
    ]
    group = 'coalesce("group", rollout_id)' if "group" in names else "rollout_id"
    same = [group, *(name if name in names else "null::text" for name in ("task_id", "batch"))]
    when = ", ".join(f"{name}: {quoted(name)}" for name in newest)
    db.keep(
        "grouped",
        f"""select {same[0]} as its_group, {same[1]} as its_task, {same[2]} as its_batch, max({{{when}}}) as newest,
          count(*) over () as groups{"".join(f", {found} as {name}" for name, found in sorts.items())}
        from {source} group by 1, 2, 3""",
        ["rollouts", "fates", "tasks"],
    )
    window = (
        f"select * from grouped order by {', '.join([*order, 'newest desc'])} limit {ask.limit} offset {ask.offset}"
    )
    if joins:
        own = db.only("rollouts", f"{group} in ({_listed(db.table(window)['its_group'].to_pylist())})")
        ids = db.table(f"select rollout_id from {own}")["rollout_id"].to_pylist()
        of = _listed(ids) if len(ids) <= _MOST_LISTED else f"select rollout_id from {own}"
        db.view("their_fates", f"select * from fates where rollout_id in ({of})")
        source = f"({RolloutQueries(db.columns).now(sources=(own, 'their_fates'))})"
    mark = f"""case when reward is null or not isfinite(reward::double) then 'x'
      when {RolloutQueries.solved(ask.above)} then '1' else '0' end"""
    grouped = db.table(
        f"""with w as ({window}), f as (select * from {source})
        select arg_max(rollout_id, {{{when}}}) as rollout_id, any_value(w.newest) as newest, count(*) as n,
          any_value(w.groups) as groups{"".join(f", any_value(w.{name}) as {name}" for name in sorts)},
          left(string_agg({mark}, '' order by translate({mark}, '10x', '012')), {_MOST_MARKS}) as marks,
          list(reward order by reward) filter (isfinite(reward::double)) as rewards, max(staleness) as stale,
          median(turns) as turns, sum(sampled_tokens)::bigint as tokens,
          list({RolloutQueries.FATE} order by {RolloutQueries.FATE}) as fates
        from f join w on {same[0]} = its_group and {same[1]} is not distinct from its_task
          and {same[2]} is not distinct from its_batch
        group by its_group, its_task, its_batch order by {", ".join([*order, "newest desc"])}"""
    )
    return grouped.select(["rollout_id"]), grouped


def _listed(names: Sequence[object]) -> str:
    return ", ".join(literal(str(name)) for name in names) or "null"


def _group(cells: Mapping[str, Any] | None) -> RolloutGroup | None:
    if cells is None:
        return None
    rewards = np.array(cells["rewards"] or [], np.float64)
    numbers = {name: num(cells[name]) for name in ("stale", "turns", "tokens")}
    with np.errstate(all="ignore"):
        numbers["mean"] = num(rewards.mean()) if len(rewards) else None
        numbers["spread"] = num(0.0 if rewards[0] == rewards[-1] else rewards.std()) if len(rewards) else None
    fates = Counter(cells["fates"]).most_common(_MOST_FATES)
    return RolloutGroup(n=cells["n"], marks=cells["marks"], fates={str(plain(f)): n for f, n in fates}, **numbers)


def _alike(db: Locked, identity: str, columns: Sequence[str]) -> list[str]:
    """Conditions for the rollouts that share columns with one; only itself if it lacks them."""
    found = db.table("select * from rollouts where rollout_id = ? limit 1", [identity])
    (cells,) = cells_of(found) or ({},)
    shared = {name: cells[name] for name in columns if cells.get(name) is not None}
    if columns[0] not in shared:
        shared = {"rollout_id": identity}
    return [f'"{name}" = {literal(str(value))}' for name, value in shared.items()]


def _found(db: Locked, words: Sequence[str], conditions: Sequence[str]) -> str:
    """A table of the rollouts with all of these words in the last answer or the prompt; texts of others are not read.

    Args:
      conditions: on columns of `slim`.
    """
    among = " and ".join(conditions)
    own = db.only("rollouts", f"rollout_id in (select rollout_id from slim where {among})") if among else "rollouts"
    each = " and ".join(
        f"(contains(lower(item), {literal(word)}) or task_id in"
        f" (select task_id from tasks where contains(lower(prompt), {literal(word)})))"
        for word in words
    )
    db.keep("found", f"select rollout_id from {own} where {each}", ["rollouts", "fates", "tasks", among])
    return "found"


def _binds(db: Locked, given: str) -> bool:
    """Whether a condition names only columns of `slim`."""
    try:
        db.table(f"select 1 from slim where {given} limit 0")
    except Refused as err:
        if err.code != "bad_input":
            raise
        return False
    return True


def one_rollout(context: ServerContext, ask: OneRolloutAsk) -> OneRolloutAnswer:
    """One rollout as a conversation, with its tokens, its fates and its task over training."""

    def work(db: Locked) -> tuple[pa.Table, ...]:
        own = "where rollout_id = ?"
        row = db.table(f"select * from rollouts_now {own} limit 1", [ask.id])
        if not row.num_rows:
            raise Refused("not_found", f"there is no rollout {ask.id!r:.80}", "Look at the table of rollouts.")
        task = row["task_id"][0].as_py()
        version = "policy_version" if "policy_version" in row.column_names else "null"
        of_task = RolloutQueries(db.columns).now(f"task_id = {literal(str(task))}")
        history = f"""select *, {RolloutQueries.interval("solved", "n")} from (
            select {version} as version, count(*) as n, avg(reward) filter (isfinite(reward::double)) as mean,
              count(*) filter ({RolloutQueries.solved(ask.above)}) as solved, count(*) filter (used) as used
            from ({of_task}) where mode is not distinct from ? group by 1)
            order by version nulls first limit 2000"""
        return (
            row,
            db.table("select * from tasks where task_id = ? limit 1", [task]),
            db.table(f"select * from fates {own} order by time", [ask.id]),
            db.table(history, [row["mode"][0].as_py()]),
        )

    run = context.row(ask.run)
    row, task, fates, history = ask_rollouts(context, run, ["tasks"], work)
    with context.book(run) as book:  # not in SQL: it would get all that the journal has of these
        turns, tokens = (book.table(name, where=("rollout_id", ask.id)) for name in ("turns", "tokens"))
    turns = turns.sort_by([("turn", "ascending"), ("time", "ascending")]).slice(0, _MOST_TURNS + 1)
    tokens = tokens.sort_by([("turn", "ascending"), ("time", "ascending")])
    (cells,) = rows_of(row.select([name for name in row.column_names if name not in IDENTITY]), _LONGEST)
    task_cells = next(iter(cells_of(task)), {})
    lists: dict[int | None, dict[str, Any]] = {}
    for part in cells_of(tokens):
        lists.setdefault(part.get("turn"), {}).update({n: cell for n, cell in part.items() if cell is not None})
    whole = lists.pop(None, {})
    listed = cells_of(turns)[:_MOST_TURNS]
    for start, turn in _late_parts(listed, lists, whole):
        lists.setdefault(turn, {}).update(start)
    return OneRolloutAnswer(
        id=ask.id,
        cells=cells,
        prompt=plain(task_cells.get("prompt"), _LONGEST),
        messages=_text(task_cells.get("messages")),
        tools=_text(task_cells.get("tools")),
        turns=[_turn(turn, lists.get(turn["turn"])) for turn in listed],
        tokens=_shown_tokens(whole) if not listed else None,
        fates=rows_of(fates.select([name for name in fates.column_names if name not in IDENTITY]), _CUT),
        history=[_version(cells) for cells in cells_of(history)],
        turns_left_out=max(0, turns.num_rows - _MOST_TURNS),
        odd_lists=_odd_lists(cells_of(turns), lists, whole),
    )


def _late_parts(
    turns: Sequence[Mapping[str, Any]], lists: Mapping[int | None, Mapping[str, Any]], whole: Mapping[str, Any]
) -> list[tuple[dict[str, Any], int]]:
    """Lists that the trainer reported for the whole rollout, split at the turns whose tokens are known."""
    late = {name: whole[name] for name in _TOKENS.values() if isinstance(whole.get(name), list)}
    if not late:
        return []
    parts = []
    for turn in turns:
        own = lists.get(turn["turn"], {})
        n = len(own.get("ids") or own.get("sampler_logprobs") or ())
        start = own.get("first") or 0
        cut = {name: cells[start : start + n] for name, cells in late.items()}
        parts.append(({name: cells for name, cells in cut.items() if n and len(cells) == n}, turn["turn"]))
    return parts


def _odd_lists(
    turns: Sequence[Mapping[str, Any]], lists: Mapping[int | None, Mapping[str, Any]], whole: Mapping[str, Any]
) -> list[str]:
    """What cannot be split at the turns, because it has another length than all turns of the rollout together."""
    if len(turns) > _MOST_TURNS:  # the lengths of the others were not read
        return []
    n = sum(turn.get("tokens") or len(lists.get(turn["turn"], {}).get("ids") or ()) for turn in turns)
    late = {name: len(whole[column]) for name, column in _TOKENS.items() if isinstance(whole.get(column), list)}
    return [
        f"The trainer reported {k:,} numbers ({name}) for the {n:,} tokens of these turns: those beside a turn "
        "may belong to another one."
        for name, k in late.items()
        if n and k != n
    ]


def _turn(cells: Mapping[str, Any], lists: Mapping[str, Any] | None) -> RolloutTurn:
    text, size = cells.get("text"), cells.get("item_size")
    cut = isinstance(text, str) and len(text) > _LONGEST
    length = size if isinstance(size, int) else len(text) if cut and isinstance(text, str) else None
    return RolloutTurn(
        turn=cells["turn"],
        parent=cells.get("parent_turn"),
        role=plain(str(cells.get("role"))),
        name=_text(cells.get("name")),
        text=None if text is None else plain(str(text)[:_LONGEST]),
        length=length,
        calls=_text(cells.get("calls")),
        n_tokens=cells.get("tokens"),
        trained=cells.get("trained"),
        trimmed=cells.get("trimmed") is True,
        tokens_trimmed=bool(lists and lists.get("trimmed")),
        seconds=num(cells.get("seconds")),
        finish_reason=_text(cells.get("finish_reason")),
        error=_text(cells.get("error")),
        reward=num(cells.get("reward")),
        policy_version=cells.get("policy_version"),
        tokens=_shown_tokens(lists or {}, cells.get("token_texts")),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(plain(str(value)[:_LONGEST]))


def _shown_tokens(lists: Mapping[str, Any], texts: object = None) -> RolloutTokens | None:
    columns = {
        name: [float(v) if isinstance(v, (int, float)) else math.nan for v in lists[column][:_MOST_TOKENS]]
        for name, column in _TOKENS.items()
        if isinstance(lists.get(column), list) and lists[column]
    }
    ids = lists.get("ids")
    n = len(ids) if isinstance(ids, list) else max((len(cells) for cells in columns.values()), default=0)
    if not n or not columns:
        return None
    if {"sampler", "trainer"} <= set(columns):
        both = zip(columns["trainer"], columns["sampler"], strict=False)
        columns["gap"] = [trainer - sampler for trainer, sampler in both]
    text = [str(cell) for cell in ids[:_MOST_TOKENS]] if isinstance(ids, list) else ["·"] * min(n, _MOST_TOKENS)
    fits = isinstance(texts, list) and len(texts) == n
    return RolloutTokens(
        text=text,
        texts=[str(plain(str(one), _CUT)) for one in texts[:_MOST_TOKENS]] if fits and isinstance(texts, list) else [],
        columns={name: [num(v) for v in cells] for name, cells in columns.items()},
    )


def _version(cells: Mapping[str, Any]) -> RolloutVersion:
    return RolloutVersion(
        version=cells["version"], n=cells["n"], mean=num(cells["mean"]), solved=cells["solved"],
        low=num(cells["low"]), high=num(cells["high"]), used=cells["used"],
    )  # fmt: skip


ENDPOINTS = [
Endpoint(
        "POST", "/api/runs/{run}/rollouts", RolloutsAsk, RolloutsAnswer, rollouts,
        "Rollouts with their newest fates: search, filter, sort, window", lane="question",
    ),
Endpoint(
        "GET", "/api/runs/{run}/rollouts/{id}", OneRolloutAsk, OneRolloutAnswer, one_rollout,
        "One rollout as a conversation, its fates and its task over training",
    ),
]  # fmt: skip
