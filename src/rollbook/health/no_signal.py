"""Returns that are all equal."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._earlier import EarlierRun, find, named
from rollbook.health._returns import ReturnRule, Returns, progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column
    from rollbook.schema.records import Alert, RunInfo


_CHANCE = math.log(1e-9)
"""The log-probability below which zeros are not chance, judged by the zeros and other returns before."""

_FEWEST = 5

_SHARE, _SOME, _LATE, _MANY = 0.05, 2.5, 0.25, 10
"""Equal returns must last for `_SHARE` of the run and `_SOME` blocks, or until `_LATE` of the run is over. If the run's
length is unknown, for `_MANY` blocks."""

_RARE, _RARE_MANY = 0.4, 50
"""Until this share (or this many blocks) it is a note: where only success is rewarded, as in mazes and MountainCar, the
first success is often found late. FrozenLake by tabular Q-learning found none in 5 % of the run in 31 of 100 runs that
learn, none in 40 % in 6."""

_KNOWN, _LATER = 20, 3
"""Equal returns after which it is compared with earlier runs of the same settings, and how many times as late as each
of the five it must be. Where the first success comes by chance, one run in 56 is so much later than five others."""


class _Alike(Returns):
    """Also how many returns were alike.

    Attributes:
      first, began: the first return and its time.
      alike: how many first returns were equal; -1 after another one.
      zeros, others: how many returns were 0 and not 0, before the zeros in `row`.
      row: how many zeros in a row there are now.
      reported, noted: whether it was reported as "warn" and as "note".
    """

    first: float | None = None
    alike: int = 0
    others: int = 0
    zeros: int = 0
    row: int = 0
    reported: bool = False
    noted: bool = False
    began: float = 0.0


class NoSignal(ReturnRule[_Alike]):
    """Returns of which each is the same number from the first on, or that became 0: there is nothing to learn from.

    "note" after two and a half blocks (of 20 returns; of 5 rewards of sequence models) that last for a 20th of the
    run; after `blocks` when a quarter of the run is over; after ten if its length is unknown: a rare reward may not
    have been found yet. "warn" when two fifths of the run are over (after fifty blocks); also after a series of zeros,
    at least five, that the returns before make nearly impossible. A return that later stays at one number other than 0
    may be the best possible and is not reported.

    "warn" already after 20 returns where each of five earlier runs of the same settings (see `below_earlier`) had found
    another return in a third of the time.

    Args:
      blocks: the fewest blocks in a row.
    """

    remembers = _Alike
    name = "no_signal"
    source = "Schulman: look at the least and the largest return; the number of returns is rollbook's own"

    given: Sequence[EarlierRun] = ()
    """Further earlier runs, in addition to those in the folder of the project."""

    def __init__(self, blocks: int = 2) -> None:
        if blocks < 1:
            raise BadInput(f"rule 'no_signal': blocks={blocks!r} must be at least 1")
        super().__init__()
        self._blocks = blocks

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._earlier: Sequence[EarlierRun] | None = None

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns, checked one by one only if some are 0, or all were the same so far."""
        memory, values = self.memory, column.values
        if memory.others and not memory.row and 0.0 not in values:
            memory.others += len(values)
            return
        for i, value in enumerate(values):
            if memory.first is None:
                memory.first, memory.began = value, column.where(i)["time"]
            if memory.alike >= 0 and value == memory.first:
                memory.alike += 1
                if not memory.reported:
                    yield from self._lasts(value, column, i)
                continue
            if memory.alike > 0:  # the first other one
                if memory.first == 0:
                    memory.zeros += memory.alike
                else:
                    memory.others += memory.alike
            memory.alike = -1
            if value == 0:
                memory.row += 1
                if memory.row >= _FEWEST and not memory.reported and self._is_no_chance():
                    memory.reported = True
                    yield self._alert(value, memory.row, column, i)
            else:
                memory.others += 1
                memory.zeros += memory.row
                memory.row, memory.reported = 0, False

    def _lasts(self, value: float, column: Column, i: int) -> Iterator[tuple[float, Alert]]:
        """Whether the equal first returns are many enough at this row."""
        memory, alike = self.memory, self.memory.alike
        if alike >= _KNOWN and (known := self._known(column, i)):
            memory.reported = True
            words = f", and {named(known)} had each had another one in a third of the time"
            yield self._alert(value, alike, column, i, words=words, earlier=[run.id for run in known])
            return
        if alike < self._blocks * self.size:
            return
        come = progress(self.run, column.where(i)["clocks"]) if self.run.total else None
        if come is None:
            is_long, is_very_long = alike >= _MANY * self.size, alike >= _RARE_MANY * self.size
        else:
            is_long = come >= _LATE or (come >= _SHARE and alike >= _SOME * self.size)
            is_very_long = come >= _RARE
        if is_very_long:
            memory.reported = True
            yield self._alert(value, alike, column, i)
        elif is_long and not memory.noted:
            memory.noted = True
            yield self._alert(value, alike, column, i, level="note")

    def _known(self, column: Column, i: int) -> Sequence[EarlierRun]:
        """Earlier runs, if each had another return long before this row."""
        clocks = column.where(i)["clocks"]
        clock = next(iter(clocks), "")
        if self._earlier is None:
            self._earlier = find(EarlierRun, self.run, self.memory.began, clock, self.given)
        step = clocks[clock] if clock else self.memory.alike
        has_all = all(
            run.clock == clock and run.other is not None and _LATER * run.other <= step for run in self._earlier
        )
        return self._earlier if has_all else ()

    def _is_no_chance(self) -> bool:
        """Whether this many zeros in a row are next to impossible, given the returns before: their probability is a
        ratio of beta functions (any share of zeros was as likely as any other before the first return)."""
        zeros, others, row = self.memory.zeros, self.memory.others, self.memory.row
        return (
            math.lgamma(zeros + row + 1)
            - math.lgamma(zeros + 1)
            + math.lgamma(zeros + others + 2)
            - math.lgamma(zeros + others + row + 2)
        ) < _CHANCE

    def _alert(
        self, value: float, rows: int, column: Column, i: int, level: str = "", words: str = "", **evidence: object
    ) -> tuple[float, Alert]:
        return self.alert(
            f"each of the last {rows} returns is {value:g}{words}: there is nothing to learn from; usually rewards are "
            "lost on their way, or so rare that none was ever found",
            column.where(i),
            value=value,
            level=level,
            zeros_before=self.memory.zeros,
            others_before=self.memory.others,
            **evidence,
        )
