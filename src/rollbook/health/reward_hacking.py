"""A language model whose answers please the reward and have left the language."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock, in_order, meaning, median
from rollbook.health._memory import Memory
from rollbook.schema.aliases import estimator
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

_FIRST, _FEW = 5, 0.5
"""The first values, this many, define what is usual. If more answers were cut from the start on, that is intended."""

_OF_ANSWERS = 60.0
"""Nats of a whole answer, where a divergence is summed over its tokens."""

_GROSS = 10.0
"""Times the limit, from which the divergence alone is enough: 10 nats a token are the whole vocabulary of a model."""

_KL, _LENGTH, _CUT = "update/kl_to_reference", "train/completion_length", "train/truncated_share"


class Signal(Memory):
    """One of the three quantities: what it was at first, and what it is.

    Attributes:
      first: the first values.
      rows: how many in a row were too far off.
      value: the last one.
    """

    first: list[float] = []
    rows: int = 0
    value: float = math.nan


class RewardHacking(KeyedRule[Signal]):
    """Answers that drift from the reference model while they grow, shrink or do not end: "warn".

    Two of three in `rows` updates in a row: the divergence from the reference model is above `kl` nats per token (above
    60 where it is summed over an answer), the mean length of the answers is more than `times` that of the first updates
    or less than a `times`-th of it, nearly all answers (`cut`) are cut at their limit although at first fewer than half
    were. The last one alone is enough: answers that stopped ending are scored in part. Longer answers alone are what
    reasoning models learn, and a large divergence alone is what a small model learns from nothing: neither is reported,
    up to ten times the limit of the divergence.

    Args:
      kl: nats per token.
      times: of the length of the first answers.
      cut: share of the answers.
      rows: how many updates in a row.
      keys: further keys to check as a divergence from the reference model.
    """

    remembers = Signal
    name = "reward_hacking"
    source = (
        "Gao et al. 2022 (the true reward falls as the divergence grows); TRL #5697 (97 to 99 % of the answers cut: "
        "nothing is learned); DAPO 2503.14476 (cut answers are noise); the limits are rollbook's own"
    )
    meanings = frozenset({_KL, _LENGTH, _CUT})

    def __init__(
        self, kl: float = 1.0, times: float = 3.0, cut: float = 0.9, rows: int = 10, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(keys)
        if not kl > 0 or not times > 1 or not 0 < cut < 1 or rows < 1:
            raise BadInput(
                f"rule 'reward_hacking': kl={kl!r} must be above 0, times={times!r} above 1, cut={cut!r} between 0 and "
                f"1, rows={rows!r} at least 1"
            )
        self._kl, self._times, self._cut, self._rows = kl, times, cut, rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._is_said = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "said": self._is_said}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._is_said = bool(state["said"])

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        # In an order of their own: keys come in another one when the run is read afterwards.
        watched = [columns.column(key) for key in sorted(self.watched(columns))]
        if not watched:
            return ()
        if not any(self._may_be_off(column) for column in watched):
            for column in watched:
                self._take_usual(column)
            return ()
        events = [(time, n, i) for n, column in enumerate(watched) for i, time in enumerate(column.times())]
        found: list[tuple[float, Alert]] = []
        for _time, n, i in sorted(events):
            found += self._take_one(watched[n], i)
        return in_order(found)

    def _may_be_off(self, column: Column) -> bool:
        """Whether the values have to be gone through one by one."""
        signal = self.memory.get(column.key)
        if signal is None or len(signal.first) < _FIRST or signal.rows or self._is_said:
            return True
        total = sum(column.values)
        return total - total != 0 or any(self._is_off(column.key, f(column.values)) for f in (min, max))

    def _take_usual(self, column: Column) -> None:
        self.memory[column.key].value = column.values[-1]

    def _take_one(self, column: Column, i: int) -> Iterator[tuple[float, Alert]]:
        value = column.values[i]
        if value - value != 0:
            return
        signal = self.memory[column.key]
        signal.value = value
        if len(signal.first) < _FIRST:
            signal.first.append(value)
        signal.rows = signal.rows + 1 if self._is_off(column.key, value) else 0
        off = {key: it for key, it in self.memory.items() if it.rows >= self._rows}
        kinds = {self._kind(key) for key in off}
        is_trouble = len(kinds) > 1 or _CUT in kinds or any(self._is_gross(key, it.value) for key, it in off.items())
        if not is_trouble and all(not it.rows for it in self.memory.values()):
            self._is_said = False
        if is_trouble and not self._is_said:
            self._is_said = True
            where = column.where(i)
            about = {
                key: it for key, it in sorted(self.memory.items()) if it.rows >= self._rows - 1
            }  # others of this row
            yield where["time"], self._alert(about, column, i)

    def _is_gross(self, key: str, value: float) -> bool:
        """Whether a divergence alone says that this is another language."""
        return self._kind(key) == _KL and value > _GROSS * self._limit(key)

    def _limit(self, key: str) -> float:
        return _OF_ANSWERS if "summed" in (estimator(key) or "") else self._kl

    def _kind(self, key: str) -> str:
        name = meaning(key)
        return name if name in (_LENGTH, _CUT) else _KL

    def _is_off(self, key: str, value: float) -> bool:
        signal, kind = self.memory.get(key), self._kind(key)
        if kind == _KL:
            return value > self._limit(key)
        if signal is None or len(signal.first) < _FIRST:
            return False
        usual = median(signal.first)
        if kind == _CUT:
            return usual < _FEW and value > self._cut
        return usual > 0 and not usual / self._times <= value <= usual * self._times

    def _alert(self, off: Mapping[str, Signal], column: Column, i: int) -> Alert:
        where, parts = column.where(i), []
        for key, signal in off.items():
            kind = self._kind(key)
            parts.append(
                f"{key} is {signal.value:.4g}" + ("" if kind == _KL else f" (at first {median(signal.first):.4g})")
            )
        only_cut = {self._kind(key) for key in off} == {_CUT}
        words = "answers stopped ending" if only_cut else "the answers please the reward and have left the language"
        return Alert(
            self.name,
            "warn",
            f"{', '.join(parts)} in {self._rows} updates in a row{at_clock(where['clocks'])}: {words}; read some of "
            "them; usually the reward can be had without the task, the penalty of the divergence is too small, or the "
            "learning rate too high",
            {
                "values": {key: signal.value for key, signal in off.items()},
                "at_first": {key: median(signal.first) for key, signal in off.items()},
                "limits": {"kl": self._kl, "times": self._times, "cut": self._cut},
                "rows": self._rows,
                **where,
            },
            self.source,
            column.key,
            where["clocks"],
        )
