"""Numbers about groups of runs: curves with bands, scores with intervals, and verdicts. Their only home.

Arrays and names in, numbers out: this knows `rollbook.stats` and nothing of files. `RunSet.curves` and `RunSet.compare`
gather what it needs; tables, plots, reports and the page show what it says and compute nothing again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollbook import stats
from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.stats import Aligned, Band, Interval, Plan, Study, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook import plots
    from rollbook.plots import Panel, Picture

__all__ = [
    "Association",
    "Comparison",
    "Curves",
    "Entry",
    "Group",
    "GroupCurve",
    "Line",
    "Pair",
    "Parted",
    "Reached",
    "Study",
    "association",
    "compare",
    "curves",
    "plan_data",
    "refined_curves",
    "shared_grid",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_PROFILE_POINTS = 201
_LEAST_APART = 5
"""Seeds a group below which no interval at a point is honest."""


# -- curves


@dataclass(frozen=True, slots=True)
class Line:
    """One run's metric.

    Attributes:
      x, y: [rows], as logged.
      crashed: whether the run ended without finishing.
      path: where the run lies, "" if nowhere.
      task: "" where there is only one.
      seed: None if it has none; over several tasks the runs of a seed are one unit.
    """

    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    crashed: bool = False
    path: str = ""
    task: str = ""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class GroupCurve:
    """The curve of one group of runs.

    Attributes:
      label: what the runs have in common.
      aligned: the runs on the common grid, raw rows included.
      band: the centre line and its interval at each point.
      min_P, max_P: [points], the extremes of what holds there and of every finite row since the point before, so that
        a spike between two points is in them; NaN where no run has a value. Over several tasks those of the units.
      paths: where the runs lie, by their names.
      tasks: how many.
      units: name of each unit (a seed over several tasks, else a run).
      units_UP: [units, points], what the band was made of: over several tasks each seed's mean over them, NaN where it
        lacks one.
    """

    label: str
    aligned: Aligned
    band: Band
    min_P: Floats
    max_P: Floats
    paths: Mapping[str, str]
    tasks: int = 1
    units: tuple[str, ...] = ()
    units_UP: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def n_P(self) -> npt.NDArray[np.int64]:
        """[points], runs that have a value there; over several tasks seeds that have one in all of them."""
        return self.aligned.n_P if self.tasks == 1 else np.asarray(self.band.n_P, dtype=np.int64)

    @property
    def vertices_P(self) -> Bools:
        """[points], where the drawn line bends: where a run has a row since the point before, and on both sides of
        where one begins, ends or falls to its floor. Between two of them nothing was measured; a line through every
        point would be stairs that the runs never walked.
        """
        x_P, aligned = self.aligned.x_P, self.aligned
        if aligned.interpolation != "previous":
            return np.ones(len(x_P), dtype=np.bool_)
        bends_P = np.zeros(len(x_P), dtype=np.bool_)
        for run in aligned.raw:
            bends_P |= np.diff(np.searchsorted(run.x, x_P, side="right"), prepend=0) > 0
        for state_RP in (aligned.present_RP, aligned.floor_RP):
            changes = (state_RP[:, 1:] != state_RP[:, :-1]).any(axis=0)
            bends_P[1:] |= changes
            bends_P[:-1] |= changes
        bends_P[[0, -1]] = True
        return bends_P

    def legend(self) -> str:
        """What the line and its band are, and of how many runs."""
        told = self.band.legend()
        if self.tasks > 1:  # "IQM of 5 seeds, 95 % …" -> "IQM of 5 seeds x 3 tasks, 95 % …"
            head, comma, rest = told.partition(",")
            told = f"{head} x {self.tasks} tasks{comma}{rest}"
        return f"{self.label}: {told}"


@dataclass(frozen=True, slots=True)
class Curves:
    """A metric of groups of runs on one grid.

    Attributes:
      key, axis, by: the metric, what it runs along, and the field that made the groups ("" for one group).
      x_P: [points], the grid.
      groups: in the order of their first runs.
      notes: what a reader has to know beside what each group says.
      preliminary: whether better bands, of more draws, are on their way.
    """

    key: str
    axis: str
    by: str
    x_P: Floats
    groups: tuple[GroupCurve, ...]
    notes: tuple[str, ...] = ()
    preliminary: bool = False

    def __getitem__(self, label: str) -> GroupCurve:
        for group in self.groups:
            if group.label == label:
                return group
        raise BadInput(f"no group {label!r}; there are {', '.join(repr(group.label) for group in self.groups)}")

    def sentences(self) -> list[str]:
        """What a reader of the curves has to know: where n changes, who crashed, who was left out."""
        many = len(self.groups) > 1
        told = [
            f"{group.label}: {said}" if many else said for group in self.groups for said in group.aligned.sentences()
        ]
        return [*self.notes, *told]

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """In long form, one row per group and point: group, x, centre, low, high, min, max, n, claim."""
        n = len(self.x_P)
        parts = {
            "group": [np.full(n, group.label, dtype=object) for group in self.groups],
            self.axis: [self.x_P for _ in self.groups],
            "centre": [group.band.centre_P for group in self.groups],
            "low": [group.band.low_P for group in self.groups],
            "high": [group.band.high_P for group in self.groups],
            "min": [group.min_P for group in self.groups],
            "max": [group.max_P for group in self.groups],
            "n": [group.n_P for group in self.groups],
            "claim": [group.band.claim_P for group in self.groups],
        }
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def seeds(self) -> dict[str, npt.NDArray[Any]]:
        """Every run in long form, as seaborn likes it: group, run, x, value; points without a value are left out."""
        groups, runs, xs, values = [], [], [], []
        for group in self.groups:
            for name, value_P, present_P in zip(
                group.aligned.names, group.aligned.values_RP, group.aligned.present_RP, strict=True
            ):
                n = int(present_P.sum())
                groups.append(np.full(n, group.label, dtype=object))
                runs.append(np.full(n, name, dtype=object))
                xs.append(self.x_P[present_P])
                values.append(value_P[present_P])
        named = {"group": groups, "run": runs, self.axis: xs, self.key: values}
        return {name: np.concatenate(arrays) if arrays else np.zeros(0) for name, arrays in named.items()}

    def plot(self, *, seeds: str = "auto", extremes: bool = True, theme: str = "light", **options: Any) -> Picture:
        """The curves as a picture.

        Args:
          seeds: the runs themselves as thin lines: "auto" where no honest band exists, "always", or "never".
          extremes: a faint area from the lowest to the highest row of any run.
          theme: "light" or "dark".
          options: of the chart, such as limits=(0, 500) or log=True.
        """
        from rollbook.plots import draw

        return draw("curves", self.panel(seeds=seeds, extremes=extremes), theme=theme, **options)

    def reached(self, level: float | None = None) -> Reached:
        """Which share of the runs has reached a score, along training: sample efficiency, honest from 3 seeds on.

        Args:
          level: the score that counts; None takes the highest one that the centre of every group comes to.
        Raises:
          BadInput: the curves are of several tasks, whose runs are not one population.
        """
        if any(group.tasks > 1 for group in self.groups):
            raise BadInput(
                "the share of runs that reached a score is of one task, and these are several; choose the runs of one"
            )
        if level is None:
            tops = [group.band.centre_P[np.isfinite(group.band.centre_P)] for group in self.groups]
            level = float(min((top.max() for top in tops if len(top)), default=math.nan))
        shares, lows, highs, started = [], [], [], []
        for group in self.groups:
            first = [
                float(raw.x[hits[0]]) if len(hits := np.flatnonzero(raw.y >= level)) else math.inf
                for raw in group.aligned.raw
            ]
            first += [math.inf] * len(group.aligned.left_out)  # a run without a row has reached nothing
            n = len(first)
            hits_P = (np.asarray(first)[:, None] <= self.x_P).sum(axis=0)
            low, high = stats.clopper_pearson(hits_P, n) if n >= 3 else (np.full(len(self.x_P), np.nan),) * 2
            shares.append(hits_P / n)
            lows.append(low)
            highs.append(high)
            started.append(n)
        return Reached(
            self.key, self.axis, level, self.x_P, tuple(group.label for group in self.groups), tuple(started),
            np.array(shares), np.array(lows), np.array(highs),
        )  # fmt: skip

    def parted(self, level: float = 0.95) -> tuple[Parted, ...]:
        """From where on two groups stay apart, for each pair of them.

        At each point Welch's interval of the difference of the means is worked out, with at least 5 units a group; the
        groups have parted where it leaves out 0 from one point on to the last that both have. It is pointwise: where,
        not whether. Whether one is better `compare` answers.
        """
        return tuple(_parted(a, b, self.x_P, self.axis, level) for a, b in itertools.combinations(self.groups, 2))

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, sentences, spark

        drawn = [
            spark(
                [(self.x_P[bends], group.band.centre_P[bends])],
                [(self.x_P[bends], group.band.low_P[bends], group.band.high_P[bends])],
                width=260,
                height=60,
            )
            for group, bends in ((group, group.vertices_P) for group in self.groups)
        ]
        rows = [{"group": group.legend()} for group in self.groups]
        title = f"{self.key} by {self.by}" if self.by else self.key
        return card(title, f"along {self.axis}", grid(rows, sparks={"": drawn}), sentences(self.sentences()))

    def panels(self, *, seeds: str = "auto", extremes: bool = True) -> list[Panel]:
        """A panel a group, all over the same grid."""
        return [
            replace(self, groups=(group,)).panel(seeds=seeds, extremes=extremes, title=group.label)
            for group in self.groups
        ]

    def panel(self, *, seeds: str = "auto", extremes: bool = True, title: str = "") -> Panel:
        """What the chart of these curves draws; see `plot`."""
        from rollbook.plots import Panel

        if seeds not in ("auto", "always", "never"):
            raise UnknownOption(f'seeds={seeds!r}: it has to be "auto", "always" or "never"')
        remarks = self.sentences()
        reasons = dict.fromkeys(
            group.band.reason for group in self.groups if group.band.reason and not np.isfinite(group.band.low_P).any()
        )
        remarks += [f"No band: {reason}." for reason in reasons]
        if extremes and any(np.isfinite(group.band.low_P).any() for group in self.groups):
            several = any(group.tasks > 1 for group in self.groups)
            what = "mean over the tasks" if several else "row"
            remarks.append(f"Faint: from the lowest to the highest {what} of any seed.")
        lines = tuple(_drawn(group, seeds, extremes) for group in self.groups)
        words = f"{self.key} by {self.by}" if self.by else self.key
        return Panel(title or words, self.axis, lines, remarks=tuple(remarks))

    def to_pandas(self) -> Any:
        """`columns()` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """`columns()` as a Polars data frame."""
        import polars as pl

        return pl.DataFrame({name: values.tolist() for name, values in self.columns().items()})


