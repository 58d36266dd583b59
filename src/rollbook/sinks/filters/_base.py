"""Shared by all filters: a sink that holds another one, and that never stops half done.

A filter's memory and what its `to` has received must agree. So `write` passes everything on in one call, and restores
its memory if that call raises: the forwarder offers the same rows again, and the result is the same.

    class DropTexts(Filter):                          # a filter of three lines; for less, use a function (`Apply`)
        name = "drop_texts"

        def _row(self, row):
            return () if any(isinstance(value, str) for value in row.values.values()) else (row,)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, ClassVar

    from rollbook.protocols import Row, RunInfo, Sink, Value


class Filter:
    """A sink that changes what reaches another sink, called `to`.

    Subclasses define `_row` and `_mark`. Those with memory also define `_remember` and `_recall` (undo within one
    `write`), `_save` and `_load` (across restarts, as plain JSON data) and `_rest` (what is held back at the end).

    Args:
      to: the sink behind.
      options: those of the filter; None is left out.
    """

    name: ClassVar[str]
    """Its name in specs: `rollbook.sinks.filters.make(name, to, **options)`."""

    def __init__(self, to: Sink, **options: object) -> None:
        self.to = to
        self.options: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        """Its options; JSON data, so `make(name, to, **options)` builds the same filter elsewhere."""
        self.accepts: frozenset[type] = to.accepts
        if hasattr(to, "position") and hasattr(to, "truncate"):
            # Only a filter in front of a file sink may look like one, so these are attributes, not methods of the
            # class.
            self.position = to.position
            self.truncate = to.truncate

    def open(self, run: RunInfo) -> None:
        """Open `to`."""
        self.to.open(run)

    def write(self, rows: Sequence[Row]) -> None:
        """Pass on what is left of `rows`, in one call; all or nothing."""
        before = self._remember()
        try:
            out: list[Row] = []
            for row in rows:
                out.extend(self._mark(row) if row.mark else self._row(row))
            if out:
                self.to.write(out)
        except BaseException:
            self._recall(before)
            raise

    def close(self) -> None:
        """Pass on what is held back, then close `to`."""
        before = self._remember()
        try:
            rest = list(self._rest())
            if rest:
                try:
                    self.to.write(rest)
                except BaseException:
                    self._recall(before)
                    raise
        finally:
            self.to.close()

    def state(self) -> dict[str, Any]:
        """The memory of this filter and of everything behind it, as plain JSON data."""
        state: dict[str, object] = {}
        own = self._save()
        if own:
            state["own"] = own
        inner = getattr(self.to, "state", None)
        if inner is not None:
            state["to"] = inner()
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self._load(state.get("own", {}))
        inner = getattr(self.to, "set_state", None)
        if inner is not None and "to" in state:
            inner(state["to"])

    def __repr__(self) -> str:
        inside = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{type(self).__name__}({self.to!r}{inside})"

    def _row(self, row: Row) -> Iterable[Row]:
        """What a row of values turns into."""
        return (row,)

    def _mark(self, row: Row) -> Iterable[Row]:
        """What a mark turns into. Rows that are held back go before it, at the latest before "rewind".

        After that mark a filter gets the effective rows once more, so that its memory is of those.
        """
        return (row,)

    def _rest(self) -> Iterable[Row]:
        """The rows that are still held back. Called once, at the end; the filter then forgets them."""
        return ()

    def _remember(self) -> object:
        """A token that `_recall` can go back to. Must be cheap: every `write` takes one."""
        return None

    def _recall(self, token: object) -> None:
        """Go back to `token`."""

    def _save(self) -> dict[str, object]:
        """The memory as plain JSON data."""
        return {}

    def _load(self, saved: Mapping[str, object]) -> None:
        """Go on from the result of `_save`; an empty mapping means a new start."""


def is_number(value: object) -> bool:
    """Whether it is a float or an integer. Truth values do not count: their mean is no truth value."""
    return isinstance(value, (float, int)) and not isinstance(value, bool)


def with_values(row: Row, values: Mapping[str, Value]) -> Row:
    """The same row with other values."""
    return row.but(values=values)


def with_keys(row: Row, keys: tuple[str, ...]) -> Row:
    """The same mark with other keys."""
    return row.but(keys=keys)
