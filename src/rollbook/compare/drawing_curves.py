"""Aligns runs on a common grid and computes centre, interval and extremes of each group."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollbook import stats
from rollbook.compare.curve_groups import Curves
from rollbook.compare.facts import Fact
from rollbook.compare.grid import shared_grid, span_of
from rollbook.compare.group_curve import Floats, GroupCurve, RunCurve
from rollbook.compare.scales import no_common_point, scale_of
from rollbook.compare.seeding import generator
from rollbook.errors import BadInput, UnknownKey
from rollbook.stats import Aligned, Band

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray


def curves(groups: Mapping[str, Mapping[str, RunCurve]], *, draws: int = 1999, **options: Any) -> Curves:
    """Groups of runs on a common grid, each with its centre, interval and extremes.

    Args:
      groups, options: see `refined_curves`.
      draws: number of resamples for the intervals.
    Raises:
      UnknownKey: no run has a row. BadInput: options that conflict.
    """
    return next(refined_curves(groups, stages=(draws,), **options))


def refined_curves(
    groups: Mapping[str, Mapping[str, RunCurve]],
    *,
    key: str,
    axis: str,
    by: str = "",
    statistic: str = "iqm",
    points: int = 200,
    seed: int = 0,
    level: float = 0.95,
    stages: Sequence[int] = (200, 1999),
    normalise: object = None,
    whole_curve: bool = False,
    start: float | None = None,
    stop: float | None = None,
    facts: Sequence[Fact] = (),
    **alignment: Any,
) -> Iterator[Curves]:
    """Groups of runs on a common grid: at once from few resamples, then from more. All but the last are `preliminary`.

    Args:
      groups: label -> name of the run -> its metric. Runs without rows stay in the denominator and are reported.
      key, axis, by: see `Curves`.
      statistic: "iqm", "mean" or "median".
      points: number of points of an even grid; see `shared_grid`.
      seed: seed of the resampling. Each group has its own random stream, so its band does not depend on other groups.
      level: of the intervals.
      stages: number of resamples of each answer, increasing.
      normalise: for several tasks: {task: (score worth 0, score worth 1)}, or the name of a published table.
      whole_curve: a simultaneous band for the whole curve of the mean, not one interval per point.
      start, stop: a part of the axis.
      facts: what else readers should know.
      alignment: see `stats.align`.
    Raises:
      UnknownKey: no run has a row. BadInput: options that conflict.
    """
    lines = {label: dict(runs) for label, runs in groups.items()}
    with_rows = [line for runs in lines.values() for line in runs.values() if len(line.x)]
    if not with_rows:
        raise UnknownKey(f"curves of {key!r}: none of the runs has a row of it along {axis!r}")
    if whole_curve and statistic not in ("mean", "iqm"):
        raise BadInput(f"whole_curve=True with statistic={statistic!r}: there is such a band for the mean alone")
    if whole_curve:
        statistic = "mean"
    # Tasks are put on one scale before they are averaged.
    tasks = tuple(dict.fromkeys(line.task for runs in lines.values() for line in runs.values()))
    scale, of_scale = scale_of(tasks, normalise)
    alignment.setdefault("nan", "keep")
    # One grid for all groups, so that their points can be compared.
    grid = alignment.pop("grid", None)
    if grid is None:
        grid = shared_grid(
            [[line.x for line in runs.values() if len(line.x)] for runs in lines.values()],
            points,
            span=alignment.pop("span", "any"),
            spacing=alignment.pop("spacing", "linear"),
            start=start,
            stop=stop,
        )
    # What does not depend on the number of resamples is computed once.
    remarks = (*of_scale, *_about_rows(lines, key, axis), *facts)
    ready = []
    for label, runs in lines.items():
        if not any(len(line.x) for line in runs.values()):
            continue
        aligned = stats.align(
            {name: (line.x, _scaled(line, scale)) for name, line in runs.items()},
            grid=grid,
            crashed=[name for name, line in runs.items() if line.crashed],
            ends={name: line.end for name, line in runs.items()},
            **alignment,
        )
        units, curves_UTP = _units(aligned, runs, tasks)
        curves_UTP[:, :, ~_is_group(aligned, curves_UTP)] = np.nan
        ready.append((label, aligned, units, curves_UTP, _extremes(curves_UTP, aligned)))
    x_P = np.asarray(grid, dtype=np.float64)
    members = {label: tuple(line.path for line in runs.values()) for label, runs in lines.items()}
    missing = {label: tuple(line.path for line in runs.values() if not len(line.x)) for label, runs in lines.items()}
    # A band for each group, again with more resamples in each stage.
    for draws in stages:
        rough, made = draws != stages[-1], []
        for label, aligned, units, curves_UTP, (low, high) in ready:
            rng = generator(seed, label)
            band = stats.band(curves_UTP, statistic, rng=rng, level=level, draws=draws)
            if whole_curve:
                band = _whole(band, curves_UTP, level)
            band = replace(band, preliminary=rough and band.draws > 0)
            paths = {name: line.path for name, line in lines[label].items()}
            again = _repeats(lines[label])
            made.append(
                GroupCurve(label, aligned, band, low, high, paths, len(tasks), units, again, curves_UTP.mean(axis=1))
            )
        yield Curves(key, axis, by, x_P, tuple(made), remarks, rough, members, missing)


def _about_rows(lines: Mapping[str, Mapping[str, RunCurve]], key: str, axis: str) -> list[Fact]:
    """Missing data of groups: no rows at all, rows that are not finite, no common point with another group."""
    facts, ends = [], {}
    for label, runs in lines.items():
        begun = [line for line in runs.values() if len(line.x)]
        if not begun:
            facts.append(Fact("no row of group", label, values={"runs": len(runs), "metric": key}))
            continue
        bad = [int((~np.isfinite(np.asarray(line.y, dtype=np.float64))).sum()) for line in begun]
        if any(bad):
            counts = {"rows": sum(bad), "in": sum(count > 0 for count in bad), "of": len(runs)}
            facts.append(Fact("rows not finite", label, values=counts))
        if again := _repeats(runs):
            facts.append(Fact("repeated in curve", label, again))
        spans = [span for line in begun if len(span := span_of(line.x))]
        if spans:
            ends[label] = (min(float(span[0]) for span in spans), max(float(span[1]) for span in spans))
    for a, b in itertools.combinations(ends, 2):
        if ends[a][1] < ends[b][0] or ends[b][1] < ends[a][0]:
            facts.append(no_common_point(a, ends[a], b, ends[b], axis))
    return facts


def _scaled(line: RunCurve, scale: Mapping[str, tuple[float, float]]) -> NDArray:
    if line.task not in scale:
        return line.y
    zero, one = scale[line.task]
    return (np.asarray(line.y, dtype=np.float64) - zero) / (one - zero)


def _units(aligned: Aligned, runs: Mapping[str, RunCurve], tasks: tuple[str, ...]) -> tuple[tuple[str, ...], Floats]:
    """The resampled units: names, and [units, tasks, points]. With one task each run, with several whole seeds."""
    values_RP = np.where(np.isfinite(aligned.values_RP), aligned.values_RP, np.nan)
    if len(tasks) == 1:
        return _repeated_once(aligned.names, runs, values_RP)
    rows: dict[str, Floats] = {}
    for name, values_P in zip(aligned.names, values_RP, strict=True):
        line = runs[name]
        unit = name if line.seed is None else f"seed {line.seed}"
        index = tasks.index(line.task)
        if unit in rows and not np.isnan(rows[unit][index]).all():
            unit = name  # a repeat of the same seed and task is a separate unit
        rows.setdefault(unit, np.full((len(tasks), len(values_P)), np.nan))[index] = values_P
    return tuple(rows), np.array(list(rows.values()))


def _repeated_once(
    names: Sequence[str], runs: Mapping[str, RunCurve], values_RP: Floats
) -> tuple[tuple[str, ...], Floats]:
    """Merge runs with the same configuration, seed and code into one unit: their mean at each point."""
    rows_of: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        rows_of.setdefault(runs[name].unit or name, []).append(index)
    if len(rows_of) == len(names):
        return tuple(names), values_RP[:, None, :]
    known_RP, filled_RP = ~np.isnan(values_RP), np.nan_to_num(values_RP)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [filled_RP[rows].sum(axis=0) / known_RP[rows].sum(axis=0) for rows in rows_of.values()]
    return tuple(names[rows[0]] for rows in rows_of.values()), np.array(means)[:, None, :]


def _repeats(runs: Mapping[str, RunCurve]) -> tuple[str, ...]:
    """Names of the runs that repeat an earlier one."""
    first: dict[tuple[str, str], str] = {}
    return tuple(
        name
        for name, line in runs.items()
        if line.unit and len(line.x) and first.setdefault((line.unit, line.task), name) != name
    )


def _whole(pointwise: Band, curves_UTP: Floats, level: float) -> Band:
    """The band of the whole mean curve over the points that all seeds have; no band elsewhere."""
    there = ~np.isnan(curves_UTP).any(axis=(0, 1))
    nothing = np.full(curves_UTP.shape[2], np.nan)
    if not there.any():
        reason = "no point of the axis has a value of every seed"
        return replace(pointwise, low_P=nothing, high_P=nothing, claim_P=nothing, kind="whole curve", reasons=(reason,))
    band = stats.whole_curve_band(curves_UTP[:, :, there], level)
    low, high, claim = nothing.copy(), nothing.copy(), nothing.copy()
    low[there], high[there], claim[there] = band.low_P, band.high_P, band.claim_P
    return replace(
        pointwise,
        low_P=low,
        high_P=high,
        claim_P=claim,
        methods=band.methods,
        kind=band.kind,
        draws=0,
        reasons=band.reasons,
    )


def _is_group(aligned: Aligned, curves_UTP: Floats) -> NDArray:
    """[points], True where the units represent their group: not while some have no value yet, and not one alone of
    several. Episodes of a bad seed are short: it would begin the curve, and end it, without the others."""
    n_P = (~np.isnan(curves_UTP)).any(axis=1).sum(axis=0)
    enough = n_P >= min(2, len(curves_UTP))
    return np.asarray(enough & ~aligned.waiting_P)


def _extremes(curves_UTP: Floats, aligned: Aligned) -> tuple[Floats, Floats]:
    """(lowest, highest) at each point: with one task of every row, with several of the units' means."""
    values_RP = curves_UTP.mean(axis=1)
    low = np.where(np.isnan(values_RP), np.inf, values_RP).min(axis=0)
    high = np.where(np.isnan(values_RP), -np.inf, values_RP).max(axis=0)
    for series in aligned.raw if curves_UTP.shape[1] == 1 else ():
        finite = np.isfinite(series.y)
        x, y = (series.x, series.y) if finite.all() else (series.x[finite], series.y[finite])
        ends = np.searchsorted(x, aligned.x_P, side="right")
        starts = np.append(np.searchsorted(x, aligned.x_P[:1], side="left"), ends[:-1])
        here = np.flatnonzero(ends > starts)
        if len(here):  # rows between consecutive points are contiguous: use `reduceat`
            last = int(ends[here[-1]])
            low[here] = np.minimum(low[here], np.minimum.reduceat(y[:last], starts[here]))
            high[here] = np.maximum(high[here], np.maximum.reduceat(y[:last], starts[here]))
    nothing = low > high
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)