@dataclass(frozen=True, slots=True)
class Parted:
    """From where on two groups stay apart.

    Attributes:
      a, b: their labels.
      ahead: which of them is higher from there on; None where they have not parted.
      x: the first point of the grid from which on they stay apart; None where they have not.
      last: the last point that both have with 5 units or more; None if there is none.
      level: of the interval at each point.
      axis: what x counts.
    """

    a: str
    b: str
    ahead: str | None
    x: float | None
    last: float | None
    level: float
    axis: str

    def sentence(self) -> str:
        """What a reader has to know, that it is pointwise among it."""
        if self.last is None:
            return f"{self.a} and {self.b}: no point of {self.axis} has 5 seeds of each."
        if self.x is None or self.ahead is None:
            return f"{self.a} and {self.b} are not apart at {self.axis} {self.last:.6g}."
        behind = self.b if self.ahead == self.a else self.a
        return (
            f"{self.ahead} stays above {behind} from {self.axis} {self.x:.6g} to {self.last:.6g} "
            f"({100 * self.level:g} % at each point; no verdict)."
        )


def _parted(a: GroupCurve, b: GroupCurve, x_P: Floats, axis: str, level: float) -> Parted:
    (mean_a, var_a, n_a), (mean_b, var_b, n_b) = (_moments(group.units_UP) for group in (a, b))
    both = np.flatnonzero((n_a >= _LEAST_APART) & (n_b >= _LEAST_APART))
    if not len(both):
        return Parted(a.label, b.label, None, None, None, level, axis)
    low, high = stats.welch_interval(mean_a[both], var_a[both], n_a[both], mean_b[both], var_b[both], n_b[both], level)
    side = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    last = float(x_P[both[-1]])
    if side[-1] == 0:
        return Parted(a.label, b.label, None, None, last, level, axis)
    other = np.flatnonzero(side != side[-1])
    first = both[other[-1] + 1 if len(other) else 0]
    return Parted(a.label, b.label, a.label if side[-1] > 0 else b.label, float(x_P[first]), last, level, axis)


