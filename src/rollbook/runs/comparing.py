"""Which group of runs is better: the question, and its answer from a source of rows."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import structs

from rollbook import compare
from rollbook.compare.comparison import ScoreEnd
from rollbook.compare.facts import Fact
from rollbook.compare.facts_of_runs import ends_alike
from rollbook.compare.seeds import COUNTS
from rollbook.errors import BadInput
from rollbook.runs import looks
from rollbook.runs.absent import empty_set
from rollbook.runs.fields import field_of
from rollbook.runs.grouping import told_apart
from rollbook.runs.grouping_facts import (
    alike,
    by_what_differs,
    environment_field,
    environments,
    mixed,
    one_run_each,
    shared_environments,
)
from rollbook.runs.groups import grouped, name_of, seed_of, task_of, title_of_fields, units_of
from rollbook.runs.measures import Score, level_of, score_named
from rollbook.runs.questions import At, Compare, Seeds
from rollbook.runs.reward_parts import on_one_scale
from rollbook.runs.source import KeyRows, Row, Source
from rollbook.runs.usual_score import usual_score
from rollbook.schema.status import ENDED_BADLY


def compared(ask: Compare, source: Source, *, opened: bool = True) -> compare.Comparison:
    """The answer; see `RunSet.compare` for what it raises.

    Args:
      ask: the question.
      source: the runs.
      opened: whether a person or a program reads the verdict, and not only a page that redraws itself. The look is then
        stored with the runs, so that later ones allow for it.
    """
    if not source.rows:
        raise empty_set(f"compare({ask.metric!r})", source.root)
    usual = [] if ask.metric else [usual_score(source, source.rows, "compare")]
    ask = structs.replace(ask, metric=ask.metric or usual[0].values["metric"])
    asked = f"compare({ask.metric!r})"
    if ask.task is not None:
        ask = structs.replace(ask, task=field_of(ask.task, source.rows, f"{asked[:-1]}, task={ask.task!r})"))
    elif ask.normalise is not None:  # anchors belong to environments
        ask = structs.replace(ask, task=environment_field(source.rows))
    # Which runs are in which group, and the score of each at the position where all are compared.
    rows, labels = grouped(source.rows, ask.by, asked, ask.task)
    planned = ask.plan is not None
    shared = None
    if ask.task is None and not planned:
        shared = shared_environments(rows, labels, title_of_fields(ask.by))
        ask = structs.replace(ask, task=shared.field if shared is not None else None)
    if (groups := len(set(labels))) > MOST_GROUPS:
        raise BadInput(
            f"{asked}: {groups:,} groups; at most {MOST_GROUPS} are compared at once.",
            "Choose some of the runs, or ask sweep which of many configurations may be the best",
        )
    metric, of_parts = on_one_scale(source, rows, ask.metric)
    score, level = score_named(ask.score, metric), level_of(ask.score)
    scored, end = scores_at(source, rows, metric, score, ask.x, ask.at, in_steps=level is not None)
    entries = _entries(rows, labels, scored, end, ask.task, in_steps=level is not None)
    # Names for the words of the answer.
    by = title_of_fields(ask.by)
    how = ask.score if isinstance(ask.score, str) else getattr(ask.score, "__name__", "a function")
    direction = "lower" if ask.direction is None and level is not None else ask.direction
    if ask.seeds is not None and ask.plan is None:
        raise BadInput(
            f"{asked[:-1]}, seeds={ask.seeds}): seeds is the end of a plan.", "Name one with plan=… (--plan NAME)"
        )
    # Groups of different environments are not compared, but where that was asked. A plan has all its pairs.
    apart = None if planned else environments(rows, labels, by, ask.task)
    # The comparison itself, with facts about the runs that the numbers do not show.
    before = looks.kept(source.root, ask.plan, _question(rows, metric, str(how), ask), {"by": by})
    answer = compare.compare(
        entries,
        metric=metric,
        by=by,
        how=str(how),
        normalise=ask.normalise,
        statistic=ask.statistic,
        study=before.study,
        planned=ask.plan is not None,
        seeds=ask.seeds,
        delta=ask.delta,
        floor=ask.floor,
        direction=direction,
        against=ask.against,
        paired=ask.paired,
        seed=ask.seed,
        end=end,
        environments=None if apart is None else apart.of_group,
        facts=[
            *usual,
            *([shared.fact()] if shared is not None else ()),
            *of_parts,
            *(by_what_differs(rows, labels, by, ask.task) if groups > 1 else ()),
            *one_run_each(rows, labels, by),
            *mixed(rows, labels, by, ask.task, apart),
            *alike(rows, labels, by, ask.task),
            *_never_reached(entries, metric, level),
        ],
    )
    # Keep this look, so that later ones allow for it.
    if opened and answer.study is not None and len(answer.groups) > 1:
        seeds = {group.label: list(group.names) for group in answer.groups}
        answer = replace(answer, facts=(*answer.facts, *looks.keep(before, answer.study, seeds)))
    return answer


def _entries(
    rows: Sequence[Row],
    labels: Sequence[str],
    scored: Mapping[str, Scored],
    end: ScoreEnd,
    task: str | None,
    *,
    in_steps: bool,
) -> list[compare.Entry]:
    """The runs as a comparison takes them.

    Args:
      labels: the group of each.
      scored: path -> score.
      in_steps: whether a score is the position at which a level was reached.
    """
    whole = complete(rows, labels, scored, end)  # runs that ended badly, but after the rows that their score needs
    stopped = _stopped(rows, labels, whole)
    entries = []
    for row, label, unit, name in zip(rows, labels, units_of(rows), called(rows), strict=True):
        path, status = str(row["path"]), str(row["status"])
        ended_badly, has_all_rows = status in ENDED_BADLY, path in whole
        own = scored.get(path, NO_SCORE)
        is_on_axis = own.span is not None and own.span[0] == end.axis
        entries.append(
            compare.Entry(
                group=label,
                name=name_of(row),
                seed=seed_of(row),
                task=task_of(row, task),
                unit=unit,
                called=f"{name} {row['status']}" if ended_badly else name,
                crashed=ended_badly and not has_all_rows and label not in stopped,
                stopped=label in stopped,
                running=status == "running" and not has_all_rows,
                unfinished=status if has_all_rows else "",
                **own._asdict(),
                never=in_steps and own.score is None and is_on_axis and (_counts(row) or has_all_rows),
            )
        )
    return entries


def _question(rows: Sequence[Row], metric: str, how: str, ask: Compare) -> dict[str, object]:
    """What makes a question the same as an earlier one: looks at the same question share its error."""
    question: dict[str, object] = {
        "projects": sorted({str(row.get("project")) for row in rows}),
        "metric": metric,
        "score": how,
        "task": ask.task or "",
        "paired": ask.paired,
    }
    return question if ask.at == "own end" else {**question, "at": str(ask.at)}


def seeds_needed(ask: Seeds, source: Source) -> compare.SeedPlan:
    """How many seeds groups need; see `RunSet.seeds` for what it raises."""
    if not 0 < ask.power < 1 or (ask.difference is not None and not ask.difference > 0):
        raise BadInput(
            f"seeds(power={ask.power!r}, difference={ask.difference!r}): power lies between 0 and 1, and a difference "
            "above 0"
        )
    answer = compared(Compare(metric=ask.metric, by=ask.by, score=ask.score, against=ask.against), source)
    plan = answer.seed_plan(ask.difference, ask.power, COUNTS)
    usual = [fact.sentence for fact in answer.facts if fact.kind == "usual score"]
    return replace(plan, verdict_sentences=[*usual, *plan.verdict_sentences])


MOST_GROUPS = 20
"""The largest number of groups that are compared at once, each with each."""


class Scored(NamedTuple):
    """A run's score, and what it is made of; see `compare.Entry`."""

    score: float | None = None
    span: tuple[str, float, float] | None = None
    ends_in_nan: bool = False
    rows: int = 0
    of: int = 0
    non_finite: int = 0
    otherwise: float | None = None
    rows_digest: str = ""


