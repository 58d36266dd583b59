"""What is wrong with runs, the plans stored with them, and how many seeds they need: `runs` has the answers."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from rollbook.runs.comparing import seeds_needed
from rollbook.runs.disk import disk
from rollbook.runs.finding import alerted, found
from rollbook.runs.grouping import groups_of
from rollbook.runs.looks import plans_below
from rollbook.runs.questions import Alerts, Findings, Plans, Seeds, Verify
from rollbook.runs.verifying import verified
from rollbook.server.asking import asked_of, shape_of
from rollbook.server.curves.memory import Memory
from rollbook.server.curves.verdicts import StoredPlan, stored_plan
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Num, Refused, num, plain
from rollbook.server.shared.state import ServerContext

FindingsAsk, AlertsAsk = shape_of(Findings), shape_of(Alerts)
PlansAsk, SeedsAsk, VerifyAsk = shape_of(Plans), shape_of(Seeds), shape_of(Verify)


class FindingRun(msgspec.Struct, kw_only=True):
    """Where something was found: the position on the run's own axis, and the key that it is about, if they are known.

    Attributes:
      name: of the run's group, with the settings that distinguish it from other groups of that name.
    """

    run: str
    name: str
    seed: int | None
    project: str
    status: str
    time: float | None
    axis: str
    x: Num
    key: str


class Finding(msgspec.Struct, kw_only=True):
    """What is wrong, once for all runs that have it.

    Attributes:
      rule: the health rule; "ended" where runs crashed, were killed or fell silent.
      level: crashed, fail, warn or note.
      message: of the newest run; runs: the newest first, at most 50; many: how many there are.
    """

    rule: str
    level: str
    message: str
    runs: list[FindingRun]
    many: int


class FindingsAnswer(Answer, kw_only=True):
    """What is wrong with runs.

    Attributes:
      total: of alerts; findings: the worst first, then the newest; looked_at: runs; quiet: those that have none.
      sentences: the same in words.
    """

    total: int
    findings: list[Finding] = []
    looked_at: int = 0
    quiet: int = 0
    sentences: list[str] = []


class AlertRow(msgspec.Struct, kw_only=True):
    """An alert of a run; `run` is its id."""

    run: str
    project: str
    name: str
    time: str
    seconds: float
    level: str
    rule: str
    key: str
    message: str
    clocks: dict[str, int]


class AlertsAnswer(Answer, kw_only=True):
    """The newest alerts of runs, oldest first, and how many there are."""

    total: int
    alerts: list[AlertRow]


class VerifiedRun(msgspec.Struct, kw_only=True):
    """What is wrong with the files of a run, in words; none if it is sound.

    Attributes:
      run: as the table of runs names it; id: of the run.
    """

    run: str
    id: str
    problems: list[str]


class VerifyAnswer(Answer, kw_only=True):
    """What is wrong with the files of runs, run by run.

    Attributes:
      unread: entries of their folder that cannot be read as runs; sentences: all in words.
    """

    runs: list[VerifiedRun]
    unread: list[str]
    sentences: list[str]


class PlansAnswer(Answer, kw_only=True):
    """The plans stored with the runs."""

    plans: list[StoredPlan]


class FoundBySeeds(msgspec.Struct, kw_only=True):
    """The smallest difference that a number of seeds finds; null: none, however large."""

    seeds: int
    difference: Num


class SeedsAnswer(Answer, kw_only=True):
    """How many seeds each group needs; see `rollbook.compare.seeds.SeedPlan`."""

    std: float
    power: float
    difference: float | None
    seeds_needed: int | None
    fewest: int
    pairs_compared: int
    detectable: list[FoundBySeeds]
    sentences: list[str]


_MOST_FINDINGS, _MOST_ALERTS, _MOST_RUNS_OF_ONE = 500, 1_000, 50
_MOST_VERIFIED = 10**9


def _newest(context: ServerContext, ask: Ask) -> list[RunRow]:
    """The runs that are asked about; without names the newest, as many as may be asked about."""
    names = getattr(ask, "runs", None)
    if names is not None:
        return context.rows(names)
    return sorted(context.catalogue.snapshot().rows.values(), key=_created, reverse=True)[: context.limits.runs]


def _created(row: RunRow) -> float:
    created = row.about.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def findings(context: ServerContext, ask: Ask) -> FindingsAnswer:
    """What is wrong with the runs, each thing once."""
    rows = _newest(context, ask)
    answer = found(Findings(since=getattr(ask, "since", None)), Memory(context, rows))
    row_of = {row.folder: row for row in rows}
    groups = groups_of(rows, ["auto"], lambda row: row.about) if answer.findings else []
    name_of = {row.folder: group.name for group in groups for row in group.members}
    return FindingsAnswer(
        total=answer.alerts,
        findings=[
            Finding(
                rule=plain(each.rule),
                level=plain(each.level),
                message=plain(each.message),
                runs=[
                    _finding_run(found, row_of[found.path], name_of[found.path])
                    for found in each.found_in[:_MOST_RUNS_OF_ONE]
                ],
                many=len(each.found_in),
            )
            for each in answer.findings[:_MOST_FINDINGS]
        ],
        looked_at=answer.looked_at,
        quiet=answer.quiet,
        sentences=[plain(sentence) for sentence in answer.sentences()],
    )


def _finding_run(found: Any, row: RunRow, name: str) -> FindingRun:
    about = row.about
    seed = about.get("seed")
    return FindingRun(
        run=row.key,
        name=plain(name),
        seed=seed if isinstance(seed, int) else None,
        project=plain(str(about.get("project") or "")),
        status=row.status,
        time=found.seconds,
        axis=plain(found.axis),
        x=None if found.x is None else num(found.x),
        key=plain(found.key),
    )


def alerts(context: ServerContext, ask: Ask) -> AlertsAnswer:
    """The alerts of the runs, one by one."""
    rows = alerted(Alerts(since=getattr(ask, "since", None)), Memory(context, _newest(context, ask)))
    return AlertsAnswer(total=len(rows), alerts=[AlertRow(**plain(row)) for row in rows[-_MOST_ALERTS:]])


def verify(context: ServerContext, ask: Ask) -> VerifyAnswer:
    """What is wrong with the files of runs."""
    question, rows = asked_of(context, ask, Verify)
    source = Memory(context, rows)
    size = 0 if question.quick else disk(source.rows).total
    if size > _MOST_VERIFIED:
        raise Refused(
            "too_large",
            f"the files of these runs take {size / 1e9:,.1f} GB, and verify reads all of them",
            "Ask for fewer runs, or with quick; or run in a terminal: rollbook verify",
        )
    shot = context.catalogue.snapshot()
    answer = verified(question, source, shot.unreadable if getattr(ask, "runs", None) is None else ())
    keys = {row.folder: row.key for row in rows}
    return VerifyAnswer(
        runs=[
            VerifiedRun(
                run=keys[run.path], id=plain(run.id), problems=[plain(str(problem), None) for problem in run.problems]
            )
            for run in answer.runs
        ],
        unread=[plain(words, None) for words in answer.unread],
        sentences=[plain(sentence, None) for sentence in answer.sentences()],
    )


def plans(context: ServerContext, ask: Ask) -> PlansAnswer:
    """The plans stored with the runs."""
    return PlansAnswer(plans=[stored_plan(plan) for root in context.catalogue.roots for plan in plans_below(root)])


def seeds(context: ServerContext, ask: Ask) -> SeedsAnswer:
    """How many seeds each group needs."""
    question, rows = asked_of(context, ask, Seeds)
    answer = seeds_needed(question, Memory(context, rows))
    return SeedsAnswer(
        std=answer.std,
        power=answer.power,
        difference=answer.difference,
        seeds_needed=answer.needed,
        fewest=answer.fewest,
        pairs_compared=answer.pairs_compared,
        detectable=[
            FoundBySeeds(seeds=n, difference=size if math.isfinite(size) else None)
            for n, size in answer.detectable.items()
        ],
        sentences=[plain(sentence) for sentence in answer.sentences()],
    )


ENDPOINTS = [
    Endpoint(
        "POST", "/api/findings", FindingsAsk, FindingsAnswer, findings, "What is wrong with runs, each thing once"
    ),
    Endpoint("POST", "/api/alerts", AlertsAsk, AlertsAnswer, alerts, "What health rules found in runs, one by one"),
    Endpoint("POST", "/api/verify", VerifyAsk, VerifyAnswer, verify, "What is wrong with the files of runs"),
    Endpoint("POST", "/api/plans", PlansAsk, PlansAnswer, plans, "The plans stored with the runs"),
    Endpoint("POST", "/api/seeds", SeedsAsk, SeedsAnswer, seeds, "How many seeds each group needs"),
]
