"""Rollouts: searched and sorted in DuckDB; one as a conversation; each prompt over training; and all fates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from rollbook.book import RolloutQueries
from rollbook.errors import BadInput
from rollbook.ground.expressions import condition, literal
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import cells_of, columns_of, num, plain, rows_of
from rollbook.server.endpoint import Endpoint
from rollbook.server.locked_sql import Locked, order_by, with_tables
from rollbook.server.refusals import Refused
from rollbook.server.rows import IDENTITY
from rollbook.server.schemas.rollouts import (
    FatesAnswer,
    FatesAsk,
    FatesLayer,
    OneRolloutAnswer,
    OneRolloutAsk,
    Prompt,
    PromptsAnswer,
    PromptsAsk,
    RolloutRow,
    RolloutsAnswer,
    RolloutsAsk,
    RolloutTokens,
    RolloutTurn,
    RolloutVersion,
    SharedPromptsAnswer,
    SharedPromptsAsk,
    SharedPromptsRow,
)
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS"]

T = TypeVar("T")

_CUT = 300
_LONGEST = 100_000
_MOST_WORDS = 12
_MOST_TURNS = 400
_MOST_TOKENS = 20_000
_TOKENS = {
    "sampler": "sampler_logprobs",
    "trainer": "trainer_logprobs",
    "entropy": "entropy",
    "advantage": "advantages",
    "mask": "mask",
}
_PROMPTS = "select task_id, any_value(prompt) as prompt from tasks group by task_id"
_QUESTIONS = f"""select task_id, any_value(left(
    ltrim(split_part(chr(10) || prompt, chr(10) || 'user: ', -1), chr(10)), {_CUT})) as prompt from tasks"""
"""Of a conversation the user's last message: prompts often begin with the same instructions."""


def asked(hall: Hall, row: RunRow, names: Sequence[str], work: Callable[[Locked], T]) -> T:
    """The result of `work` on the tables of rollouts and the view rollouts_now, which has their newest fates."""

    def joined(db: Locked) -> T:
        db.view("rollouts_now", RolloutQueries(db.columns).now())
        return work(db)

    return with_tables(hall, row, ["rollouts", "fates", *names], "effective", joined)


def rollouts(hall: Hall, ask: RolloutsAsk) -> RolloutsAnswer:
    """A window of the rollouts, each with its prompt and newest fate."""
    if not 0 <= ask.limit <= hall.limits.rows or ask.offset < 0:
        raise Refused(
            "too_large", f"offset={ask.offset}, limit={ask.limit}: a window has 0 to {hall.limits.rows:,} rows"
        )

    def work(db: Locked) -> tuple[int, int, pa.Table]:
        db.view("seen", f"select r.*, t.prompt from rollouts_now r left join ({_PROMPTS}) t using (task_id)")
        names = db.table("select * from seen limit 0").column_names
        conditions, values = _searched(ask.search)
        if ask.where and ask.where.strip():
            conditions.append(f"({condition(ask.where).text})")
        for identity, columns in ((ask.group, ("group", "task_id", "batch")), (ask.task, ("task_id",))):
            if identity is not None:
                more, cells = _alike(db, identity, columns)
                conditions += more
                values += cells
        where = f" where {' and '.join(conditions)}" if conditions else ""
        default = ", ".join(f'"{name}" desc' for name in ("time", "seq", "index") if name in names)
        order = order_by(ask.sort, names) or (f" order by {default}" if default else "")
        total = int(db.table("select count(*) as n from rollouts")["n"][0].as_py())
        matched = int(db.table(f"select count(*) as n from seen{where}", values)["n"][0].as_py()) if where else total
        return (
            total,
            matched,
            db.table(f"select * from seen{where}{order} limit {ask.limit} offset {ask.offset}", values),
        )

    total, matched, table = asked(hall, hall.row(ask.run), ["tasks"], work)
    shown = table.select([name for name in table.column_names if name not in (*IDENTITY, "rollout_id")])
    identities = table["rollout_id"].to_pylist() if table.num_rows else []
    rows = [
        RolloutRow(id=plain(str(name)), cells=cells)
        for name, cells in zip(identities, rows_of(shown, _CUT), strict=True)
    ]
    return RolloutsAnswer(total=total, matched=matched, offset=ask.offset, columns=columns_of(shown), rows=rows)


