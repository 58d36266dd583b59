"""Store then log: values stored one by one, summarised on request.

    store = Store(append)
    store.store({"ret": 12.0})               # appended raw, at once, and remembered
    store.dump(with_min_and_max=True)        # {"ret/mean": 12.0, "ret/std": 0.0, "ret/median": 12.0, "ret/n": 1, ...}

Statistics are exact for up to `EXACT_UP_TO` values of a key between two dumps. Beyond that, mean, std, min, max and n
stay exact, and the median comes from a uniform sample of `Pile.SAMPLE` values (its rank is correct to within 0.8 % of
n, 19 times out of 20). A key therefore holds at most about 1.2 MiB, however rarely it is dumped.

Two keys cost about 0.8 µs per call in addition to their row (2 cores, CPython 3.11). Above the bound, each 4,096th
value of a key costs about 1 ms more.
"""

from __future__ import annotations

from os import getpid

from rollbook.journal import InterruptSafeLock
from rollbook.system.guard import handled_by, ours
from rollbook.values import flatten, key_of, scalar_of
from rollbook.values.describe import Blocks, Pile, new_buffer
from rollbook.values.devices import copy_on_device, fetch, is_deferred, is_tracer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.values import Histogram

EXACT_UP_TO = Pile.EXACT_UP_TO

_NO_NUMBERS = (TypeError, ValueError, OverflowError, RuntimeError)

_BLOCK = 4096  # values of an array that are processed together

_LONGEST_WAIT = 5.0  # seconds that a dump waits for a dump of another thread

_MOST_PENDING = 4096  # device values of one key that may wait; one more fetches them all


