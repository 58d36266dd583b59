"""Values that no earlier run with the same settings had."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._earlier import EarlierRun, EarlierValues, find, kin, listed, named
from rollbook.health._keyed import KeyedRule, are_known, at_clock, meaning
from rollbook.health._memory import Memory, wholly_remembered
from rollbook.health._returns import BLOCK, WhichReturns
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

    Found = tuple[int, float, float]
    """The position of a row in its column, the least and the largest value of the others there."""

_MOST_POINTS, _MOST_KEYS = 64, 16
"""Points of a key (each the least and the largest of some rows) to save for later runs, and of how many keys."""

_CELLS, _NEAR = 64, 2
"""A run is divided into this many cells; values are compared with those of other runs in the same cell and in this many
before and after."""

_FLOOR = 0.1
"""Room beyond the others' range, a share of their largest value: where all are nearly equal, a little more is fine."""

_BETTER = frozenset({"update/explained_variance"})
"""Larger values than in earlier runs are fine."""

_CAUSES = {
    "update/q_value": "gamma, the target of the values, or the scale or sign of rewards has changed",
    "update/q_value_2": "gamma, the target of the values, or the scale or sign of rewards has changed",
    "update/entropy": "the weight or sign of the entropy, or the learning rate has changed",
    "update/entropy_coefficient": "the target entropy, or the sign of its loss has changed",
    "update/explained_variance": "the loss of the value function, or what it sees has changed",
    "update/clip_fraction": "the clipping range, the learning rate or the number of epochs has changed",
}


class _Range(Memory):
    """The values of a key along the run, for later runs.

    Attributes:
      points: [reading, least, largest value] each, of `every` rows.
      open, rows: the point that is not complete, and how many rows it has.
      seen: how many values there were.
      row, reported: how many in a row were outside, and whether that was reported.
    """

    points: list[tuple[int, float, float]] = []
    every: int = 1
    open: tuple[int, float, float] | None = None
    rows: int = 0
    seen: int = 0
    row: int = 0
    reported: bool = False


class _About(Memory):
    """About the whole run: what `Earlier` says, whether a key was reported, which returns it has and the last ones."""

    kin: str = ""
    seed: int | None = None
    clock: str | None = None
    began: float = 0.0
    ended: float = 0.0
    reported: bool = False
    series: str = ""
    returns: list[tuple[float, float]] = []


