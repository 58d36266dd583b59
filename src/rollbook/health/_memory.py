"""What rules remember between two looks: small structs whose fields the keeper saves as plain JSON data.

class _Zeros(Memory):
    zeros: int = 0

plain = memory.plain()                  # {"zeros": 2}
memory = remembered(_Zeros, plain)      # after a restart of the keeper
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rollbook.schema.columns import Column, Where


class Memory(msgspec.Struct):
    """Fields with their values at the start of a run. Their names are the keys of the saved data."""

    def plain(self) -> dict[str, Any]:
        """As plain data for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


M = TypeVar("M", bound=Memory)


def remembered(kind: type[M], plain: object) -> M:
    """A memory from its plain data. Fields that it lacks are as at the start of a run; others are ignored.

    Raises:
      ValueError: a field is of another type.
    """
    return msgspec.convert(plain, kind)


def wholly_remembered(kind: type[M], plain: Mapping[str, Any]) -> M:
    """The same for a memory whose fields only make sense together.

    Raises:
      KeyError: another version saved it, without some field.
      ValueError: a field is of another type.
    """
    return remembered(kind, {name: plain[name] for name in kind.__struct_fields__})


class Recent(Memory):
    """The last few values of a key with the rows they came from, oldest first.

    Attributes:
      last: [value, row] each.
      seen: how many values there were so far.
      troubled: see `Last.begins`.
    """

    last: list[tuple[float, dict[str, Any]]] = []
    seen: int = 0
    troubled: bool = False


class Last:
    """Appends to a `Recent` and asks about it.

    Args:
      memory: of the key.
      most: how many values to keep.
    """

    __slots__ = ("_memory", "most")

    def __init__(self, memory: Recent, most: int) -> None:
        self._memory, self.most = memory, most

    @property
    def seen(self) -> int:
        """How many values there were so far."""
        return self._memory.seen

    def take(self, value: float, where: Where) -> None:
        """Append one; the oldest is dropped."""
        self._memory.seen += 1
        last = self._memory.last
        last.append((value, where))
        if len(last) > self.most:
            del last[0]

    def values(self) -> list[float]:
        """The values, oldest first."""
        return [value for value, _where in self._memory.last]

    def where(self) -> Where:
        """The row of the last one."""
        return self._memory.last[-1][1]

    def take_all(self, column: Column, indices: Sequence[int], sign: int = 1) -> None:
        """Append the values at these indices of a column, each times `sign`; the cost depends only on the last few."""
        first = max(0, len(indices) - self.most)
        self._memory.seen += first
        for i in indices[first:]:
            self.take(sign * column.values[i], column.where(i))

    def up_to(self, column: Column, indices: Sequence[int], n: int) -> Last:
        """The state after the first n of these indices of a column."""
        later = Last(Recent(list(self._memory.last), self.seen + max(0, n - self.most)), self.most)
        for i in indices[max(0, n - self.most) : n]:
            later.take(column.values[i], column.where(i))
        return later

    def all(self, condition: Callable[[float], bool]) -> bool:
        """Whether there are `most` values and all meet the condition."""
        last = self._memory.last
        return len(last) == self.most and all(condition(value) for value, _where in last)

    def begins(self, is_bad: Callable[[float], bool]) -> bool:
        """Whether a trouble begins: all of the last values are bad, and all were good at some time since the last one
        began."""
        if self.all(is_bad):
            if not self._memory.troubled:
                self._memory.troubled = True
                return True
        elif self._memory.troubled and self.all(lambda value: not is_bad(value)):
            self._memory.troubled = False
        return False

    def evidence(self, **more: object) -> dict[str, object]:
        """The values, the rows they came from, and the numbers in `more`."""
        last = self._memory.last
        return {
            "values": [value for value, _where in last[-20:]],
            "rows_seen": self.seen,
            "from": dict(last[0][1]["clocks"]),
            **last[-1][1],
            **more,
        }
