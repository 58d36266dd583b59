"""Shared by rules that judge the returns of a run: which series they check, and blocks of returns."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Generic, TypeVar

from rollbook.health._config import configured_total, setting_in
from rollbook.health._keyed import Spellings, at_clock, in_order, meaning
from rollbook.health._memory import Memory, wholly_remembered
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns, Where

BLOCK, REWARD_BLOCK = 20, 5
"""Returns are judged by means of this many; rewards of sequence models, each a mean over answers, of fewer."""

_NONE = -1e308
RETURNS = frozenset({"train/return", "train/reward"})


class Returns(Memory):
    """The returns of a run so far.

    Attributes:
      series: which are checked: "episodes/return", or a key.
      rest: returns that fill no block yet.
      blocks: how many blocks were full.
      start, spread: mean and standard deviation of the first block.
      best, now: means of the best and of the last block.
      first_block: its returns.
    """

    series: str = ""
    rest: list[float] = []
    blocks: int = 0
    start: float = 0.0
    spread: float = 0.0
    best: float = _NONE
    now: float = 0.0
    first_block: list[float] = []


ReturnMemory = TypeVar("ReturnMemory", bound=Returns)


class ReturnRule(Generic[ReturnMemory]):
    """A rule that checks returns of training in blocks of `size`. Subclasses define `judge` or `take`.

    One series is checked: the table of episodes, or the first key that means a return (for sequence models: a reward).

    Attributes:
      size: how many returns a block has.
      memory: the returns so far, and what a subclass adds.
    """

    remembers: type[ReturnMemory]
    """The class of its memory."""
    name, level, source = "", "warn", ""
    tables: frozenset[str] = frozenset({"metrics", "episodes"})
    needs_start = True
    """Compares with the first rows of the run; a keeper that cannot have them does not ask it."""
    knows_self_play = False
    """Whether it judges a policy that plays against itself, too: half of the games are won, whatever is learned."""

    def __init__(self) -> None:
        self.memory = self.remembers()

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self.run = run
        self._keys: tuple[tuple[str, ...], str] = ((), "")
        self._spellings = Spellings()
        self.size = BLOCK
        self.memory = self.remembers()
        self._sides = Sides(run.config)

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**self.memory.plain(), "sides": self._sides.rows}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self.memory = wholly_remembered(self.remembers, state)
        self._sides.rows = int(state.get("sides", 0))
        self.choose(self.memory.series)

    def choose(self, series: str) -> None:
        """Check this series from now on; "": the first that comes."""
        self.memory.series = series
        self.size = REWARD_BLOCK if meaning(series) == "train/reward" else BLOCK

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        column = self.returns(columns)
        self._sides.take(columns)
        alerts = [] if column is None else in_order(list(self.take(column)))
        return alerts if self.knows_self_play or not self._sides.are_one_policy() else ()

    def returns(self, columns: Columns) -> Column | None:
        """The new returns, None for none."""
        keys = tuple(columns.keys("metrics"))
        if self.memory.series == "episodes/return":
            return columns.of_episodes("return")
        if keys != self._keys[0]:
            mine = self.memory.series
            means = [key for key in keys if (key == mine if mine else meaning(key) in RETURNS)]
            self._keys = (keys, means[0] if means else "")
        key = self._keys[1]
        if not self.memory.series:
            ended = columns.of_episodes("return")
            first = [] if ended is None else [(ended.where(0)["time"], "episodes/return")]
            first += [(columns.column(key).where(0)["time"], key)] if key else []
            if not first:
                return None
            self.choose(min(first)[1])
            return self.returns(columns)
        return columns.column(key) if key else None

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns, in whole blocks."""
        memory, values = self.memory, column.values
        rest = memory.rest
        size = self.size
        at = size - len(rest)
        if len(values) < at:
            yield from self.between(column, 0, len(values))
            rest.extend(values)
            return
        first = 0
        while at <= len(values):
            yield from self.between(column, first, at)
            block = [*rest, *values[first:at]] if rest else values[first:at]
            rest = []
            memory.now = mean = sum(block) / size
            memory.blocks += 1
            if mean - mean == 0:  # NaN belongs to another rule
                if memory.blocks == 1:
                    memory.start, memory.first_block = mean, list(block)
                    memory.spread = math.sqrt(sum((value - mean) ** 2 for value in block) / (size - 1))
                alert = self.judge(mean, block, column, at - 1)
                if alert is not None:
                    yield alert
                if mean > memory.best:
                    memory.best = mean
            first, at = at, at + size
        yield from self.between(column, first, len(values))
        memory.rest = list(values[first:])

    def between(self, column: Column, first: int, end: int) -> Iterable[tuple[float, Alert]]:
        """Returns at these positions of a column, before the block that they fill is judged. Returns what is wrong."""
        return ()

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """A block is full. Returns what is wrong. A rule that judges at other times defines `take` instead.

        Args:
          i: the position of its last return in the column.
        """
        return None

    def alert(self, words: str, where: Where, level: str = "", **evidence: object) -> tuple[float, Alert]:
        """An alert at a row, with the numbers of all blocks; the position comes before the words.

        Args:
          level: "" for that of the rule.
        """
        numbers = {"start": self.memory.start, "now": self.memory.now, "best": self.memory.best}
        kept = {name: value for name, value in numbers.items() if value != _NONE}
        return where["time"], Alert(
            self.name,
            level or self.level,
            ", ".join(filter(None, (at_clock(where["clocks"]).strip(), words))),
            {**kept, "block": self.size, **evidence, **where},
            self.source,
            self.memory.series,
            where["clocks"],
        )