class UnlikeEarlier(KeyedRule[_Range]):
    """Action values, an entropy or its coefficient, an explained variance or a clip fraction that no earlier run had.

    Compared with the five of the project that `below_earlier` compares with: "warn" when a value lies outside
    all that they had near this step, by `share` of the distance between their least and their largest and a tenth of
    the larger, in `rows` rows in a row (an explained variance: below it). Not while the mean of the last 20 returns is
    above that of each of them: it learns sooner. The first such key is reported; others after it are often its
    consequence, so they are notes. With fewer earlier runs it says nothing.

    Args:
      share: of the distance between the least and the largest.
      rows: how many rows in a row.
      keys: further keys to check.
    """

    remembers = _Range
    name, level = "unlike_earlier", "warn"
    source = "rollbook's own: measured on the healthy trainings of benchmarks/health, five earlier ones of each"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset(_CAUSES)
    needs_start = True
    """A keeper that cannot have the run's first rows does not ask it."""
    given: Sequence[object] = ()
    """Further earlier runs, in addition to those in the folder of the project."""

    def __init__(self, share: float = 1.0, rows: int = 2, keys: Sequence[str] = ()) -> None:
        if not share > 0 or rows < 1:
            raise BadInput(f"rule 'unlike_earlier': share={share!r} must be above 0, rows={rows!r} at least 1")
        super().__init__(keys)
        self._share, self._rows = share, rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._about = _About(kin(run), run.seed)
        self._window: list[tuple[float, float]] = []
        self._series = WhichReturns()
        self._series.open(run)
        self._earlier: tuple[EarlierValues, ...] | None = None
        self._curves: tuple[EarlierRun, ...] | None = None
        self._ranges: dict[tuple[str, int], tuple[float, float, float, float] | None] = {}

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), **self._about.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        own = self._about.kin
        self._about = wholly_remembered(_About, state)
        if self._about.kin != own:  # resumed with other settings: the values would belong to neither
            self._about.kin = ""
        self._series.choose(self._about.series)
        self._earlier = self._curves = None
        self._ranges = {}

    def left(self, run_id: str) -> EarlierValues | None:
        """The run as later ones know it; None if it logged none of the keys."""
        return EarlierValues(run_id, self.state()) if self.memory and self._about.kin else None

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        found: list[tuple[float, str, Found]] = []
        if self._about.clock is None or self._known():
            returns = self._series.returns(columns)
            new = zip(returns.times(), returns.values, strict=True) if returns is not None else ()
            self._window = [*self._about.returns, *new]
            self._about.returns, self._about.series = self._window[-BLOCK:], self._series.memory.series
        for key in self.watched(columns):
            column = columns.column(key)
            if self._about.clock is None:
                where = column.where(0)
                self._about.began, self._about.clock = where["time"], next(iter(where["clocks"]), "")
            if key in self.memory or len(self.memory) < _MOST_KEYS:
                is_finite = key not in columns.non_finite()
                found += [(column.where(it[0])["time"], key, it) for it in self._take(key, column, is_finite)]
                self._about.ended = now
        alerts: list[Alert] = []
        for _time, key, it in sorted(found) if found else ():
            alerts.append(self._alert("note" if self._about.reported else self.level, columns.column(key), *it))
            self._about.reported = True
        return alerts

    def _take(self, key: str, column: Column, is_finite: bool) -> Iterator[Found]:
        """The new values of a key."""
        memory = self.memory[key]
        values, clock = column.values, self._about.clock
        n, seen = len(values), memory.seen
        memory.seen += n
        steps: Sequence[int] = column.clock(clock) if clock else range(seen + 1, seen + n + 1)
        indices = range(n)
        if not (is_finite and are_known(steps)):
            indices = [i for i in indices if values[i] - values[i] == 0 and steps[i] >= 0]  # type: ignore[assignment]
            values, steps = [values[i] for i in indices], [steps[i] for i in indices]  # type: ignore[assignment]
        if not values:
            return
        if not memory.reported and self._known():
            yield from self._compare(key, memory, values, steps, indices, column)
        self._keep(memory, values, steps)

    def _known(self) -> Sequence[EarlierValues]:
        """Earlier runs, () before the first value."""
        about = self._about
        if self._earlier is None and about.clock is not None:
            known = find(EarlierValues, self.run, about.began, about.clock, self.given) if about.kin else ()
            self._earlier = known
        return self._earlier or ()

    def _is_better(self, step: int, time: float) -> bool:
        """Whether the mean of the last returns by then was above that of each earlier run."""
        last = [value for when, value in self._window if when <= time][-BLOCK:]
        about = self._about
        if self._curves is None:
            self._curves = find(EarlierRun, self.run, about.began, about.clock or "", self.given)
        then = [mean for run in self._curves if (mean := run.at(step)) is not None]
        return bool(last) and bool(then) and sum(last) / len(last) > max(then)

    def _keep(self, memory: _Range, values: Sequence[float], steps: Sequence[int]) -> None:
        """Make points, each the least and the largest of `every` rows; when there are many, merge neighbours."""
        first, n, points, every, rows = 0, len(values), memory.points, memory.every, memory.rows
        while first < n:
            end = first + every - rows
            some = values[first:end]
            low, high, step = min(some), max(some), steps[end - 1 if end < n else n - 1]
            if memory.open is not None:
                _step, least, most = memory.open
                low, high = least if least < low else low, most if most > high else high
            if end > n:
                memory.open, rows = (step, low, high), rows + n - first
                break
            if points and step < points[-1][0]:  # another process logs it too, or the clock was set back
                step = points[-1][0]
            points.append((step, low, high))
            memory.open, rows, first = None, 0, end
            if len(points) >= _MOST_POINTS:
                points[:] = [
                    (later[0], one[1] if one[1] < later[1] else later[1], one[2] if one[2] > later[2] else later[2])
                    for one, later in zip(points[::2], points[1::2], strict=True)
                ]
                every *= 2
        memory.every, memory.rows = every, rows

    def _compare(
        self,
        key: str,
        memory: _Range,
        values: Sequence[float],
        steps: Sequence[int],
        indices: Sequence[int],
        column: Column,
    ) -> Iterator[Found]:
        """Values outside the range of the earlier runs, cell by cell."""
        width = max(run.last for run in self._known()) / _CELLS
        first = 0
        while first < len(values):
            cell = int(steps[first] / width) if width > 0 else 0
            end = first + 1
            while end < len(values) and steps[end] >= cell * width and (width <= 0 or steps[end] < (cell + 1) * width):
                end += 1
            limits = self._limits(key, cell, width)
            some = values[first:end]
            if limits is None or (limits[0] <= min(some) and max(some) <= limits[1]):
                memory.row = 0
            else:
                for i in range(first, end):
                    memory.row = 0 if limits[0] <= values[i] <= limits[1] else memory.row + 1
                    if memory.row >= self._rows and not self._is_better(steps[i], column.where(indices[i])["time"]):
                        memory.reported = True
                        yield indices[i], *limits[2:]
                        return
            first = end

    def _limits(self, key: str, cell: int, width: float) -> tuple[float, float, float, float] | None:
        """(low, high, least, most): a value below low or above high is unusual; least and most are the extremes of the
        earlier runs. None if one of them has no value there."""
        if (key, cell) not in self._ranges:
            near = [run.range(key, (cell - _NEAR) * width, (cell + 1 + _NEAR) * width) for run in self._known()]
            known = [it for it in near if it is not None]
            limits = None
            if len(known) == len(near):
                low, high = min(least for least, _most in known), max(most for _least, most in known)
                room = self._share * (high - low) + _FLOOR * max(abs(low), abs(high))
                limits = (low - room, math.inf if meaning(key) in _BETTER else high + room, low, high)
            self._ranges[key, cell] = limits
        return self._ranges[key, cell]

    def _alert(self, level: str, column: Column, i: int, low: float, high: float) -> Alert:
        key, where, value = column.key, column.where(i), column.values[i]
        cause = _CAUSES.get(meaning(key), "the code, the settings or the environment has changed")
        return Alert(
            self.name,
            level,
            f"{key} is {value:.3g}{at_clock(where['clocks'])}; in {named(self._known())} it was {low:.3g} to "
            f"{high:.3g} there: usually {cause}; look at what `rollbook diff` says{listed(self._known())}",
            {"value": value, "low": low, "high": high, "earlier": [run.id for run in self._known()], **where},
            self.source,
            key,
            where["clocks"],
        )