def _moments(units_UP: Floats) -> tuple[Floats, Floats, Floats]:
    """(mean, variance, n) of the units that have a value at each point."""
    known = ~np.isnan(units_UP)
    n = known.sum(axis=0).astype(np.float64)
    filled = np.where(known, units_UP, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / n
        variance = (np.where(known, units_UP - mean, 0.0) ** 2).sum(axis=0) / (n - 1)
    return mean, variance, n


@dataclass(frozen=True, slots=True)
class Reached:
    """The share of runs that have reached a score, along training.

    Attributes:
      key, axis, level: the metric, what it runs along, the score.
      x_P: [points].
      labels, n: of the groups; runs that were begun, whether or not they have rows.
      share_GP, low_GP, high_GP: [groups, points], the share and its Clopper-Pearson interval; NaN below 3 runs.
    """

    key: str
    axis: str
    level: float
    x_P: Floats
    labels: tuple[str, ...]
    n: tuple[int, ...]
    share_GP: Floats
    low_GP: Floats
    high_GP: Floats

    def plot(self, *, theme: str = "light", **options: Any) -> Picture:
        """The shares as a picture."""
        from rollbook.plots import Line, Panel, draw

        def words(label: str, n: int) -> str:
            told = f"{label}: share of {n} seed{'' if n == 1 else 's'}"
            return f"{told}, 95 % at each point (Clopper-Pearson)" if n >= 3 else f"{told}, no band below 3"

        lines = tuple(
            Line(words(label, n), self.x_P, share, low if n >= 3 else None, high if n >= 3 else None, steps=True)
            for label, n, share, low, high in zip(
                self.labels, self.n, self.share_GP, self.low_GP, self.high_GP, strict=True
            )
        )
        panel = Panel(f"share of seeds that reached {self.key} = {self.level:.6g}", self.axis, lines)
        return draw("efficiency", panel, theme=theme, **options)


def curves(
    groups: Mapping[str, Mapping[str, Line]],
    *,
    key: str,
    axis: str,
    by: str = "",
    statistic: str = "iqm",
    points: int = 200,
    seed: int = 0,
    level: float = 0.95,
    draws: int = 1999,
    normalise: Any = None,
    whole_curve: bool = False,
    **alignment: Any,
) -> Curves:
    """Groups of runs on one grid, each with its centre, interval and extremes.

    Args:
      groups: label -> name of the run -> its metric. Runs without rows stay in the denominator and are told of.
      key, axis, by: see `Curves`.
      statistic: "iqm", "mean" or "median".
      points: of the grid, at most; see `shared_grid`.
      seed: of the resamples; each group has a stream of its own, so that a group's band does not depend on the others.
      level, draws: of the intervals.
      normalise: for several tasks: {task: (worth 0, worth 1)}, or the name of a published table.
      whole_curve: a band for the whole curve of the mean instead of one for each point by itself.
      alignment: see `stats.align`.
    Raises:
      BadInput: no run has a row, or options that clash.
    """
    (made,) = refined_curves(
        groups, key=key, axis=axis, by=by, statistic=statistic, points=points, seed=seed, level=level, stages=(draws,),
        normalise=normalise, whole_curve=whole_curve, **alignment,
    )  # fmt: skip
    return made


def refined_curves(
    groups: Mapping[str, Mapping[str, Line]],
    *,
    key: str,
    axis: str,
    by: str = "",
    statistic: str = "iqm",
    points: int = 200,
    seed: int = 0,
    level: float = 0.95,
    stages: Sequence[int] = (200, 1999),
    normalise: Any = None,
    whole_curve: bool = False,
    **alignment: Any,
) -> Iterator[Curves]:
    """`curves` at once from few draws, then again from more; all but the last are `preliminary`, and say so.

    Args:
      stages: draws of each answer, increasing.
    """
    lines = {label: dict(runs) for label, runs in groups.items()}
    with_rows = [line for runs in lines.values() for line in runs.values() if len(line.x)]
    if not with_rows:
        raise BadInput(f"curves of {key!r}: none of the runs has a row of it along {axis!r}")
    if whole_curve and statistic not in ("mean", "iqm"):
        raise BadInput(f"whole_curve=True with statistic={statistic!r}: there is such a band for the mean alone")
    if whole_curve:
        statistic = "mean"
    tasks = tuple(dict.fromkeys(line.task for runs in lines.values() for line in runs.values()))
    scale, notes = _scale(tasks, normalise)
    alignment.setdefault("nan", "keep")
    grid = alignment.pop("grid", None)
    if grid is None:
        grid = shared_grid(
            [line.x for line in with_rows], points,
            span=alignment.pop("span", "any"), spacing=alignment.pop("spacing", "linear"),
        )  # fmt: skip
    notes += _about_rows(lines, key, axis)
    ready = []
    for label, runs in lines.items():
        if not any(len(line.x) for line in runs.values()):
            continue
        aligned = stats.align(
            {name: (line.x, _scaled(line, scale)) for name, line in runs.items()},
            grid=grid,
            crashed=[name for name, line in runs.items() if line.crashed],
            **alignment,
        )
        ready.append((label, aligned, _units(aligned, runs, tasks)))
    x_P = np.asarray(grid, dtype=np.float64)
    for draws in stages:
        rough, made = draws != stages[-1], []
        for label, aligned, (units, curves_UTP) in ready:
            rng = np.random.default_rng([seed, *label.encode("utf-8", "surrogatepass")])
            band = stats.band(curves_UTP, statistic, rng=rng, level=level, draws=draws)
            if whole_curve:
                band = _whole(band, curves_UTP, level)
            band = replace(band, preliminary=rough and band.draws > 0)
            low, high = _extremes(curves_UTP, aligned)
            paths = {name: line.path for name, line in lines[label].items()}
            made.append(GroupCurve(label, aligned, band, low, high, paths, len(tasks), units, curves_UTP.mean(axis=1)))
        yield Curves(key, axis, by, x_P, tuple(made), tuple(notes), rough)


def shared_grid(
    xs: Sequence[npt.NDArray[Any]],
    points: int,
    *,
    span: str = "any",
    spacing: str = "linear",
    start: float | None = None,
    stop: float | None = None,
) -> Floats:
    """The x at which runs are put beside each other: where they themselves have rows, if those are few enough.

    Runs that log every thousand steps meet at those steps, and nothing is carried on from one to the next. Runs whose
    episodes end wherever they end have as many different x as rows; their grid is even.

    Args:
      xs: [rows] of each run, in the order of its rows.
      points: at least 2; more different x than that make an even grid of so many.
      span, spacing: see `stats.common_grid`.
      start, stop: a part of the axis.
    Raises:
      BadInput: no run has rows there, or none that all share with span="all".
    """
    spans = [ends for x in xs if len(ends := _span(x))]
    even = stats.common_grid(spans, points, span=span, spacing=spacing)
    low, high = float(even[0]), float(even[-1])
    if start is not None or stop is not None:
        low, high = max(low, -math.inf if start is None else start), min(high, math.inf if stop is None else stop)
        if not low < high:
            raise BadInput(f"no run has rows between {low:g} and {high:g}")
        even = np.linspace(low, high, points)
    if any(len(x) > 4 * points for x in xs) or sum(map(len, xs)) > 2_000 * points:
        return even
    own = np.unique(np.concatenate([np.asarray(x, dtype=np.float64) for x in xs]))
    own = own[np.isfinite(own)]
    # From the last row before the part to the first behind it, so that lines run through its edges.
    own = own[max(0, np.searchsorted(own, low, side="right") - 1) : np.searchsorted(own, high, side="left") + 1]
    return own if len(own) <= points else even


def _about_rows(lines: Mapping[str, Mapping[str, Line]], key: str, axis: str) -> list[str]:
    """What the rows of groups lack: no row at all, rows that are not finite, no point in common with another group."""
    said, ends = [], {}
    for label, runs in lines.items():
        begun = [line for line in runs.values() if len(line.x)]
        if not begun:
            whose = "its run has no" if len(runs) == 1 else f"none of its {len(runs)} runs has a"
            said.append(f"{label}: {whose} row of {key}; it is not drawn.")
            continue
        bad = [int((~np.isfinite(np.asarray(line.y, dtype=np.float64))).sum()) for line in begun]
        if any(bad):
            whose = f"{sum(bad):,} rows of {sum(count > 0 for count in bad)} of {len(runs)} runs"
            said.append(f"{label}: {whose} are NaN or infinite; no value there, and a mark at the edge.")
        spans = [span for line in begun if len(span := _span(line.x))]
        if spans:
            ends[label] = (min(float(span[0]) for span in spans), max(float(span[1]) for span in spans))
    for a, b in itertools.combinations(ends, 2):
        if ends[a][1] < ends[b][0] or ends[b][1] < ends[a][0]:
            said.append(_no_common_point(a, ends[a], b, ends[b], axis))
    return said


def _scaled(line: Line, scale: Mapping[str, tuple[float, float]]) -> npt.NDArray[Any]:
    if line.task not in scale:
        return line.y
    zero, one = scale[line.task]
    return (np.asarray(line.y, dtype=np.float64) - zero) / (one - zero)


def _units(aligned: Aligned, runs: Mapping[str, Line], tasks: tuple[str, ...]) -> tuple[tuple[str, ...], Floats]:
    """What is resampled: its names, and [units, tasks, points]. Of one task each run; over several whole seeds."""
    values_RP = np.where(np.isfinite(aligned.values_RP), aligned.values_RP, np.nan)
    if len(tasks) == 1:
        return aligned.names, values_RP[:, None, :]
    rows: dict[str, Floats] = {}
    for name, values_P in zip(aligned.names, values_RP, strict=True):
        line = runs[name]
        unit = name if line.seed is None else f"seed {line.seed}"
        place = tasks.index(line.task)
        if unit in rows and not np.isnan(rows[unit][place]).all():
            unit = name  # the same seed and task once more is a unit of its own
        rows.setdefault(unit, np.full((len(tasks), len(values_P)), np.nan))[place] = values_P
    return tuple(rows), np.array(list(rows.values()))


def _whole(pointwise: Band, curves_UTP: Floats, level: float) -> Band:
    """The band of the whole mean curve over the points that all seeds have; none outside of them."""
    there = ~np.isnan(curves_UTP).any(axis=(0, 1))
    nothing = np.full(curves_UTP.shape[2], np.nan)
    if not there.any():
        reason = "no point of the axis has a value of every seed"
        return replace(pointwise, low_P=nothing, high_P=nothing, claim_P=nothing, kind="whole curve", reason=reason)
    band = stats.whole_curve_band(curves_UTP[:, :, there], level)
    low, high, claim = nothing.copy(), nothing.copy(), nothing.copy()
    low[there], high[there], claim[there] = band.low_P, band.high_P, band.claim_P
    return replace(
        pointwise, low_P=low, high_P=high, claim_P=claim, methods=band.methods, kind=band.kind, draws=0,
        reason=band.reason,
    )  # fmt: skip


def _span(x: npt.NDArray[Any]) -> Floats:
    """[first, last] of the finite readings, [] where there is none."""
    finite = x if x.dtype.kind in "iub" else x[np.isfinite(x)]
    return np.array([finite.min(), finite.max()] if len(finite) else [], dtype=np.float64)


def _extremes(curves_UTP: Floats, aligned: Aligned) -> tuple[Floats, Floats]:
    """(lowest, highest) at each point: of every row of one task, of the units' means over several."""
    values_RP = curves_UTP.mean(axis=1)
    low = np.where(np.isnan(values_RP), np.inf, values_RP).min(axis=0)
    high = np.where(np.isnan(values_RP), -np.inf, values_RP).max(axis=0)
    for series in aligned.raw if curves_UTP.shape[1] == 1 else ():
        finite = np.isfinite(series.y)
        x, y = (series.x, series.y) if finite.all() else (series.x[finite], series.y[finite])
        ends = np.searchsorted(x, aligned.x_P, side="right")
        starts = np.append(np.searchsorted(x, aligned.x_P[:1], side="left"), ends[:-1])
        here = np.flatnonzero(ends > starts)
        if len(here):  # the rows between two points lie beside those between the next two: a run of `reduceat`
            last = int(ends[here[-1]])
            low[here] = np.minimum(low[here], np.minimum.reduceat(y[:last], starts[here]))
            high[here] = np.maximum(high[here], np.maximum.reduceat(y[:last], starts[here]))
    nothing = low > high
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def _drawn(group: GroupCurve, seeds: str, extremes: bool) -> plots.Line:
    """What the chart draws of one group: the runs themselves where no band can be claimed, or on request."""
    from rollbook.plots import Line, Trace

    honest = bool(np.isfinite(group.band.low_P).any())
    runs: tuple[Trace, ...] = ()
    if group.tasks > 1 and (seeds == "always" or (seeds == "auto" and not honest)):
        x_P = group.aligned.x_P
        runs = tuple(Trace(x_P, values_P, name) for name, values_P in zip(group.units, group.units_UP, strict=True))
    elif seeds == "always" or (seeds == "auto" and not honest):
        runs = tuple(
            Trace(raw.x, raw.y, name) for raw, name in zip(group.aligned.raw, group.aligned.names, strict=True)
        )
    bad = [~np.isfinite(raw.y) for raw in group.aligned.raw]
    some = any(each.any() for each in bad)
    rows = list(zip(group.aligned.raw, bad, strict=True))
    bends = group.vertices_P
    return Line(
        group.legend() if honest else group.legend().partition(": " + group.band.reason)[0],
        group.aligned.x_P[bends],
        group.band.centre_P[bends],
        group.band.low_P[bends] if honest else None,
        group.band.high_P[bends] if honest else None,
        group.min_P[bends] if extremes and honest else None,
        group.max_P[bends] if extremes and honest else None,
        () if len(runs) == 1 and honest else runs,
        Trace(np.concatenate([r.x[b] for r, b in rows]), np.concatenate([r.y[b] for r, b in rows])) if some else None,
    )


# -- scores


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a comparison.

    Attributes:
      group, name: its group and what it is called.
      seed: its seed; None if it has none.
      task: "" where there is only one.
      score: None where the run has no value of the metric.
      crashed, running: how it stands.
      span: (axis, first, last) of its finite values; None where that is not known.
    """

    group: str
    name: str
    seed: int | None
    task: str
    score: float | None
    crashed: bool = False
    running: bool = False
    span: tuple[str, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one group.

    Attributes:
      label: what the runs have in common.
      scores_RT: [seeds, tasks]; NaN where a seed has no score of a task.
      names: [seeds]; the runs (of several tasks: the seeds) in the order in which they were begun.
      interval: of the statistic.
      crashed, running, without_score: names of the runs that ended badly, go on, or have no value of the metric.
    """

    label: str
    scores_RT: Floats
    names: tuple[str, ...]
    interval: Interval | None
    crashed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    without_score: tuple[str, ...] = ()

    @property
    def seeds_R(self) -> Floats:
        """[seeds], the mean over tasks of each seed that has all of them."""
        complete: Floats = self.scores_RT[~np.isnan(self.scores_RT).any(axis=1)].mean(axis=1)
        return complete


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups beside each other.

    Attributes:
      a, b: their labels.
      difference: of the means over seeds, a minus b; NaN where one has none.
      improvement: probability that a seed of a scores more than a seed of b (averaged over tasks), ties count half.
      evidence: e-value against "both are alike" without a plan; may be looked at any time, 20 decides. None: no pairs.
      verdict: by the plan of looks; None without one.
      reason: why they are not compared at all, "" if they are.
    """

    a: str
    b: str
    difference: float
    improvement: float
    evidence: float | None
    verdict: Verdict | None = None
    reason: str = ""

    def sentence(self) -> str:
        """The answer first, then how sure it is."""
        if self.reason:
            return f"{self.a} and {self.b}: not compared; they were {self.reason}."
        if self.verdict is not None:
            told = self.verdict.sentence()
            return told if self.verdict.better else f"{self.a} and {self.b}: {_going_on(told)}"
        if math.isnan(self.difference):
            return f"{self.a} and {self.b}: not decided; one of them has no finished seed with a score."
        better, worse = (self.a, self.b) if self.difference > 0 else (self.b, self.a)
        if self.evidence is not None and self.evidence >= stats.DECIDES:
            return (
                f"{better} is better than {worse}: evidence {self.evidence:.3g} (20 decides), which may be looked at "
                "after every seed."
            )
        so_far = "none yet" if self.evidence is None else f"{self.evidence:.3g} of the 20 that decide"
        return (
            f"{self.a} and {self.b}: not decided. {better} is ahead by {abs(self.difference):.4g}; evidence {so_far}. "
            "Make a plan before the next seeds (plan=…) for an answer with fewer of them."
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups of runs compared by one score.

    Attributes:
      metric, by, how: the key, the field that made the groups, and how a run's metric became one number.
      tasks: names of the tasks, ("",) for one.
      statistic: of the intervals.
      groups, pairs: in the order of the groups' first runs.
      thresholds_H, profiles_GH: performance profiles: the share of scores above each threshold, a row a group.
      study: the plan and its looks, None without a plan.
      notes: what a reader has to know: who was left out and why, what is not on one scale.
      preliminary: whether more draws of the resamples are on their way.
    """

    metric: str
    by: str
    how: str
    tasks: tuple[str, ...]
    statistic: str
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    thresholds_H: Floats
    profiles_GH: Floats
    study: Study | None = None
    notes: tuple[str, ...] = ()
    preliminary: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Verdicts first, then the intervals, then the notes."""
        said = [pair.sentence() for pair in self.pairs]
        said += [
            f"{g.label}: {_going_on(g.interval.sentence(self.metric))}" for g in self.groups if g.interval is not None
        ]
        return [*said, *self.notes]

    def plan_data(self) -> dict[str, Any] | None:
        """The plan with its looks and verdicts as plain data for JSON; None without a plan. See `plan_data`."""
        return None if self.study is None else plan_data(self.study)

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, sentences

        said = self.sentences()
        return card(f"{self.metric} by {self.by}", self.how, sentences(said), grid(self.table()))

    def table(self) -> list[dict[str, Any]]:
        """One row a group: group, n, estimate, low, high, method, claim, crashed, running."""
        return [
            {
                "group": group.label,
                "n": len(group.seeds_R),
                self.statistic: None if group.interval is None else group.interval.estimate,
                "low": None if group.interval is None else group.interval.low,
                "high": None if group.interval is None else group.interval.high,
                "method": "" if group.interval is None else group.interval.method,
                "claim": None if group.interval is None else group.interval.claim,
                "crashed": len(group.crashed),
                "running": len(group.running),
            }
            for group in self.groups
        ]

    def plot(self, chart: str = "intervals", *, theme: str = "light", **options: Any) -> Picture:
        """The comparison as a picture.

        Args:
          chart: "intervals", "profiles" or "improvement".
          theme: "light" or "dark".
          options: of the chart.
        Raises:
          UnknownOption: a chart that is not of a comparison.
        """
        from rollbook.plots import draw

        makers = {"intervals": self._bars, "profiles": self._profiles, "improvement": self._improvement}
        if chart not in makers:
            raise UnknownOption(f"plot({chart!r}): a comparison has no such chart.{did_you_mean(chart, list(makers))}")
        return draw(chart, makers[chart](), theme=theme, **options)

    def _bars(self) -> plots.Bars:
        from rollbook.plots import Bars

        def ends(group: Group) -> tuple[float, float]:
            interval = group.interval
            if interval is None or interval.low is None or interval.high is None or not interval.is_honest:
                return math.nan, math.nan
            return interval.low, interval.high

        known = [group for group in self.groups if group.interval is not None]
        several = len(self.tasks) > 1
        return Bars(
            f"{self.metric}, {self.how}",
            f"{'IQM' if self.statistic == 'iqm' else self.statistic} (stroke), 95 % interval (bar), "
            f"{'seeds, averaged over tasks' if several else 'seeds'} (dots)",
            tuple(group.label for group in known),
            np.array([group.interval.estimate for group in known if group.interval is not None]),
            np.array([ends(group)[0] for group in known]),
            np.array([ends(group)[1] for group in known]),
            tuple(group.seeds_R for group in known),
            tuple(_how_sure(group.interval) for group in known if group.interval is not None),
            remarks=tuple([pair.sentence() for pair in self.pairs[:3]] + list(self.notes)),
        )

    def _improvement(self) -> plots.Bars:
        from rollbook.plots import Bars

        n = {group.label: len(group.seeds_R) for group in self.groups}
        known = [pair for pair in self.pairs if not math.isnan(pair.improvement)]
        nothing = np.full(len(known), np.nan)
        return Bars(
            f"{self.metric}: probability of improvement",
            "how often a seed of the first scores more than a seed of the second; ties count half",
            tuple(f"{pair.a} > {pair.b}" for pair in known),
            np.array([pair.improvement for pair in known]),
            nothing,
            nothing,
            tuple(np.zeros(0) for _ in known),
            tuple(
                f"{100 * pair.improvement:.3g} % of {n[pair.a]} x {n[pair.b]} pairs of seeds; no interval is claimed"
                for pair in known
            ),
            zero=0.5,
            span=(-0.02, 1.02),
            remarks=tuple(pair.sentence() for pair in known[:3]),
        )

    def _profiles(self) -> Panel:
        from rollbook.plots import Line, Panel

        lines = tuple(
            Line(f"{group.label}: share of {len(group.seeds_R)} seeds, no band", self.thresholds_H, shares, steps=True)
            for group, shares in zip(self.groups, self.profiles_GH, strict=True)
        )
        title = f"{self.metric}: share of scores above a threshold"
        return Panel(title, f"threshold ({self.how})", lines, remarks=self.notes)

    def to_pandas(self) -> Any:
        """`table()` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def to_polars(self) -> Any:
        """`table()` as a Polars data frame."""
        import polars as pl

        return pl.DataFrame(self.table())

    def scores(self) -> dict[str, npt.NDArray[Any]]:
        """Every score in long form, as seaborn likes it: group, run, task, score."""
        rows = [
            (group.label, name, task, score)
            for group in self.groups
            for name, scores_T in zip(group.names, group.scores_RT, strict=True)
            for task, score in zip(self.tasks, scores_T.tolist(), strict=True)
            if not math.isnan(score)
        ]
        named = zip(("group", "run", "task"), range(3), strict=True)
        found: dict[str, npt.NDArray[Any]] = {name: np.array([row[n] for row in rows], object) for name, n in named}
        return found | {"score": np.array([row[3] for row in rows], dtype=np.float64)}


def _going_on(sentence: str) -> str:
    """A sentence as it goes on behind a colon: "Mean 434" -> "mean 434", but "IQM 434"."""
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]


