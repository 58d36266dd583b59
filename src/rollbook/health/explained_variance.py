"""A value function that predicts no better than a constant."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Last, Recent
from rollbook.health._returns import BestReturns, WhichReturns
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

_SAME = 1e-6


class _Lows(Recent):
    """How long values have been low.

    Attributes:
      begun: limit -> the clocks of the first row below it, and how many rows there were since.
      reported_limits: the limits that were reported.
      same: how many updates in a row were 0 except for rounding.
    """

    begun: dict[str, tuple[dict[str, int], int]] = {}
    reported_limits: list[str] = []
    same: int = 0


class ExplainedVariance(KeyedRule[_Lows]):
    """A value function whose explained variance stays at or below 0: worse than predicting one number for all.

    "note" when `rows` updates in a row are at or below 0; where returns hardly vary, that means little. "fail" when
    they are below -0.5, or twice as many below -0.05, over at least `steps` environment steps (or a tenth of a shorter
    run): over the few steps of one small update the number says nothing. NaN (no variance to explain) does not count.
    "fail" also when `blind` updates in a row are 0 except for rounding: then every state got the same value. Nothing is
    reported while the last 20 returns are all as good as the best: where a task is solved, returns hardly differ.

    Args:
      rows: how many updates in a row.
      steps: over how many environment steps, if that clock is known.
      skip: this many first updates are only judged by `blind`.
      blind: this many updates in a row may not be within a millionth of 0.
      keys: further keys to check.
    """

    remembers = _Lows
    name = "explained_variance"
    source = "Stable-Baselines3's documentation (0: as good as zero); Schulman (negative: over-fit or noisy)"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset({"update/explained_variance"})

    def __init__(
        self, rows: int = 10, steps: int = 10_000, skip: int = 20, blind: int = 5, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(keys)
        if rows < 1 or skip < 0 or steps < 0 or blind < 1:
            raise BadInput(
                f"rule 'explained_variance': rows={rows!r} and blind={blind!r} must be at least 1, skip and steps not "
                "negative"
            )
        self._rows, self._steps, self._skip, self._blind = rows, steps, skip, blind

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._series, self._returns = WhichReturns(), BestReturns()
        self._series.open(run)

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "series": self._series.memory.series, "returns": self._returns.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._series.choose(state.get("series", ""))
        self._returns = BestReturns(*state.get("returns", ()))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        returns = self._series.returns(columns)
        self._returns.take(zip(returns.times(), returns.values, strict=True) if returns is not None else ())
        return super().look(columns, now)

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, self._rows), column.values
        indices: Sequence[int] = range(len(values))
        total, lowest = sum(values), min(values)
        if total != total:
            indices = [i for i in indices if values[i] == values[i]]
            lowest = min((values[i] for i in indices), default=1.0)
        if lowest > _SAME and indices:
            memory.same = 0
        else:
            for n, i in enumerate(indices):
                memory.same = memory.same + 1 if abs(values[i]) <= _SAME else 0
                if memory.same == self._blind and not self._is_solved(column, i):
                    yield self._alert_blind(key, last.up_to(column, indices, n + 1))
        if lowest > 0 and indices:
            memory.begun, memory.reported_limits = {}, []
        else:
            for n in range(max(0, self._skip - last.seen), len(indices)):
                i = indices[n]
                value = values[i]
                if value > 0 and not memory.begun and not memory.reported_limits:
                    continue
                found = [
                    (limit, rows)
                    for limit, rows in ((-0.5, self._rows), (-0.05, 2 * self._rows), (0.0, self._rows))
                    if self._stays(memory, f"{limit:g}", value < limit or value == limit == 0, rows, column, i)
                ]
                if found:
                    yield self._alert(key, *found[0], last.up_to(column, indices, n + 1))
        last.take_all(column, indices)

    def _alert(self, key: str, limit: float, rows: int, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        return where["time"], Alert(
            self.name,
            "fail" if limit <= -0.5 else "note",
            f"{key} has been {f'below {limit:g}' if limit else 'at or below 0'} in {rows} updates in a row, now "
            f"{values[-1]:.3g}{at_clock(where['clocks'])}: the value function predicts worse than a constant; "
            "look at the scale of the returns, at its learning rate, and whether it sees the state",
            last.evidence(limit=limit),
            self.source,
            key,
            where["clocks"],
        )

    def _alert_blind(self, key: str, last: Last) -> tuple[float, Alert]:
        where = last.where()
        return where["time"], Alert(
            self.name,
            "fail",
            f"{key} has been 0 but for rounding in {self._blind} updates in a row{at_clock(where['clocks'])}: the "
            "value function gives every state one value; usually observations are constant, or do not reach the "
            "network",
            last.evidence(limit=_SAME, rows=self._blind),
            self.source,
            key,
            where["clocks"],
        )

    def _stays(self, memory: _Lows, limit: str, is_low: bool, rows: int, column: Column, i: int) -> bool:
        """Whether a value has just now been that low for long enough."""
        begun, reported = memory.begun, memory.reported_limits
        if not is_low:
            if limit in begun:
                del begun[limit]
            if limit in reported:
                reported.remove(limit)
            return False
        clocks, n = begun[limit] if limit in begun else (column.where(i)["clocks"], 0)
        begun[limit] = clocks, n + 1
        if n + 1 < rows or limit in reported:
            return False
        total = self.run.total.get("env_step", 0)
        steps = min(self._steps, 0.1 * total) if total else self._steps
        if "env_step" in clocks and column.where(i)["clocks"].get("env_step", 0) - clocks["env_step"] < steps:
            return False
        if self._is_solved(column, i):
            return False
        reported.append(limit)
        return True

    def _is_solved(self, column: Column, i: int) -> bool:
        return self._returns.are_best(column.where(i)["time"])
