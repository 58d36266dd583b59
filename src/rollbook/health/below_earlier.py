"""Returns far below those of earlier runs with the same settings."""

from __future__ import annotations

import math

import msgspec

from rollbook.errors import BadInput
from rollbook.health._earlier import FEWEST, OF_GAIN, EarlierRun, find, kin, listed, named, widest
from rollbook.health._returns import BLOCK, ReturnRule, Returns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns
    from rollbook.schema.records import Alert, RunInfo

_EVERY, _MOST_POINTS = 5, 64
"""Judge at every fifth return, by the mean of the last four fives; how many points of the curve to save for later
runs."""

_ERRORS = 4.0
"""The mean of the last returns must be below by at least this many standard errors."""


class _Curve(Returns):
    """Also a curve of the returns, for later runs.

    Attributes:
      kin, seed: see `Earlier`; `kin` is "" after a resume with other settings.
      clock, began, ended: the clock of the curve, and the times of the first and the last returns.
      seen: how many returns there were.
      last: the last ones, for the next judgement; `sums`: of the last three fives.
      first, other: the first return, and the reading at the first one that was not like it.
      points: [reading, mean] each, one for every `every` judgements; `skipped`: judgements since the last; `newest`:
        the newest point.
      low, reported: how many judgements in a row were low, and whether this was reported.
    """

    kin: str = ""
    seed: int | None = None
    clock: str = ""
    began: float = 0.0
    ended: float = 0.0
    seen: int = 0
    last: list[float] = []
    first: float | None = None
    sums: list[float] = msgspec.field(default_factory=lambda: [0.0] * 3)
    other: int | None = None
    points: list[tuple[int, float]] = []
    every: int = 1
    skipped: int = 0
    newest: tuple[int, float] | None = None
    low: int = 0
    reported: bool = False


