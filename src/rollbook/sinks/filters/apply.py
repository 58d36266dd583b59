"""Apply: a plain function of a row as a filter.

def only_losses(row):                                       # a Row, or None to drop it
    return row if any("loss" in key for key in row.values) else None

rollbook.init("cartpole", sinks=[{"name": "csv", "filters": [only_losses]}])
Apply(Csv(), only_losses)                                   # the same by hand
"""

from __future__ import annotations

import sys

from rollbook.errors import BadInput
from rollbook.protocols import Row
from rollbook.sinks.filters._base import Filter
from rollbook.sinks.filters._names import object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rollbook.protocols import Sink


class Apply(Filter):
    """Passes on what a function returns for each row. Marks always pass without a call.

    Args:
      to: the sink behind.
      function: takes a `Row` and returns it, another one, or None to drop it (`dataclasses.replace(row, values=…)`
        makes another). Rows are shared: the function must not change its argument. An exception or a result of another
        type counts as a failure of the sink. The function can also be named: "package.module:name".

    A function has no memory that survives a restart of the keeper; a filter that needs one is a class.

    Raises:
      BadInput: it is not a function, or none of that name exists.
    """

    name = "apply"

    def __init__(self, to: Sink, function: Callable[[Row], Row | None] | str) -> None:
        super().__init__(to, function=function)
        self._function = object_at(function, "apply") if isinstance(function, str) else function
        if not callable(self._function):
            raise BadInput(f"filter 'apply' was given function={function!r:.200}; it takes a function of a row")

    def _row(self, row: Row) -> Iterable[Row]:
        answer = self._function(row)
        if answer is None:
            return ()
        if not isinstance(answer, Row):
            raise BadInput(f"{self._function!r} returned {type(answer).__name__}; a filter returns a Row, or None")
        return (answer,)


def name_of(function: object) -> str | None:
    """The name by which another process finds a function, "package.module:name"; None if only this process has it."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    named: object = sys.modules.get(module)
    for part in name.split("."):
        named = getattr(named, part, None)
    return f"{module}:{name}" if named is function else None
