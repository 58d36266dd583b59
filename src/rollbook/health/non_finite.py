"""A value that was a number and no longer is."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.ground import aliases
from rollbook.ground.records import Alert, RunInfo
from rollbook.health._keyed import Spellings, in_order, meaning, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.ground.columns import Column, Columns, Where

__all__ = ["NonFinite"]

_LOSS_PATIENCE = 10
_MAY_BE_NAN = frozenset({"update/explained_variance"})


class NonFinite:
    """A metric or return that becomes NaN or infinite, or never was a number.

    A quantity that rollbook knows, or a loss: "fail" at the first row that is no number after one that was. Any other
    key: "warn" after `rows` in a row. A key that never held a number: "warn" after `patience` rows, because many
    programs log NaN until there is a value; after ten rows for a loss, which is logged only at updates. Explained
    variances are not checked: they are NaN wherever there is no variance.

    Args:
      rows: how many rows in a row, for keys that rollbook does not know.
      patience: how many first rows of a key may be no numbers.
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
        """A run begins, or continues after a rewind."""
        self._numbers: set[str] = set()  # keys that held a number
        self._in_a_row: dict[str, int] = {}  # how many rows in a row have held none
        self._chosen: dict[str, bool] = {}
        self._spellings = Spellings()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {"numbers": sorted(self._numbers), "in_a_row": self._in_a_row, "spellings": self._spellings.taken}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._numbers, self._in_a_row = set(state["numbers"]), dict(state["in_a_row"])
        self._chosen, self._spellings = {}, Spellings(state.get("spellings"))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        alerts: list[tuple[float, Alert]] = []
        for table in sorted(self.tables):
            odd = columns.non_finite(table)
            for name in columns.keys(table):
                key = name if table == "metrics" else f"{table}/{name}"
                if key not in self._chosen:
                    self._chosen[key] = self._spellings.takes(key)
                if not self._chosen[key]:
                    continue
                if name not in odd:
                    self._numbers.add(key)
                    self._in_a_row.pop(key, None)
                elif meaning(name) not in _MAY_BE_NAN:
                    alerts += self._gone_through(key, columns.column(name, table))
        return in_order(alerts)

    def _gone_through(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        for i, value in enumerate(column.values):
            if math.isfinite(value):
                self._numbers.add(key)
                self._in_a_row.pop(key, None)
                continue
            count = self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
            if key in self._numbers and count == (1 if _is_known(key) else self._rows):
                yield self._alert(key, value, column.where(i), count)
            elif key not in self._numbers and count == self._patience_with(key):
                where = column.where(i)
                clocks = where["clocks"]
                words = f"{key} was never a number in its first {count} rows, the last of them {value}{place(clocks)}"
                evidence = {"value": value, "rows": count, **where}
                yield where["time"], Alert(self.name, "warn", words, evidence, self.source, key, clocks)

    def _patience_with(self, key: str) -> int:
        return min(self._patience, _LOSS_PATIENCE) if _is_loss(key) else self._patience

    def _alert(self, key: str, value: float, where: Where, count: int) -> tuple[float, Alert]:
        often = f" in {count} rows one after the other" if count > 1 else ""
        return where["time"], Alert(
            self.name,
            "fail" if _is_known(key) else "warn",
            f"{key} became {value}{often}{place(where['clocks'])}; it had been a number before",
            {"value": value, "in_a_row": count, **where},
            self.source,
            key,
            where["clocks"],
        )


def _is_loss(key: str) -> bool:
    return meaning(key).startswith("update/loss/") or key.lower().endswith("loss")


def _is_known(key: str) -> bool:
    """Whether a key has a meaning that rollbook knows, or is called a loss."""
    return key.startswith("episodes/") or _is_loss(key) or aliases.describe(meaning(key)) is not None