def plan_data(study: Study) -> dict[str, Any]:
    """A plan, the looks that were taken, and what may be said now, as plain data for JSON.

    Returns:
      arms, n_min, n_max, alpha, delta, floor, note; looks: of each look and pair what `stats.Look` holds, oldest first;
      verdicts: of each pair `a`, `b`, outcome, better, n, look, difference, low, high, chance, more, sentence. Numbers
      that are not finite are None.
    """
    plan = study.plan
    told = []
    for verdict in study.verdicts():
        a, b = verdict.pair
        numbers = {name: getattr(verdict, name) for name in ("difference", "low", "high", "chance")}
        told.append(
            {
                "a": a, "b": b, "outcome": verdict.outcome, "better": verdict.better, "n": verdict.n,
                "look": verdict.look, "more": None if verdict.more is None else str(verdict.more),
                "sentence": Pair(a, b, math.nan, math.nan, None, verdict).sentence(),
                **{name: None if v is None or not math.isfinite(v) else float(v) for name, v in numbers.items()},
            }
        )  # fmt: skip
    return {
        "arms": list(plan.arms), "n_min": plan.n_min, "n_max": plan.n_max, "alpha": plan.alpha, "delta": plan.delta,
        "floor": plan.floor, "note": plan.note, "looks": [look.as_data() for look in study.looks], "verdicts": told,
    }  # fmt: skip