_SELF_PLAY = ("self_play", "selfplay", "self-play")
_OFF = (False, 0, "", "none", "no", "false", "off")
_ZERO_SUM_ROWS = 5


class Sides:
    """Whether the run is self-play: its configuration says so (`self_play`, as ML-Agents calls it, too), or the returns
    of the sides, `return/black` and `return/white`, add up to zero in each row.

    Args:
      config: of the run.
    Attributes:
      rows: in how many rows they did; -1 once they did not.
    """

    __slots__ = ("_groups", "_is_set", "_keys", "rows")

    def __init__(self, config: Any) -> None:
        settings = (setting_in(config, name) for name in _SELF_PLAY)
        words = [setting.lower() if isinstance(setting, str) else setting for setting in settings]
        self._is_set = any(word is not None and word not in _OFF for word in words)
        self._keys: tuple[str, ...] = ()
        self._groups: list[list[str]] = []
        self.rows = 0

    def are_one_policy(self) -> bool:
        """Whether it is."""
        return self._is_set or self.rows >= _ZERO_SUM_ROWS

    def take(self, columns: Columns) -> None:
        """New rows."""
        keys = tuple(columns.keys("metrics"))
        if keys != self._keys:
            self._keys, below = keys, dict[str, list[str]]()
            for key in keys:
                stem, slash, _side = key.rpartition("/")
                if slash and ("return" in stem.lower() or "reward" in stem.lower()) and not stem.startswith("eval"):
                    below.setdefault(stem, []).append(key)
            self._groups = [own for own in below.values() if len(own) > 1]
        for own in self._groups if self.rows >= 0 else ():
            sides = [columns.column(key).values for key in own]
            if any(len(side) != len(sides[0]) for side in sides):
                continue
            for values in zip(*sides, strict=True):
                most = max(map(abs, values))
                if abs(sum(values)) > 1e-6 * most:
                    self.rows = -1
                    return
                self.rows += most > 0


_STAGE = re.compile(
    r"(^|[/_. -])(curriculum|lessons?|terrain_?levels?|difficulty|task_?level)([/_. -]|$)", re.IGNORECASE
)
_RATING = re.compile(r"(^|[/_. -])(elo|trueskill)([/_. -]|$)", re.IGNORECASE)
_STEP = 0.05


class Steps:
    """When a key of the run rose to a new height, by more than a twentieth of it: the stage of a curriculum, a rating.

    Attributes:
      highest: key -> its largest value so far; rose: when one of them rose, in seconds, the last times.
    """

    __slots__ = ("_chosen", "_names", "highest", "rose")

    def __init__(self, names: re.Pattern[str]) -> None:
        self._names, self._chosen = names, dict[str, bool]()
        self.highest: dict[str, float] = {}
        self.rose: list[float] = []

    def plain(self) -> list[Any]:
        """As JSON data, for `set_plain`."""
        return [self.highest, self.rose]

    def set_plain(self, data: Sequence[Any]) -> None:
        """Remember what `plain` returned."""
        self.highest, self.rose = (dict(data[0]), list(data[1])) if data else ({}, [])

    def take(self, columns: Columns) -> None:
        """New rows."""
        for key in columns.keys("metrics"):
            chosen = self._chosen.get(key)
            if chosen is None:
                chosen = self._chosen[key] = self._names.search(key) is not None
            if chosen:
                self._take(columns.column(key))

    def _take(self, column: Column) -> None:
        values = column.values
        highest = self.highest.get(column.key, values[0])
        if max(values) > highest + _STEP * abs(highest):
            for value, time in zip(values, column.times(), strict=True):
                if value > highest + _STEP * abs(highest):
                    highest = value
                    self.rose = [*self.rose, time][-_MOST_STEPS:]
        self.highest[column.key] = highest


