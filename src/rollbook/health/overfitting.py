"""A supervised training that learns its data by heart."""

from __future__ import annotations

import math
import re
from typing import Any

from rollbook.errors import BadInput
from rollbook.health._keyed import OF_RL, KeyedRule, at_clock, in_order, meaning
from rollbook.health._memory import Memory
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns

_EVALUATED = re.compile(r"(eval|evaluation|val|valid|validation|test)[/_]([^/]+[/_])?loss(_epoch)?", re.IGNORECASE)
"""transformers and TRL: eval_loss, eval/loss, eval_NAME_loss; Lightning and Keras: val_loss, val/loss."""
_TRAINED = re.compile(r"(train|training)[/_]loss(_epoch)?", re.IGNORECASE)


class _Evaluated(Memory):
    """The evaluations of one key.

    Attributes:
      best: the lowest loss so far, and where (`at`) it was.
      trained: the mean training loss before the best one; None if unknown.
      recovered: how far an evaluation ever lay above the best one before a better one came.
      risen: how far one has lain above the best one since.
      above: how many in a row count as risen.
      reported: whether that was reported.
      n, total: number and sum of the training losses at the last evaluation.
    """

    best: float = math.inf
    at: dict[str, int] = {}
    trained: float | None = None
    recovered: float = 0.0
    risen: float = 0.0
    above: int = 0
    reported: bool = False
    n: int = 0
    total: float = 0.0


class Overfitting(KeyedRule[_Evaluated]):
    """The loss of evaluations rises while that of training falls: "warn" after `rows` evaluations in a row.

    An evaluation counts if its loss is above the lowest one by more than `share` (the generalization loss of Prechelt
    1998, "Early stopping, but when?", who stops at 5 %, and after three rises in a row), by more than it ever was
    before a better one came, and if the training loss since the evaluation before is below what it was at the lowest.
    Not in trainings with returns, rewards, values or a policy's loss, whose losses mean little by their size.

    Args:
      share: of the lowest loss.
      rows: how many evaluations in a row.
      keys: further losses of evaluations.
    """

    remembers = _Evaluated
    name = "overfitting"
    source = "Prechelt 1998, Early Stopping: generalization loss above 5 %, in three evaluations in a row"

    def __init__(self, share: float = 0.05, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not share > 0 or rows < 1:
            raise BadInput(f"rule 'overfitting': share={share!r} must be above 0, rows={rows!r} at least 1")
        self._share, self._rows = share, rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._is_rl, self._trained = False, ""
        self._n, self._total = 0, 0.0

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        more = {"rl": self._is_rl, "trained": self._trained, "n": self._n, "total": self._total}
        return {**super().state(), **more}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._is_rl, self._trained = bool(state["rl"]), str(state["trained"])
        self._n, self._total = int(state["n"]), float(state["total"])

    def watches(self, key: str) -> bool:
        """See `KeyedRule`."""
        return key in self._keys or _EVALUATED.fullmatch(key) is not None

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        keys = columns.keys("metrics")
        if not self._is_rl and not self.memory:
            self._is_rl = any(meaning(key) in OF_RL for key in keys)
        if self._is_rl:
            return ()
        watched = self.watched(columns)
        if not self._trained:
            own = [key for key in keys if meaning(key) == "update/loss/total" or _TRAINED.fullmatch(key)]
            self._trained = min(own, default="")
        training = columns.column(self._trained) if self._trained in keys else None
        if not watched:
            self._take_until(training, 0, None)
            return ()
        evaluations = sorted((time, key, i) for key in watched for i, time in enumerate(columns.column(key).times()))
        done, alerts = 0, list[tuple[float, Alert]]()
        for time, key, i in evaluations:
            done = self._take_until(training, done, time)
            alerts += self._judge(key, columns.column(key), i)
        self._take_until(training, done, None)
        return in_order(alerts)

    def _take_until(self, training: Column | None, first: int, time: float | None) -> int:
        """Add training losses from a position on, up to a time. Returns the position behind them."""
        if training is None:
            return first
        times = training.times() if time is not None else ()
        end = len(training)
        if time is not None:
            end = first
            while end < len(times) and times[end] <= time:
                end += 1
        some = training.values[first:end]
        total = sum(some)
        if total - total != 0:  # a NaN or an infinity among them
            some = [value for value in some if math.isfinite(value)]  # type: ignore[assignment]
            total = sum(some)
        self._n, self._total = self._n + len(some), self._total + total
        return end

    def _judge(self, key: str, column: Column, i: int) -> Iterator[tuple[float, Alert]]:
        memory, loss = self.memory[key], column.values[i]
        n = self._n - memory.n
        trained = float(f"{(self._total - memory.total) / n:.9g}") if n else None  # sums depend on where looks end
        memory.n, memory.total = self._n, self._total
        if loss <= memory.best:
            where = column.where(i)
            memory.recovered = max(memory.recovered, memory.risen)
            memory.best, memory.at, memory.trained = loss, where["clocks"], trained
            memory.above, memory.risen, memory.reported = 0, 0.0, False
            return
        if memory.trained is None:
            memory.trained = trained
        rise = loss - memory.best
        is_risen = (
            rise > self._share * abs(memory.best)
            and rise > memory.recovered
            and None not in (trained, memory.trained)
            and trained < memory.trained  # type: ignore[operator]
        )
        memory.risen, memory.above = max(memory.risen, rise), memory.above + 1 if is_risen else 0
        if memory.above >= self._rows and not memory.reported:
            memory.reported = True
            where = column.where(i)
            at, best_at = at_clock(where["clocks"]), at_clock(memory.at)
            yield (
                where["time"],
                Alert(
                    self.name,
                    "warn",
                    f"{key} is {loss:.4g}{at}, above the lowest, {memory.best:.4g}{best_at}, by more than "
                    f"{100 * self._share:g} % in {self._rows} evaluations in a row, while {self._trained} has fallen "
                    f"from {memory.trained:.4g} to {trained:.4g}: the model learns its data by heart; usually there "
                    "are too many epochs or too few data: look at the checkpoint of the lowest one",
                    {"value": loss, "best": memory.best, "best_at": memory.at, "trained": trained, **where},
                    self.source,
                    key,
                    where["clocks"],
                ),
            )