NO_SCORE = Scored()
"""The score of a run without a row of the key."""


def scores_at(
    source: Source, rows: Sequence[Row], key: str, score: Score, x: str | None, at: At, *, in_steps: bool = False
) -> tuple[dict[str, Scored], ScoreEnd]:
    """The score of each run by path, and where on the axis they end.

    Scores leave out rows that are not finite. If the finished runs end at different positions, each also has its score
    at the other choice of the end (`Scored.otherwise`).

    Args:
      in_steps: whether a score is a position of the axis. Such scores, and those at one position, need one axis: the
        one that most runs have. A run without it has no score, and the span of its own axis.
    """
    stop = None if isinstance(at, str) else float(at)
    scored = source.each(key, x, UpTo(stop, score).of)
    axes = list(dict.fromkeys(one.span[0] for row in rows if (one := scored.get(str(row["path"]))) and one.span))
    if (at != "own end" or in_steps) and len(axes) > 1:
        own = scored
        read = {axis: source.each(key, axis, UpTo(stop, score).of) for axis in axes}
        x = max(axes, key=lambda axis: sum(one.span is not None for one in read[axis].values()))
        there = {path: one for path, one in read[x].items() if one.span is not None}
        scored = {path: there.get(path) or NO_SCORE._replace(span=one.span) for path, one in own.items()}
        axes = [x]
    axis = axes[0] if len(axes) == 1 else ""
    spans = [
        one.span
        for row in rows
        if _counts(row) and (one := scored.get(str(row["path"]))) and one.span and one.span[0] in axes
    ]
    ends = [last for _, _, last in spans]
    common = min(ends) if ends and axis else None
    if stop is not None:
        return scored, ScoreEnd("chosen", axis, stop, common, len(ends))
    if common is not None and (at == "common end" or not ends_alike(spans)):
        cut = source.each(key, x, UpTo(common, score).of)
        shown, other = (scored, cut) if at == "own end" else (cut, scored)
        scored = {
            path: one._replace(otherwise=other.get(path, NO_SCORE).score)
            if (one := shown.get(path, NO_SCORE)).span is not None
            else without
            for path, without in scored.items()
        }
    if at == "own end":
        return scored, ScoreEnd("own end", axis, None, common, len(ends))
    return scored, ScoreEnd("common end", axis, common, common, len(ends))