def _alike(db: Locked, identity: str, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Conditions, with their values, for the rollouts that share columns with one; only itself if it lacks them."""
    found = db.table("select * from rollouts where rollout_id = ? limit 1", [identity])
    (cells,) = cells_of(found) or ({},)
    shared = {name: cells[name] for name in columns if cells.get(name) is not None}
    if columns[0] not in shared:
        shared = {"rollout_id": identity}
    return [f'"{name}" = ?' for name in shared], [str(value) for value in shared.values()]


def _searched(search: str | None) -> tuple[list[str], list[str]]:
    words = (search or "").split()
    if len(words) > _MOST_WORDS:
        raise BadInput(f"{len(words)} words to search for; at most {_MOST_WORDS}")
    return ["contains(lower(concat_ws(' ', item, prompt)), ?)"] * len(words), [word.lower() for word in words]


def one_rollout(hall: Hall, ask: OneRolloutAsk) -> OneRolloutAnswer:
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
            select {version} as version, count(*) as n, avg(reward) as mean,
              count(*) filter ({RolloutQueries.SOLVED}) as solved, count(*) filter (used) as used
            from ({of_task}) where mode is not distinct from ? group by 1)
            order by version nulls first limit 2000"""
        return (
            row,
            db.table("select * from tasks where task_id = ? limit 1", [task]),
            db.table(f"select * from turns {own} order by turn, time limit {_MOST_TURNS + 1}", [ask.id]),
            db.table(f"select * from tokens {own} order by turn nulls last, time", [ask.id]),
            db.table(f"select * from fates {own} order by time", [ask.id]),
            db.table(history, [row["mode"][0].as_py()]),
        )

    row, task, turns, tokens, fates, history = asked(hall, hall.row(ask.run), ["tasks", "turns", "tokens"], work)
    (cells,) = rows_of(row.select([name for name in row.column_names if name not in IDENTITY]), _LONGEST)
    said = next(iter(cells_of(task)), {})
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
        prompt=plain(said.get("prompt"), _LONGEST),
        messages=_text(said.get("messages")),
        tools=_text(said.get("tools")),
        turns=[_turn(turn, lists.get(turn["turn"])) for turn in listed],
        tokens=_shown_tokens(whole) if not listed else None,
        fates=rows_of(fates.select([name for name in fates.column_names if name not in IDENTITY]), _CUT),
        history=[_version(cells) for cells in cells_of(history)],
        turns_left_out=max(0, turns.num_rows - _MOST_TURNS),
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
        seconds=num(cells.get("seconds")),
        finish_reason=_text(cells.get("finish_reason")),
        error=_text(cells.get("error")),
        reward=num(cells.get("reward")),
        policy_version=cells.get("policy_version"),
        tokens=_shown_tokens(lists or {}),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(plain(str(value)[:_LONGEST]))


def _shown_tokens(lists: Mapping[str, Any]) -> RolloutTokens | None:
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
    return RolloutTokens(text=text, columns={name: [num(v) for v in cells] for name, cells in columns.items()})


def _version(cells: Mapping[str, Any]) -> RolloutVersion:
    return RolloutVersion(
        version=cells["version"], n=cells["n"], mean=num(cells["mean"]), solved=cells["solved"],
        low=num(cells["low"]), high=num(cells["high"]), used=cells["used"],
    )  # fmt: skip


_REASON = """case when used is null then 'no fate yet' when not used then coalesce(reason, 'dropped')
  when reason is not null then reason else 'used' end"""
_STALE = """select staleness, count(*) as n, avg(clipped) as clipped, avg(gap_mean) as gap_mean, max(gap_max) as gap_max
  from rollouts_now where used and staleness is not null group by 1 order by 1 limit 64"""
_TOOLS = """select t.name, count(*) as calls, count(t.error) as failed, count(t.error) / count(*) as share,
    median(t.seconds) as seconds, quantile_cont(t.seconds, 0.95) as slow, any_value(t.error) as error
  from turns t where t.role = 'tool' group by 1 order by failed desc, calls desc limit 50"""
_WORDS = """with ranked as (select item, ntile(10) over (order by advantage) as tenth from (
    select item, advantage from rollouts_now where used and advantage is not null and item is not null
    order by time desc limit 20000)),
  words as (select tenth, unnest(list_distinct(
      regexp_extract_all(lower(left(item, 4000)), '[[:alnum:]_.]{3,40}'))) as word
    from ranked where tenth in (1, 10))
  select word, count(*) filter (tenth = 10) as high, count(*) filter (tenth = 1) as low from words group by 1
  having count(*) filter (tenth = 10) >= 3 and count(*) filter (tenth = 10) > 2 * count(*) filter (tenth = 1)
  order by (count(*) filter (tenth = 10) + 1) / (count(*) filter (tenth = 1) + 1) desc, high desc, word limit 20"""
_CURVES = (
    "rollout/reward", "group/solved_all", "group/solved_none", "group/zero_std", "policy/staleness_mean",
    "policy/gap_mean", "policy/clipped", "rollout/truncated", "rollout/failed", "rollout/length",
    "time/model_seconds", "time/tools_seconds", "time/reward_seconds", "time/queue_seconds",
)  # fmt: skip


def fates(hall: Hall, ask: FatesAsk) -> FatesAnswer:
    """The fates of the rollouts over training, and why."""
    if not 1 <= ask.points <= 1_000:
        raise Refused("too_large", f"points={ask.points}: 1 to 1,000")

    def work(db: Locked) -> tuple[str, pa.Table, pa.Table, pa.Table, pa.Table, pa.Table]:
        x = _axis(db)
        place = f"coalesce({x}, policy_version)"
        reasons = f"""with r as (select coalesce({place}, 0) as x, {_REASON} as reason, sampled_tokens
            from rollouts_now where mode is distinct from 'eval'),
          e as (select min(x) as low, greatest(1, ceil((max(x) - min(x) + 1) / {ask.points}.0)) as width from r)
          select reason, e.low + floor((x - e.low) / e.width) * e.width as place, count(*) as n,
            sum(sampled_tokens) as tokens from r, e group by all order by all"""
        curves = RolloutQueries(db.columns).curves(x)
        return (
            x, db.table(reasons), db.table(curves), db.table(_STALE), db.table(_TOOLS), db.table(_WORDS),
        )  # fmt: skip

    x, reasons, curves, stale, tools, words = asked(hall, hall.row(ask.run), ["turns"], work)
    counted = reasons.to_pylist()
    places = sorted({cells["place"] for cells in counted})
    layers: dict[str, FatesLayer] = {}
    for cells in counted:
        name = str(plain(cells["reason"]))
        layer = layers.setdefault(
            name, FatesLayer(reason=name, n=[0] * len(places), total=0, tokens=0.0, first=num(cells["place"]))
        )
        layer.n[places.index(cells["place"])] += cells["n"]
        layer.total += cells["n"]
        layer.tokens = float(layer.tokens or 0.0) + float(cells["tokens"] or 0)
    order = sorted(layers.values(), key=lambda layer: (layer.reason != "used", -layer.total))
    return FatesAnswer(
        x=x,
        places=[num(place) for place in places],
        total=sum(layer.total for layer in order),
        layers=order,
        curves=_binned(curves, x, places),
        stale=rows_of(stale, _CUT),
        tools=rows_of(tools, _CUT),
        words=rows_of(words, _CUT),
    )


def _binned(curves: pa.Table, x: str, places: Sequence[float]) -> dict[str, list[Any]]:
    """The curves, averaged over the updates of each interval."""
    found: dict[str, list[Any]] = {}
    at = curves[x].to_pylist()
    for name in _CURVES:
        sums, counts = [0.0] * len(places), [0] * len(places)
        stretch = 0
        for place, cell in zip(at, curves[name].to_pylist(), strict=True):
            while stretch + 1 < len(places) and place >= places[stretch + 1]:
                stretch += 1
            if isinstance(cell, (int, float)) and math.isfinite(cell) and places:
                sums[stretch] += float(cell)
                counts[stretch] += 1
        if any(counts):
            found[name] = [num(total / n) if n else None for total, n in zip(sums, counts, strict=True)]
    return found


def _axis(db: Locked) -> str:
    """Where in training rollouts stand: at their update, if at least half of them have one."""
    ends = db.table("select count(gradient_step) as n, count(*) as total from rollouts_now")
    return "gradient_step" if ends["n"][0].as_py() * 2 >= ends["total"][0].as_py() else "policy_version"


_SOLVED = {"never": "solved = 0", "sometimes": "solved > 0 and solved < rollouts", "always": "solved = rollouts"}


def prompts(hall: Hall, ask: PromptsAsk) -> PromptsAnswer:
    """A window of the prompts: how often each was tried and solved, in all and in the last fifth of training."""
    if not 0 <= ask.limit <= hall.limits.rows or ask.offset < 0:
        raise Refused(
            "too_large", f"offset={ask.offset}, limit={ask.limit}: a window has 0 to {hall.limits.rows:,} rows"
        )
    columns = [name for name in Prompt.__struct_fields__ if name not in ("id", "prompt", "example")]
    order = order_by(ask.sort, columns) or " order by rate, rollouts desc"
    where = f" where {_SOLVED[ask.only]}" if ask.only else ""
    counts = ", ".join(f"count(*) filter ({condition}) as n_{name}" for name, condition in _SOLVED.items())

    def work(db: Locked) -> tuple[str, pa.Table, pa.Table]:
        x = _axis(db)
        found = db.table(f"""with p as materialized ({RolloutQueries(db.columns).prompts(x)}),
            c as (select count(*) as n_prompts, any_value(recent_from) as since, {counts} from p),
            w as (select * exclude (recent_from), row_number() over ({order}, task_id) as place from p{where}
              qualify place > {ask.offset} and place <= {ask.offset + ask.limit}),
            t as ({_QUESTIONS} where task_id in (select task_id from w) group by 1)
            select * from c left join (w left join t using (task_id)) on true order by place""")
        return x, found, db.table("select (min(reward) + max(reward)) / 2 as middle from rollouts")

    x, found, ends = asked(hall, hall.row(ask.run), ["tasks"], work)
    rows = cells_of(found)
    told = {name: rows[0][f"n_{name}"] for name in _SOLVED}
    return PromptsAnswer(
        x=x,
        recent_from=rows[0]["since"],
        above=num(ends["middle"][0].as_py()),
        total=rows[0]["n_prompts"],
        **told,
        matched=told[ask.only] if ask.only else rows[0]["n_prompts"],
        offset=ask.offset,
        rows=[_prompt(cells) for cells in rows if cells["task_id"] is not None],
    )


def _prompt(cells: Mapping[str, Any]) -> Prompt:
    shares: dict[str, Any] = {
        f"{when}{name}": num(cells[f"{when}{name}"]) for when in ("", "recent_") for name in ("rate", "low", "high")
    }
    counted = ("rollouts", "groups", "solved", "recent_rollouts", "recent_solved", "first", "last")
    return Prompt(
        id=str(cells["task_id"]), prompt=plain(cells["prompt"]), best=num(cells["best"]),
        example=str(cells["rollout_id"]), **{name: cells[name] for name in counted}, **shares,
    )  # fmt: skip


_MOST_SHARED = 1_000
_OF_PROMPTS = """select task_id, count(*) as n, avg(reward) as mean, count(*) filter (reward > ?) as solved,
    max_by(rollout_id, time) as example
  from rollouts where task_id is not null and reward is not null and mode is distinct from 'eval' group by 1"""


def shared_prompts(hall: Hall, ask: SharedPromptsAsk) -> SharedPromptsAnswer:
    """Two runs on the prompts that both have."""
    if not 1 <= ask.limit <= _MOST_SHARED:
        raise Refused("too_large", f"limit={ask.limit}: 1 to {_MOST_SHARED:,}")
    both = [hall.row(ask.run), hall.row(ask.other)]
    ends = "select min(reward) as low, max(reward) as high from rollouts"
    bounds = [cells for row in both for cells in cells_of(asked(hall, row, [], lambda db: db.table(ends)))]
    known = [cells[name] for cells in bounds for name in ("low", "high") if cells.get(name) is not None]
    middle = (min(known) + max(known)) / 2 if known else 0.0
    a, b = (
        {str(cells["task_id"]): cells for cells in cells_of(asked(hall, row, [], _prompts_of(middle)))} for row in both
    )
    tasks = sorted(a.keys() & b.keys(), key=lambda task: (b[task]["mean"] - a[task]["mean"], task))
    half = ask.limit // 2
    chosen = tasks if len(tasks) <= ask.limit else [*tasks[: ask.limit - half], *tasks[len(tasks) - half :]]
    listed = ", ".join(literal(task) for task in chosen) or "''"
    named = f"{_QUESTIONS} where task_id in ({listed}) group by 1"
    told = cells_of(asked(hall, both[0], ["tasks"], lambda db: db.table(named)))
    prompts = {str(cells["task_id"]): cells["prompt"] for cells in told}
    gains = [b[task]["mean"] - a[task]["mean"] for task in tasks]
    return SharedPromptsAnswer(
        shared=len(tasks),
        only=[len(a) - len(tasks), len(b) - len(tasks)],
        mean=[num(sum(own[task]["mean"] for task in tasks) / len(tasks)) if tasks else None for own in (a, b)],
        better=sum(gain > 0 for gain in gains),
        worse=sum(gain < 0 for gain in gains),
        rows=[
            SharedPromptsRow(
                prompt=plain(prompts.get(task)),
                n=[own[task]["n"] for own in (a, b)],
                mean=[num(own[task]["mean"]) for own in (a, b)],
                solved=[own[task]["solved"] for own in (a, b)],
                example=[str(own[task]["example"]) for own in (a, b)],
            )
            for task in chosen
        ],
    )


def _prompts_of(middle: float) -> Callable[[Locked], pa.Table]:
    return lambda db: db.table(_OF_PROMPTS, [middle])


ENDPOINTS = [
    Endpoint(
        "POST", "/api/runs/{run}/rollouts", RolloutsAsk, RolloutsAnswer, rollouts,
        "Rollouts with their newest fates: search, filter, sort, window", lane="question",
    ),
    Endpoint(
        "GET", "/api/runs/{run}/rollouts/{id}", OneRolloutAsk, OneRolloutAnswer, one_rollout,
        "One rollout as a conversation, its fates and its task over training",
    ),
    Endpoint(
        "GET", "/api/runs/{run}/fates", FatesAsk, FatesAnswer, fates, "What became of all rollouts, and why"
    ),
    Endpoint(
        "POST", "/api/runs/{run}/tasks", PromptsAsk, PromptsAnswer, prompts,
        "Prompts over training: how often each was tried and solved; those that are never solved come first",
        lane="question",
    ),
    Endpoint(
        "GET", "/api/runs/{run}/prompts", SharedPromptsAsk, SharedPromptsAnswer, shared_prompts,
        "Two runs on the prompts that both have",
    ),
]  # fmt: skip
