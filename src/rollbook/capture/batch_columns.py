"""Columns of a batch: n values each, from any input of the caller; and batches split into frames."""

from __future__ import annotations

from rollbook.capture.storable import UNSTORABLE, plain
from rollbook.values.arrays import array_or_none
from rollbook.values.walk import ATOMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.protocols import Recorder

_PLAIN = (str, bytes, int, float, list, tuple, dict)
_KEPT_TYPES = frozenset(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))
_ROWS_PER_FRAME = 4096
_BYTES_PER_FRAME = 4 * 1024 * 1024


class BatchColumns:
    """Makes columns of n values for one verb.

    Args:
      run: only its bill is used.
      verb: the name of the verb in warnings.
      cause: the cause under which a column of the wrong length is counted.
    """

    def __init__(self, run: Recorder, verb: str, cause: str) -> None:
        self._run, self._verb, self._cause = run, verb, cause

    def column(self, name: str, value: Any, n: int) -> Any:
        """n values of a column: an array unchanged, other input as a plain list; None if it cannot be stored."""
        array = None if isinstance(value, (str, bytes, list, tuple)) else array_or_none(value)
        if type(value) is list and set(map(type, value)) <= ATOMS:
            return list(value) if len(value) == n else self._fitted(name, list(value), n)
        if array is not None and array.ndim:
            return array if len(array) == n else self._fitted(name, array.tolist(), n)
        if not is_column(value):
            cell = plain(value)
            if cell is UNSTORABLE:
                self._odd_column(name, value)
                return None
            return [cell] * n
        cells: list[object] = []
        for part in value:
            array = None if part is None or isinstance(part, _PLAIN) else array_or_none(part)
            if array is not None and array.ndim == 1 and array.dtype.str[1:] in _KEPT_TYPES:
                cells.append(array)  # unchanged, also with one element: its type is the column's type
                continue
            cell = plain(part)
            if cell is UNSTORABLE:
                self._odd_column(name, part)
                cell = None
            cells.append(cell.tolist() if hasattr(cell, "tolist") else cell)
        return cells if len(cells) == n else self._fitted(name, cells, n)

    def _fitted(self, name: str, cells: list[object], n: int) -> list[object]:
        self._run.count(
            self._cause,
            1,
            f"{self._verb}({name}=…) has {len(cells)} values for {n} items; what fits was kept, the rest is "
            f"{'left out' if len(cells) > n else 'empty'}",
        )
        return cells[:n] + [None] * (n - len(cells))

    def _odd_column(self, name: str, value: object) -> None:
        self._run.count(
            f"unstorable/{name}",
            1,
            f"{self._verb}({name}=…) holds a {type(value).__qualname__}, which a table cannot hold; that value was "
            "left out",
        )


def is_column(value: object) -> bool:
    """Whether a value has one entry per item, instead of one for all."""
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, (str, bytes, dict)):
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0
    return hasattr(value, "__iter__")


def pieces(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Split a batch so that no frame gets too large."""
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and (total + size > _BYTES_PER_FRAME or index - start >= _ROWS_PER_FRAME):
            yield start, index
            start, total = index, 0
        total += size
    yield start, len(sizes)
