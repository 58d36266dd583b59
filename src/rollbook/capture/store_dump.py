"""Store then log: values handed over one by one, summed up when asked.

    store = Store(append)
    store.store({"ret": 12.0})               # appended raw, at once, and remembered
    store.dump(with_min_and_max=True)        # {"ret/mean": 12.0, "ret/std": 0.0, "ret/median": 12.0, "ret/n": 1, ...}

Statistics are exact up to `EXACT_UP_TO` values of a key between two dumps. Beyond that, mean, std, min, max and n stay
exact and the median comes from a uniform sample of `SAMPLE` values (its rank is right to within 0.8 % of n, 19 times
out of 20). So a key holds at most about 1.2 MiB, however rarely one dumps.

Two keys cost about 0.8 µs a call beside their row (measured: 2 cores, CPython 3.11); past the bound, each 4,096th
value of a key costs about 1 ms more.
"""

from __future__ import annotations

from os import getpid

from rollbook.ground.describe import EXACT_UP_TO, SAMPLE, Blocks, Pile, new_buffer
from rollbook.ground.foreign import ours
from rollbook.ground.values import flatten, scalar_of
from rollbook.ground.values.devices import copy_on_device, fetch, is_deferred, is_tracer
from rollbook.journal import Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.ground.values import Histogram

__all__ = ["EXACT_UP_TO", "SAMPLE", "Store"]

_BLOCK = 4096  # values of an array that are looked at together

_LONGEST_WAIT = 5.0  # seconds that a dump waits for one of another thread

_MOST_PENDING = 4096  # device values of one key that may wait for a dump; the next one fetches them all


