"""What became of rollouts, prompts and groups of samples: which were used, solved, dropped, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
    answer_in,
    axis_values,
    cells_of,
    chosen_prompts,
    curves_in,
    kept,
    listed,
    row_id,
    see_rollouts,
)
from rollbook.schema import manifest
from rollbook.schema.expressions import quoted
from rollbook.schema.solved import solved_above
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import check_window, default_axis, started
from rollbook.server.shared.shapes import Answer, Num, OfRun, Refused, Row, num, plain, rows_of
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.rollouts import _CUT, ask_rollouts
from rollbook.server.tables.samples import (
    ask_samples,
    position_and_offset,
    reward_column,
)


class UnusedAsk(OfRun, kw_only=True):
    """What was not trained on, at a point of the axis; without a point, the newest."""

    x: str | None = None
    at: float | None = None


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


def unused(context: ServerContext, ask: UnusedAsk) -> UnusedAnswer:
    """The groups of one batch: which were trained on, and which taught nothing."""
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)
    position, shift = position_and_offset(x, started(row))

    def work(db: Locked, names: list[str]) -> pa.Table | None:
        if "group" not in names or (x not in ("time", "relative") and x not in names):
            return None
        chosen = (
            f"select max({position}) from seen"
            if ask.at is None
            else f"select {position} from seen order by abs({position} - ?) limit 1"
        )
        given = [] if ask.at is None else [ask.at + shift]
        return db.table(f"select * from seen where {position} = ({chosen})", given)

    here = ask_samples(context, row, work)
    if here is None or not here.num_rows:
        return UnusedAnswer(x=plain(x), at=None, groups=0, reasons=[])
    at = float(axis_values(here, x, started(row))[0])
    groups: dict[object, list[dict[str, object]]] = {}
    for cells in cells_of(here):
        groups.setdefault(cells.get("group"), []).append(cells)
    reward = reward_column(here.column_names)
    fates: dict[str, list[list[dict[str, object]]]] = {}
    for members in groups.values():
        fates.setdefault(_fate(members, reward), []).append(members)
    reasons = [
        Reason(
            reason=plain(reason),
            groups=len(members_of_group),
            rows=sum(map(len, members_of_group)),
            ids=[row_id(members[0]) for members in members_of_group[:50]],
        )
        for reason, members_of_group in sorted(fates.items(), key=lambda pair: (pair[0] != "trained on", -len(pair[1])))
    ]
    return UnusedAnswer(x=plain(x), at=at, groups=len(groups), reasons=reasons)


def _fate(members: list[dict[str, object]], reward: str | None) -> str:
    """Why a group was not trained on: as the run reports it of most of its rows, else judged by its rewards."""
    reasons = Counter(_reason_of(cells) for cells in members)
    why = min(reasons, key=lambda reason: (-reasons[reason], reason is None, str(reason)))
    if why is not None:
        return why
    scores = [cells.get(reward) for cells in members] if reward else []
    known = [float(score) for score in scores if isinstance(score, (int, float)) and math.isfinite(score)]
    if len(known) > 1 and min(known) == max(known):
        return f"all rewards equal, {known[0]:g}"
    return "trained on"


def _reason_of(cells: Mapping[str, object]) -> str | None:
    for name in ("discard_reason", "discarded", "skip_reason", "not_trained"):
        given = cells.get(name)
        if given:
            return given if isinstance(given, str) else name.replace("_", " ")
    return None


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


class SharedPromptsAsk(OfRun, kw_only=True):
    """The prompts that a run has in common with another one.

    Attributes:
      other: the other run.
      part: a part of the reward that both have; null: the reward, if its parts are the same in both.
      above: a rollout above this solved its prompt; null: as `Book.solved_above` says, of both runs together.
      limit: the largest number of rows: half of them where the other run gains most, half where it loses most.
    """

    other: str
    part: str | None = None
    above: float | None = None
    limit: int = 200


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
    """

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


def _of_prompts(value: str, above: float) -> Callable[[Locked], pa.Table]:
    """One row per prompt: its rollouts, the mean of a measure and how many are above a number."""
    query = f"""with r as (select task_id, rollout_id, time, ({value})::double as value from rollouts
      where task_id is not null and mode is distinct from 'eval')
    select task_id, count(*) as n, avg(value) as mean, count(*) filter (value > {above!r}) as solved,
      max_by(rollout_id, time) as example from r where isfinite(value) group by 1"""
    return lambda db: db.table(query)


