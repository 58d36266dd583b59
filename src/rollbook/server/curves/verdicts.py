"""Which group is better, and what differs between groups. `rollbook.compare` computes the numbers and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from rollbook import compare
from rollbook.compare.facts import Fact, together
from rollbook.errors import RollbookError
from rollbook.runs.comparing import compared
from rollbook.runs.diff import Difference, diff
from rollbook.runs.group_rows import common
from rollbook.runs.groups import name_of
from rollbook.runs.looks import plans_below
from rollbook.runs.questions import Compare, Curves, Diff
from rollbook.server.asking import asked_of, shape_of
from rollbook.server.curves.groups import answers
from rollbook.server.curves.memory import Memory
from rollbook.server.curves.series import version_of
from rollbook.server.runs.one_run import LeftOut
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Cell, Num, num, plain
from rollbook.server.shared.state import ServerContext
from rollbook.stats.verdict import best_given, remark_of
from rollbook.system.texts import amount

CompareAsk = shape_of(
    Compare,
    (
        "opened",
        Annotated[
            bool,
            msgspec.Meta(
                description="whether a person has opened the answer, and not only a page drawn it again; such a look "
                "is kept beside the runs, so that later ones allow for it."
            ),
        ],
        False,
    ),
)


class SeedValue(msgspec.Struct, kw_only=True):
    """What one run scores.

    Attributes:
      counted: whether it is among the compared scores (not if the run is running or crashed).
      rows, of: how many finite rows the score is made of, and how many the run has; non_finite: how many are left out.
      ends_in_nan: whether its last row is NaN or infinite.
    """

    run: str
    seed: int | None
    value: Num
    counted: bool
    rows: int = 0
    of: int = 0
    non_finite: int = 0
    ends_in_nan: bool = False


class CompareGroup(msgspec.Struct, kw_only=True):
    """What a group scores."""

    name: str
    runs: list[str]
    n: int
    missing: list[LeftOut]
    centre: Num
    low: Num
    high: Num
    method: str
    claim: float | None
    sentence: str
    seeds: list[SeedValue]


class ComparePair(msgspec.Struct, kw_only=True):
    """Two groups compared; see `stats.Verdict` for the fields of the verdict.

    Attributes:
      verdict: of a against b; outcome: the same in the words of `stats.Verdict`.
      difference: of the statistic, a - b.
      better: the probability that a run of a scores better than one of b; winner: the group that is better, or null.
      won, of: the pairs of seeds that `ahead` wins, and all of them; p, and the limit that decides at this look.
      any_shape: a bound on p that holds whatever the shapes of the two; holds: with one more failed seed of the winner.
      best: the score that most seeds have, where it may be the best that the task can give.
      enough: the fewest seeds of each that can decide; more: those that decide with a chance of 80 %.
    """

    a: str
    b: str
    verdict: Literal["better", "worse", "same", "undecided", "cannot say"]
    outcome: str
    sentence: str
    difference: Num
    better: Num
    winner: str | None = None
    ahead: str | None = None
    won: Num = None
    of: int = 0
    p: Num = None
    limit: Num = None
    look: int | None = None
    any_shape: Num = None
    holds: bool | None = None
    unseen: Num = None
    enough: int | None = None
    more: int | None = None
    best: Num = None


class Profile(msgspec.Struct, kw_only=True):
    """The share of runs above a score, by group."""

    tau: list[float]
    groups: dict[str, list[Num]]


class PlanRow(msgspec.Struct, kw_only=True):
    """Whether a group has enough seeds; more: how many more would decide the pair that is closest to it."""

    group: str
    n: int
    sd: Num
    more: int
    todo: str


class PartedPair(msgspec.Struct, kw_only=True):
    """From where on two groups stay apart at each point; x: null where they do not."""

    a: str
    b: str
    ahead: str | None
    x: Num
    last: Num
    sentence: str


class PlanLook(msgspec.Struct, kw_only=True):
    """One look at a pair; better: who won it, or null."""

    a: str
    b: str
    n_a: int
    n_b: int
    p: Num
    limit: Num
    better: str | None


class PlanVerdict(msgspec.Struct, kw_only=True):
    """The verdict of a plan about a pair at its last look.

    Attributes:
      more: seeds of each that decide with a chance of 80 %; best: as in `ComparePair`.
      sentence: without options of Python or of the command line.
    """

    a: str
    b: str
    outcome: str
    better: str | None
    more: int | None
    sentence: str
    best: Num = None


class StoredPlan(msgspec.Struct, kw_only=True):
    """A comparison that was planned beforehand and is stored with the runs.

    Attributes:
      seeds: of each group at its end; first_look: the fewest that can decide.
    """

    name: str
    metric: str
    by: str
    score: str
    arms: list[str]
    seeds: int
    first_look: int | None
    alpha: float
    looks: list[PlanLook]
    verdicts: list[PlanVerdict]


class CompareNote(msgspec.Struct, kw_only=True):
    """What readers should know besides the numbers.

    Attributes:
      kind: one of the names in `rollbook.compare.facts.KINDS`.
      sentence: what is so, and what to do about it; without options of Python or of the command line.
      field: the field of the runs that it is about; "" for none. first: where the first run ends, if ends differ.
    """

    kind: str
    sentence: str
    group: str = ""
    field: str = ""
    first: Num = None


class CompareAnswer(Answer, kw_only=True):
    """The comparison of groups: a sentence first, then what it rests on.

    Attributes:
      at: where on the axis scores end; null: each run at its own end. at_why: why there.
      notes: further remarks; sentences: all sentences, verdicts first, as Python and the command line print them.
      parted: of each pair of groups, along the axis.
      plans: those stored with the runs, those of this metric first.
    """

    key: str
    x: str
    at: Num
    at_why: str
    score: str
    statistic: str
    level: float
    sentence: str
    notes: list[CompareNote]
    sentences: list[str]
    groups: list[CompareGroup]
    pairs: list[ComparePair]
    profile: Profile | None
    plan: list[PlanRow]
    parted: list[PartedPair] = []
    plans: list[StoredPlan] = []


DiffAsk = shape_of(Diff)


class DiffValue(msgspec.Struct, kw_only=True):
    """A value, how many runs have it, and the mean of their scores."""

    value: str
    n: int
    mean: Num


class DiffRow(msgspec.Struct, kw_only=True):
    """A thing that may differ between groups.

    Attributes:
      kind, name: see `rollbook.runs.diff.Difference`.
      values: of each group; {distinct, values} where it differs inside.
      found: of what differs, each value.
      explained: which share of the variance of scores goes along.
    """

    kind: str
    name: str
    values: list[Cell]
    differs: bool
    found: list[DiffValue] = []
    explained: Num = None


class DiffAnswer(Answer, kw_only=True):
    """What differs between groups, differences first."""

    groups: list[str]
    rows: list[DiffRow]
    equal: int
    sentences: list[str]


_MOST_PLANS, _MOST_LOOKS, _MOST_DIFFERENCES = 20, 200, 2_000


def comparison(context: ServerContext, ask: Ask) -> CompareAnswer:
    """Groups of runs compared by one score."""
    question, rows = asked_of(context, ask, Compare)
    source = Memory(context, rows)
    answer = compared(question, source, opened=bool(getattr(ask, "opened", False)))
    run_of = {name_of(row): source.key_of[row["path"]] for row in source.rows}
    groups = [_group(group, answer, run_of, question.floor) for group in answer.groups]
    pairs = [_pair(pair) for pair in answer.pairs]
    compared_pairs = {(pair.a, pair.b) for pair in pairs}
    row_of = {row.key: row for row in rows}
    members: dict[str, list[RunRow]] = {}
    for entry in answer.entries:
        members.setdefault(entry.group, []).append(row_of[run_of[entry.name]])
    more = answer.next_seeds()
    axis = answer.end.axis or next((entry.span[0] for entry in answer.entries if entry.span is not None), "")
    return CompareAnswer(
        key=answer.metric,
        x=plain(axis),
        at=None if answer.end.at is None else num(answer.end.at),
        at_why=answer.end.why,
        score=answer.how,
        statistic=answer.statistic,
        level=0.95,
        sentence=plain(" ".join(answer.verdicts()) if pairs else groups[0].sentence),
        notes=[_note(fact) for fact in together(answer.facts)],
        sentences=[plain(sentence) for sentence in answer.sentences()],
        groups=groups,
        pairs=pairs,
        profile=Profile(
            tau=[float(t) for t in answer.thresholds_H],
            groups={
                plain(group.label): [_there(v) for v in row]
                for group, row in zip(answer.groups, answer.profiles_GH, strict=True)
            },
        )
        if len(answer.thresholds_H)
        else None,
        plan=[_plan(group, more) for group in answer.groups],
        parted=[
            pair
            for pair in _parted(source, members, answer.metric, answer.statistic, axis)
            if (pair.a, pair.b) in compared_pairs or (pair.b, pair.a) in compared_pairs
        ]
        if len(members) > 1
        else [],
        plans=_plans(context, answer.metric),
    )


def _group(
    group: compare.Group, answer: compare.Comparison, run_of: dict[str, str], floor: float | None
) -> CompareGroup:
    interval = group.interval
    worth = {name: floor for name in group.crashed if floor is not None}
    why = dict.fromkeys(group.crashed, "did not finish")
    why.update(dict.fromkeys(group.running, "still running"))
    why.update(dict.fromkeys(group.without_score, "no finite value"))
    mine = [entry for entry in answer.entries if entry.group == group.label]
    why.update({entry.name: "stopped" for entry in mine if entry.stopped})
    return CompareGroup(
        name=plain(group.label),
        runs=[run_of[entry.name] for entry in mine],
        n=len(group.seeds_R),
        missing=[LeftOut(run=run_of[name], why=reason) for name, reason in why.items() if name not in group.names],
        centre=_there(interval.estimate) if interval is not None else None,
        low=_there(interval.low) if interval is not None else None,
        high=_there(interval.high) if interval is not None else None,
        method=interval.method if interval is not None else "",
        claim=float(interval.claim) if interval is not None and interval.claim is not None else None,
        sentence=plain(interval.sentence(answer.metric))
        if interval is not None
        else f"{answer.metric}: no finished run has a value.",
        seeds=[
            SeedValue(
                run=run_of[e.name],
                seed=e.seed,
                value=_there(worth.get(e.name, e.score)),
                counted=e.name in group.names,
                rows=e.rows,
                of=e.of,
                non_finite=e.non_finite,
                ends_in_nan=e.ends_in_nan,
            )
            for e in mine
        ],
    )


def _pair(pair: compare.Pair) -> ComparePair:
    verdict = "cannot say" if math.isnan(pair.difference) or pair.verdict is None else "undecided"
    if pair.better is not None:
        verdict = "better" if pair.better == pair.a else "worse"
    judged = pair.verdict
    of_verdict: dict[str, Any] = {}
    if judged is not None:
        of_verdict = {name: getattr(judged, name) for name in ("of", "look", "holds", "enough", "more")}
        of_verdict |= {name: _there(getattr(judged, name)) for name in ("won", "p", "limit", "any_shape", "unseen")}
        of_verdict["best"] = _there(judged.best if best_given(judged) else None)
        of_verdict |= {"ahead": plain(judged.ahead), "winner": plain(judged.better)}
    return ComparePair(
        a=plain(pair.a),
        b=plain(pair.b),
        verdict=verdict,  # type: ignore[arg-type]
        outcome=judged.outcome if judged is not None else "not compared",
        sentence=plain(pair.remark()),
        difference=_there(pair.difference),
        better=_there(pair.improvement),
        **of_verdict,
    )


def _note(fact: Fact) -> CompareNote:
    return CompareNote(
        kind=fact.kind,
        sentence=plain(fact.remark),
        group=plain(fact.group),
        field=plain(str(fact.values.get("field", ""))),
        first=_there(fact.values.get("first")),
    )


def _plan(group: compare.Group, more: dict[str, int]) -> PlanRow:
    scores = group.seeds_R
    seeds = more.get(group.label, 0)
    todo = f"train {amount(seeds, 'more seed')}" if seeds else "enough for what is compared"
    n = len(scores)
    return PlanRow(
        group=plain(group.label), n=n, sd=num(float(scores.std(ddof=1))) if n > 1 else None, more=seeds, todo=todo
    )


def _parted(source: Memory, groups: dict[str, list[RunRow]], key: str, statistic: str, axis: str) -> list[PartedPair]:
    """Along the curves that the page draws of these groups; bands play no part in it, so few draws are enough."""
    rows = [row for members in groups.values() for row in members]
    by = {name: [row.folder for row in members] for name, members in groups.items()}
    ask = Curves(key=key, by=by, x=axis or None, statistic=statistic)  # type: ignore[arg-type]
    context, known = source.context, ("parted", tuple(row.folder for row in rows), msgspec.json.encode(ask))
    version = version_of(tuple(source.stamps[row.folder] for row in rows))
    kept: list[PartedPair] | None = context.answers.get(known, version)
    if kept is not None:
        return kept
    try:
        found = answers(context, rows, ask, source.stamps, refine=True)
        curves = next(each for each in found if not each.is_part).curves
    except RollbookError:
        return []
    parted = [
        PartedPair(
            a=plain(pair.a),
            b=plain(pair.b),
            ahead=plain(pair.ahead),
            x=_there(pair.x),
            last=_there(pair.last),
            sentence=plain(pair.sentence()),
        )
        for pair in curves.parted()
    ]
    context.answers.put(known, version, parted, 500 * len(parted) + 200 * len(rows))
    return parted


def _plans(context: ServerContext, key: str) -> list[StoredPlan]:
    stored = [plan for root in context.catalogue.roots for plan in plans_below(root)]
    stored.sort(key=lambda plan: plan["asked"].get("metric") != key)
    return [stored_plan(plan) for plan in stored[:_MOST_PLANS]]


def stored_plan(plan: dict[str, Any]) -> StoredPlan:
    """A plan as the API has it."""
    asked = {name: plain(str(plan["asked"].get(name, ""))) for name in ("metric", "by", "score")}
    return StoredPlan(
        name=plain(plan["name"]),
        arms=[plain(arm) for arm in plan["arms"]],
        seeds=plan["seeds"] or 0,
        first_look=plan["first_look"],
        alpha=plan["alpha"],
        looks=[
            PlanLook(
                **{name: plain(look[name]) for name in ("a", "b", "better")},
                **{name: look[name] for name in ("n_a", "n_b")},
                **{name: _there(look[name]) for name in ("p", "limit")},
            )
            for look in plan["looks"][-_MOST_LOOKS:]
        ],
        verdicts=[
            PlanVerdict(
                **{name: plain(verdict.get(name)) for name in ("a", "b", "outcome", "better")},
                more=verdict.get("more"),
                sentence=plain(remark_of(verdict)),
                best=_there(verdict.get("best")),
            )
            for verdict in plan["verdicts"]
        ],
        **asked,
    )


def _there(value: float | None) -> Any:
    return None if value is None or math.isnan(value) else num(float(value))


def difference(context: ServerContext, ask: Ask) -> DiffAnswer:
    """What differs between groups, differences first."""
    question, rows = asked_of(context, ask, Diff)
    answer = diff(question, Memory(context, rows))
    groups = [*question.by] if isinstance(question.by, Mapping) else [*answer.groups]
    every = [*answer, *answer.equal]
    return DiffAnswer(
        groups=[plain(name) for name in groups],
        rows=[_different(one, groups) for one in every[:_MOST_DIFFERENCES]],
        equal=len(answer.equal),
        sentences=[plain(sentence) for sentence in answer.sentences()],
    )


def _different(one: Difference, groups: Sequence[str]) -> DiffRow:
    along = one.association
    found = [
        DiffValue(value=plain(value), n=len(runs), mean=_there(along.means[value]) if along is not None else None)
        for value, runs in (one.values.items() if one.differs else ())
    ]
    return DiffRow(
        kind=one.kind,
        name=plain(one.name),
        values=[common(one.of_group[group]) if group in one.of_group else None for group in groups],
        differs=one.differs,
        found=found,
        explained=None if along is None else _there(along.explained),
    )


ENDPOINTS = [
    Endpoint(
        "POST", "/api/compare", CompareAsk, CompareAnswer, comparison, "Which group is better, and how sure that is"
    ),
    Endpoint("POST", "/api/diff", DiffAsk, DiffAnswer, difference, "What differs between groups"),
]
