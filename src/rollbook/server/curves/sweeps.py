"""Which setting of a sweep goes along with a score. `rollbook.compare` computes the numbers and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rollbook import compare
from rollbook.runs.grouping import RunGroup
from rollbook.runs.groups import name_of
from rollbook.runs.questions import Sweep
from rollbook.runs.sweeping import swept
from rollbook.schema.expressions import LONGEST
from rollbook.server.asking import asked_of, shape_of
from rollbook.server.curves.memory import Memory
from rollbook.server.runs.table import fitting
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Cell, Num, Refused, num, plain
from rollbook.server.shared.state import ServerContext

SweepAsk = shape_of(Sweep, ("filter", str | None, None), ("search", str | None, None))


class SweepProject(msgspec.Struct, kw_only=True):
    """Runs that were started for one question."""

    project: str
    runs: int
    configurations: int


class TriedSeed(msgspec.Struct, kw_only=True):
    """A run that counts, and its score."""

    run: str
    seed: int | None
    value: Num


class TriedConfiguration(msgspec.Struct, kw_only=True):
    """A configuration; its values are in the order of the settings.

    Attributes:
      name: as the table of runs calls it; group: the row that it has there.
      may_be_best: whether it may be the best, given the spread of the seeds.
      crashed, running, without_score: runs that do not count.
    """

    name: str
    group: str
    runs: list[str]
    values: list[Cell]
    mean: Num
    std: Num
    may_be_best: bool
    seeds: list[TriedSeed]
    crashed: int
    running: int
    without_score: int


class SweepSetting(msgspec.Struct, kw_only=True):
    """A setting that varies, the most important first.

    Attributes:
      column: as in the table of runs; together: those that always change with it.
      share: of the variance of the scores that goes along with it, beyond the settings before it, so shares may be
        added; null if it cannot be estimated, for the reason in `why`.
      low, high: over other seeds, 90 %.
      alone: the share if no other setting is looked at; goes_with: the setting before it that has most of the rest;
        alike: whether these runs cannot tell which of the two matters.
    """

    column: str
    together: list[str]
    share: Num
    low: Num
    high: Num
    alone: Num
    goes_with: str
    alike: bool
    levels: int
    why: str


class SweepAnswer(Answer, kw_only=True):
    """A sweep: the answer first, then what it rests on.

    Attributes:
      seeds: the share of the variance between seeds of one configuration.
      chance: the share that the first setting reaches in 5 % of sweeps where none matters.
      configurations: the best first.
    """

    project: str
    projects: list[SweepProject]
    key: str
    keys: list[str]
    x: str
    at: Num
    at_why: str
    score: str
    better: Literal["higher", "lower"]
    sentence: str
    todo: str
    notes: list[str]
    seeds: Num
    chance: Num
    settings: list[SweepSetting]
    configurations: list[TriedConfiguration]
    left_out: int


_MOST_KEYS = 200


def sweep(context: ServerContext, ask: Ask) -> SweepAnswer:
    """The runs of a project as a sweep, limited to those that match a filter and a search."""
    # The runs: those that are named, or all that fit the filter and the search.
    condition, search = getattr(ask, "filter", None), getattr(ask, "search", None)
    if len(condition or "") > LONGEST:
        raise Refused("too_large", f"the filter has {len(condition or ''):,} characters; at most {LONGEST:,}")
    question, rows = asked_of(context, ask, Sweep)
    if getattr(ask, "runs", None) is None:  # archived runs only if they are named
        rows = [row for row in rows if not row.is_archived]
    rows, _ = fitting(context, rows, condition, search)
    source = Memory(context, rows)
    answer = swept(question, source)
    # The answer names runs as people do; the page knows them by their keys.
    run_of = {name_of(row): source.key_of[str(row["path"])] for row in source.rows}
    found, end = answer.sweep, answer.end
    seed_of = {entry.name: entry.seed for entry in answer.entries}
    return SweepAnswer(
        project=plain(answer.project),
        projects=[
            SweepProject(project=plain(name), runs=runs, configurations=configurations)
            for name, (runs, configurations) in answer.projects.items()
        ],
        key=plain(answer.metric),
        keys=[plain(name) for name in answer.metrics[:_MOST_KEYS]],
        x=plain(end.axis),
        at=None if end.at is None else num(end.at),
        at_why=end.why,
        score=answer.how,
        better="lower" if answer.lower_is_better else "higher",
        sentence=plain(found.sentence),
        todo=plain(found.todo),
        notes=[plain(note) for note in found.notes],
        seeds=_there(found.seeds),
        chance=_there(found.chance),
        settings=[
            SweepSetting(
                column=plain(setting.name),
                together=[plain(name) for name in setting.together],
                share=_there(setting.share),
                low=_there(setting.low),
                high=_there(setting.high),
                alone=_there(setting.alone),
                goes_with=plain(setting.goes_with),
                alike=setting.alike,
                levels=setting.levels,
                why=setting.why,
            )
            for setting in found.settings
        ],
        configurations=[
            _tried(each, answer.groups[each.group], [s.name for s in found.settings], run_of, seed_of)
            for each in found.tried
        ],
        left_out=answer.left_out,
    )


def _tried(
    each: compare.Tried,
    group: RunGroup[Any],
    settings: list[str],
    run_of: Mapping[str, str],
    seed_of: Mapping[str, int | None],
) -> TriedConfiguration:
    members = [run_of[name_of(row)] for row in group.members]
    seeds = [
        TriedSeed(run=run_of[name], seed=seed_of[name], value=_there(float(score)))
        for name, score in zip(each.names, each.scores_R, strict=True)
    ]
    return TriedConfiguration(
        name=plain(group.name),
        group=plain(group.id if len(members) > 1 else members[0]),
        runs=members,
        values=[plain(each.settings[name], 200) for name in settings],
        mean=_there(each.mean),
        std=_there(each.std),
        may_be_best=each.may_be_best,
        seeds=seeds,
        crashed=len(each.crashed),
        running=len(each.running),
        without_score=len(each.without_score),
    )


def _there(value: float) -> Num:
    return None if value != value else num(value)


ENDPOINTS = [
    Endpoint("POST", "/api/sweep", SweepAsk, SweepAnswer, sweep, "Which setting of a sweep goes along with a score"),
]
