"""Gate: let through the rows for which a function returns true."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.sinks.filters._base import Filter
from rollbook.sinks.filters._names import object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rollbook.protocols import Row, Sink


class Gate(Filter):
    """Lets the rows pass for which `when(row)` is true. Marks always pass.

    Args:
      to: the sink behind.
      when: a function of a `Row`; or its name, "package.module:name", so that a keeper in another process can use it
        too. An exception in it counts as a failure of the sink.
    Raises:
      BadInput: it is not a function, or none of that name exists.
    """

    name = "gate"

    def __init__(self, to: Sink, when: Callable[[Row], object] | str) -> None:
        super().__init__(to, when=when)
        self._when = object_at(when, "gate") if isinstance(when, str) else when
        if not callable(self._when):
            raise BadInput(f"Gate was given when={when!r}, which cannot be called; it takes a function of a row")

    def _row(self, row: Row) -> Iterable[Row]:
        return (row,) if self._when(row) else ()