_MOST_STEPS = 1_000


def stages() -> Steps:
    """The stages of a curriculum: when it made the task harder."""
    return Steps(_STAGE)


def advances() -> Steps:
    """What shows that a policy gets better though its returns do not: stages and ratings such as Elo."""
    return Steps(re.compile(f"{_STAGE.pattern}|{_RATING.pattern}", re.IGNORECASE))


class WhichReturns(ReturnRule[Returns]):
    """Only says which series of returns a run has; see `ReturnRule.returns`."""

    remembers = Returns


SOLVED = 0.02
"""The last returns are all this near the best, as a share of the distance between the worst and the best: the task is
solved."""


class BestReturns:
    """Whether the returns are at their best, at any time of the newest rows.

    Attributes:
      low, high: the least and the largest return before the newest rows.
      last: the last ones, with their times.
    """

    __slots__ = ("_new", "high", "last", "low")

    def __init__(self, low: float = math.inf, high: float = -math.inf, last: Sequence[Sequence[float]] = ()) -> None:
        self.low, self.high, self.last = low, high, [(time, value) for time, value in last]
        self._new: list[tuple[float, float]] = []

    def plain(self) -> list[Any]:
        """As JSON data, from which `BestReturns(*plain)` makes it again."""
        self.take(())
        return [self.low, self.high, self.last] if self.last else []

    def take(self, new: Iterable[tuple[float, float]]) -> None:
        """The returns of the next rows."""
        if self._new:
            values = [value for _time, value in self._new]
            self.low, self.high = min(self.low, *values), max(self.high, *values)
            self.last = [*self.last, *self._new][-BLOCK:]
        self._new = [(time, value) for time, value in new if value - value == 0]

    def are_best(self, time: float) -> bool:
        """Whether the last ones by then were all about as good as the best so far."""
        some = [*self.last, *((when, value) for when, value in self._new if when <= time)]
        if len(some) < BLOCK:
            return False
        values = [value for _time, value in some]
        low, high = min(self.low, *values), max(self.high, *values)
        return min(values[-BLOCK:]) >= high - SOLVED * (high - low)


def above(later: Sequence[float], earlier: Sequence[float]) -> float:
    """How far later returns lie above earlier ones by rank, in standard errors (Mann and Whitney 1947).

    A mean and its error mislead where a few returns are far from the others, as at the start of many tasks. Ties make
    the error smaller: of returns that are 0 or 1 nearly all are equal.
    """
    n, m = len(later), len(earlier)
    wins = sum([(value > other) - (value < other) for value in later for other in earlier])
    ties = Counter([*later, *earlier]).values()
    free = n + m + 1 - sum(tied**3 - tied for tied in ties) / max(1, (n + m) * (n + m - 1))
    return wins / math.sqrt(n * m * free / 3) if n and m and free > 0 else 0.0


def rise(values: Sequence[float]) -> float:
    """How surely values rise in their order, in standard errors (Mann 1945, Kendall)."""
    n = len(values)
    wins = sum([(later > earlier) - (later < earlier) for i, earlier in enumerate(values) for later in values[i + 1 :]])
    return wins / math.sqrt(n * (n - 1) * (2 * n + 5) / 18) if n > 1 else 0.0


def progress(run: RunInfo, clocks: Mapping[str, int]) -> float | None:
    """The progress of a run, from 0 to 1; None if its length is not known (`init(total=…)`, or a setting that says
    it)."""
    total = run.total or configured_total(run.config)
    shares = [clocks[clock] / end for clock, end in total.items() if clock in clocks and end > 0]
    return max(shares, default=None)