def _how_sure(interval: Interval) -> str:
    """The method of an interval and of how many seeds, or why there is none."""
    if interval.is_honest:
        claim = "" if interval.claim is None else f", holds at least {100 * interval.claim:g} % in our tests"
        return f"{100 * interval.level:g} %, {interval.method}, n = {interval.n}{claim}"
    why = interval.reason or f"{interval.method} of so few seeds does not hold at {100 * interval.level:g} %"
    return f"no interval, n = {interval.n}: {why}"


def compare(
    entries: Sequence[Entry],
    *,
    metric: str,
    by: str,
    how: str,
    normalise: Any = None,
    statistic: str | None = None,
    study: Study | None = None,
    planned: bool = False,
    delta: float | None = None,
    floor: float | None = None,
    seed: int = 0,
) -> Comparison:
    """Groups of runs compared by one score; see `RunSet.compare`.

    Args:
      entries: the runs, in the order in which they were begun.
      study: a plan and its looks so far; None with `planned` makes a plan now.
      delta, floor: of a new plan; `floor` is what crashed runs are worth everywhere.
    Raises:
      BadInput: no run has a score; groups that differ from the plan's.
    """
    if study is not None and floor is None:
        floor = study.plan.floor
    tasks = tuple(dict.fromkeys(entry.task for entry in entries))
    labels = tuple(dict.fromkeys(entry.group for entry in entries))
    if not any(entry.score is not None for entry in entries):
        raise BadInput(f"compare({metric!r}): none of the {len(entries)} runs has a finite value of it")
    statistic = statistic or ("mean" if len(tasks) == 1 else "iqm")
    scale, notes = _scale(tasks, normalise)
    groups = [_group([e for e in entries if e.group == label], label, tasks, scale, floor) for label in labels]
    groups = [_with_interval(group, statistic, seed) for group in groups]
    for group in groups:
        notes += _who_is_missing(group, floor)
    apart = _apart(entries, labels)
    notes += apart.values()
    if not apart:
        study = _looked(study, groups, planned, delta, floor, metric)
    verdicts = {} if study is None else {frozenset(v.pair): v for v in study.verdicts()}
    pairs = tuple(
        Pair(a.label, b.label, math.nan, math.nan, None, None, "measured at no common point of the axis")
        if (a.label, b.label) in apart
        else _pair(a, b, verdicts.get(frozenset((a.label, b.label))))
        for a, b in itertools.combinations(groups, 2)
    )
    if len(groups) == 1:
        notes.append(f"All runs have the same {by}: there is one group, and nothing to compare it with.")
    pooled = np.concatenate([group.scores_RT[~np.isnan(group.scores_RT)] for group in groups])
    thresholds = _thresholds(pooled)
    profiles = np.array(
        [
            stats.performance_profile(group.seeds_R if len(tasks) == 1 else complete, thresholds)
            if len(complete := stats.complete_seeds(group.scores_RT)[0])
            else np.full(len(thresholds), np.nan)
            for group in groups
        ]
    )
    return Comparison(
        metric, by, how, tasks, statistic, tuple(groups), pairs, thresholds, profiles, study, tuple(notes)
    )


