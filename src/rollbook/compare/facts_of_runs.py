"""What readers should know besides the scores: which runs are missing, and why some scores are hard to compare."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rollbook import stats
from rollbook.compare.comparison import ScoreEnd
from rollbook.compare.facts import Fact
from rollbook.compare.group_scores import group_of
from rollbook.compare.scales import no_common_point
from rollbook.compare.scores import Entry, Group, Pair


def groups_apart(entries: Sequence[Entry], labels: Sequence[str]) -> dict[tuple[str, str], Fact]:
    """Pairs of groups without a common point of the axis."""
    spans: dict[str, tuple[str, float, float]] = {}
    for entry in entries:
        if entry.span is not None:
            axis, first, last = entry.span
            _, low, high = spans.get(entry.group, entry.span)
            spans[entry.group] = (axis, min(low, first), max(high, last))
    facts = {}
    for a, b in itertools.combinations([label for label in labels if label in spans], 2):
        (axis, low_a, high_a), (other_axis, low_b, high_b) = spans[a], spans[b]
        if axis == other_axis and (high_a < low_b or high_b < low_a):
            facts[a, b] = no_common_point(a, (low_a, high_a), b, (low_b, high_b), axis)
    return facts


def missing_runs(group: Group, floor: float | None, entries: Sequence[Entry]) -> list[Fact]:
    """The runs of a group that count less than fully, or not at all, by reason."""
    called = {entry.name: entry.called or entry.name for entry in entries}
    never = {entry.name for entry in entries if entry.never}  # these count, as the slowest
    of_kind = {
        "crashed": tuple(name for name in group.crashed if name not in group.crashed_alone),
        "crashed alone": group.crashed_alone,
        "running": group.running,
        "without score": tuple(name for name in group.without_score if name not in never),
        "ends in nan": group.ends_in_nan,
        "repeated": group.again,
        "same curve": group.copies,
        "stopped": tuple(e.name for e in entries if e.group == group.label and e.stopped),
        "unfinished": tuple(e.name for e in entries if e.group == group.label and e.unfinished),
    }
    return [
        Fact(
            kind,
            group.label,
            tuple(called[name] for name in names),
            {} if kind != "crashed" or floor is None else {"floor": floor},
        )
        for kind, names in of_kind.items()
        if names
    ]


_UNLIKE_COUNTS = 1.5
"""Scores that are the best of a run's rows get a remark if one group has more than this many times the rows."""