class BelowEarlier(ReturnRule[_Curve]):
    """Returns far below those that earlier runs of the same settings had at the same step.

    The mean of the last 20 returns is compared with that of five earlier runs of the project that have the same
    configuration (seed aside), length and name, finished, and had no alert above a note: those with the tag "good",
    then the newest that are not far below the best five. "warn" when it is below
    the lowest that any of the five had from this step on, by `share` of the largest distance that the five ever had at
    one step, 35 % of their gain (that of the one that gained least) and four standard errors, in `rows` judgements in a
    row, one each five returns. With fewer earlier runs it says nothing.

    A change that is meant to lower the return is reported, too, and each run after it: put the change into the
    configuration, or `rules=["-below_earlier"]`.

    Args:
      share: of the largest distance between the lowest and the highest earlier run.
      rows: how many judgements in a row.
    """

    remembers = _Curve
    name = "below_earlier"
    knows_self_play = True
    source = "rollbook's own: measured on the healthy trainings of benchmarks/health, five earlier ones of each"
    given: Sequence[EarlierRun] = ()
    """Further earlier runs, in addition to those in the folder of the project."""

    def __init__(self, share: float = 0.65, rows: int = 1) -> None:
        if not share > 0 or rows < 1:
            raise BadInput(f"rule 'below_earlier': share={share!r} must be above 0, rows={rows!r} at least 1")
        super().__init__()
        self._share, self._rows = share, rows
        self._earlier: tuple[EarlierRun, ...] | None = None
        self._width = 0.0

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._earlier = None
        self.memory.kin, self.memory.seed = kin(run), run.seed

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        own = self.memory.kin
        super().set_state(state)
        self._earlier = None
        if self.memory.kin != own:  # resumed with other settings: the curve would belong to neither
            self.memory.kin = ""

    def left(self, run_id: str) -> EarlierRun | None:
        """The run as later ones know it; None if it had too few returns."""
        return EarlierRun(run_id, self.memory.plain()) if self.memory.newest and self.memory.kin else None

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        self._now = now
        return super().look(columns, now)

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns; each fifth is judged with those before."""
        memory, values = self.memory, column.values
        if not memory.seen:
            where = column.where(0)
            memory.began, memory.clock, memory.first = where["time"], next(iter(where["clocks"]), ""), values[0]
        first_return = memory.first
        if memory.other is None and first_return is not None and values.count(first_return) < len(values):
            memory.other = self._reading(column, next(i for i, value in enumerate(values) if value != first_return))
        before, last = memory.seen, memory.last
        memory.seen, memory.ended = before + len(values), self._now
        window, back = [*last, *values], len(last) - before
        memory.last = window[1 - BLOCK :]
        first = before + _EVERY - before % _EVERY  # how many returns there are at the next judgement
        if first <= memory.seen:
            yield from self._judge_each(range(first, memory.seen + 1, _EVERY), window, back, column)

    def _reading(self, column: Column, i: int) -> int | None:
        """The reading of the curve's clock at a return; without a clock, the number of the return."""
        clock = self.memory.clock
        reading: int | None = column.where(i)["clocks"].get(clock) if clock else self.memory.seen + i + 1
        return reading

    def _judge_each(
        self, ends: range, window: Sequence[float], back: int, column: Column
    ) -> Iterator[tuple[float, Alert]]:
        """The means up to these returns. Most runs have no earlier ones, so next to nothing is called for each."""
        memory = self.memory
        before = memory.seen - len(column.values)
        readings: Sequence[int] = column.clock(memory.clock) if memory.clock else range(before + 1, ends.stop)
        s, t, u = memory.sums
        for end in ends:
            v, w, x, y, z = window[end + back - _EVERY : end + back]
            r, s, t, u = s, t, u, v + w + x + y + z
            mean, step = (r + s + t + u) / BLOCK, readings[end - before - 1]
            if end < BLOCK or mean - mean != 0 or step < 0:
                continue
            memory.now = mean
            if mean > memory.best:
                memory.best = mean
            if memory.newest is None:
                memory.start = mean
            if memory.newest is None or step > memory.newest[0]:
                memory.newest = step, mean
                memory.skipped += 1
                if memory.skipped >= memory.every:
                    self._keep(step, mean)
            if self._earlier is None:
                self._earlier = find(EarlierRun, self.run, memory.began, memory.clock, self.given) if memory.kin else ()
                self._width = widest(self._earlier)
            if self._earlier:
                some = window[end + back - BLOCK : end + back]
                yield from self._compare(step, mean, some, column, end - before - 1)
        memory.sums = [s, t, u]

    def _keep(self, step: int, mean: float) -> None:
        """A point of the curve; when there are many, each second one goes."""
        memory = self.memory
        memory.skipped = 0
        memory.points.append((step, mean))
        if len(memory.points) >= _MOST_POINTS:
            del memory.points[::2]
            memory.every *= 2

    def _compare(
        self, step: int, mean: float, some: Sequence[float], column: Column, i: int
    ) -> Iterator[tuple[float, Alert]]:
        memory, earlier = self.memory, self._earlier or ()
        then = [value for run in earlier if (value := run.at(step)) is not None]
        if len(then) < FEWEST:
            return
        low = min(run.least_from(step) for run in earlier)
        gain = min(run.gain for run in earlier)
        limit = low - max(self._share * self._width, OF_GAIN * gain)
        is_low = mean < limit and low - mean > _ERRORS * max(_error(some, mean), 1e-12 * abs(low))
        memory.low = memory.low + 1 if is_low else 0
        if mean >= low:
            memory.reported = False
        if memory.low >= self._rows and not memory.reported:
            memory.reported = True
            yield self.alert(
                f"the last {BLOCK} returns are {mean:.4g} on average; those of {named(earlier)} were {low:.4g} or more "
                "from there on: usually the code or the environment has changed since; look at what `rollbook diff` "
                f"says, at what the policy sees, and at the sign of its loss{listed(earlier)}",
                column.where(i),
                earlier={run.id: value for run, value in zip(earlier, then, strict=True)},
                gain=gain,
                width=self._width,
                block=BLOCK,
                limit=limit,
            )


def _error(some: Sequence[float], mean: float) -> float:
    """The standard error of a mean."""
    return math.dist(some, [mean] * len(some)) / math.sqrt(len(some) * (len(some) - 1))