class Store:
    """The values of one run or scope since the last dump.

    Args:
      append: takes the stored values as a dict and writes them as one row (None: the caller writes them).
      count: `Recorder.count`, for values that have no statistics (they are still appended).

    Device arrays are copied on their device in `store`; the next dump fetches all of them in one transfer.

    Many threads may store at once. `store` never waits for a lock, so a fork or a signal handler during it is harmless.
    A forked child starts empty. With two dumps at once, each value goes to exactly one.
    """

    __slots__ = ("_append", "_cells", "_count", "_lock", "_named", "_pid")

    def __init__(
        self,
        append: Callable[[dict[str, object]], object] | None = None,
        *,
        count: Callable[[str, int, str], object] | None = None,
    ) -> None:
        self._append = append
        self._count = count
        self._cells: dict[str, _Cell] = {}
        self._lock = InterruptSafeLock()
        self._named = 0
        self._pid = getpid()

    def store(self, values: Mapping[str, object] | None = None, **more: object) -> None:
        """Append these values raw and remember them for the next dump.

        A number counts once; arrays, lists and tuples of numbers count once per element. Nested dicts are joined with
        "/". Text and other values that are not numbers are appended and counted, but not remembered.

        Args:
          values: name -> value. None: only `more`.
          more: further values, by name.
        """
        row = dict(values) if values else {}
        if more:
            row.update(more)
        if self._append is not None:
            self._append(row)
        if self._pid != getpid():
            self._after_fork()
        cells = self._cells
        for name, value in row.items():
            key = name if type(name) is str else key_of(name)
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
        """Summarise the values stored since the last dump, and start again.

        Args:
          keys: which keys; None for every key ever stored. A key without values since its last dump, or one that was
            never stored, gives only `<key>/n` = 0.
          with_min_and_max: add `/min` and `/max`.
          average_only: leave out `/std` and `/median`.
          write: called with the row before the values are released. If it raises, they stay for the next dump.
        Returns:
          `<key>/mean`, `/std` (population), `/median`, `/n` and, on request, `/min` and `/max`. A NaN among the values
          makes all but `/n` NaN. Empty if no key was ever stored or requested.
        """
        if self._pid != getpid():
            self._after_fork()
        chosen = [keys] if isinstance(keys, str) else list(self._cells) if keys is None else list(keys)
        token = self._lock.acquire(_LONGEST_WAIT)
        if token is None:  # a signal handler dumps during a dump; the outer one has the values
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
            # If interrupted up to here, the next dump has these values.
            for key, cell in cells.items():
                if cell is not None:
                    cell.folded = None
                    del cell.values[: len(piles[key].fresh)]  # values that others added meanwhile come after these
            return row
        finally:
            self._lock.release(token)

    def keys(self) -> list[str]:
        """Every key ever stored."""
        return list(self._cells)

    def new_keys(self) -> list[str]:
        """The keys stored for the first time since the last call."""
        if self._named == len(self._cells):
            return []
        new = list(self._cells)[self._named :]
        self._named += len(new)
        return new

    def refill(self, windows: Mapping[str, Iterable[float | Histogram]]) -> None:
        """Forget everything, and continue as if exactly these values had been stored since the last dump.

        Args:
          windows: key -> numbers and `values.Histogram`s, [] for a key that was only stored before the last
            dump.
        """
        if self._pid != getpid():
            self._after_fork()
        token = self._lock.acquire(_LONGEST_WAIT)
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
            if token is not None:
                self._lock.release(token)

    def _look(self, key: str, cell: _Cell) -> Pile:
        if cell.pending:
            self._fetch(key, cell)
        return Pile(cell.values[: len(cell.values)], cell.folded)

    def _fold(self, cell: _Cell) -> None:
        # If another thread is folding, leave it to the next value: `store` never waits.
        token = self._lock.acquire(0.0)
        if token is not None:
            try:
                _fold(cell)
            finally:
                self._lock.release(token)

    def _slowly(self, key: str, value: Any) -> None:
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()  # by far the most common slow case
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
        with handled_by(self._refuse, key, value, kinds=_NO_NUMBERS):
            for numbers in _blocks(value):
                cell = self._cells.setdefault(key, _Cell())
                cell.values.extend(numbers)
                if len(cell.values) >= EXACT_UP_TO:
                    self._fold(cell)

    def _fetch(self, key: str, cell: _Cell) -> None:
        waiting = cell.pending[: len(cell.pending)]
        fetched = new_buffer()
        for copy, value in zip(waiting, fetch(waiting), strict=True):
            with handled_by(self._refuse, key, copy, kinds=_NO_NUMBERS):
                for numbers in _blocks(value):
                    fetched.extend(numbers)
        del cell.pending[: len(waiting)]
        cell.values.extend(fetched)

    def _refuse(self, key: str, value: object, _err: object = None) -> None:
        if self._count is not None:
            self._count(
                "store_not_a_number",
                1,
                f"store() was given {type(value).__name__} under {key!r}, which cannot be averaged; it is logged as it "
                f"is, and dump() leaves it out. Store numbers, or arrays of numbers.",
            )

    def _after_fork(self) -> None:
        # The parent dumps its own values. Its lock may have been held by a thread that does not exist here.
        self._pid = getpid()
        self._lock = InterruptSafeLock()
        self._named = 0
        self._cells = {}


class _Cell:
    """One key: values since the last dump, values already folded, and device values not yet fetched."""

    __slots__ = ("folded", "pending", "values")

    def __init__(self) -> None:
        self.values = new_buffer()
        self.folded: Blocks | None = None
        self.pending: list[object] = []


def _fold(cell: _Cell) -> None:
    """Fold the oldest values of a key. Values that others append meanwhile come after them."""
    pile = Pile(cell.values[: len(cell.values)], cell.folded)
    before = len(pile.fresh)
    pile.fold()
    cell.folded = pile.folded
    del cell.values[: before - len(pile.fresh)]


def _blocks(value: object) -> Iterator[list[float]]:
    """The numbers in a scalar, an array or a nested sequence, in blocks that stay small for arrays of any size.

    Raises:
      TypeError, ValueError, OverflowError: it contains something else. Blocks that were already yielded stay valid.
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
