"""Action values beyond what the rewards can add up to."""

from __future__ import annotations

from bisect import bisect_right

from rollbook.errors import BadInput
from rollbook.health._config import number_in
from rollbook.health._keyed import KeyedRule, at_clock, in_order, meaning
from rollbook.health._memory import Last, Memory, Recent, remembered
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns


_ROOM = 0.03
"""How far beyond a bound of 0, as a share of the other bound, values may be: networks begin near 0."""

_AWAY, _LITTLE = 5, 0.003
"""Values of the wrong sign count if they move away from 0 for `_AWAY` rows in a row (not just at the beginning), beyond
`_LITTLE` of the other bound."""

_ENTROPIES = 5
"""The entropy that is part of soft values is the largest of this many last rows."""

_BLOCK, _RECENT, _LEFT, _AS_LARGE, _BEGUN, _GROWN = 5, 20, 0.6, 0.9, 0.03, 3.0
"""Values have fallen without a reason when the mean of _BLOCK rows is below _LEFT of the largest, while the mean of
the last _RECENT returns is _AS_LARGE as then. Smaller values than _BEGUN of the mean return, or than _GROWN times the
first, do not count. On healthy trainings 0.71 was the least that was left."""


def _is_alpha(key: str) -> bool:
    return meaning(key) == "update/entropy_coefficient"


class _Values(Recent):
    """The mean action values of a key.

    Attributes:
      above, away: how many rows in a row were beyond the bounds, and moved away from 0 with the wrong sign.
      before: the last value.
      rest, n: the last values, one fewer than a block, and how many there were in all.
      first: the mean of the first block.
      top, gain: the largest mean of a block, and the mean return then.
      fell: whether a fall was reported.
    """

    above: int = 0
    away: int = 0
    before: float = 0.0
    rest: list[float] = []
    n: int = 0
    first: float | None = None
    top: float = 0.0
    gain: float = 0.0
    fell: bool = False


class _Bounds(Memory):
    """What bounds the values.

    Attributes:
      n: how many episodes have ended.
      low, high: the lowest and the highest return, 0 included.
      length: of the longest episode.
      soft: whether an entropy is part of the values.
      entropies: what the last entropies add to a discounted sum.
      recent: the last returns.
    """

    n: int = 0
    low: float = 0.0
    high: float = 0.0
    length: float = 0.0
    soft: bool = False
    entropies: list[float] = []
    recent: list[float] = []