def _apart(entries: Sequence[Entry], labels: Sequence[str]) -> dict[tuple[str, str], str]:
    """Pairs of groups that have no point of the axis in common, with a sentence each."""
    spans: dict[str, tuple[str, float, float]] = {}
    for entry in entries:
        if entry.span is not None:
            axis, first, last = entry.span
            _, low, high = spans.get(entry.group, entry.span)
            spans[entry.group] = (axis, min(low, first), max(high, last))
    found = {}
    for a, b in itertools.combinations([label for label in labels if label in spans], 2):
        (axis, low_a, high_a), (other, low_b, high_b) = spans[a], spans[b]
        if axis == other and (high_a < low_b or high_b < low_a):
            found[a, b] = _no_common_point(a, (low_a, high_a), b, (low_b, high_b), axis)
    return found


def _no_common_point(a: str, of_a: tuple[float, float], b: str, of_b: tuple[float, float], axis: str) -> str:
    return (
        f"{a} was measured from {of_a[0]:.6g} to {of_a[1]:.6g} {axis}, {b} from {of_b[0]:.6g} to {of_b[1]:.6g}: no "
        "common point, nothing is compared."
    )


def _thresholds(scores: Floats) -> Floats:
    """From a little below the lowest score, above which all are, to a little above the highest."""
    if not len(scores):
        return np.zeros(0)
    low, high = float(scores.min()), float(scores.max())
    beyond = 0.02 * ((high - low) or abs(high) or 1.0)
    return np.linspace(low - beyond, high + beyond, _PROFILE_POINTS)


