"""A loss that does not move any more, to the last bit."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, evidence_of, place
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Constant"]


class Constant(KeyedRule):
    """A loss, gradient norm, divergence or entropy that repeats one value bit for bit.

    Arithmetic on fresh data does not: such a part of the program computes nothing new. Said only of keys that varied
    before.

    Args:
      rows: how often one value must follow itself.
      keys: further keys to look at.
    """

    name = "constant"
    source = "Andy Jones, Debugging RL; Schulman's notes (no signal); the number of rows is rollbook's own"
    meanings = frozenset(
        (
            *("update/loss/total", "update/loss/policy", "update/loss/value", "update/loss/q", "update/loss/entropy"),
            *("update/entropy", "update/approx_kl", "update/kl", "update/gradient_norm"),
        )
    )

    def __init__(self, rows: int = 50, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 3:
            raise BadInput(f"rule 'constant': rows={rows!r} must be at least 3")
        self._rows = rows

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self._runs: dict[str, _Stretch] = {}

    def take(self, key: str, value: float, row: Row) -> Iterable[Alert]:
        """One value of a key that is looked at."""
        stretch = self._runs.get(key)
        if stretch is None:
            self._runs[key] = _Stretch(value, row)
        elif value != stretch.value:
            stretch.value, stretch.first, stretch.rows, stretch.varied = value, row, 1, stretch.varied + 1
        else:
            stretch.rows += 1
            if stretch.rows == self._rows and stretch.varied >= 3:
                since = place(stretch.first.clocks).replace(" at ", " since ")
                yield Alert(
                    self.name,
                    "warn",
                    f"{key} has been exactly {value:g} in {stretch.rows} rows in a row{since}; it varied before",
                    {"value": value, "rows": stretch.rows, "since": dict(stretch.first.clocks), **evidence_of(row)},
                    self.source,
                    key,
                    row.clocks,
                )


class _Stretch:
    """How long a value has followed itself."""

    __slots__ = ("first", "rows", "value", "varied")

    def __init__(self, value: float, first: Row) -> None:
        self.value, self.first, self.rows, self.varied = value, first, 1, 0
