"""Action values no larger than the reward of one step."""

from __future__ import annotations

from bisect import bisect_right

from rollbook.errors import BadInput
from rollbook.health._config import number_in
from rollbook.health._keyed import KeyedRule, at_clock, meaning
from rollbook.health._memory import Memory, remembered
from rollbook.health._returns import progress
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns
    from rollbook.schema.records import RunInfo

_EPISODES, _RECENT, _SHORTEST, _SURE, _CLEAR = 20, 200, 8, 4.0, 0.5
"""Returns are clearly not 0 if their mean is beyond `_SURE` of its errors and `_CLEAR` of their standard deviations: of
rewards of 0 and 1, a fifth are 1."""

_LEAST, _MOST = -0.5, 2.5
"""Values between these multiples of a step's mean reward are suspicious; healthy trainings had at most ten in a row."""


class _Near(Memory):
    """For how many rows values were near the reward of one step, since which share of the run, and whether that was
    reported."""

    rows: int = 0
    since: float = 0.0
    reported: bool = False


class _Episodes(Memory):
    """The last returns; the steps and the number of all episodes."""

    returns: list[float] = []
    steps: float = 0.0
    n: int = 0


class ShortSighted(KeyedRule[_Near]):
    """Mean action values that stay about as large as the reward of one step: "warn".

    After `rows` rows in a row and `share` of the run's length (`init(total=…)`), or `steps` if that is unknown. Only
    where episodes have several steps, the configured gamma is 0.9 or more, and returns are clearly not 0 on average:
    then values that look ahead are many times larger.

    Args:
      rows: how many rows in a row.
      share: of the run's length: values that are only slow to rise leave this range before.
      steps: environment steps, if the length is unknown.
      keys: further keys to check.
    """

    remembers = _Near
    name = "short_sighted"
    source = "rollbook's own: values of a policy add up the rewards of 1 / (1 - gamma) steps"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset({"update/q_value", "update/q_value_2"})

    def __init__(self, rows: int = 18, share: float = 0.15, steps: int = 100_000, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1 or not 0 < share <= 1 or steps < 1:
            raise BadInput(
                f"rule 'short_sighted': rows={rows!r} and steps={steps!r} must be at least 1, share={share!r} lie "
                "between 0 and 1"
            )
        self._rows, self._share, self._steps = rows, share, steps

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        gamma = number_in(run.config, "gamma", "discount", "discount_factor")
        self._looks_ahead = gamma is None or gamma >= 0.9
        self._named_for: tuple[str, ...] | None = None
        self._names: tuple[str, ...] = ("", "")
        self._episodes = _Episodes()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "episodes": self._episodes.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._episodes = remembered(_Episodes, state.get("episodes", {}))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        if not self._looks_ahead:
            return ()
        watched = self.watched(columns)
        if self._keys_before != self._named_for:
            self._named_for = self._keys_before
            self._names = tuple(
                next((key for key in self._named_for if meaning(key) == name), "")
                for name in ("train/return", "train/length")
            )
        in_episodes = "return" in columns.keys("episodes")
        if not (watched or in_episodes or self._names[0]):
            return ()
        returns, lengths = (
            columns.of_episodes(cell) if in_episodes else columns.column(key) if key else None
            for cell, key in zip(("return", "length"), self._names, strict=True)
        )
        alerts: list[Alert] = []
        done, times = 0, returns.times() if returns is not None and watched else ()
        for key in watched[:1]:
            column = columns.column(key)
            for i, time in enumerate(column.times()):
                end = bisect_right(times, time)
                self._take(returns, lengths, done, end)
                done = max(done, end)
                alerts += self._judge(key, column, i)
        self._take(returns, lengths, done, len(returns) if returns is not None else 0)
        return alerts

    @staticmethod
    def _is_clear(some: Sequence[float], mean: float) -> bool:
        deviation = (sum((one - mean) ** 2 for one in some) / len(some)) ** 0.5
        return bool(abs(mean) > max(_SURE / len(some) ** 0.5, _CLEAR) * deviation)

    def _take(self, returns: Column | None, lengths: Column | None, first: int, end: int) -> None:
        if returns is None or lengths is None or len(lengths) != len(returns) or end <= first:
            return
        ended = self._episodes
        ended.returns = [*ended.returns, *returns.values[first:end]][-_RECENT:]
        ended.steps += sum(lengths.values[first:end])
        ended.n += end - first

    def _judge(self, key: str, column: Column, i: int) -> Iterator[Alert]:
        ended = self._episodes
        if ended.n < _EPISODES:
            return
        memory = self.memory[key]
        some, value = ended.returns, column.values[i]
        length, mean = ended.steps / ended.n, sum(some) / len(some)
        reward = mean / length if length else 0.0
        is_near = reward and length >= _SHORTEST and _LEAST < value / reward < _MOST
        if not (is_near and self._is_clear(some, mean)):
            memory.rows, memory.reported = 0, False
            return
        where = column.where(i)
        come = progress(self.run, where["clocks"])
        if come is None:
            come = self._share * where["clocks"].get("env_step", 0) / self._steps
        memory.since = memory.since if memory.rows else come
        memory.rows += 1
        if memory.reported or memory.rows < self._rows or come - memory.since < self._share:
            return
        memory.reported = True
        yield Alert(
            self.name,
            "warn",
            f"{key} is {value:.3g}{at_clock(where['clocks'])} and for {memory.rows} rows has not been beyond {_MOST:g} "
            f"times the reward of one step ({reward:.3g}), while episodes have {length:.3g} steps: values do not look "
            "ahead; usually gamma is 0 in the target, the target network is never updated, or the learning rate is too "
            "small",
            {"value": value, "reward_of_a_step": reward, "length": length, "rows": memory.rows, **where},
            self.source,
            key,
            where["clocks"],
        )