def _scale(tasks: tuple[str, ...], normalise: Any) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """{task: (worth 0, worth 1)}, {} to leave scores as they are."""
    if normalise is None:
        several = len(tasks) > 1
        return {}, [
            f"Scores of {len(tasks)} tasks are not on one scale; say normalise={{task: (random, human)}}."
        ] if several else []
    return dict(zip(tasks, stats.anchors_of(tasks, normalise), strict=True)), []


def _group(
    entries: Sequence[Entry],
    label: str,
    tasks: tuple[str, ...],
    scale: Mapping[str, tuple[float, float]],
    floor: float | None,
) -> Group:
    rows: dict[Any, list[float]] = {}
    crashed, running, lacking = [], [], []
    for n, entry in enumerate(entries):
        if entry.running:
            running.append(entry.name)
            continue
        score = entry.score
        if entry.crashed:
            crashed.append(entry.name)
            score = floor
        elif score is None:
            lacking.append(entry.name)
        if score is None:
            continue
        if entry.task in scale:
            zero, one = scale[entry.task]
            score = (score - zero) / (one - zero)
        # Over several tasks a seed is one unit; of one task, or without a seed, each run is.
        unit: Any = entry.name if len(tasks) == 1 or entry.seed is None else f"seed {entry.seed}"
        row = rows.setdefault(unit, [math.nan] * len(tasks))
        if not math.isnan(row[tasks.index(entry.task)]):  # the same seed and task once more is a unit of its own
            row = rows.setdefault((unit, n), [math.nan] * len(tasks))
        row[tasks.index(entry.task)] = float(score)
    names = tuple(name if isinstance(name, str) else name[0] for name in rows)
    scores = np.array(list(rows.values()), dtype=np.float64).reshape(len(rows), len(tasks))
    return Group(label, scores, names, None, tuple(crashed), tuple(running), tuple(lacking))