class QBound(KeyedRule[_Values]):
    """Mean action values beyond `times` what the returns so far allow, or of the wrong sign: "warn" after `rows` rows.

    "warn" also when they have the wrong sign and move away from 0 in five rows in a row, and when they have lost 40 %
    of their largest mean while returns are as large as then.

    No discounted sum is larger than the largest return of an episode, or, if episodes are cut off, than the largest
    reward a step / (1 - gamma). Both are taken from the episodes so far (with an episode's mean reward instead of the
    largest one), so `times` leaves a margin.

    Args:
      times: how far beyond.
      rows: how many rows in a row.
      episodes: this many must have ended.
      keys: further keys to check.
    """

    remembers = _Values
    name = "q_bound"
    source = "van Hasselt and others 2018 (soft divergence: beyond r_max / (1 - gamma)); the factor is rollbook's own"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset({"update/q_value", "update/q_value_2"})

    def __init__(self, times: float = 5.0, rows: int = 3, episodes: int = 20, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not times >= 1 or rows < 1 or episodes < 1:
            raise BadInput(
                f"rule 'q_bound': times={times!r}, rows={rows!r} and episodes={episodes!r} must be at least 1"
            )
        self._times, self._rows, self._episodes = times, rows, episodes

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        gamma = number_in(run.config, "gamma", "discount", "discount_factor")
        self._horizon = 1 / (1 - min(gamma if gamma is not None else 0.99, 0.999))
        self._looked_at: tuple[str, ...] = ()
        self._seen = _Bounds()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "returns": self._seen.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._seen = remembered(_Bounds, state["returns"])

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        keys = tuple(columns.keys("metrics"))
        if keys != self._looked_at:
            self._looked_at = keys
            self._seen.soft = self._seen.soft or any(map(_is_alpha, keys))
        returns, lengths = self._of(columns, "train/return", "return"), self._of(columns, "train/length", "length")
        weights, entropies = self._soft(columns)
        fallen: list[tuple[float, Alert]] = []
        watched = [columns.column(key) for key in self.watched(columns)]
        begins = self._seen.n < self._episodes <= self._seen.n + (len(returns) if returns is not None else 0)
        for column in watched:
            fallen += self._falls(column, returns)
        if returns is not None:
            self._seen.recent = [*self._seen.recent, *returns.values[-_RECENT:]][-_RECENT:]
        if watched and any(
            begins
            or self.memory[column.key].above
            or self._is_odd(max(column.values))
            or self._is_odd(min(column.values))
            for column in watched
        ):
            return in_order([*fallen, *self._in_time(watched, returns, lengths, weights, entropies)])
        for column in watched:
            memory = self.memory[column.key]
            Last(memory, self._rows).take_all(column, range(len(column)))
            memory.away, memory.before = 0, column.values[-1]
        if weights is not None and entropies is not None:
            for i in range(max(0, len(weights) - _ENTROPIES), len(weights)):
                self._take_entropy(weights.values[i], entropies.values[i])
        if returns is not None:
            self._take(returns, 0, len(returns))
        if lengths is not None:
            self._seen.length = max(self._seen.length, max(lengths.values))
        return in_order(fallen)

    def _falls(self, column: Column, returns: Column | None) -> Iterator[tuple[float, Alert]]:
        """Whether values fall while returns do not; before the returns are taken."""
        memory, values = self.memory[column.key], column.values
        some = [*memory.rest, *values]
        before = len(memory.rest)
        first = -(memory.n + 1) % _BLOCK
        step = _BLOCK if self._stays_large(memory.top, some) else 1
        times, ends = (returns.times() if returns is not None else []), column.times()
        for i in range(first if step == _BLOCK else 0, len(values), step):
            if memory.n + i + 1 < _BLOCK:
                continue
            end = bisect_right(times, ends[i])
            gained = returns.values[max(0, end - _RECENT) : end] if returns is not None else ()
            newest = [*self._seen.recent, *gained][-_RECENT:]
            if len(newest) == _RECENT:
                mean = sum(some[before + i + 1 - _BLOCK : before + i + 1]) / _BLOCK
                yield from self._judge_block(memory, mean, newest, column, i)
        memory.rest, memory.n = some[1 - _BLOCK :], memory.n + len(values)

    @staticmethod
    def _stays_large(top: float, some: Sequence[float]) -> bool:
        """Whether no mean of these values can be a fall; then it is enough to look at each block for the largest."""
        low, high = min(some), max(some)
        return low >= _LEFT * max(high, top) > 0 or high <= _LEFT * min(low, top) < 0

    def _judge_block(
        self, memory: _Values, mean: float, returns: Sequence[float], column: Column, i: int
    ) -> Iterator[tuple[float, Alert]]:
        gain = sum(returns) / len(returns)
        is_block = (memory.n + i + 1) % _BLOCK == 0
        if is_block and memory.first is None:
            memory.first = mean
        if abs(mean) > abs(memory.top):
            if is_block:
                memory.top, memory.gain = mean, gain
            return
        top, before = memory.top, memory.gain
        if (
            top
            and mean / top < _LEFT
            and not memory.fell
            and top * gain > 0
            and abs(gain) >= _AS_LARGE * abs(before)
            and abs(top) > max(_BEGUN * abs(gain), _GROWN * abs(memory.first or 0.0))
            and (min(returns) >= 0 or max(returns) <= 0)
        ):
            memory.fell = True
            where = column.where(i)
            yield (
                where["time"],
                Alert(
                    self.name,
                    "warn",
                    f"{column.key} has gone from {top:.3g} to {mean:.3g}{at_clock(where['clocks'])}, while returns are "
                    f"{gain:.4g} after {before:.4g}: values no longer add up the rewards; usually a sign, gamma or the "
                    "target network in the target has changed",
                    {"largest": top, "value": mean, "return_then": before, "return_now": gain, "left": _LEFT, **where},
                    self.source,
                    column.key,
                    where["clocks"],
                ),
            )

    def _of(self, columns: Columns, name: str, cell: str) -> Column | None:
        if cell in columns.keys("episodes"):
            return columns.column(cell, "episodes")
        key = next((key for key in columns.keys("metrics") if meaning(key) == name), None)
        return columns.column(key) if key is not None else None

    def _soft(self, columns: Columns) -> tuple[Column | None, Column | None]:
        """Weights of the entropy and entropies of the same rows, for values that include an entropy."""
        if not self._seen.soft:
            return None, None
        found = [
            next((columns.column(key) for key in columns.keys("metrics") if meaning(key) == name), None)
            for name in ("update/entropy_coefficient", "update/entropy")
        ]
        weights, entropies = found
        if weights is None or entropies is None or len(weights) != len(entropies):
            return None, None
        return weights, entropies

    def _take_entropy(self, weight: float, nats: float) -> None:
        """Note what an entropy adds to a discounted sum."""
        some = self._seen.entropies
        some.append(max(0.0, weight * nats) * self._horizon)
        del some[:-_ENTROPIES]

    def _is_odd(self, value: float) -> bool:
        return self._is_beyond(value) or self._has_wrong_sign(value)

    def _has_wrong_sign(self, value: float) -> bool:
        """Whether a value lies beyond 0 where all returns so far lie on the other side."""
        seen = self._seen
        if seen.soft or seen.n < self._episodes:
            return False
        low, high = seen.low, seen.high
        return (low == 0 < high and value < -_LITTLE * high) or (high == 0 > low and value > -_LITTLE * low)

    def _is_beyond(self, value: float) -> bool:
        seen = self._seen
        if seen.n < self._episodes or not seen.high > seen.low:
            return False
        low, high = self._bounds()
        most = max(high, -low)
        more = 0.0
        if seen.entropies:
            more = max(seen.entropies)
        elif seen.soft:  # an entropy of unknown size is part of the values: their sign means nothing
            low, high = -most, most
        return not low * self._times - _ROOM * most - more <= value <= high * self._times + _ROOM * most + more

    def _bounds(self) -> tuple[float, float]:
        """The smallest and the largest discounted sum that the returns so far allow."""
        factor = max(1.0, self._horizon / max(self._seen.length, 1.0))
        return self._seen.low * factor, self._seen.high * factor

    def _take(self, returns: Column, first: int, end: int) -> None:
        some = returns.values[first:end]
        if some:
            low, high = min(some), max(some)
            if low - low == high - high == 0:
                self._seen.low, self._seen.high = min(self._seen.low, low), max(self._seen.high, high)
            self._seen.n += len(some)

    def _in_time(
        self,
        watched: list[Column],
        returns: Column | None,
        lengths: Column | None,
        weights: Column | None,
        entropies: Column | None,
    ) -> Iterator[tuple[float, Alert]]:
        events = [(time, 1, n, i) for n, column in enumerate(watched) for i, time in enumerate(column.times())]
        if returns is not None:
            events += [(time, 0, 0, i) for i, time in enumerate(returns.times())]
        if lengths is not None:
            events += [(time, 0, 1, i) for i, time in enumerate(lengths.times())]
        if weights is not None:
            events += [(time, 0, 2, i) for i, time in enumerate(weights.times())]
        for _time, is_value, n, i in sorted(events):
            if not is_value:
                if n == 0 and returns is not None:
                    self._take(returns, i, i + 1)
                elif n == 2 and weights is not None and entropies is not None:
                    self._take_entropy(weights.values[i], entropies.values[i])
                elif lengths is not None:
                    self._seen.length = max(self._seen.length, lengths.values[i])
                continue
            column = watched[n]
            memory, value = self.memory[column.key], column.values[i]
            last = Last(memory, self._rows)
            last.take(value, column.where(i))
            moves_away = self._has_wrong_sign(value) and abs(value) > abs(memory.before)
            memory.above = memory.above + 1 if self._is_beyond(value) else 0
            memory.away = memory.away + 1 if moves_away else 0
            memory.before = value
            if memory.above == self._rows or (memory.away == _AWAY and memory.above < self._rows):
                yield self._alert(column.key, last)

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        low, high = self._bounds()
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{at_clock(where['clocks'])}, where returns so far allow about {low:.3g} to "
            f"{high:.3g}: values run away or have the wrong sign; usually gamma, a target network that follows too "
            "closely, a learning rate that is too high, or a sign in the target",
            last.evidence(low=low, high=high, times=self._times),
            self.source,
            key,
            where["clocks"],
        )
