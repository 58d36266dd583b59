"""A value that was a number and is none any more."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import evidence_of, meaning, place
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["NonFinite"]

_MAY_BE_NAN = frozenset({"update/explained_variance"})


class NonFinite:
    """A metric or return that becomes NaN or infinite, or never was a number.

    A key that held numbers and then does not: "warn" at the first row, "fail" when `rows` in a row are none. A key that
    never held a number: "warn" after `patience` rows, for many log NaN as long as there is nothing to tell. Explained
    variances are passed over: they are NaN wherever there is no variance.

    Args:
      rows: how many rows in a row make it a failure.
      patience: how many rows a key may begin with that are no numbers.
    """

    name = "non_finite"
    source = "first one, by TRL's documentation of PPO and GRPO; a key that never was a number by rollbook's own count"
    tables = frozenset({"metrics", "episodes"})

    def __init__(self, rows: int = 3, patience: int = 50) -> None:
        if rows < 1 or patience < 1:
            raise BadInput(f"rule 'non_finite': rows={rows!r} and patience={patience!r} must be at least 1")
        self._rows, self._patience = rows, patience
        self.open(None)

    def open(self, run: RunInfo | None) -> None:
        """A run, or a stretch of it after it went back, begins."""
        self._known: set[tuple[str, ...]] = set()  # key sets whose keys have all held a number
        self._last: dict[str, Row] = {}  # key -> a row in which it was a number, of those that have a bad one
        self._numbers: set[str] = set()
        self._in_a_row: dict[str, int] = {}

    def look(self, rows: Sequence[Row], now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        for row in rows:
            keys = tuple(row.values)
            if keys in self._known and not self._in_a_row and _all_finite(row):
                continue
            yield from self._long_look(row, keys)

    def _long_look(self, row: Row, keys: tuple[str, ...]) -> Iterable[Alert]:
        whole = True
        for name, value in row.values.items():
            if not isinstance(value, (float, int)) or meaning(name) in _MAY_BE_NAN:
                continue
            key = name if row.table == "metrics" else f"{row.table}/{name}"
            if isinstance(value, int) or math.isfinite(value):
                self._numbers.add(key)
                self._in_a_row.pop(key, None)
                continue
            whole = whole and key in self._numbers
            count = self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
            if key in self._numbers and count in (1, self._rows):
                yield self._alert(key, value, row, count)
            elif key not in self._numbers and count == self._patience:
                yield Alert(
                    self.name,
                    "warn",
                    f"{key} was never a number in its first {count} rows, the last of them {value}{place(row.clocks)}",
                    {"value": value, "rows": count, **evidence_of(row)},
                    self.source,
                    key,
                    row.clocks,
                )
        if whole and row.table == "metrics" and len(self._known) < 10_000:
            self._known.add(keys)

    def _alert(self, key: str, value: float, row: Row, count: int) -> Alert:
        failing = count >= self._rows
        often = f" in {count} rows one after the other" if count > 1 else ""
        return Alert(
            self.name,
            "fail" if failing else "warn",
            f"{key} became {value}{often}{place(row.clocks)}; it had been a number before",
            {"value": value, "in_a_row": count, **evidence_of(row)},
            self.source,
            key,
            row.clocks,
        )


def _all_finite(row: Row) -> bool:
    """Whether all values are numbers and finite; False where that takes a longer look."""
    try:
        total = sum(row.values.values())  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False
    return bool(total - total == 0)
