"""What became of rollouts, prompts and groups of samples: which were used, solved, dropped, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import pyarrow as pa

from rollbook.book import Retention, RolloutQueries
from rollbook.book.questions import (
    OTHER_TABLES,
    ROLLOUTS,
    AboutRollouts,
    PromptPage,
    Prompts,
    RolloutAnswer,
    RolloutCurves,
    Unused,
    answer_in,
    cells_of,
    chosen_prompts,
    curves_in,
    groups_unused,
    kept,
    see_rollouts,
)
from rollbook.runs.questions import SharedPrompts
from rollbook.runs.shared_prompts import prompts_of_two
from rollbook.schema import manifest
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import check_window
from rollbook.server.shared.shapes import Answer, Num, OfRun, Refused, Row, num, plain, rows_of
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.rollouts import _CUT

UnusedAsk = shape_of_one(Unused)


class Reason(msgspec.Struct, kw_only=True):
    """Groups with the same fate."""

    reason: str
    groups: int
    rows: int
    ids: list[str]


class UnusedAnswer(Answer, kw_only=True):
    """What became of the groups of one batch."""

    x: str
    at: Num
    groups: int
    reasons: list[Reason]


def unused(context: ServerContext, ask: OfRun) -> UnusedAnswer:
    """The groups of one batch: which were trained on, and which taught nothing."""
    page = groups_unused(of_one_run(ask, Unused), KeptRun(context, context.row(ask.run)))
    reasons = [
        Reason(reason=plain(cells["reason"]), groups=cells["groups"], rows=cells["rows"], ids=cells["ids"])
        for cells in page.table.to_pylist()
    ]
    groups = sum(reason.groups for reason in reasons)
    return UnusedAnswer(x=plain(page.x), at=num(page.at), groups=groups, reasons=reasons)


class FatesAsk(OfRun, kw_only=True):
    """What became of all rollouts over training.

    Attributes:
      points: into how many stretches training is divided.
      brief: leave out the tables. counts: leave out the curves, too: only layers and passes, the fastest to make.
      part: only one part: "curves" (with layers and passes), "fates" (clipping, stale and gaps), "tools", "tokens" or
        "words". The others are empty.
      above: a rollout with a reward above this solved its prompt; null: `Book.solved_above`.
    """

    points: int = 120
    brief: bool = False
    counts: bool = False
    part: Literal["curves", "fates", "tools", "tokens", "words"] | None = None
    above: float | None = None


class FatesLayer(msgspec.Struct, kw_only=True):
    """The rollouts of one reason in each stretch."""

    reason: str
    n: list[int]
    total: int
    tokens: Num
    first: Num


class Passes(msgspec.Struct, kw_only=True):
    """How many rollouts solved their task in each stretch.

    Attributes:
      n: rollouts with a reward; solved: as in `RolloutVersion`; low, high: of their share, 95 % (Wilson).
    """

    n: list[int]
    solved: list[int]
    low: list[Num]
    high: list[Num]


class Clipping(msgspec.Struct, kw_only=True):
    """The used rollouts of one staleness; of the last one also those that are staler.

    Attributes:
      n: how many have a share of clipped tokens from each of `clipped_from` on.
    """

    staleness: int
    n: list[int]


class FatesAnswer(Answer, kw_only=True):
    """What became of the rollouts over training.

    Attributes:
      x: gradient_step or policy_version; starts: where each stretch begins; width: of a stretch.
      curves: name -> a number for each stretch. stale: a row for each staleness. tools: a row for each tool.
      clipping: a column for each staleness; clipped_from: where each of its rows begins, a share of tokens.
      words: those that grew most among high advantage. gaps: the rollouts with the largest; tokens: the tokens.
      trimmed: what retention has removed, in words; "" for nothing.
    """

    x: str
    starts: list[Num]
    width: Num
    total: int
    layers: list[FatesLayer]
    passes: Passes
    curves: dict[str, list[Num]]
    stale: list[Row]
    clipped_from: list[float]
    clipping: list[Clipping]
    tools: list[Row]
    words: list[Row]
    gaps: list[Row]
    tokens: list[Row]
    trimmed: str


PromptsAsk = shape_of_one(Prompts, defaults={"limit": 100, "stretches": 24})


class PromptRow(msgspec.Struct, kw_only=True):
    """One prompt over training; evaluations do not count.

    Attributes:
      id: of the task. prompt: its beginning; if it is a conversation, the beginning of the user's last message.
      rollouts: attempts; groups: of rollouts.
      solved: as in `RolloutVersion`; rate: solved / rollouts; low, high: of the rate, 95 % (Wilson).
      recent_rollouts: attempts in the last fifth of training, with their solved, rate, low and high; null without any.
      tried, solved_in: attempts in each stretch of training, and those that solved it.
      first, last: step of its first and last attempt. best: its highest reward. example: its newest rollout.
    """

    id: str
    prompt: str | None
    rollouts: int
    groups: int
    solved: int
    rate: Num
    low: Num
    high: Num
    recent_rollouts: int
    recent_solved: int
    recent_rate: Num
    recent_low: Num
    recent_high: Num
    tried: list[int]
    solved_in: list[int]
    first: int | None
    last: int | None
    best: Num
    example: str


class PromptsAnswer(Answer, kw_only=True):
    """A window of the prompts.

    Attributes:
      x: gradient_step or policy_version; recent_from: where its last fifth begins.
      begin, width: of the stretches of training; null without any.
      above: a rollout with a reward above this solved its prompt.
      total: number of prompts; never, sometimes, always: how many are solved that often; matched: how many match.
    """

    x: str
    recent_from: int | None
    begin: int | None
    width: int | None
    above: Num
    total: int
    never: int
    sometimes: int
    always: int
    matched: int
    offset: int
    rows: list[PromptRow]


SharedPromptsAsk = shape_of_one(SharedPrompts)


class SharedPromptsRow(msgspec.Struct, kw_only=True):
    """One prompt in both runs; the second number of each pair is the other run's.

    Attributes:
      solved: rollouts with a reward (or the parts that both have) above the number of the answer.
      mean: of the measure. example: a rollout of each.
    """

    prompt: str | None
    n: list[int]
    mean: list[Num]
    solved: list[int]
    example: list[str]


class SharedPromptsAnswer(Answer, kw_only=True):
    """Prompts in both runs, from the largest loss of the other run to its largest gain.

    Attributes:
      shared: how many prompts both have; only: how many each has alone.
      measure: what is compared: "reward", parts of it ("accuracy", "accuracy + format"), or "share solved".
      note: why this is not the reward, in words; "" if it is.
      parts: the parts that both have.
      above: a number for each run; a rollout above it is solved.
      mean: the mean over the shared prompts of their means of the measure, a number for each run.
      better, worse: on how many prompts the other run's mean is higher, or lower.
      sentences: the same in words.
    """

    sentences: list[str]
    measure: str
    note: str
    parts: list[str]
    above: list[Num]

    shared: int
    only: list[int]
    mean: list[Num]
    better: int
    worse: int
    rows: list[SharedPromptsRow]


_QUESTION = f"left(ltrim(split_part(chr(10) || prompt, chr(10) || 'user: ', -1), chr(10)), {_CUT})"
"""The last user message of a conversation, since prompts often begin with the same instructions."""


_PARTS: dict[str, dict[AboutRollouts, int]] = {
    "curves": {},
    "fates": {"staleness": 64, "gaps": 20},
    "tools": {"tools": 50},
    "tokens": {"tokens": 20},
    "words": {"words": 20},
}
"""Part of the answer -> its questions, and how many rows of each are shown."""
_CLIPPED_FROM = (0.0, 0.01, 0.03, 0.06, 0.12, 0.25)
_STALEST = 9
_CLIPPING = f"""select least(staleness, {_STALEST}) as staleness,
    {
    ", ".join(
        f"count(*) filter (clipped >= {low}{f' and clipped < {high}' if high else ''}) as n{index}"
        for index, (low, high) in enumerate(zip(_CLIPPED_FROM, (*_CLIPPED_FROM[1:], None), strict=True))
    )
}
  from rollouts_now where used and staleness >= 0 and clipped is not null and mode is distinct from 'eval'
  group by 1 order by 1"""
_COUNTED = f"""with own as materialized (
    select gradient_step, policy_version, used, reason, sampled_tokens, reward, mode from rollouts_now),
  a as (select {{by_update}} as by_update from own),
  r as (select coalesce(case when by_update then gradient_step end, policy_version, 0) as x, by_update,
      {RolloutQueries.FATE} as reason, sampled_tokens,
      case when isfinite(reward::double) then {{solved}} end as is_solved
    from own, a where mode is distinct from 'eval'),
  e as (select min(x) as low, greatest(1, ceil((max(x) - min(x) + 1) / {{points}}.0)) as width from r),
  b as (select reason, e.low + floor((x - e.low) / e.width) * e.width as start, any_value(e.width) as width,
      any_value(by_update) as by_update, count(*) as n, sum(sampled_tokens) as tokens, count(is_solved) as k,
      count(*) filter (is_solved) as solved from r, e group by 1, 2),
  p as (select start, sum(k) as k, sum(solved) as solved from b group by 1)
  select b.*, i.k_all, i.solved_all, i.low, i.high from b join (select start, k as k_all, solved as solved_all,
    {RolloutQueries.interval("solved", "k")} from p) i using (start) order by reason, start"""
"""The rollouts by fate and stretch of training."""
_CURVES = (
    "rollout/reward",
    "group/solved_all",
    "group/solved_none",
    "group/zero_std",
    "policy/staleness_mean",
    "policy/gap_mean",
    "policy/clipped",
    "rollout/truncated",
    "rollout/failed",
    "rollout/length",
    "time/model_seconds",
    "time/tools_seconds",
    "time/reward_seconds",
    "time/queue_seconds",
)


def fates(context: ServerContext, ask: FatesAsk) -> FatesAnswer:
    """The fates of the rollouts over training, and why."""
    if not 1 <= ask.points <= 1_000:
        raise Refused("too_large", f"points={ask.points}: 1 to 1,000")

    # Which parts of the answer are wanted, and which questions and tables these need.
    parts = {ask.part} if ask.part else set() if ask.counts else {"curves"} if ask.brief else _PARTS.keys()
    asked = {question: most for part in _PARTS if part in parts for question, most in _PARTS[part].items()}
    more = [table for question in asked for table in OTHER_TABLES.get(question, ())]

    def work(db: Locked) -> tuple[list[dict[str, Any]], pa.Table | None, dict[str, list[Row]], list[dict[str, Any]]]:
        see_rollouts(db, make="fates" in parts or ask.brief)
        db.view("rollouts_now", "select * from slim")
        counted: list[dict[str, Any]] = []
        curves: pa.Table | None = None
        clipping: list[dict[str, Any]] = []
        if ask.part in (None, "curves"):
            by_update = RolloutQueries(db.columns, empty=db.empty).by_update
            solved = RolloutQueries.solved(ask.above)
            by_reason = _COUNTED.format(points=ask.points, solved=solved, by_update=by_update)
            counted = kept(db, by_reason, ROLLOUTS).to_pylist()
        if "curves" in parts:
            over = RolloutCurves(x=_axis_of(counted), solved=ask.above)
            curves = curves_in(db, over, now="slim" if "filled" in db.stored else "")
        if "fates" in parts:
            clipping = kept(db, _CLIPPING, ROLLOUTS).to_pylist()
        answers: dict[str, list[Row]] = {
            question: rows_of(answer_in(db, RolloutAnswer(question=question, limit=most)), _CUT)
            for question, most in asked.items()
        }
        return counted, curves, answers, clipping

    row = context.row(ask.run)
    counted, curves, answers, clipping = with_tables(
        context, row, [*dict.fromkeys([*ROLLOUTS, *more])], "effective", work
    )
    x = _axis_of(counted)
    passed = {cells["start"]: cells for cells in counted}
    starts = sorted(passed)
    layers = _layers(counted, starts)
    return FatesAnswer(
        x=x,
        starts=[num(start) for start in starts],
        width=num(counted[0]["width"]) if counted else 1.0,
        total=sum(layer.total for layer in layers),
        layers=layers,
        passes=Passes(
            n=[int(passed[start]["k_all"]) for start in starts],
            solved=[int(passed[start]["solved_all"]) for start in starts],
            low=[num(passed[start]["low"]) for start in starts],
            high=[num(passed[start]["high"]) for start in starts],
        ),
        curves={} if curves is None else _binned(curves, x, starts),
        stale=answers.get("staleness", []),
        clipped_from=list(_CLIPPED_FROM),
        clipping=[
            Clipping(staleness=cells["staleness"], n=[cells[f"n{index}"] for index in range(len(_CLIPPED_FROM))])
            for cells in clipping
        ],
        tools=answers.get("tools", []),
        words=answers.get("words", []),
        gaps=answers.get("gaps", []),
        tokens=answers.get("tokens", []),
        trimmed=plain(Retention.words(manifest.look(row.folder).retention or {})),
    )


def _layers(counted: Sequence[Mapping[str, Any]], starts: Sequence[float]) -> list[FatesLayer]:
    """A layer for each reason: how many rollouts it had in each stretch. Used ones first, then the most frequent."""
    layers: dict[str, FatesLayer] = {}
    for cells in counted:
        name = str(plain(cells["reason"]))
        layer = layers.setdefault(
            name, FatesLayer(reason=name, n=[0] * len(starts), total=0, tokens=0.0, first=num(cells["start"]))
        )
        layer.n[starts.index(cells["start"])] += cells["n"]
        layer.total += cells["n"]
        layer.tokens = float(layer.tokens or 0.0) + float(cells["tokens"] or 0)
    return sorted(layers.values(), key=lambda layer: (layer.reason != "used", -layer.total))


def _binned(curves: pa.Table, x: str, starts: Sequence[float]) -> dict[str, list[Any]]:
    """The curves, averaged over the updates of each interval."""
    found: dict[str, list[Any]] = {}
    at = curves[x].to_pylist()
    for name in _CURVES:
        sums, counts = [0.0] * len(starts), [0] * len(starts)
        stretch = 0
        for position, cell in zip(at, curves[name].to_pylist(), strict=True):
            if position is None:  # rollouts that wait, before the first update
                continue
            while stretch + 1 < len(starts) and position >= starts[stretch + 1]:
                stretch += 1
            if isinstance(cell, (int, float)) and math.isfinite(cell) and starts:
                sums[stretch] += float(cell)
                counts[stretch] += 1
        if any(counts):
            found[name] = [num(total / n) if n else None for total, n in zip(sums, counts, strict=True)]
    return found


def _axis_of(counted: Sequence[Mapping[str, Any]]) -> Literal["gradient_step", "policy_version"]:
    """The axis of the rollouts."""
    return "gradient_step" if not counted or counted[0]["by_update"] else "policy_version"


def prompts(context: ServerContext, ask: OfRun) -> PromptsAnswer:
    """A window of the prompts: how often each was tried and solved, in all and in the last fifth of training."""
    question, row = of_one_run(ask, Prompts), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_prompts(question, KeptRun(context, row), counted=True, text=_QUESTION)
    return PromptsAnswer(
        x=page.x,
        recent_from=page.recent_from,
        begin=page.begin,
        width=page.width,
        above=num(page.above),
        total=page.total,
        never=page.never,
        sometimes=page.sometimes,
        always=page.always,
        matched=page.matched,
        offset=question.offset,
        rows=[_prompt(cells, page) for cells in cells_of(page.table)],
    )


def _prompt(cells: Mapping[str, Any], page: PromptPage) -> PromptRow:
    many = 0
    if page.width and page.last is not None and page.begin is not None:
        many = (page.last - page.begin) // page.width + 1
    tried, solved_in = [0] * many, [0] * many
    for part in cells.get("strip") or ():
        tried[part["stretch"]], solved_in[part["stretch"]] = part["n"], part["k"]
    shares: dict[str, Any] = {
        f"{when}{name}": num(cells[f"{when}{name}"]) for when in ("", "recent_") for name in ("rate", "low", "high")
    }
    counted = ("rollouts", "groups", "solved", "recent_rollouts", "recent_solved", "first", "last")
    return PromptRow(
        id=str(cells["task_id"]),
        prompt=plain(cells["prompt"]),
        best=num(cells["best"]),
        example=str(cells["rollout_id"]),
        tried=tried,
        solved_in=solved_in,
        **{name: cells[name] for name in counted},
        **shares,
    )


_MOST_SHARED = 1_000


def shared_prompts(context: ServerContext, ask: OfRun) -> SharedPromptsAnswer:
    """Two runs on the prompts that both have, by what both measure alike."""
    question = of_one_run(ask, SharedPrompts)
    if not 1 <= question.limit <= _MOST_SHARED:
        raise Refused("too_large", f"limit={question.limit}: 1 to {_MOST_SHARED:,}")
    one, other = context.row(question.run), context.row(question.other)
    sources = KeptRun(context, one), KeptRun(context, other)
    found = prompts_of_two(question, sources, (str(one.about.get("name")), str(other.about.get("name"))), _QUESTION)
    return SharedPromptsAnswer(
        sentences=[plain(sentence) for sentence in found.sentences()],
        measure=found.measure,
        note=found.note,
        parts=list(found.parts),
        above=[num(limit) for limit in found.above],
        shared=found.shared,
        only=list(found.only),
        mean=[num(mean) for mean in found.mean or (None, None)],
        better=found.better,
        worse=found.worse,
        rows=[
            SharedPromptsRow(
                prompt=plain(each.prompt),
                n=list(each.n),
                mean=[num(mean) for mean in each.mean],
                solved=list(each.solved),
                example=list(each.example),
            )
            for each in found.prompts
        ],
    )


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/unused", UnusedAsk, UnusedAnswer, unused, "What was not trained on, and why"),
    Endpoint("GET", "/api/runs/{run}/fates", FatesAsk, FatesAnswer, fates, "What became of all rollouts, and why"),
    Endpoint(
        "POST",
        "/api/runs/{run}/prompts",
        PromptsAsk,
        PromptsAnswer,
        prompts,
        "Prompts over training: how often each was tried and solved; those that are never solved come first",
        lane="question",
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/shared-prompts",
        SharedPromptsAsk,
        SharedPromptsAnswer,
        shared_prompts,
        "Two runs on the prompts that both have",
    ),
]
