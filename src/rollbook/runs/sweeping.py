"""Which setting of a sweep goes along with a score: the question's answer from a source of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollbook import compare
from rollbook.compare.comparison import ScoreEnd
from rollbook.errors import BadInput
from rollbook.runs.comparing import NO_SCORE, scores_at
from rollbook.runs.fields import value_at
from rollbook.runs.grouping import RunGroup, auto_columns, groups_of
from rollbook.runs.grouping_facts import mixed
from rollbook.runs.groups import begun_first, name_of, seed_of, units_of
from rollbook.runs.measures import level_of, score_named
from rollbook.runs.questions import Sweep
from rollbook.runs.source import Row, Source
from rollbook.runs.usual_score import metrics_of, taken
from rollbook.schema.aliases import lower_is_better
from rollbook.schema.status import ENDED_BADLY
from rollbook.system.brief import screenful

_FEW = 6
"""Up to this many runs, a text that differs in every run is a setting, such as the algorithm."""
_MOST_CONFIGURATIONS, _MOST_SETTINGS = 500, 40


@dataclass(frozen=True, slots=True)
class Swept:
    """The configurations of a project by their scores, and its settings by their share of the variance.

    Attributes:
      project: the project of the runs; projects: how many (runs, configurations) each project has.
      metric, metrics: the score's key; the most informative keys, the best known first.
      how: how a run's metric became one number; end: where on the axis that ends.
      lower_is_better: whether lower scores are better.
      sweep: the numbers; `group` of its configurations is an id of `groups`.
      groups: id -> the runs of a configuration, and what it is called.
      entries: the runs, in the order in which they started, by configuration.
      left_out: number of configurations beyond the limit.
    """

    project: str
    projects: Mapping[str, tuple[int, int]]
    metric: str
    metrics: tuple[str, ...]
    how: str
    end: ScoreEnd
    lower_is_better: bool
    sweep: compare.Sweep
    groups: Mapping[str, RunGroup[Row]]
    entries: tuple[compare.Entry, ...]
    left_out: int = 0

    def sentences(self) -> list[str]:
        """The answer, what to run next, and remarks about the numbers."""
        return [sentence for sentence in (self.sweep.sentence, self.sweep.todo, *self.sweep.notes) if sentence]

    def table(self) -> list[dict[str, Any]]:
        """One row per configuration, best first: configuration, its settings, mean, std, n, may_be_best, crashed …"""
        return [
            {
                "configuration": self.groups[each.group].name,
                **{setting.name: each.settings[setting.name] for setting in self.sweep.settings},
                "mean": each.mean,
                "std": each.std,
                "n": len(each.scores_R),
                "may_be_best": each.may_be_best,
                "crashed": len(each.crashed),
                "running": len(each.running),
            }
            for each in self.sweep.tried
        ]

    def settings(self) -> list[dict[str, Any]]:
        """One row per setting, the most important first: setting, share, low, high, alone, goes_with, levels …"""
        return [
            {
                "setting": each.name,
                "share": each.share,
                "low": each.low,
                "high": each.high,
                "alone": each.alone,
                "goes_with": each.goes_with,
                "alike": each.alike,
                "levels": each.levels,
                "together": list(each.together),
                "why": each.why,
            }
            for each in self.sweep.settings
        ]

    def __repr__(self) -> str:
        many = f"{len(self.sweep.tried)} configurations, {len(self.sweep.settings)} settings"
        return screenful([f"<Swept {self.project}: {self.metric}, {self.how}; {many}>", *self.sentences()])


def swept(ask: Sweep, source: Source) -> Swept:
    """The answer; see `RunSet.sweep` for what it raises."""
    of_project: dict[str, list[Row]] = {}
    for row in begun_first(source.rows):
        of_project.setdefault(str(row.get("project") or ""), []).append(row)
    configurations = {name: groups_of(members, ["auto"]) for name, members in of_project.items()}
    if ask.project and ask.project not in configurations:
        raise BadInput(f"project={ask.project!r:.80}: no run that fits belongs to it")
    # The project in which most was tried, unless one is named: settings of two projects have nothing in common.
    project = ask.project or max(configurations, key=lambda name: len(configurations[name]), default="")
    every = configurations.get(project, [])
    groups = every[:_MOST_CONFIGURATIONS]
    rows = [row for group in groups for row in group.members]
    metrics = metrics_of(source, rows)
    metric = ask.metric or next(iter(metrics), "")
    chosen = [taken(metric)] if metric and not ask.metric else []
    scored, end = (
        scores_at(source, rows, metric, score_named(ask.score, metric), ask.x, ask.at) if metric else ({}, ScoreEnd())
    )
    # Crashed and running ones are passed on, too: they do not count, but the answer names them.
    group_of = {str(row["path"]): group.id for group in groups for row in group.members}
    entries = [
        compare.Entry(
            group=group_of[str(row["path"])],
            name=name_of(row),
            seed=seed_of(row),
            task="",
            unit=unit,
            crashed=str(row["status"]) in ENDED_BADLY,
            running=str(row["status"]) == "running",
            **scored.get(str(row["path"]), NO_SCORE)._asdict(),
        )
        for row, unit in zip(rows, units_of(rows), strict=True)
    ]
    # Which settings matter, given the direction in which scores are better.
    lower = ask.direction == "lower"
    if ask.direction is None:
        lower = lower_is_better(metric) or level_of(ask.score) is not None
    found = compare.sweep(
        entries,
        _settings(groups, of_project.get(project, [])),
        metric=metric,
        higher_is_better=not lower,
        seed=ask.seed,
    )
    careful = [fact.remark for fact in chosen]
    careful += [fact.remark for fact in mixed(rows, [project] * len(rows), "", None)]
    return Swept(
        project=project,
        projects={name: (len(of_project[name]), len(each)) for name, each in configurations.items()},
        metric=metric,
        metrics=tuple(metrics),
        how=ask.score if isinstance(ask.score, str) else getattr(ask.score, "__name__", "a function"),
        end=end,
        lower_is_better=lower,
        sweep=replace(found, notes=(*careful, *found.notes)),
        groups={group.id: group for group in groups},
        entries=tuple(entries),
        left_out=len(every) - len(groups),
    )


def _settings(groups: Sequence[RunGroup[Row]], rows: Sequence[Row]) -> dict[str, dict[str, object]]:
    """configuration -> setting -> value; with the run's name if the settings do not tell configurations apart.

    A name, or a text that differs in each of many runs, identifies the run and is no setting.
    """
    columns = [c for c in auto_columns(rows) if not _is_label(rows, c)][:_MOST_SETTINGS]
    settings = {group.id: {c: value_at(group.members[0], c) for c in columns} for group in groups}
    names = {str(row.get("name")) for row in rows}
    if len({repr(each) for each in settings.values()}) < len(settings) and len(names) < len(rows):
        for group in groups:
            settings[group.id]["name"] = group.members[0].get("name")
    return settings


def _is_label(rows: Sequence[Row], column: str) -> bool:
    values = {value for row in rows if isinstance(value := value_at(row, column), str)}
    return len(rows) > _FEW and len(values) == len(rows)