def _counts(row: Row) -> bool:
    """Whether the score of a run is final, so that it is compared."""
    return row["status"] not in (*ENDED_BADLY, "running")


def _stopped(rows: Sequence[Row], labels: Sequence[str], counts: frozenset[str]) -> frozenset[str]:
    """The groups of which all runs were killed: a person or a scheduler has stopped them, they did not fail."""
    killed: dict[str, bool] = {}
    for row, label in zip(rows, labels, strict=True):
        killed[label] = killed.get(label, True) and row["status"] == "killed" and str(row["path"]) not in counts
    return frozenset(label for label, all_killed in killed.items() if all_killed)


def complete(rows: Sequence[Row], labels: Sequence[str], scored: Mapping[str, Scored], end: ScoreEnd) -> frozenset[str]:
    """The paths of runs that did not finish and yet have all rows that their score needs.

    Where scores end at a position, those that passed it, running ones too. At their own ends, those that ended as far
    as the finished runs of their group (of all groups, if it has none): a program that failed after its training.
    """
    spans = [scored.get(str(row["path"]), NO_SCORE).span for row in rows]
    if end.at is not None:
        passed = (span is not None and span[0] == end.axis and span[2] >= end.at for span in spans)
        return frozenset(str(row["path"]) for row, far in zip(rows, passed, strict=True) if far and not _counts(row))
    ends: dict[str, list[tuple[str, float, float]]] = {}
    for row, label, span in zip(rows, labels, spans, strict=True):
        if _counts(row) and span is not None:
            ends.setdefault(label, []).append(span)
    every = [span for some in ends.values() for span in some]
    found = set()
    for row, label, span in zip(rows, labels, spans, strict=True):
        finished = sorted(last for axis, _, last in ends.get(label, every) if span is not None and axis == span[0])
        one = scored.get(str(row["path"]), NO_SCORE)
        if row["status"] in ENDED_BADLY and span is not None and finished and not one.ends_in_nan:
            usual = finished[len(finished) // 2]
            if (span[2] >= usual and one.score is not None) or ends_alike([span, (span[0], span[1], usual)]):
                found.add(str(row["path"]))
    return frozenset(found)


class UpTo(NamedTuple):
    """Makes the score of the finite rows of a run up to a position of the axis. Equal ones make equal scores."""

    at: float | None
    score: Score

    def of(self, rows: KeyRows) -> Scored:
        """The score, and what it is made of."""
        finite = np.isfinite(rows.y)
        if not len(finite):
            return NO_SCORE
        x, y = rows.x[finite], rows.y[finite]
        span, of = (rows.axis, float(x.min()), float(x.max())) if len(x) else None, len(x)
        if self.at is not None:
            there = x <= self.at
            x, y = x[there], y[there]
        number = float(self.score(x, y)) if len(y) else math.nan
        score = number if math.isfinite(number) else None
        varied = len(y) >= _TELLING and len(np.unique(y[: 10 * _TELLING])) >= _TELLING
        digest = hashlib.blake2b(y.tobytes(), digest_size=12).hexdigest() if varied else ""
        return Scored(score, span, not finite[-1], len(y), of, len(finite) - of, rows_digest=digest)


_TELLING = 5
"""Two trainings do not have a curve of at least this many different values in common by chance."""


def called(rows: Sequence[Row]) -> list[str]:
    """How each run is called in sentences: its name, the settings that tell it from others of that name, its seed; and
    its id if another run is still called the same."""
    names = [
        " ".join(filter(None, (str(row["name"]), own, "" if row.get("seed") is None else f"seed {row['seed']}")))
        for row, own in zip(rows, told_apart(rows, with_ids=False), strict=True)
    ]
    often = Counter(dict(zip((row["path"] for row in rows), names, strict=True)).values())
    return [name if often[name] == 1 else f"{name} ({row['id']})" for name, row in zip(names, rows, strict=True)]


def _never_reached(entries: Sequence[compare.Entry], metric: str, level: str | None) -> list[Fact]:
    """A fact about a score that only some runs have."""
    never = sum(entry.never for entry in entries)
    if not never or level is None:
        return []
    return [Fact("never reached", values={"n": never, "of": len(entries), "level": level, "metric": metric})]