class Store:
    """The values of one run or scope since the last dump.

    Args:
      append: takes the stored values as a dict and writes them as one row (None: the caller writes them).
      count: `Recorder.count`, for values that cannot be summed up (they are appended all the same).

    Device arrays are copied on their device in `store` and fetched by the next dump, all in one go.

    Many threads may store at once; nothing here waits for a lock in `store`, so a fork or a signal handler in the
    midst of it is harmless. A forked child starts empty. Of two dumps at once each value goes to exactly one.
    """

    __slots__ = ("_append", "_cells", "_count", "_named", "_pid", "_turns")

    def __init__(
        self,
        append: Callable[[dict[str, object]], object] | None = None,
        *,
        count: Callable[[str, int, str], object] | None = None,
    ) -> None:
        self._append = append
        self._count = count
        self._cells: dict[str, _Cell] = {}
        self._turns = Turns()
        self._named = 0
        self._pid = getpid()

    def store(self, values: Mapping[str, object] | None = None, **more: object) -> None:
        """Append these values raw and remember them for the next dump.

        Numbers count once, arrays, lists and tuples of numbers once per element. Nested dicts are joined by "/".
        Text and whatever else is no number is appended, counted as such and not remembered.
        """
        row = dict(values) if values else {}
        if more:
            row.update(more)
        if self._append is not None:
            self._append(row)
        if self._pid != getpid():
            self._after_fork()
        cells = self._cells
        for key, value in row.items():
            if isinstance(value, (float, int)):
                cell = cells.get(key)
                if cell is None:
                    cell = cells.setdefault(key, _Cell())
                try:
                    cell.values.append(value)
                except ours(OverflowError):
                    self._refuse(key, value)
                if len(cell.values) >= EXACT_UP_TO:
                    self._fold(cell)
            else:
                self._slowly(key, value)

    def dump(
        self,
        keys: Iterable[str] | None = None,
        with_min_and_max: bool = False,
        average_only: bool = False,
        write: Callable[[dict[str, float | int]], object] | None = None,
    ) -> dict[str, float | int]:
        """Sum up what was stored since the last dump, and start anew.

        Args:
          keys: which keys; None for every key ever stored. A key without values since its last dump, or one that was
            never stored, gives `<key>/n` = 0 alone.
          with_min_and_max: add `/min` and `/max`.
          average_only: leave out `/std` and `/median`.
          write: is given the row before the values are let go; if it raises, they wait for the next dump.
        Returns:
          `<key>/mean`, `/std` (of the population), `/median`, `/n` and, if asked, `/min` and `/max`. NaN among the
          values makes all but `/n` NaN. Empty if no key was ever stored, or none was asked for.
        """
        if self._pid != getpid():
            self._after_fork()
        chosen = [keys] if isinstance(keys, str) else list(self._cells) if keys is None else list(keys)
        turn = self._turns.take(_LONGEST_WAIT)
        if turn is None:  # a signal handler that dumps within a dump; the outer one has the values
            return {}
        try:
            cells = {key: self._cells.get(key) for key in chosen}
            piles = {key: Pile() if cell is None else self._look(key, cell) for key, cell in cells.items()}
            row: dict[str, float | int] = {}
            for key, pile in piles.items():
                if pile.n:
                    mean, std, median, low, high = pile.describe()
                    row[f"{key}/mean"] = mean
                    if not average_only:
                        row[f"{key}/std"] = std
                        row[f"{key}/median"] = median
                row[f"{key}/n"] = pile.n
                if pile.n and with_min_and_max:
                    row[f"{key}/min"] = low
                    row[f"{key}/max"] = high
            if write is not None and row:
                write(row)
            # What was interrupted up to here is said by the next dump.
            for key, cell in cells.items():
                if cell is not None:
                    cell.folded = None
                    del cell.values[: len(piles[key].fresh)]  # what others added meanwhile stands behind it
            return row
        finally:
            self._turns.give(turn)

    def keys(self) -> list[str]:
        """Every key ever stored."""
        return list(self._cells)

    def new_keys(self) -> list[str]:
        """The keys that were stored for the first time since this was last asked."""
        if self._named == len(self._cells):
            return []
        new = list(self._cells)[self._named :]
        self._named += len(new)
        return new

    def refill(self, windows: Mapping[str, Iterable[float | Histogram]]) -> None:
        """Forget everything and go on as if exactly this had been stored since the last dump.

        Args:
          windows: key -> numbers and `ground.values.Histogram`s, [] for a key that was stored before the last dump.
        """
        if self._pid != getpid():
            self._after_fork()
        turn = self._turns.take(_LONGEST_WAIT)
        try:
            cells: dict[str, _Cell] = {}
            for key, values in windows.items():
                cell = cells[key] = _Cell()
                for value in values:
                    if isinstance(value, (float, int)):
                        cell.values.append(value)
                    else:
                        cell.folded = cell.folded or Blocks()
                        cell.folded.add_binned(value)
                    if len(cell.values) >= EXACT_UP_TO:
                        _fold(cell)
            self._cells, self._named = cells, len(cells)
        finally:
            if turn is not None:
                self._turns.give(turn)

    def _look(self, key: str, cell: _Cell) -> Pile:
        if cell.pending:
            self._fetch(key, cell)
        return Pile(cell.values[: len(cell.values)], cell.folded)

    def _fold(self, cell: _Cell) -> None:
        # Whoever finds another at work leaves the folding to the next value: `store` never waits.
        turn = self._turns.take()
        if turn is not None:
            try:
                _fold(cell)
            finally:
                self._turns.give(turn)

    def _slowly(self, key: str, value: Any) -> None:
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()  # by far the commonest of the slow ones
            if type(value) is float or type(value) is int or type(value) is bool:
                self._cells.setdefault(key, _Cell()).values.append(value)
                return
        if hasattr(value, "items") and hasattr(value, "keys"):
            for name, inner in flatten(value, f"{key}/"):
                self._slowly(name, inner)
            return
        if is_tracer(value):
            self._refuse(key, value)
            return
        if is_deferred(value):
            cell = self._cells.setdefault(key, _Cell())
            cell.pending.append(copy_on_device(value))
            if len(cell.pending) > _MOST_PENDING:
                self._fetch(key, cell)
            return
        try:
            for numbers in _blocks(value):
                cell = self._cells.setdefault(key, _Cell())
                cell.values.extend(numbers)
                if len(cell.values) >= EXACT_UP_TO:
                    self._fold(cell)
        except ours(TypeError, ValueError, OverflowError, RuntimeError):
            self._refuse(key, value)

    def _fetch(self, key: str, cell: _Cell) -> None:
        waiting = cell.pending[: len(cell.pending)]
        fetched = new_buffer()
        for copy, value in zip(waiting, fetch(waiting), strict=True):
            try:
                for numbers in _blocks(value):
                    fetched.extend(numbers)
            except ours(TypeError, ValueError, OverflowError, RuntimeError):
                self._refuse(key, copy)
        del cell.pending[: len(waiting)]
        cell.values.extend(fetched)

    def _refuse(self, key: str, value: object) -> None:
        if self._count is not None:
            self._count(
                "store_not_a_number",
                1,
                f"store() was given {type(value).__name__} under {key!r}, which cannot be averaged; it is logged as it "
                f"is, and dump() leaves it out. Store numbers, or arrays of numbers.",
            )

    def _after_fork(self) -> None:
        # The parent dumps its own values; and its lock may have been held by a thread that does not exist here.
        self._pid = getpid()
        self._turns = Turns()
        self._named = 0
        self._cells = {}


class _Cell:
    """One key: the values since the last dump, those folded already, and device values not yet fetched."""

    __slots__ = ("folded", "pending", "values")

    def __init__(self) -> None:
        self.values = new_buffer()
        self.folded: Blocks | None = None
        self.pending: list[object] = []


def _fold(cell: _Cell) -> None:
    """Fold the oldest values of a key; what others append meanwhile stands behind them."""
    pile = Pile(cell.values[: len(cell.values)], cell.folded)
    before = len(pile.fresh)
    pile.fold()
    cell.folded = pile.folded
    del cell.values[: before - len(pile.fresh)]


def _blocks(value: object) -> Iterator[list[float]]:
    """The numbers in a scalar, an array or a nested sequence, in blocks that stay small for arrays of any size.

    Raises:
      TypeError, ValueError, OverflowError: there is something else in it. Blocks given out before stay given out.
    """
    if getattr(value, "ndim", 0) and hasattr(value, "reshape"):
        flat = value.reshape(-1)
        for start in range(0, len(flat), _BLOCK):
            block = flat[start : start + _BLOCK].tolist()
            if any(type(number) not in (float, int, bool) for number in block):
                block = [_number(number) for number in block]
            yield block
    elif isinstance(value, (list, tuple)):
        numbers: list[float] = []
        for inner in value:
            for block in _blocks(inner):
                numbers.extend(block)
        yield numbers
    else:
        yield [_number(value)]


def _number(value: object) -> float:
    number = scalar_of(value)
    if number is None:
        raise TypeError(type(value).__name__)
    return float(number)