def _with_interval(group: Group, statistic: str, seed: int) -> Group:
    complete, left_out = stats.complete_seeds(group.scores_RT)
    if not len(complete):
        return group
    rng = np.random.default_rng([seed, *group.label.encode("utf-8", "surrogatepass")])
    interval = stats.interval(complete, statistic, rng=rng, left_out=left_out)
    return Group(group.label, group.scores_RT, group.names, interval, group.crashed, group.running, group.without_score)


def _who_is_missing(group: Group, floor: float | None) -> list[str]:
    said = []
    if group.crashed and floor is None:
        said.append(
            f"{group.label}: {_runs(group.crashed)} ended badly and not among the scores. To leave failures out "
            "flatters; say floor=… for what a failed run is worth."
        )
    elif group.crashed:
        said.append(f"{group.label}: {_runs(group.crashed)} ended badly and counts as {floor:g}.")
    if group.running:
        said.append(f"{group.label}: {_runs(group.running)} still being written; not among the scores yet.")
    if group.without_score:
        said.append(f"{group.label}: {_runs(group.without_score)} without a finite value; not among the scores.")
    return said


def _runs(names: Sequence[str]) -> str:
    return f"{len(names)} run{'s' if len(names) > 1 else ''} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def _looked(
    study: Study | None, groups: Sequence[Group], planned: bool, delta: float | None, floor: float | None, metric: str
) -> Study | None:
    if study is None:
        if not planned or len(groups) < 2:
            return None
        arms = tuple(group.label for group in groups)
        study = Study(Plan(arms=arms, delta=delta, floor=floor, note=metric))
    by_label = {group.label: group for group in groups}
    unknown = [label for label in by_label if label not in study.plan.arms]
    if unknown:
        raise BadInput(
            f"the plan compares {', '.join(study.plan.arms)}; {unknown[0]!r} is not among them. "
            "A new group needs a new plan"
        )
    scores = {arm: by_label[arm].seeds_R if arm in by_label else np.zeros(0) for arm in study.plan.arms}
    return study.look(scores)


def _pair(a: Group, b: Group, verdict: Verdict | None) -> Pair:
    a_R, b_R = a.seeds_R, b.seeds_R
    if not len(a_R) or not len(b_R):
        return Pair(a.label, b.label, math.nan, math.nan, None, verdict)
    wealth = stats.e_process(a_R, b_R)
    complete_a, complete_b = stats.complete_seeds(a.scores_RT)[0], stats.complete_seeds(b.scores_RT)[0]
    return Pair(
        a.label,
        b.label,
        float(a_R.mean() - b_R.mean()),
        float(stats.probability_of_improvement(complete_a, complete_b)),
        float(wealth[-1]) if len(wealth) else None,
        verdict,
    )


# -- which difference goes along with which result


@dataclass(frozen=True, slots=True)
class Association:
    """How results differ between the values of something.

    Attributes:
      means: value -> mean result of the runs that have it, None where none has a result.
      n: value -> runs with a result.
      explained: the share of the variance of results that goes along with the value, from 0 to 1, corrected for the
        number of values (epsilon squared); None where no value has two results. It says nothing of causes.
    """

    means: Mapping[str, float | None]
    n: Mapping[str, int]
    explained: float | None


def association(results: Mapping[str, Sequence[float | None]]) -> Association:
    """How results differ between values.

    Args:
      results: value -> results of the runs that have it, None for runs without one.
    """
    known = {value: np.array([r for r in each if r is not None], dtype=np.float64) for value, each in results.items()}
    filled = [each for each in known.values() if len(each)]
    means = {value: float(each.mean()) if len(each) else None for value, each in known.items()}
    counts = {value: len(each) for value, each in known.items()}
    everything = np.concatenate(filled) if filled else np.zeros(0)
    freedom = len(everything) - len(filled)
    total = float(((everything - everything.mean()) ** 2).sum()) if len(everything) else 0.0
    if len(filled) < 2 or freedom < 1 or total == 0:
        return Association(means, counts, None)
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in filled)
    explained = (total - within - (len(filled) - 1) * within / freedom) / total
    return Association(means, counts, min(1.0, max(0.0, explained)))
