"""Parameters that do not move although they are updated."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column


_NONE = 1e-9
"""What rounding leaves of 0 when a ratio of probabilities is computed in single precision."""


class Frozen(KeyedRule):
    """Updates that change nothing: the norm of their step, or the KL divergence they cause, is 0.

    "fail" after `rows` updates in a row. The divergences that PPO logs show it without a further key; the norm of the
    step (`update/step_norm`) shows it everywhere. A learning rate of 0 is also reported by its own rule.

    Args:
      rows: how many updates in a row.
      keys: further keys to check.
    """

    name = "frozen"
    source = "parameters that an update leaves as they are were not updated"
    meanings = frozenset({
        "update/step_norm", "update/policy_step_norm", "update/approx_kl", "update/kl"
    })  # fmt: skip

    def __init__(self, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1:
            raise BadInput(f"rule 'frozen': rows={rows!r} must be at least 1")
        self._rows = rows

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory.setdefault(key, {"zeros": 0})
        last, values = Last(memory, 1), column.values
        if min(values) > _NONE:
            memory["zeros"] = 0
        else:
            for i, value in enumerate(values):
                memory["zeros"] = memory["zeros"] + 1 if abs(value) <= _NONE else 0
                if memory["zeros"] == self._rows:
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        where = last.where()
        return where["time"], Alert(
            self.name,
            "fail",
            f"{key} has been 0 in {self._rows} updates in a row{place(where['clocks'])}: updates do not change the "
            "parameters; usually the optimizer holds others, gradients are cut off, or the step is never called",
            last.evidence(rows=self._rows),
            self.source,
            key,
            where["clocks"],
        )
