"""Rollouts: searched and sorted in DuckDB; one as a conversation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from rollbook.book import RolloutQueries
from rollbook.book.questions import GROUP_COLUMNS, RolloutAnswer, Rollouts, answered, cells_of, chosen_rollouts
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import IDENTITY, check_window
from rollbook.server.shared.shapes import (
    Answer,
    Cell,
    Num,
    OfRun,
    Refused,
    Row,
    TableColumn,
    columns_of,
    num,
    plain,
    rows_of,
)
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext

RolloutsAsk = shape_of_one(Rollouts, defaults={"limit": 100})


class RolloutGroup(msgspec.Struct, kw_only=True):
    """The matching rollouts of a group.

    Attributes:
      marks: a character for each: 1 solved, 0 not solved, x no reward; solved ones first.
      mean, spread: of their rewards (standard deviation); stale: the largest staleness; turns: the median; tokens: the
        sum of sampled tokens.
      fates: fate -> number of rollouts, most frequent first.
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
      fates: fate -> number of rollouts, most frequent first, after search, group and task, before `where`; {} beyond
        the first window.
      groups: with by_group, the number of groups with a matching rollout.
    """

    total: int
    matched: int
    groups: int | None = None
    offset: int
    columns: list[TableColumn]
    rows: list[RolloutRow]
    fates: dict[str, int] = {}


class OneRolloutAsk(OfRun, kw_only=True):
    """One rollout by its id.

    Attributes:
      above: a rollout with a reward above this solved its prompt; null: as `Book.solved_above` says.
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
_MOST_VERSIONS = 2_000
_MOST_TOKENS = 20_000
_TOKENS = {
    "sampler": "sampler_logprobs",
    "trainer": "trainer_logprobs",
    "entropy": "entropy",
    "advantage": "advantages",
    "mask": "mask",
}


def ask_rollouts(context: ServerContext, row: RunRow, names: Sequence[str], work: Callable[[Locked], T]) -> T:
    """The result of `work` on the tables of rollouts and the view rollouts_now, which has their newest fates."""

    def joined(db: Locked) -> T:
        db.view("rollouts_now", RolloutQueries(db.columns).now())
        return work(db)

    return with_tables(context, row, ["rollouts", "fates", *names], "effective", joined)


def rollouts(context: ServerContext, ask: OfRun) -> RolloutsAnswer:
    """A window of the rollouts, each with its prompt and newest fate."""
    question, row = of_one_run(ask, Rollouts), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rollouts(question, KeptRun(context, row), counted=True)
    ours = (*IDENTITY, "rollout_id", *GROUP_COLUMNS)
    shown = page.table.select([name for name in page.table.column_names if name not in ours])
    groups: list[RolloutGroup | None] = [None] * page.table.num_rows
    if question.by_group:
        groups = [_group(cells) for cells in page.table.select(GROUP_COLUMNS).to_pylist()]
    identities = page.table["rollout_id"].to_pylist()
    return RolloutsAnswer(
        total=page.total,
        matched=page.matched,
        groups=page.groups,
        offset=question.offset,
        columns=columns_of(shown),
        rows=[
            RolloutRow(id=plain(str(name)), cells=cells, group=group)
            for name, cells, group in zip(identities, rows_of(shown, _CUT), groups, strict=True)
        ],
        fates={str(plain(fate)): n for fate, n in page.fates.items()},
    )


def _group(cells: Mapping[str, Any]) -> RolloutGroup:
    numbers = {name: num(cells[f"group_{name}"]) for name in ("mean", "spread", "stale", "turns", "tokens")}
    fates = {str(plain(each["fate"])): each["n"] for each in cells["group_fates"]}
    return RolloutGroup(n=cells["group_n"], marks=cells["group_marks"], fates=fates, **numbers)


def one_rollout(context: ServerContext, ask: OneRolloutAsk) -> OneRolloutAnswer:
    """One rollout as a conversation, with its tokens, its fates and its task over training."""

    def work(db: Locked) -> tuple[pa.Table, ...]:
        own = "where rollout_id = ?"
        row = db.table(f"select * from rollouts_now {own} limit 1", [ask.id])
        if not row.num_rows:
            raise Refused("not_found", f"there is no rollout {ask.id!r:.80}", "Look at the table of rollouts.")
        task = row["task_id"][0].as_py()
        return (
            row,
            db.table("select * from tasks where task_id = ? limit 1", [task]),
            db.table(f"select * from fates {own} order by time", [ask.id]),
        )

    run = context.row(ask.run)
    row, task, fates = ask_rollouts(context, run, ["tasks"], work)
    over = RolloutAnswer(question="history", rollout_id=ask.id, limit=_MOST_VERSIONS, solved=ask.above)
    history = answered(over, KeptRun(context, run))
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
        version=cells["version"],
        n=cells["rollouts"],
        mean=num(cells["reward"]),
        solved=cells["solved"],
        low=num(cells["low"]),
        high=num(cells["high"]),
        used=cells["used"],
    )


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/runs/{run}/rollouts",
        RolloutsAsk,
        RolloutsAnswer,
        rollouts,
        "Rollouts with their newest fates: search, filter, sort, window",
        lane="question",
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/rollouts/{id}",
        OneRolloutAsk,
        OneRolloutAnswer,
        one_rollout,
        "One rollout as a conversation, its fates and its task over training",
    ),
]
