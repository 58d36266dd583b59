"""Earlier values of the log, read from the book while it is written.

Recent batches are in memory; older ones are read from the run's files. Memory stays bounded.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rollbook.values.array_types import NDArray

    Columns: TypeAlias = Mapping[str, Sequence[object] | NDArray]
    """The items of a batch: term -> one value per item, in a list or an array."""

_BLOCK = 64
_BLOCKS_KEPT = 4


class SeriesHistory:
    """One value per index (batch, or call), from 0; None if missing.

    Args:
      load: reads the values of [start, stop) from the book, as a list of that length.
      keep: how many of the newest values stay in memory.
    """

    def __init__(self, load: Callable[[int, int], Sequence[object]], length: int = 0, *, keep: int) -> None:
        self._load = load
        self.length = length
        self._recent: deque[object] = deque(maxlen=keep)
        self._older: list[object] = []  # read on request only: [0, len)

    @classmethod
    def holding(cls, values: Iterable[object]) -> SeriesHistory:
        """A history with all its values in memory and no book."""
        made = cls(lambda start, stop: [None] * (stop - start), keep=0)
        made._recent = deque(values)
        made.length = len(made._recent)
        return made

    def append(self, value: object) -> None:
        """Add the value of the next index."""
        self._recent.append(value)
        self.length += 1

    def get(self, index: int) -> object:
        """The value at `index`, 0 <= index < length."""
        start = self.length - len(self._recent)
        if index >= start:
            return self._recent[index - start]
        if index >= len(self._older):
            self._older += self._load(len(self._older), start)
        return self._older[index]

    def forget(self, length: int) -> None:
        """Restart at `length`: the run was rewound, or is continued."""
        self.length = length
        self._recent.clear()
        self._older = []


class BatchHistory:
    """The items of each batch, by column.

    Args:
      load: reads batches [start, stop) from the book: {batch: {column: values}}.
      keep: how many items of the newest batches stay in memory; None: all.
    """

    def __init__(self, load: Callable[[int, int], dict[int, Columns]], length: int = 0, *, keep: int | None) -> None:
        self._load = load
        self.length = length
        self._recent: deque[Columns] = deque()
        self._recent_items = 0
        self._most_items = keep
        self._blocks: OrderedDict[int, dict[int, Columns]] = OrderedDict()

    @classmethod
    def holding(cls, batches: Iterable[Columns]) -> BatchHistory:
        """A history with all its batches in memory and no book."""
        made = cls(lambda start, stop: {}, keep=None)
        for columns in batches:
            made.append(columns)
        return made

    @property
    def holds_all(self) -> bool:
        """Whether every batch is in memory, so that the book is not needed."""
        return len(self._recent) == self.length

    def append(self, columns: Columns) -> None:
        """Add the columns of the next batch; each is as long as the batch."""
        self._recent.append(columns)
        self._recent_items += _size(columns)
        self.length += 1
        most = self._most_items
        while most is not None and len(self._recent) > 1 and self._recent_items > most:
            self._recent_items -= _size(self._recent.popleft())

    def get(self, batch: int) -> Columns:
        """The columns of `batch`, 0 <= batch < length; {} if the book does not have it."""
        start = self.length - len(self._recent)
        if batch >= start:
            return self._recent[batch - start]
        number = batch // _BLOCK
        block = self._blocks.get(number)
        if block is None or batch not in block:  # a block may have been read before it was full
            block = self._blocks[number] = self._load(number * _BLOCK, min((number + 1) * _BLOCK, self.length))
            if len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return block.get(batch, {})

    def forget(self, length: int) -> None:
        """Restart at `length`."""
        self.length = length
        self._recent.clear()
        self._recent_items = 0
        self._blocks.clear()


def item_of(text: object, kind: object) -> object:
    """A sample rebuilt from its text in the book; lists become tuples, so that it is hashable."""
    if kind != "json" or not isinstance(text, str):
        return text
    try:
        return _hashable(json.loads(text))
    except ValueError:
        return text


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _size(columns: Columns) -> int:
    return max((len(values) for values in columns.values()), default=0)