def _reward_of(db: Locked) -> tuple[list[str], bool]:
    """The parts that rewards of a run have, sorted, and whether there is a reward."""
    empty = set(db.empty.get("rollouts", ()))
    names = [name for name in db.columns["rollouts"] if name not in empty]
    parts = [name for name in names if name.startswith("rewards/")]
    there = db.table(
        "select " + ", ".join(["count(reward)", *(f"count({quoted(name)})" for name in parts)]) + " from rollouts"
    ).to_pylist()[0]
    has_reward, *has = there.values()
    return sorted(name[8:] for name, n in zip(parts, has, strict=True) if n), bool(has_reward)


def _measure(parts: Sequence[Sequence[str]], weights: Sequence[object], part: str | None) -> tuple[list[str], str, str]:
    """(the parts that are compared, [] for the whole reward; what that is called; why it is not the reward)."""
    common = [name for name in parts[0] if name in parts[1]]
    if part is not None:
        if part not in common:
            raise Refused(
                "bad_input",
                f"part={part!r:.80}: both runs have {', '.join(common) or 'no part of the reward'}",
                "Choose one of these.",
            )
        return [part], part, ""
    if parts[0] == parts[1] and weights[0] == weights[1]:
        return [], "reward", ""
    if parts[0] == parts[1]:
        why = f"The rewards weigh their parts differently ({weights[0]} and {weights[1]})"
    else:
        one, two = (" + ".join(own) or "one number" for own in parts)
        why = f"The rewards are made of different parts ({one} in one run, {two} in the other)"
    if common:
        return common, " + ".join(common), f"{why}: {' + '.join(common)}, which both have, is compared."
    return [], "share solved", f"{why} and have none in common: the share of solved rollouts is compared."


def shared_prompts(context: ServerContext, ask: SharedPromptsAsk) -> SharedPromptsAnswer:
    """Two runs compared on the prompts that both have, by a measure that means the same in both."""
    if not 1 <= ask.limit <= _MOST_SHARED:
        raise Refused("too_large", f"limit={ask.limit}: 1 to {_MOST_SHARED:,}")
    # What both runs measure alike: the reward, parts of it, or else the share of solved rollouts.
    both = [context.row(ask.run), context.row(ask.other)]
    found = [ask_rollouts(context, row, [], _reward_of) for row in both]
    configs = [manifest.look(row.folder).config for row in both]
    weights = [config.get("reward_weights") for config in configs]
    chosen_parts, measure, note = _measure([parts for parts, _ in found], weights, ask.part)
    # The number above which a rollout is solved, in each run.
    value = " + ".join(quoted(f"rewards/{name}") for name in chosen_parts) or "reward"
    values = [
        ask_rollouts(context, row, [], lambda db: db.table(f"select ({value})::double as value from rollouts"))["value"]
        for row in both
    ]
    known = [[cell for cell in own.to_pylist() if cell is not None] for own in values]
    has_scale = measure != "share solved"
    if not has_scale:
        above = [solved_above(own) for own in known]
    else:
        above = [solved_above([*known[0], *known[1]])] * 2
    limits = [ask.above if ask.above is not None else 0.0 if own is None else own for own in above]
    # One row per prompt of each run; of the shared ones those with the largest loss and the largest gain.
    a, b = (
        {
            str(cells["task_id"]): cells if has_scale else {**cells, "mean": cells["solved"] / cells["n"]}
            for cells in cells_of(ask_rollouts(context, row, [], _of_prompts(value, limit)))
        }
        for row, limit in zip(both, limits, strict=True)
    )
    tasks = sorted(a.keys() & b.keys(), key=lambda task: (b[task]["mean"] - a[task]["mean"], task))
    half = ask.limit // 2
    chosen = tasks if len(tasks) <= ask.limit else [*tasks[: ask.limit - half], *tasks[len(tasks) - half :]]
    # The texts of the chosen prompts.
    of_these = f"from tasks where task_id in ({listed(chosen)}) group by 1"
    named = f"select task_id, any_value({_QUESTION}) as prompt {of_these}"
    task_rows = cells_of(ask_rollouts(context, both[0], ["tasks"], lambda db: db.table(named)))
    prompts = {str(cells["task_id"]): cells["prompt"] for cells in task_rows}
    gains = [b[task]["mean"] - a[task]["mean"] for task in tasks]
    return SharedPromptsAnswer(
        measure=measure,
        note=note,
        parts=[name for name in found[0][0] if name in found[1][0]],
        above=[num(limit) for limit in limits],
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
