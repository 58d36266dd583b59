"""Curves of groups of runs: the question, and its answer from a source of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from rollbook import compare
from rollbook.compare.facts import Fact
from rollbook.errors import BadInput
from rollbook.runs.absent import empty_set
from rollbook.runs.fields import field_of
from rollbook.runs.grouping_facts import alike, by_what_differs, mixed, shared_environments
from rollbook.runs.groups import end_of, grouped, name_of, seed_of, task_of, title_of_fields, units_of
from rollbook.runs.questions import Curves
from rollbook.runs.results import unknown_key
from rollbook.runs.source import KeyRows, Source
from rollbook.runs.usual_score import usual_score
from rollbook.schema.status import ENDED_BADLY

FEW_DRAWS = 200
"""Number of resamples of the first, preliminary answer."""


def drawn(ask: Curves, source: Source) -> compare.Curves:
    """The answer; see `RunSet.curves` for what it raises."""
    return next(refined(ask, source, (ask.draws,)))


def refined(ask: Curves, source: Source, stages: Sequence[int]) -> Iterator[compare.Curves]:
    """The answer from few resamples at once, then from more; all but the last are `preliminary`.

    Args:
      stages: number of resamples of each answer, increasing.
    """
    if not source.rows:
        raise empty_set(f"curves({ask.key!r})", source.root)
    usual = [] if ask.key else [usual_score(source, source.rows, "curves")]
    ask = msgspec.structs.replace(ask, key=ask.key or usual[0].values["metric"])
    asked = f"curves({ask.key!r})"
    if ask.task is not None:
        ask = msgspec.structs.replace(ask, task=field_of(ask.task, source.rows, f"{asked[:-1]}, task={ask.task!r})"))
    if not 0.5 <= ask.level < 1:
        raise BadInput(f"level={ask.level}: from 0.5 to below 1")
    rows, labels = grouped(source.rows, ask.by, asked, ask.task)
    by = title_of_fields(ask.by)
    shared = shared_environments(rows, labels, by) if ask.task is None else None
    if shared is not None:
        ask = msgspec.structs.replace(ask, task=shared.field)
    lines = source.key_rows(ask.key, ask.x)
    axis = ask.x or next((lines[path].axis for row in rows if (path := str(row["path"])) in lines), "")
    if not axis:
        raise unknown_key(ask.key, rows, {})
    groups: dict[str, dict[str, compare.RunCurve]] = {}
    reduced: dict[str, list[tuple[str, int]]] = {}
    for row, label, unit in zip(rows, labels, units_of(rows), strict=True):
        line = lines.get(str(row["path"]), _NOTHING)
        if not line.is_whole:
            reduced.setdefault(label, []).append((name_of(row), len(line.x)))
        groups.setdefault(label, {})[name_of(row)] = compare.RunCurve(
            line.x,
            line.y,
            str(row["status"]) in ENDED_BADLY,
            str(row["path"]),
            task_of(row, ask.task),
            seed_of(row),
            unit,
            end_of(row, axis),
        )
    facts = [
        *usual,
        *([shared.fact()] if shared is not None else ()),
        *(fact for fact in mixed(rows, labels, by, ask.task) if fact.kind == "taken together"),
        *by_what_differs(rows, labels, ask.by, ask.task),
        *alike(rows, labels, by, ask.task),
        *(
            Fact("reduced", label, tuple(name for name, _ in found), {"stretches": max(n for _, n in found)})
            for label, found in reduced.items()
        ),
    ]
    options = {name: value for name, value in msgspec.structs.asdict(ask).items() if name not in _OWN}
    if by == "auto" and len(groups) == 1:
        by = ""
    return compare.refined_curves(groups, key=ask.key, axis=axis, by=by, stages=stages, facts=facts, **options)


_OWN = ("key", "by", "x", "task", "draws")
"""What is used here; `compare.refined_curves` takes the other options."""
_NOTHING = KeyRows("", np.zeros(0), np.zeros(0))
