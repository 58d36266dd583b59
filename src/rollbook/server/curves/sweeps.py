"""Which setting of a sweep goes along with a score. `rollbook.compare` computes the numbers and sentences."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from rollbook import compare
from rollbook.compare.comparison import Place
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.comparing import NO_SCORE, scores_at
from rollbook.runs.groups import units_of
from rollbook.runs.measures import score_named
from rollbook.runs.questions import At
from rollbook.schema.aliases import lower_is_better
from rollbook.schema.expressions import LONGEST
from rollbook.schema.status import ENDED_BADLY
from rollbook.server.curves.memory import Memory
from rollbook.server.runs.columns import RunGroup, auto_columns, groups_of, value_of
from rollbook.server.runs.table import fitting
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import contents, telling_first
from rollbook.server.shared.shapes import Answer, Ask, Cell, Num, Refused, num, plain
from rollbook.server.shared.state import ServerContext


class SweepAsk(Ask, kw_only=True):
    """Which setting goes along with a score.

    Attributes:
      project: of which runs; "": the one with most configurations.
      key: the metric; "": the one that tells most.
      at: up to where on the axis; null: each run to its own end.
      filter, search: as of the table of runs.
    """

    project: str = ""
    key: str = ""
    at: float | None = None
    score: str = "mean of the last 10%"
    filter: str | None = None
    search: str | None = None


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
    """A configuration; values stand in the order of the settings.

    Attributes:
      name: as the table of runs calls it; group: the row that it has there.
      may_be_best: whether the seeds leave it open that this is the best.
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
      share: of the variance of the scores that goes along with it; null where nothing can be said, and `why` says why.
      low, high: over other seeds, 90 %.
    """

    column: str
    together: list[str]
    share: Num
    low: Num
    high: Num
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


_FEW = 6
"""So many runs may each try a text of their own: algorithms, say."""
_MOST_CONFIGURATIONS, _MOST_SETTINGS, _MOST_KEYS = 500, 40, 200


def swept(context: ServerContext, ask: SweepAsk) -> SweepAnswer:
    """The runs of a project as a sweep: configurations by their scores, settings by how much of it goes
    along with them."""
    if len(ask.filter or "") > LONGEST:
        raise Refused("too_large", f"the filter has {len(ask.filter or ''):,} characters; at most {LONGEST:,}")
    rows = [row for row in context.catalogue.snapshot().rows.values() if not row.is_archived]
    rows, _ = fitting(context, rows, ask.filter, ask.search)
    of_project: dict[str, list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: row.about.get("created") or 0.0):
        of_project.setdefault(str(row.about.get("project") or ""), []).append(row)
    configurations = {name: groups_of(members, ["auto"]) for name, members in of_project.items()}
    if ask.project and ask.project not in configurations:
        raise BadInput(f"project={ask.project!r:.80}: no run that fits belongs to it")
    project = ask.project or max(configurations, key=lambda name: len(configurations[name]), default="")
    every = configurations.get(project, [])
    groups = every[:_MOST_CONFIGURATIONS]
    members = {group.id: group.members for group in groups}
    if sum(map(len, members.values())) > context.limits.runs:
        raise Refused("too_large", f"more than {context.limits.runs:,} runs at once", "Filter the table of runs.")
    keys = _keys(context, [row for group in groups for row in group.members])
    key = ask.key or next(iter(keys), "")
    source = Memory(context, [row for rows in members.values() for row in rows])
    at: At = "own end" if ask.at is None else ask.at
    of_path, place = (
        scores_at(source, source.rows, key, score_named(ask.score, key), None, at) if key else ({}, Place())
    )
    scored = {name: of_path.get(path, NO_SCORE) for path, name in source.key_of.items()}
    scores = {name: one.score for name, one in scored.items()}
    spoilt = {name for name, one in scored.items() if one.ends_in_nan}
    lower = lower_is_better(key)
    found = compare.sweep(
        _entries(groups, scores, spoilt),
        _settings(groups, of_project.get(project, [])),
        metric=key,
        higher_is_better=not lower,
    )
    of_id = {group.id: group for group in groups}
    seed_of = {row.key: row.about.get("seed") for group in groups for row in group.members}
    return SweepAnswer(
        project=plain(project),
        projects=[
            SweepProject(project=plain(name), runs=len(of_project[name]), configurations=len(each))
            for name, each in configurations.items()
        ],
        key=plain(key),
        keys=[plain(name) for name in keys[:_MOST_KEYS]],
        x=plain(place.axis),
        at=None if place.at is None else num(place.at),
        at_why=place.why,
        score=ask.score,
        better="lower" if lower else "higher",
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
                levels=setting.levels,
                why=setting.why,
            )
            for setting in found.settings
        ],
        configurations=[
            _tried(each, of_id[each.group], [s.name for s in found.settings], scores, seed_of) for each in found.tried
        ],
        left_out=len(every) - len(groups),
    )


def _keys(context: ServerContext, rows: list[RunRow]) -> list[str]:
    """The keys to compare first; a name that several frameworks share, only where it stands for several keys."""
    have: Counter[str] = Counter()
    own: dict[str, set[str]] = {}
    for row in rows:
        try:
            of_run = contents(context, row)
        except (RollbookError, OSError):  # its page shows what is wrong with it
            continue
        have.update({*of_run.keys, *of_run.canonical.values()})
        for key, name in of_run.canonical.items():
            own.setdefault(name, set()).add(key)
    for name, keys in own.items():
        if len(keys) == 1 and name not in keys and have[name] == sum(have[key] for key in keys):
            del have[name]
    return telling_first(have)


def _settings(groups: list[RunGroup], rows: list[RunRow]) -> dict[str, dict[str, object]]:
    """configuration -> setting -> value; with the run's name if the settings do not tell configurations apart.

    A name, and a text of many runs, that differs for every run says which run it is: no setting.
    """
    columns = [c for c in auto_columns(rows) if not _is_label(rows, c)][:_MOST_SETTINGS]
    settings = {group.id: {c: value_of(c, group.members[0], None) for c in columns} for group in groups}
    names = {str(row.about.get("name")) for row in rows}
    if len({repr(each) for each in settings.values()}) < len(settings) and len(names) < len(rows):
        for group in groups:
            settings[group.id]["name"] = group.members[0].about.get("name")
    return settings


def _is_label(rows: list[RunRow], column: str) -> bool:
    values = {value for row in rows if isinstance(value := value_of(column, row, None), str)}
    return len(rows) > _FEW and len(values) == len(rows)


def _entries(groups: list[RunGroup], scores: dict[str, float | None], spoilt: set[str]) -> list[compare.Entry]:
    every = [row for group in groups for row in group.members]
    units = units_of([{**row.about, "path": row.folder} for row in every])
    group_of = {row.key: group.id for group in groups for row in group.members}
    entries = []
    for row, unit in zip(every, units, strict=True):
        seed = row.about.get("seed")
        entries.append(
            compare.Entry(
                group=group_of[row.key],
                name=row.key,
                seed=seed if isinstance(seed, int) else None,
                task="",
                score=scores[row.key],
                crashed=row.status in ENDED_BADLY,
                running=row.status == "running",
                unit=unit,
                ends_in_nan=row.key in spoilt,
            )
        )
    return entries


def _tried(
    each: compare.Tried,
    group: RunGroup,
    settings: list[str],
    scores: dict[str, float | None],
    seed_of: dict[str, object],
) -> TriedConfiguration:
    seeds = []
    for name, score in zip(each.names, each.scores_R, strict=True):
        seed = seed_of[name]
        seeds.append(TriedSeed(run=name, seed=seed if isinstance(seed, int) else None, value=_there(float(score))))
    return TriedConfiguration(
        name=plain(group.name),
        group=plain(group.id if len(group.members) > 1 else group.members[0].key),
        runs=[row.key for row in group.members],
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
    Endpoint("POST", "/api/sweep", SweepAsk, SweepAnswer, swept, "Which setting of a sweep goes along with a score"),
]