def unlike_counts(entries: Sequence[Entry], labels: Sequence[str], how: str) -> list[Fact]:
    """Whether scores are each the best of many rows, and some groups have far more rows than others."""
    if how.strip().lower() not in ("best", "max", "min"):
        return []
    counts = {}
    for label in labels:
        rows = sorted(e.rows for e in entries if e.group == label and e.score is not None and not e.running)
        if rows:
            counts[label] = rows[len(rows) // 2]
    if len(counts) < 2 or max(counts.values()) <= _UNLIKE_COUNTS * min(counts.values()):
        return []
    return [Fact("rows differ", values={"how": how, "rows_of": counts})]


def same_curves(entries: Sequence[Entry], pairs: Sequence[Pair]) -> list[Fact]:
    """The pairs of groups in which equal seeds have the very same rows: what differs between them has no effect."""
    of_group: dict[str, dict[tuple[str, int], str]] = {}
    for entry in entries:
        if entry.rows_digest and entry.seed is not None:
            of_group.setdefault(entry.group, {})[entry.task, entry.seed] = entry.rows_digest
    facts = []
    for pair in pairs:
        a, b = of_group.get(pair.a, {}), of_group.get(pair.b, {})
        both = [seed for seed in a if seed in b]
        same = sum(a[seed] == b[seed] for seed in both)
        if same > len(both) / 2:
            facts.append(Fact("groups of same curves", values={"a": pair.a, "b": pair.b, "n": same, "of": len(both)}))
    return facts


_ENDS_ALIKE = 0.05
"""Ends that differ by at most this share of the longest run are equal: seeds end within an episode of each other."""


def none_finished(entries: Sequence[Entry], end: ScoreEnd) -> list[Fact]:
    """That no run counts because none has finished, and up to where all of them have come."""
    if not all(entry.crashed or entry.running or entry.stopped for entry in entries):
        return []
    spans = [entry.span for entry in entries if entry.span is not None]
    names = {entry.called or entry.name for entry in entries}
    values: dict[str, object] = {"running": sum(entry.running for entry in entries)}
    if len(spans) == len(entries) and len({axis for axis, _, _ in spans}) == 1:
        first, last = max(span[1] for span in spans), min(span[2] for span in spans)
        values |= {"axis": spans[0][0], "first": last} if first < last else {}
    return [Fact("none finished", "", tuple(sorted(names)), values)]


def on_other_axes(entries: Sequence[Entry], axis: str) -> list[Fact]:
    """The runs without a score because the axis of the scores is not theirs, by group."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.score is None and entry.span is not None and axis and entry.span[0] != axis:
            found.setdefault((entry.group, entry.span[0]), []).append(entry.called or entry.name)
    return [
        Fact("on another axis", group, tuple(runs), {"axis": axis, "own": own}) for (group, own), runs in found.items()
    ]


def differing_ends(entries: Sequence[Entry], end: ScoreEnd) -> list[Fact]:
    """Whether the runs that count end at different positions of one axis, or have different axes."""
    counted = [
        (e.group, e.span)
        for e in entries
        if e.span is not None and e.score is not None and not (e.crashed or e.running or e.stopped)
    ]
    spans = [span for _, span in counted]
    if end.kind == "chosen" or not spans:
        return []
    if len({axis for axis, _, _ in spans}) > 1:
        axes = {group: [*dict.fromkeys(span[0] for label, span in counted if label == group)] for group, _ in counted}
        return [Fact("axes differ", values={"axes_of": axes})]
    if ends_alike(spans):
        return []
    (axis, *_), ends = spans[0], [last for _, _, last in spans]
    of_groups = {group: [span for label, span in counted if label == group] for group, _ in counted}
    of_group = {group: max(last for _, _, last in own) for group, own in of_groups.items() if ends_alike(own)}
    values = {"axis": axis, "first": min(ends), "last": max(ends), "at": end.kind}
    return [Fact("ends differ", values=values | ({"of_group": of_group} if len(of_group) == len(of_groups) else {}))]


def ends_alike(spans: Sequence[tuple[str, float, float]]) -> bool:
    """Whether runs, (axis, first, last) each, end at about the same position of one axis."""
    if not spans:
        return True
    ends = [last for _, _, last in spans]
    return max(ends) - min(ends) <= _ENDS_ALIKE * (max(ends) - min(first for _, first, _ in spans))


def differing_leaders(
    entries: Sequence[Entry],
    pairs: Sequence[Pair],
    end: ScoreEnd,
    tasks: tuple[str, ...],
    scale: Mapping[str, tuple[float, float]],
    floor: float | None,
) -> list[Fact]:
    """The pairs that would have the other leader if runs were scored at the other choice of the end."""
    if end.kind == "chosen" or all(entry.otherwise is None for entry in entries):
        return []
    others = [replace(entry, score=entry.otherwise) for entry in entries]
    complete = {
        label: stats.complete_seeds(
            group_of([e for e in others if e.group == label], label, tasks, scale, floor).scores_RT
        )
        for label in {label for pair in pairs for label in (pair.a, pair.b)}
    }
    facts = []
    for pair in pairs:
        a, b = complete[pair.a][0], complete[pair.b][0]
        if pair.reason or not len(a) or not len(b) or math.isnan(pair.difference):
            continue
        other = float(stats.aggregate(pair.statistic, a) - stats.aggregate(pair.statistic, b))
        if other * pair.difference >= 0:
            continue
        own, common = (pair.difference, other) if end.kind == "own end" else (other, pair.difference)
        leads = {
            name: pair.a if (difference > 0) != pair.lower_is_better else pair.b
            for name, difference in (("own_leader", own), ("common_leader", common))
        }
        facts.append(
            Fact(
                "leaders differ",
                values={
                    "a": pair.a,
                    "b": pair.b,
                    "statistic": pair.statistic,
                    "own": own,
                    "common": common,
                    **leads,
                    "axis": end.axis,
                    "common_end": end.common_end,
                    "side": "lower" if pair.lower_is_better else "higher",
                },
            )
        )
    return facts
